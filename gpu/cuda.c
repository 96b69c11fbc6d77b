#include "gpu/cuda.h"

#include "gpu/library.h"

#include <pthread.h>
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
static const struct cuda *_Atomic the_cuda; /* &found, once it is complete */

int cuda_judge(const struct cuda *cuda, int code, const char *what, struct hvd_err *err)
{
    const char *name = NULL;
    const char *text = NULL;

    if (code == CUDA_OK)
        return 0;
    if (cuda->error_name(code, &name) || !name)
        name = "an error that the driver does not know";
    if (cuda->error_text(code, &text) || !text)
        text = "no words for it";
    return err_set(err, code == CUDA_OUT_OF_MEMORY ? HVD_E_NOMEM : HVD_E_IO, "%s: %s: %s", what,
                   name, text);
}

/* A driver of a machine without a device can be loaded, and is of no use. */
static int begin(struct cuda *cuda, struct hvd_err *err)
{
    int count = 0;
    int code = cuda->init(0);

    if (code == CUDA_OK)
        code = cuda->get_version(&cuda->driver_version);
    if (code == CUDA_OK)
        code = cuda->device_count(&count);
    if (code == CUDA_OK && count == 0)
        code = CUDA_NO_DEVICE;
    if (cuda_judge(cuda, code, "it cannot be used", err))
        return err_prefix(err, HVD_E_UNSUPPORTED, "the CUDA driver");
    return 0;
}

static int look(bool load, struct hvd_err *err)
{
    struct cuda cuda = { .driver_version = 0 };
    int rc = library_find(&spec, load, &cuda, err);

    if (!rc)
        rc = begin(&cuda, err);
    if (rc)
        return rc;
    found = cuda;
    atomic_store(&the_cuda, &found);
    return 0;
}

int cuda_open(const struct cuda **ret_cuda, struct hvd_err *err)
{
    int rc = 0;

    if (!atomic_load(&the_cuda)) {
        pthread_mutex_lock(&lock);
        if (!atomic_load(&the_cuda))
            rc = look(true, err);
        pthread_mutex_unlock(&lock);
    }
    if (!rc)
        *ret_cuda = atomic_load(&the_cuda);
    return rc;
}

const struct cuda *cuda_known(void)
{
    return atomic_load_explicit(&the_cuda, memory_order_acquire);
}

const struct cuda *cuda_if_used(void)
{
    if (!cuda_known()) {
        pthread_mutex_lock(&lock);
        if (!cuda_known())
            (void)look(false, NULL); /* then it is not used */
        pthread_mutex_unlock(&lock);
    }
    return cuda_known();
}
