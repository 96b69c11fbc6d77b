/*
 * kernels.h: two small kernels and a call of the driver that the product does not use, to measure
 * against. The kernels are PTX, which the driver compiles: no CUDA compiler is needed.
 */
#ifndef BENCH_GPU_KERNELS_H
#define BENCH_GPU_KERNELS_H

#include "bench/gpu/team.h"

/* Something that occupies the stream for about so long. */
void kernels_spin(struct member *member, struct CUstream_st *stream, uint32_t ms);

/* Pieces of device memory into one after the other. False: it is not to be had here. */
struct pieces {
    size_t count, bytes; /* of each: a multiple of 16 */
    cuda_address to;
    cuda_address *from;   /* on the host, */
    cuda_address from_at; /* and the same on the device */
};
bool kernels_gather(struct member *member, const struct pieces *pieces);
bool kernels_batch(struct member *member, const struct pieces *pieces);

#endif
