/*
 * cuda_on_cpu.h: as much of CUDA as examples/gpt_cuda.cu uses, for a machine without a GPU. Its
 * kernels are compiled for the CPU: one thread after the other, in plain loops, so that what they
 * compute can be held to gpt.c anywhere. That they are fast, or free of races, this cannot show.
 *
 * Memory is the host's. With HVD_CUDA_LIBRARY, which then names the stand-in of the driver, it is
 * the stand-in's, which no host code can touch; streams are its streams, and a kernel runs in its
 * turn. So hvd meets device memory, and streams that are busy.
 */
#ifndef TESTS_GPU_CUDA_ON_CPU_H
#define TESTS_GPU_CUDA_ON_CPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;
typedef struct CUstream_st *cudaStream_t;
typedef int cudaError_t;

enum { cudaSuccess = 0, cudaMemcpyDefault = 4, cudaStreamNonBlocking = 1 };

cudaError_t cudaGetDeviceCount(int *ret_count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret_stream, unsigned flags);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaMalloc(void **ret_at, size_t bytes);
cudaError_t cudaFree(void *at);
cudaError_t cudaMemset(void *at, int byte, size_t bytes);
cudaError_t cudaMemsetAsync(void *at, int byte, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
                            cudaStream_t stream);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t code);

/* hvd_set_stream, where there are streams. */
int on_cpu_set_stream(cudaStream_t stream);

/* Where the host finds what the device has there; at itself, where that is the host's. */
void *on_cpu_memory(const void *at);

/* In its turn in the stream; at once, where there are no streams. */
void on_cpu_run(cudaStream_t stream, void (*run)(void *arg), void *arg);

#ifdef __cplusplus
}

#define __global__ static
#define __device__

struct on_cpu_index {
    size_t x;
};
static struct on_cpu_index blockIdx, blockDim = { 1 }, threadIdx;

/* An argument of a kernel, as the kernel may use it. */
template <typename T> static T on_cpu_given(T value)
{
    return value;
}
template <typename T> static T *on_cpu_given(T *at)
{
    return (T *)on_cpu_memory(at);
}

template <typename Body> static void on_cpu_body(void *arg)
{
    Body *body = (Body *)arg;

    (*body)();
    delete body;
}

#define LAUNCH(kernel, count, ...) on_cpu_launch(stream, kernel, (size_t)(count), __VA_ARGS__)
template <typename... Wanted, typename... Given>
static void on_cpu_launch(cudaStream_t stream, void (*kernel)(size_t, Wanted...), size_t count,
                          Given... given)
{
    auto body = [kernel, count, given...] {
        for (blockIdx.x = 0; blockIdx.x < count; blockIdx.x++)
            kernel(count, on_cpu_given((Wanted)given)...);
    };

    on_cpu_run(stream, on_cpu_body<decltype(body)>, new decltype(body)(body));
}
#endif

#endif
