/*
 * job.h: what hvd makes of a device, in a program as users write it, with the device's own calls
 * and NCCL's beside it. The two halves of bench_gpu_job.
 */
#ifndef BENCH_GPU_JOB_H
#define BENCH_GPU_JOB_H

#include "bench/gpu/figures.h"
#include "gpu/device.h"
#include "gpu/nccl.h"

struct job {
    struct figures *figures;
    const struct gpu_device *device;
    const struct cuda *cuda;
    struct CUstream_st *stream;
    const char *way; /* of the figures' names: what is configured */
    size_t mib;      /* of the state, and of the largest buffer */
    uint32_t times;
    float *data; /* on the device: all of it */
};

#define JOB_MIB ((size_t)1 << 20)

/* Says what is wrong, and ends the process. */
void job_must(int code, const char *what);
void job_must_cuda(const struct job *job, int code, const char *what);

int64_t job_now_us(void);

/* The body of train for each benchmark: 0, or the code that train returns. */
int job_reduce(struct job *job);
int job_commit(struct job *job, struct hvd_state *state);

#endif
