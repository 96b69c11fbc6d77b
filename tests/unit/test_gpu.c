/* gpu/ with the stand-ins of tests/standin: which driver and devices are found, and to which device
 * memory belongs. */
#include "base/limits.h"
#include "gpu/device.h"
#include "gpu/library.h"
#include "gpu/nccl.h"
#include "os/thread.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/fixture.h"

#include <stdlib.h>
#include <string.h>

#define BYTES 100000U

/* ---- the driver, the library and the devices ---- */

/* TEST_NO_TORTURE: no case allocates, and a driver that was found stays found. */

/* Each case is a process of its own, so its environment ends with the case. */
static const struct cuda *cuda;
static const struct nccl *nccl;
static const struct gpu_device *device, *first, *second;
static struct hvd_err err;

TEST_FLAGS(a_missing_driver_is_named, TEST_NO_TORTURE)
{
    setenv("HVD_CUDA_LIBRARY", "/nowhere/libcuda.so", 1);
    CHECK_CODE(t, cuda_open(&cuda, &err), HVD_E_UNSUPPORTED);
    CHECK_TEXT(t, err.text,
               "the CUDA driver: HVD_CUDA_LIBRARY names /nowhere/libcuda.so: cannot open shared "
               "object file: No such file or directory; correct this variable, or unset it");
    CHECK(t, !cuda && !cuda_known() && !cuda_if_used());
    /* a driver that was missing may be installed later */
    fake_gpu_use(1);
    CHECK_OK(t, cuda_open(&cuda, &err));
    CHECK(t, cuda && cuda == cuda_known());
    CHECK_INT(t, cuda->driver_version, ==, 13000);
}

TEST_FLAGS(a_library_may_lack_a_call, TEST_NO_TORTURE)
{
    setenv("HVD_CUDA_LIBRARY", "libm.so.6", 1);
    CHECK_CODE(t, cuda_open(&cuda, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "the CUDA driver: HVD_CUDA_LIBRARY names libm.so.6, which lacks cu");
    CHECK_HAS(t, err.text, "; correct this variable, or unset it");
    CHECK(t, !cuda && !cuda_known());
}

/* A user who has not set the variable gets no text about the variable. */
TEST_FLAGS(a_missing_library_is_to_be_installed, TEST_NO_TORTURE)
{
    struct library_call rows[] = { { .symbol = "this_is_not" }, { .symbol = "nor_is_this" } };
    struct library_spec spec = { .name = "it",
                                 .file = "libnowhere.so.1",
                                 .variable = "HVD_TEST_LIBRARY",
                                 .calls = rows,
                                 .call_count = ARRAY_SIZE(rows) };
    void *table[2] = { NULL };

    unsetenv("HVD_TEST_LIBRARY");
    for (int i = 0; i < 2; i++) {
        CHECK_CODE(t, library_find(&spec, true, table, &err), HVD_E_UNSUPPORTED);
        CHECK_TEXT(
            t, err.text,
            "it: libnowhere.so.1: cannot open shared object file: No such file or "
            "directory; install this library, or name the path of the library in HVD_TEST_LIBRARY");
        /* the variable that scripts set */
        setenv("HVD_TEST_LIBRARY", "libnowhere.so.1", 1);
    }
    spec.file = "libm.so.6";
    CHECK_CODE(t, library_find(&spec, true, table, &err), HVD_E_UNSUPPORTED);
    CHECK_TEXT(t, err.text,
               "it: libm.so.6 lacks this_is_not; install a newer library, or name the path of a "
               "newer one in "
               "HVD_TEST_LIBRARY");
    /* a symbol of the program itself, for which no file is known */
    rows[0].symbol = "printf";
    CHECK_CODE(t, library_find(&spec, true, table, &err), HVD_E_UNSUPPORTED);
    CHECK_TEXT(t, err.text,
               "it: the one in this program lacks nor_is_this; install a newer library, or name "
               "the path of a newer one in HVD_TEST_LIBRARY");
}

TEST_FLAGS(a_driver_without_device_is_of_no_use, TEST_NO_TORTURE)
{
    fake_gpu_use(0);
    CHECK_CODE(t, cuda_open(&cuda, &err), HVD_E_UNSUPPORTED);
    CHECK_INT(t, err.code, ==, HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "the CUDA driver: the driver cannot be used: CUDA_ERROR_NO_DEVICE");
    CHECK_CODE(t, gpu_device_get(0, &device, &err), HVD_E_UNSUPPORTED);
    CHECK(t, !cuda && !device && !cuda_if_used());
}

TEST_FLAGS(an_old_nccl_is_refused, TEST_NO_TORTURE)
{
    fake_gpu_use(1);
    setenv("HVD_STANDIN_NCCL", "21705", 1);
    CHECK_CODE(t, nccl_open(&nccl, &err), HVD_E_UNSUPPORTED);
    CHECK_TEXT(t, err.text,
               "NCCL has version 2.17.5, and at least 2.18.0 is needed; install a newer NCCL, or "
               "name the path of a newer one in HVD_NCCL_LIBRARY");
    CHECK(t, !nccl);
    setenv("HVD_STANDIN_NCCL", "21800", 1);
    CHECK_OK(t, nccl_open(&nccl, &err));
    CHECK_INT(t, nccl->version, ==, 21800);
    CHECK(t, nccl->cuda == cuda_known());
}

TEST_FLAGS(nccl_needs_a_driver, TEST_NO_TORTURE)
{
    fake_gpu_use(1);
    setenv("HVD_CUDA_LIBRARY", "/nowhere/libcuda.so", 1);
    CHECK_CODE(t, nccl_open(&nccl, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "the CUDA driver");
    fake_gpu_use(1);
    setenv("HVD_NCCL_LIBRARY", "/nowhere/libnccl.so", 1);
    CHECK_CODE(t, nccl_open(&nccl, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "NCCL: HVD_NCCL_LIBRARY names /nowhere/libnccl.so: cannot open");
    CHECK_HAS(t, err.text, "; correct this variable, or unset it");
    setenv("HVD_NCCL_LIBRARY", "libm.so.6", 1);
    CHECK_CODE(t, nccl_open(&nccl, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "NCCL: HVD_NCCL_LIBRARY names libm.so.6, which lacks nccl");
    CHECK_HAS(t, err.text, "; correct this variable, or unset it");
}

TEST_FLAGS(nothing_is_loaded_for_asking, TEST_NO_TORTURE)
{
    int here = 0;

    fake_gpu_use(1);
    CHECK(t, !cuda_known() && !cuda_if_used());
    CHECK(t, !gpu_device_current() && !gpu_device_of_stream(NULL) && !gpu_device_of(&here));
    CHECK(t, !cuda_known());
    fake_gpu_load(); /* as a framework does */
    CHECK(t, !cuda_known());
    CHECK(t, cuda_if_used() && cuda_known() == cuda_if_used());
}

TEST_FLAGS(devices_are_bounded, TEST_NO_TORTURE)
{
    const struct gpu_device *again = NULL;
    char uuid[GPU_UUID_TEXT_MAX];

    fake_gpu_use(2);
    CHECK_CODE(t, gpu_device_get(-1, &device, &err), HVD_E_UNSUPPORTED);
    CHECK_CODE(t, gpu_device_get(LIMIT_GPUS, &device, &err), HVD_E_UNSUPPORTED);
    CHECK_HAS(t, err.text, "GPU 64: only GPUs with a number below 64 can be used");
    CHECK(t, gpu_device_get(2, &device, &err) != 0);
    CHECK_HAS(t, err.text, "GPU 2: the GPU cannot be used: CUDA_ERROR_INVALID_DEVICE");
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
}

TEST_FLAGS(found_devices_are_shown, TEST_NO_TORTURE)
{
    struct buf out;

    buf_init(&out, 4096);
    setenv("HVD_CUDA_LIBRARY", "/nowhere/libcuda.so", 1);
    CHECK_OK(t, gpu_found(&out));
    CHECK_HAS(t, buf_text(&out), "  [ ] GPUs: the CUDA driver: HVD_CUDA_LIBRARY names /nowhere/");
    CHECK_HAS(t, buf_text(&out), "  [ ] NCCL: there is no GPU\n");
    buf_clear(&out);
    fake_gpu_use(2);
    setenv("HVD_NCCL_LIBRARY", FAKE_OLD_NCCL, 1);
    CHECK_OK(t, gpu_found(&out));
    CHECK_TEXT(t, buf_text(&out),
               "  [X] GPUs: CUDA driver 13.0\n"
               "  [X]   0: stand-in device 0\n"
               "  [X]   1: stand-in device 1\n"
               "  [X] NCCL 2.21.5, without revoke: communicators are aborted\n");
    buf_release(&out);
}

TEST_FLAGS(failures_have_words, TEST_NO_TORTURE)
{
    fake_gpu_use(1);
    CHECK_OK(t, nccl_open(&nccl, NULL));
    cuda = nccl->cuda;
    CHECK_OK(t, cuda_judge(cuda, CUDA_OK, "it", &err));
    CHECK_CODE(t, cuda_judge(cuda, CUDA_OUT_OF_MEMORY, "a copy", &err), HVD_E_NOMEM);
    CHECK_TEXT(t, err.text, "a copy: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
    CHECK_CODE(t, cuda_judge(cuda, CUDA_INVALID, "a copy", &err), HVD_E_IO);
    CHECK_CODE(t, cuda_judge(cuda, 12345, "a copy", &err), HVD_E_IO);
    CHECK_TEXT(t, err.text, "a copy: an unknown error: the driver has no text for this error");
    CHECK_OK(t, nccl_judge(nccl, NCCL_OK, "it", &err));
    CHECK_OK(t, nccl_judge(nccl, NCCL_IN_PROGRESS, "it", &err));
    CHECK_CODE(t, nccl_judge(nccl, NCCL_REMOTE_ERROR, "an allreduce", &err), HVD_E_LOST);
    CHECK_HAS(t, err.text, "an allreduce: NCCL: remote process exited");
    CHECK_CODE(t, nccl_judge(nccl, NCCL_INTERNAL_ERROR, "an allreduce", &err), HVD_E_IO);
}

TEST_FLAGS(pointers_are_told_apart, TEST_NO_TORTURE)
{
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
    (void)first->cuda->host_free(host);
    (void)first->cuda->memory_free(one);
    (void)first->cuda->memory_free(other);
    (void)first->cuda->memory_free((cuda_address)(uintptr_t)managed);
    CHECK(t, !fake_gpu_live("memory") && !fake_gpu_live("pinned"));
}

/* ---- the current device ---- */

TEST_FLAGS(devices_are_entered_and_left, TEST_NO_TORTURE)
{
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
    /* gpu_device_of_stream has not changed the current device */
    CHECK(t, gpu_device_current() == first);
    gpu_leave(first);
    CHECK(t, !gpu_device_current() && gpu_device_of_stream(stream) == second);
    CHECK_OK(t, first->cuda->context_current(&context));
    CHECK(t, !context);
    (void)first->cuda->stream_destroy(stream);
}

TEST_FLAGS(a_device_that_is_lost_is_not_entered, TEST_NO_TORTURE)
{
    fake_gpu_use(1);
    CHECK_OK(t, gpu_device_get(0, &device, NULL));
    fake_gpu_faults("device:lost");
    CHECK_CODE(t, gpu_enter(device, &err), HVD_E_IO);
    CHECK_TEXT(t, err.text,
               "stand-in device 0: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure");
    CHECK(t, !gpu_device_current());
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

TEST_FLAGS(threads_find_the_same, TEST_NO_TORTURE)
{
    const struct gpu_device *devices[THREADS] = { NULL };
    pthread_t threads[THREADS];
    size_t started = 0;

    fake_gpu_use(2);
    for (; started < THREADS; started++)
        CHECK_OK(t, thread_start(&threads[started], 0, find_it, &devices[started]));
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < started; i++)
        CHECK(t, devices[i] && devices[i] == devices[0]);
}
