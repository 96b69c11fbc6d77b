/*
 * gpu_memory.h: GPU memory of a program that calls the CUDA driver itself. The host cannot touch
 * the memory, so values are copied out, changed and copied in. A driver call that fails ends the
 * process, as it would end such a program.
 */
#ifndef TESTS_WORKERS_GPU_MEMORY_H
#define TESTS_WORKERS_GPU_MEMORY_H

#include "gpu/cuda.h"

#define GPU_MEMORY_LOST 5 /* the exit code after a driver call that failed */

struct gpu_memory {
    const struct cuda *cuda;
    struct CUstream_st *stream; /* NULL: the default stream */
};

/* From now on the calling thread works with the device of this number. */
void gpu_memory_open(struct gpu_memory *gpu, int ordinal, bool own_stream);
void *gpu_memory_alloc(const struct gpu_memory *gpu, size_t bytes); /* zeroed */

/* Copies, after the work that is already in the stream. get waits for the copy; put does not, so
 * its source must not change until the next get. */
void gpu_memory_put(const struct gpu_memory *gpu, void *to, const void *from, size_t bytes);
void gpu_memory_get(const struct gpu_memory *gpu, void *to, const void *from, size_t bytes);

#endif
