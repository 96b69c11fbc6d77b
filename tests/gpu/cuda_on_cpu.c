/*
 * cuda_on_cpu.c: the calls of the CUDA runtime that examples/gpt_cuda.cu makes, on the stand-in of
 * the driver, so that this program runs and is checked where there is no GPU.
 */
#include "tests/gpu/cuda_on_cpu.h"

#include "gpu/cuda.h"
#include "gpu/library.h"
#include "hvd/hvd.h"
#include "tests/standin/standin.h"

#include <stdlib.h>
#include <string.h>

/* The stand-in: what is in cuda.h, and where its memory is for the host. */
#define MEMBER(name, symbol, parameters) int(*name) parameters;
static struct standin {
    bool there;
    standin_memory_fn *memory;
    standin_run_fn *run;
    CUDA_CALLS(MEMBER)
} standin;

#define ENTRY(name, symbol, parameters) { symbol, offsetof(struct standin, name), false },
/* clang-format off */
static const struct library_call calls[] = {
    CUDA_CALLS(ENTRY)
    { STANDIN_MEMORY, offsetof(struct standin, memory), false },
    { STANDIN_RUN, offsetof(struct standin, run), false },
};
/* clang-format on */

static cudaError_t last; /* what a launch has met */

/* With HVD_CUDA_LIBRARY, which must then be the stand-in: kernels of the CPU are of no use to a
 * GPU. */
static cudaError_t open_standin(void)
{
    static const struct library_spec spec = {
        "the stand-in of CUDA",           "libcuda-standin.so", "HVD_CUDA_LIBRARY", calls,
        sizeof(calls) / sizeof(calls[0]),
    };
    const char *named = getenv("HVD_CUDA_LIBRARY");

    if (standin.there || !named || !named[0])
        return cudaSuccess;
    if (library_find(&spec, true, &standin, NULL))
        return CUDA_NO_DEVICE;
    standin.there = true;
    return standin.init(0);
}

cudaError_t cudaGetDeviceCount(int *ret_count)
{
    cudaError_t code = open_standin();

    *ret_count = 1;
    return code || !standin.there ? code : standin.device_count(ret_count);
}

cudaError_t cudaSetDevice(int device)
{
    struct CUctx_st *context;
    int handle = 0;
    cudaError_t code = open_standin();

    if (code || !standin.there)
        return code;
    code = standin.device_get(&handle, device);
    if (!code)
        code = standin.context_retain(&context, handle);
    return code ? code : standin.context_push(context);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret_stream, unsigned flags)
{
    *ret_stream = NULL;
    return standin.there ? standin.stream_create(ret_stream, flags, 0) : cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaError_t code = standin.there ? standin.stream_sync(stream) : cudaSuccess;

    if (code)
        last = code;
    return code;
}

cudaError_t cudaDeviceSynchronize(void)
{
    return cudaStreamSynchronize(NULL);
}

int on_cpu_set_stream(cudaStream_t stream)
{
    return standin.there ? hvd_set_stream(stream) : 0;
}

void *on_cpu_memory(const void *at)
{
    return standin.there ? standin.memory(at) : (void *)(uintptr_t)at;
}

void on_cpu_run(cudaStream_t stream, void (*run)(void *arg), void *arg)
{
    if (standin.there)
        standin.run(stream, run, arg);
    else
        run(arg);
}

cudaError_t cudaMalloc(void **ret_at, size_t bytes)
{
    cuda_address at = 0;
    cudaError_t code;

    if (!standin.there) {
        *ret_at = malloc(bytes);
        return *ret_at ? cudaSuccess : CUDA_OUT_OF_MEMORY;
    }
    code = standin.memory_alloc(&at, bytes);
    *ret_at = (void *)(uintptr_t)at;
    return code;
}

cudaError_t cudaFree(void *at)
{
    if (standin.there)
        return at ? standin.memory_free((cuda_address)(uintptr_t)at) : cudaSuccess;
    free(at);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *at, int byte, size_t bytes, cudaStream_t stream)
{
    if (standin.there)
        return standin.fill((cuda_address)(uintptr_t)at, (unsigned char)byte, bytes, stream);
    memset(at, byte, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *at, int byte, size_t bytes)
{
    cudaError_t code = cudaMemsetAsync(at, byte, bytes, NULL);

    return code ? code : cudaStreamSynchronize(NULL);
}

/* Which of the two is the device's is asked of the stand-in. Pageable memory
 * may change when the call has returned, so the copy waits. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream)
{
    cudaError_t code;

    (void)kind;
    if (!standin.there) {
        memcpy(to, from, bytes);
        return cudaSuccess;
    }
    if (standin.memory(to))
        code = standin.to_device((cuda_address)(uintptr_t)to, from, bytes, stream);
    else
        code = standin.to_host(to, (cuda_address)(uintptr_t)from, bytes, stream);
    return code ? code : cudaStreamSynchronize(stream);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    return cudaMemcpyAsync(to, from, bytes, kind, NULL);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t code = last;

    last = cudaSuccess;
    return code;
}

const char *cudaGetErrorString(cudaError_t code)
{
    const char *text = NULL;

    if (!standin.there)
        return code == CUDA_NO_DEVICE ? "no stand-in where HVD_CUDA_LIBRARY says" : "out of memory";
    return standin.error_text(code, &text) || !text ? "unknown" : text;
}
