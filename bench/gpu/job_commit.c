/* job_commit.c: commits and restores of state in device memory, beside copies of as many bytes. */
#include "bench/gpu/job.h"

#include "hvd/hvd.h"

#include <stdio.h>

#define PIECE (32 * JOB_MIB)

struct beside { /* what is copied to and from, for comparison */
    cuda_address there;
    char *host;
};

static void add(const struct job *job, const char *what, const char *unit, double value)
{
    char name[FIGURE_NAME_MAX];

    snprintf(name, sizeof(name), "%s, %s", what, job->way);
    figure_add(job->figures, "commit", name, 0, unit, value);
}

static double rate(const struct job *job, int64_t begun_us)
{
    return (double)(job->mib * JOB_MIB) / 1e9 / ((double)(job_now_us() - begun_us + 1) / 1e6);
}

static cuda_address at(const struct job *job)
{
    return (cuda_address)(uintptr_t)job->data;
}

static void await_stream(const struct job *job)
{
    job_must_cuda(job, job->cuda->stream_sync(job->stream), "the stream");
}

/* The limits of device and bus, in the same run. */
static void measure_limits(const struct job *job, const struct beside *beside)
{
    size_t bytes = job->mib * JOB_MIB;
    int64_t begun_us = job_now_us();

    job_must_cuda(job, job->cuda->on_device(beside->there, at(job), bytes, job->stream), "a copy");
    await_stream(job);
    add(job, "limit: a copy on the device", "GB/s", rate(job, begun_us));
    begun_us = job_now_us();
    for (size_t i = 0; i < bytes; i += PIECE)
        job_must_cuda(job,
                      job->cuda->to_host(beside->host + i, at(job) + i,
                                         PIECE < bytes - i ? PIECE : bytes - i, job->stream),
                      "a copy");
    await_stream(job);
    add(job, "limit: device to pinned memory", "GB/s", rate(job, begun_us));
    begun_us = job_now_us();
    job_must_cuda(job, job->cuda->to_device(at(job), beside->host, bytes, job->stream), "a copy");
    await_stream(job);
    add(job, "limit: pinned memory to device", "GB/s", rate(job, begun_us));
}

/* A commit when the one before is whole; what the loop is held up for, what the stream is, and when
 * it is where it is to be. */
static int measure_commit(const struct job *job, hvd_state *state)
{
    int64_t begun_us = job_now_us();
    int code = hvd_state_commit(state);

    if (code)
        return code;
    add(job, "commit: the call", "ms", (double)(job_now_us() - begun_us) / 1e3);
    await_stream(job);
    add(job, "commit: until the program's stream goes on", "ms",
        (double)(job_now_us() - begun_us) / 1e3);
    code = hvd_state_fence(state);
    if (!code)
        add(job, "commit: until a fence says that it is whole", "GB/s", rate(job, begun_us));
    return code;
}

static int measure_restore(const struct job *job, hvd_state *state)
{
    int64_t begun_us = job_now_us();
    int code = hvd_state_restore(state);

    await_stream(job);
    if (!code)
        add(job, "restore", "GB/s", rate(job, begun_us));
    return code;
}

int job_commit(struct job *job, hvd_state *state)
{
    size_t bytes = job->mib * JOB_MIB;
    struct beside beside = { .host = NULL };
    void *host = NULL;
    int code = 0;

    job_must_cuda(job, job->cuda->memory_alloc(&beside.there, bytes), "device memory");
    job_must_cuda(job, job->cuda->host_alloc(&host, bytes, CUDA_PIN_PORTABLE), "pinned memory");
    beside.host = host;
    for (uint32_t i = 0; i <= job->times && !code; i++) {
        job_must_cuda(job, job->cuda->fill(at(job), (unsigned char)i, bytes, job->stream),
                      "a fill");
        await_stream(job);
        if (i == 0) { /* memory is taken and pinned the first time */
            int64_t begun_us = job_now_us();

            code = hvd_state_commit(state);
            if (!code)
                code = hvd_state_fence(state);
            add(job, "the first commit, with all that it takes", "ms",
                (double)(job_now_us() - begun_us) / 1e3);
            continue;
        }
        measure_limits(job, &beside);
        code = measure_commit(job, state);
        if (!code)
            code = measure_restore(job, state);
    }
    job_must_cuda(job, job->cuda->memory_free(beside.there), "device memory");
    job_must_cuda(job, job->cuda->host_free(host), "pinned memory");
    return code;
}
