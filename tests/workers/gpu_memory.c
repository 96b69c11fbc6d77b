/*
 * gpu_memory.c: calls of the CUDA driver, as a training program makes them: memory, copies, a
 * stream. A call that fails ends the process.
 */
#include "tests/workers/gpu_memory.h"

#include <stdio.h>
#include <stdlib.h>

static void must(const struct gpu_memory *gpu, int code, const char *what)
{
    struct hvd_err err;

    if (!cuda_judge(gpu->cuda, code, what, &err))
        return;
    fprintf(stderr, "gpu_memory: %s\n", err.text);
    exit(GPU_MEMORY_LOST);
}

static cuda_address address_of(const void *memory)
{
    return (cuda_address)(uintptr_t)memory;
}

void gpu_memory_open(struct gpu_memory *gpu, int ordinal, bool own_stream)
{
    struct CUctx_st *context;
    struct hvd_err err;
    int device = 0;

    *gpu = (struct gpu_memory){ .cuda = NULL };
    if (cuda_open(&gpu->cuda, &err)) {
        fprintf(stderr, "gpu_memory: %s\n", err.text);
        exit(GPU_MEMORY_LOST);
    }
    must(gpu, gpu->cuda->device_get(&device, ordinal), "the device");
    must(gpu, gpu->cuda->context_retain(&context, device), "the context");
    must(gpu, gpu->cuda->context_push(context), "the current context");
    if (own_stream)
        must(gpu, gpu->cuda->stream_create(&gpu->stream, CUDA_STREAM_NON_BLOCKING, 0), "a stream");
}

void *gpu_memory_alloc(const struct gpu_memory *gpu, size_t bytes)
{
    cuda_address at = 0;

    must(gpu, gpu->cuda->memory_alloc(&at, bytes), "memory");
    must(gpu, gpu->cuda->fill(at, 0, bytes, gpu->stream), "the clearing of memory");
    must(gpu, gpu->cuda->stream_sync(gpu->stream), "the clearing of memory");
    return (void *)(uintptr_t)at;
}

void gpu_memory_put(const struct gpu_memory *gpu, void *to, const void *from, size_t bytes)
{
    must(gpu, gpu->cuda->to_device(address_of(to), from, bytes, gpu->stream), "a copy in");
}

void gpu_memory_get(const struct gpu_memory *gpu, void *to, const void *from, size_t bytes)
{
    must(gpu, gpu->cuda->to_host(to, address_of(from), bytes, gpu->stream), "a copy out");
    must(gpu, gpu->cuda->stream_sync(gpu->stream), "to wait for a copy out");
}
