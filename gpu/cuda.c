/*
 * cuda.c: finds the CUDA driver, and puts its codes into words. Each call looks for the driver
 * until a usable one is found; that one is kept for the life of the process.
 */
#include "gpu/cuda.h"

#include "gpu/library.h"

#include <stdatomic.h>

#define CALL_ROW(member, name_there, parameters) \
    { .symbol = (name_there), .offset = offsetof(struct cuda, member) },
static const struct library_call calls[] = { CUDA_CALLS(CALL_ROW) };
#undef CALL_ROW

static const struct library_spec spec = { .name = "the CUDA driver",
                                          .file = "libcuda.so.1",
                                          .variable = "HVD_CUDA_LIBRARY",
                                          .calls = calls,
                                          .call_count = ARRAY_SIZE(calls) };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cuda found;
static const void *_Atomic the_cuda; /* &found once `found` is complete; NULL: not found yet */

/* Turns a code of the CUDA driver into ours: 0, HVD_E_NOMEM or HVD_E_IO. `what`: the call that
 * returned the code, as the error's text names it. */
int cuda_judge(const struct cuda *cuda, int code, const char *what, struct hvd_err *err)
{
    const char *name = NULL;
    const char *text = NULL;

    if (code == CUDA_OK)
        return 0;
    if (cuda->error_name(code, &name) || !name)
        name = "an unknown error";
    if (cuda->error_text(code, &text) || !text)
        text = "the driver has no text for this error";
    return err_set(err, code == CUDA_OUT_OF_MEMORY ? HVD_E_NOMEM : HVD_E_IO, "%s: %s: %s", what,
                   name, text);
}

/* Looks for the functions of the CUDA driver and initialises the driver; library_once calls this
 * until it succeeds. *arg is a bool; true: the driver's library may be loaded; false: only a driver
 * counts that the process has loaded already. */
static int find_cuda(void *arg, const void **ret_found, struct hvd_err *err)
{
    const bool *load = arg;
    struct cuda cuda = { .driver_version = 0 };
    int count = 0, code;
    int rc = library_find(&spec, *load, &cuda, err);

    if (rc)
        return rc;
    code = cuda.init(0);
    if (code == CUDA_OK)
        code = cuda.get_version(&cuda.driver_version);
    if (code == CUDA_OK)
        code = cuda.device_count(&count);
    /* a machine without a GPU may have the driver's library: it loads, but nothing can be done
     * with it */
    if (code == CUDA_OK && count == 0)
        code = CUDA_NO_DEVICE;
    if (cuda_judge(&cuda, code, "the driver cannot be used", err))
        return err_prefix(err, HVD_E_UNSUPPORTED, "the CUDA driver");
    found = cuda;
    *ret_found = &found;
    return 0;
}

/* Returns the driver, and loads its library if the process has not loaded it (cuda.h). */
int cuda_open(const struct cuda **ret_cuda, struct hvd_err *err)
{
    int rc = library_once(&lock, &the_cuda, find_cuda, &(bool){ true }, err);

    if (!rc)
        *ret_cuda = atomic_load(&the_cuda);
    return rc;
}

/* Returns the driver that cuda_open or cuda_if_used has found before; NULL: none. Does not search.
 */
const struct cuda *cuda_known(void)
{
    return atomic_load_explicit(&the_cuda, memory_order_acquire);
}

/* Returns the driver if this process has loaded it already; NULL: it has not. Loads nothing: that
 * is what `false` asks of find_cuda. */
const struct cuda *cuda_if_used(void)
{
    if (library_once(&lock, &the_cuda, find_cuda, &(bool){ false }, NULL))
        return NULL;
    return cuda_known();
}
