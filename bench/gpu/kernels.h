/*
 * kernels.h: two small kernels and a call of the driver that the product does not use, to measure
 * against. The kernels are PTX, which the driver compiles: no CUDA compiler is needed.
 */
#ifndef BENCH_GPU_KERNELS_H
#define BENCH_GPU_KERNELS_H

#include "bench/gpu/team.h"

/* Occupies the stream for about so long. */
void kernels_spin(struct member *member, struct CUstream_st *stream, uint32_t ms);

/* Pieces of device memory, which lie apart. */
struct pieces {
    size_t count;
    size_t bytes; /* of each piece; a multiple of 16 */
    cuda_address to;
    /* the device addresses of the pieces; the list itself is in host memory (for kernels_batch) */
    cuda_address *from;
    cuda_address from_at; /* of a copy of this list in device memory (for kernels_gather) */
};

/* Both functions copy the pieces to `to`, one directly behind the other. False: this machine's CUDA
 * driver cannot do it, or no memory is left for the lists of the batch. */
bool kernels_gather(struct member *member, const struct pieces *pieces);
bool kernels_batch(struct member *member, const struct pieces *pieces);

#endif
