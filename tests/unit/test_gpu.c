/* gpu/, over the stand-ins of tests/standin: what is found, and whose memory it is. */
#include "base/limits.h"
#include "gpu/device.h"
#include "gpu/found.h"
#include "gpu/library.h"
#include "gpu/nccl.h"
#include "os/thread.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

#define BYTES 100000U

/* ---- what is found --------------------------------------------------------------------------- */

static void a_missing_driver_is_named(struct test *t)
{
    const struct cuda *cuda = NULL;
    struct hvd_err err = { .code = 0 };

    setenv("HVD_CUDA_LIBRARY", "/nowhere/libcuda.so", 1);
    CHECK_CODE(t, cuda_open(&cuda, &err), HVD_E_UNSUPPORTED);
    CHECK_TEXT(t, err.text,
               "the CUDA driver: HVD_CUDA_LIBRARY names /nowhere/libcuda.so: cannot open shared "
               "object file: No such file or directory; correct it, or unset it");
    CHECK(t, !cuda && !cuda_known() && !cuda_if_used());
    /* what was not there may come */
    fake_gpu_use(1);
    CHECK_OK(t, cuda_open(&cuda, &err));
    CHECK(t, cuda && cuda == cuda_known());
    CHECK_INT(t, cuda->driver_version, ==, 13000);
out:
    return;
}

static void a_library_may_lack_a_call(struct test *t)
{
    const struct cuda *cuda = NULL;
    struct hvd_err err = { .code = 0 };

    setenv("HVD_CUDA_LIBRARY", "libm.so.6", 1);
    CHECK_CODE(t, cuda_open(&cuda, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "the CUDA driver: HVD_CUDA_LIBRARY names libm.so.6, which lacks cu");
    CHECK_HAS(t, err.text, "; correct it, or unset it");
    CHECK(t, !cuda && !cuda_known());
out:
    return;
}

/* Who has named nothing is not told of the variable as of a mistake. */
static void what_nobody_has_named_is_to_be_installed(struct test *t)
{
    struct library_call rows[] = { { .symbol = "this_is_not" }, { .symbol = "nor_is_this" } };
    struct library_spec spec = { .name = "it",
                                 .file = "libnowhere.so.1",
                                 .variable = "HVD_TEST_LIBRARY",
                                 .calls = rows,
                                 .call_count = ARRAY_SIZE(rows) };
    void *table[2] = { NULL };
    struct hvd_err err = { .code = 0 };

    unsetenv("HVD_TEST_LIBRARY");
    for (int i = 0; i < 2; i++) {
        CHECK_CODE(t, library_find(&spec, true, table, &err), HVD_E_UNSUPPORTED);
        CHECK_TEXT(t, err.text,
                   "it: libnowhere.so.1: cannot open shared object file: No such file or "
                   "directory; install it, or name it in HVD_TEST_LIBRARY");
        /* what scripts put there */
        setenv("HVD_TEST_LIBRARY", "libnowhere.so.1", 1);
    }
    spec.file = "libm.so.6";
    CHECK_CODE(t, library_find(&spec, true, table, &err), HVD_E_UNSUPPORTED);
    CHECK_TEXT(t, err.text,
               "it: libm.so.6 lacks this_is_not; install a newer one, or name it in "
               "HVD_TEST_LIBRARY");
    /* linked in, of which no file is known */
    rows[0].symbol = "printf";
    CHECK_CODE(t, library_find(&spec, true, table, &err), HVD_E_UNSUPPORTED);
    CHECK_TEXT(t, err.text,
               "it: the one in this program lacks nor_is_this; install a newer one, or name it in "
               "HVD_TEST_LIBRARY");
out:
    unsetenv("HVD_TEST_LIBRARY");
}

static void a_driver_without_device_is_of_no_use(struct test *t)
{
    const struct cuda *cuda = NULL;
    const struct gpu_device *device = NULL;
    struct hvd_err err = { .code = 0 };

    fake_gpu_use(0);
    CHECK_CODE(t, cuda_open(&cuda, &err), HVD_E_UNSUPPORTED);
    CHECK_INT(t, err.code, ==, HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "the CUDA driver: it cannot be used: CUDA_ERROR_NO_DEVICE");
    CHECK_CODE(t, gpu_device_get(0, &device, &err), HVD_E_UNSUPPORTED);
    CHECK(t, !cuda && !device && !cuda_if_used());
out:
    return;
}

static void an_old_nccl_is_refused(struct test *t)
{
    const struct nccl *nccl = NULL;
    struct hvd_err err = { .code = 0 };

    fake_gpu_use(1);
    setenv("HVD_STANDIN_NCCL", "21705", 1);
    CHECK_CODE(t, nccl_open(&nccl, &err), HVD_E_UNSUPPORTED);
    CHECK_TEXT(t, err.text,
               "NCCL is 2.17.5, and at least 2.18.0 is needed; install it, or name it in "
               "HVD_NCCL_LIBRARY");
    CHECK(t, !nccl);
    setenv("HVD_STANDIN_NCCL", "21800", 1);
    CHECK_OK(t, nccl_open(&nccl, &err));
    CHECK_INT(t, nccl->version, ==, 21800);
    CHECK(t, nccl->cuda == cuda_known());
out:
    unsetenv("HVD_STANDIN_NCCL");
}

static void nccl_needs_a_driver(struct test *t)
{
    const struct nccl *nccl = NULL;
    struct hvd_err err = { .code = 0 };

    fake_gpu_use(1);
    setenv("HVD_CUDA_LIBRARY", "/nowhere/libcuda.so", 1);
    CHECK_CODE(t, nccl_open(&nccl, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "the CUDA driver");
    fake_gpu_use(1);
    setenv("HVD_NCCL_LIBRARY", "/nowhere/libnccl.so", 1);
    CHECK_CODE(t, nccl_open(&nccl, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "NCCL: HVD_NCCL_LIBRARY names /nowhere/libnccl.so: cannot open");
    CHECK_HAS(t, err.text, "; correct it, or unset it");
    setenv("HVD_NCCL_LIBRARY", "libm.so.6", 1);
    CHECK_CODE(t, nccl_open(&nccl, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "NCCL: HVD_NCCL_LIBRARY names libm.so.6, which lacks nccl");
    CHECK_HAS(t, err.text, "; correct it, or unset it");
out:
    return;
}

static void nothing_is_loaded_for_asking(struct test *t)
{
    int here = 0;

    fake_gpu_use(1);
    CHECK(t, !cuda_known() && !cuda_if_used());
    CHECK(t, !gpu_device_current() && !gpu_device_of_stream(NULL) && !gpu_device_of(&here));
    CHECK(t, !cuda_known());
    fake_gpu_load(); /* as a framework does */
    CHECK(t, !cuda_known());
    CHECK(t, cuda_if_used() && cuda_known() == cuda_if_used());
out:
    return;
}

static void devices_are_bounded(struct test *t)
{
    const struct gpu_device *device = NULL;
    const struct gpu_device *again = NULL;
    struct hvd_err err = { .code = 0 };
    char uuid[GPU_UUID_TEXT_MAX];

    fake_gpu_use(2);
    CHECK_CODE(t, gpu_device_get(-1, &device, &err), HVD_E_UNSUPPORTED);
    CHECK_CODE(t, gpu_device_get(LIMIT_GPUS, &device, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "GPU 64: a process can use those below 64");
    CHECK(t, gpu_device_get(2, &device, &err) != 0);
    CHECK_HAS(t, err.text, "GPU 2: it cannot be used: CUDA_ERROR_INVALID_DEVICE");
    CHECK(t, !device);
    CHECK_OK(t, gpu_device_get(1, &device, &err));
    CHECK_OK(t, gpu_device_get(1, &again, &err));
    CHECK(t, device == again);
    CHECK_INT(t, device->ordinal, ==, 1);
    CHECK_TEXT(t, device->name, "stand-in device 1");
    gpu_uuid_text(device, uuid);
    CHECK_INT(t, strlen(uuid), ==, 36);
    CHECK(t, strncmp(uuid, "GPU-57a2d1", 10) == 0);
    CHECK_TEXT(t, uuid + 34, "01");
out:
    return;
}

static void what_is_found_is_shown(struct test *t)
{
    struct buf out;

    buf_init(&out, 4096);
    setenv("HVD_CUDA_LIBRARY", "/nowhere/libcuda.so", 1);
    CHECK_OK(t, gpu_found(&out));
    CHECK_HAS(t, buf_text(&out), "  [ ] GPUs: the CUDA driver: HVD_CUDA_LIBRARY names /nowhere/");
    CHECK_HAS(t, buf_text(&out), "  [ ] NCCL: there is no GPU for it\n");
    buf_clear(&out);
    fake_gpu_use(2);
    setenv("HVD_NCCL_LIBRARY", FAKE_OLD_NCCL, 1);
    CHECK_OK(t, gpu_found(&out));
    CHECK_TEXT(t, buf_text(&out),
               "  [X] GPUs: CUDA driver 13.0\n"
               "  [X]   0: stand-in device 0\n"
               "  [X]   1: stand-in device 1\n"
               "  [X] NCCL 2.21.5, without revoke: it is aborted\n");
out:
    buf_release(&out);
}

/* ---- what went wrong ------------------------------------------------------------------------- */

static void failures_have_words(struct test *t)
{
    const struct nccl *nccl;
    const struct cuda *cuda;
    struct hvd_err err = { .code = 0 };

    fake_gpu_use(1);
    CHECK_OK(t, nccl_open(&nccl, NULL));
    cuda = nccl->cuda;
    CHECK_OK(t, cuda_judge(cuda, CUDA_OK, "it", &err));
    CHECK_CODE(t, cuda_judge(cuda, CUDA_OUT_OF_MEMORY, "a copy", &err), HVD_E_NOMEM);
    CHECK_TEXT(t, err.text, "a copy: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
    CHECK_CODE(t, cuda_judge(cuda, CUDA_INVALID, "a copy", &err), HVD_E_IO);
    CHECK_CODE(t, cuda_judge(cuda, 12345, "a copy", &err), HVD_E_IO);
    CHECK_TEXT(t, err.text, "a copy: an error that the driver does not know: no words for it");
    CHECK_OK(t, nccl_judge(nccl, NCCL_OK, "it", &err));
    CHECK_OK(t, nccl_judge(nccl, NCCL_IN_PROGRESS, "it", &err));
    CHECK_CODE(t, nccl_judge(nccl, NCCL_REMOTE_ERROR, "an allreduce", &err), HVD_E_LOST);
    CHECK_HAS(t, err.text, "an allreduce: NCCL: remote process exited");
    CHECK_CODE(t, nccl_judge(nccl, NCCL_INTERNAL_ERROR, "an allreduce", &err), HVD_E_IO);
out:
    return;
}

/* ---- whose memory it is ------------------------------------------------------------------------
 */

static void pointers_are_told_apart(struct test *t)
{
    const struct gpu_device *first = NULL;
    const struct gpu_device *second = NULL;
    cuda_address one = 0;
    cuda_address other = 0;
    void *host = NULL;
    char *managed = NULL;
    int here = 0;

    fake_gpu_use(2);
    CHECK_OK(t, gpu_device_get(0, &first, NULL));
    CHECK_OK(t, gpu_device_get(1, &second, NULL));
    CHECK_OK(t, gpu_enter(first, NULL));
    CHECK_OK(t, first->cuda->memory_alloc(&one, BYTES));
    CHECK_OK(t, first->cuda->host_alloc(&host, BYTES, 0));
    gpu_leave(first);
    CHECK_OK(t, gpu_enter(second, NULL));
    CHECK_OK(t, second->cuda->memory_alloc(&other, BYTES));
    gpu_leave(second);
    managed = fake_gpu_managed(BYTES);
    managed[0] = 1; /* the host can reach it */
    CHECK(t, gpu_device_of((void *)(uintptr_t)one) == first);
    CHECK(t, gpu_device_of((void *)(uintptr_t)(one + BYTES - 1)) == first);
    CHECK(t, gpu_device_of((void *)(uintptr_t)other) == second);
    CHECK(t, !gpu_device_of(NULL) && !gpu_device_of(&here) && !gpu_device_of(first));
    CHECK(t, !gpu_device_of(host) && !gpu_device_of(managed));
out:
    if (host)
        (void)first->cuda->host_free(host);
    if (one)
        (void)first->cuda->memory_free(one);
    if (other)
        (void)first->cuda->memory_free(other);
    if (managed)
        (void)first->cuda->memory_free((cuda_address)(uintptr_t)managed);
    if (!t->failed && (fake_gpu_live("memory") || fake_gpu_live("pinned")))
        test_fail(t, __FILE__, __LINE__, "memory is left");
}

/* ---- the current device ------------------------------------------------------------------------
 */

static void devices_are_entered_and_left(struct test *t)
{
    const struct gpu_device *first;
    const struct gpu_device *second;
    struct CUstream_st *stream = NULL;
    struct CUctx_st *context = NULL;

    fake_gpu_use(2);
    CHECK_OK(t, gpu_device_get(0, &first, NULL));
    CHECK_OK(t, gpu_device_get(1, &second, NULL));
    CHECK(t, !gpu_device_current() && !gpu_device_of_stream(NULL));
    CHECK_OK(t, gpu_enter(first, NULL));
    CHECK(t, gpu_device_current() == first);
    CHECK_OK(t, gpu_enter(second, NULL));
    CHECK(t, gpu_device_current() == second && gpu_device_of_stream(NULL) == second);
    CHECK_OK(t, second->cuda->stream_create(&stream, CUDA_STREAM_NON_BLOCKING, 0));
    CHECK_OK(t, gpu_enter(second, NULL));
    gpu_leave(second);
    CHECK(t, gpu_device_current() == second);
    gpu_leave(second);
    CHECK(t, gpu_device_current() == first && gpu_device_of_stream(NULL) == first);
    CHECK(t, gpu_device_of_stream(stream) == second);
    CHECK(t, gpu_device_current() == first); /* asking has changed nothing */
    gpu_leave(first);
    CHECK(t, !gpu_device_current() && gpu_device_of_stream(stream) == second);
    CHECK_OK(t, first->cuda->context_current(&context));
    CHECK(t, !context);
out:
    if (stream)
        (void)first->cuda->stream_destroy(stream);
}

static void a_device_that_is_lost_is_not_entered(struct test *t)
{
    const struct gpu_device *device;
    struct hvd_err err = { .code = 0 };

    fake_gpu_use(1);
    CHECK_OK(t, gpu_device_get(0, &device, NULL));
    fake_gpu_faults("device:lost");
    CHECK_CODE(t, gpu_enter(device, &err), HVD_E_IO);
    CHECK_TEXT(t, err.text,
               "stand-in device 0: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure");
    CHECK(t, !gpu_device_current());
out:
    return;
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 8

static void *find_it(void *arg)
{
    const struct gpu_device **ret_device = arg;

    if (gpu_device_get(1, ret_device, NULL))
        *ret_device = NULL;
    return NULL;
}

static void threads_find_the_same(struct test *t)
{
    const struct gpu_device *devices[THREADS] = { NULL };
    pthread_t threads[THREADS];
    size_t started = 0;

    fake_gpu_use(2);
    for (; started < THREADS; started++)
        CHECK_OK(t, thread_start(&threads[started], 0, find_it, &devices[started]));
out:
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < started && !t->failed; i++)
        if (!devices[i] || devices[i] != devices[0])
            test_fail(t, __FILE__, __LINE__, "thread %zu has found another", i);
}

/* Nothing here allocates, and what was found stays found. */
#define CASE_PLAIN(function) CASE_FLAGS(function, TEST_NO_TORTURE)

TESTS(CASE_PLAIN(a_missing_driver_is_named), CASE_PLAIN(a_library_may_lack_a_call),
      CASE_PLAIN(what_nobody_has_named_is_to_be_installed),
      CASE_PLAIN(a_driver_without_device_is_of_no_use), CASE_PLAIN(an_old_nccl_is_refused),
      CASE_PLAIN(nccl_needs_a_driver), CASE_PLAIN(nothing_is_loaded_for_asking),
      CASE_PLAIN(devices_are_bounded), CASE_PLAIN(what_is_found_is_shown),
      CASE_PLAIN(failures_have_words), CASE_PLAIN(pointers_are_told_apart),
      CASE_PLAIN(devices_are_entered_and_left), CASE_PLAIN(a_device_that_is_lost_is_not_entered),
      CASE_PLAIN(threads_find_the_same))
