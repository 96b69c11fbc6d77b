/*
 * gpu_collectives.h: collectives on memory of a GPU, besides the sum of gradients, each with a
 * known result. Every step runs another collective, so that all forms are in use when a worker
 * dies.
 */
#ifndef TESTS_WORKERS_GPU_COLLECTIVES_H
#define TESTS_WORKERS_GPU_COLLECTIVES_H

#include "hvd/hvd.h"
#include "tests/workers/gpu_memory.h"

#define GPU_COLLECTIVES_RANKS_MAX 32
#define GPU_COLLECTIVES_PART      16 /* numbers that belong to one rank */

struct gpu_collectives {
    const struct gpu_memory *gpu;
    hvd_group *halves;     /* the ranks with an even number, or with an odd one */
    size_t count;          /* of weights */
    const double *weights; /* in host memory: equal on all ranks */
    double *in, *out;      /* device memory of GPU_COLLECTIVES_ROOM(count) numbers each */
    double *host;          /* host memory of the same size */
};
#define GPU_COLLECTIVES_ROOM(count) \
    ((count) + (size_t)GPU_COLLECTIVES_RANKS_MAX * GPU_COLLECTIVES_PART)

/* Call it before hvd_elastic_run. Returns what hvd_group_create returns. */
int gpu_collectives_make_groups(struct gpu_collectives *self);

/* Runs the collective of this step and checks its result. A wrong number ends the process. */
int gpu_collective_check(const struct gpu_collectives *self, int64_t step);

/* With a stream of its own, a call returns before its work is done, and the next call reports a
 * failure. So bytes copied from the device are valid only after gpu_settle has returned 0. */
int gpu_settle(const struct gpu_memory *gpu);

#endif
