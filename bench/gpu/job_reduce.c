/* job_reduce.c: allreduces by hvd, in a stream, beside NCCL alone in the same process. */
#include "bench/gpu/job.h"

#include "hvd/hvd.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define WARM_UP_US   INT64_C(3000000) /* a communicator is made meanwhile */
#define IN_A_ROW_MAX 50
#define ROW_BYTES    ((size_t)64 << 20) /* so much is summed for one time */

struct reduce {
    struct job *job;
    const struct nccl *nccl;
    struct ncclComm *comm;
};

/* NCCL's state for this process, when it is done with what it was asked for. */
static void settle(const struct reduce *reduce, int code, const char *what)
{
    while (code == NCCL_IN_PROGRESS) {
        int rc = reduce->nccl->async_error(reduce->comm, &code);

        if (rc != NCCL_OK)
            code = rc;
        sched_yield();
    }
    if (code != NCCL_OK) {
        fprintf(stderr, "bench_gpu_job: %s: %s\n", what, reduce->nccl->result_text(code));
        job_must(HVD_E_IO, what);
    }
}

/* A communicator of our own, of all ranks of the round. */
static int open_nccl(struct reduce *reduce)
{
    struct nccl_config config = { sizeof(config), NCCL_CONFIG_MAGIC, NCCL_CONFIG_VERSION, 0 };
    struct hvd_err err = { .text = "" };
    struct nccl_id id = { .bytes = "" };
    int code;

    if (nccl_open(&reduce->nccl, &err)) {
        fprintf(stderr, "bench_gpu_job: %s\n", err.text);
        return HVD_E_UNSUPPORTED;
    }
    if (hvd_rank() == 0)
        settle(reduce, reduce->nccl->unique_id(&id), "an id");
    code = hvd_broadcast(&id, sizeof(id), HVD_UINT8, 0);
    if (code)
        return code;
    settle(reduce, reduce->nccl->comm_init(&reduce->comm, hvd_size(), id, hvd_rank(), &config),
           "a communicator");
    return 0;
}

static void await_stream(const struct job *job)
{
    job_must_cuda(job, job->cuda->stream_sync(job->stream), "the stream");
}

/* NCCL takes one thread for each device. hvd has one that looks at what it has queued, and calls
 * NCCL for that, until it knows the end: which it does when a call outside of streams returns. */
static int keep_hvd_out(const struct job *job)
{
    int code = hvd_set_stream(HVD_NO_STREAM);

    if (!code)
        code = hvd_allreduce(job->data, job->data, 1, HVD_FLOAT32, HVD_SUM);
    if (!code)
        code = hvd_set_stream(job->stream);
    return code;
}

static double plain(const struct reduce *reduce, size_t count, size_t in_a_row)
{
    const struct job *job = reduce->job;
    int64_t start_us = job_now_us();

    for (size_t i = 0; i < in_a_row; i++)
        settle(reduce,
               reduce->nccl->allreduce(job->data, job->data, count, NCCL_FLOAT32, NCCL_SUM,
                                       reduce->comm, job->stream),
               "an allreduce");
    await_stream(job);
    return (double)(job_now_us() - start_us) / 1e6;
}

/* The last code counts: after any failure the round is dead. */
static double ours(const struct reduce *reduce, size_t count, size_t in_a_row, int *ret_code)
{
    const struct job *job = reduce->job;
    int64_t start_us = job_now_us();
    int code = 0;

    for (size_t i = 0; i < in_a_row && !code; i++)
        code = hvd_allreduce(job->data, job->data, count, HVD_FLOAT32, HVD_SUM);
    await_stream(job);
    *ret_code = code;
    return (double)(job_now_us() - start_us) / 1e6;
}

static void add(const struct job *job, const char *what, size_t bytes, size_t in_a_row,
                double seconds)
{
    char name[FIGURE_NAME_MAX];

    snprintf(name, sizeof(name), "%s, %zu KiB, %s", what, bytes >> 10, job->way);
    figure_add(job->figures, "reduce", name, (uint32_t)hvd_size(), "GB/s",
               (double)bytes * (double)in_a_row / 1e9 / seconds);
}

static int beside(const struct reduce *reduce, size_t bytes)
{
    const struct job *job = reduce->job;
    size_t count = bytes / sizeof(float);
    size_t in_a_row = ROW_BYTES / bytes < IN_A_ROW_MAX ? ROW_BYTES / bytes + 1 : IN_A_ROW_MAX;
    char name[FIGURE_NAME_MAX];
    int code = 0;

    for (uint32_t i = 0; i <= job->times && !code; i++) {
        double theirs = plain(reduce, count, in_a_row);
        double mine = ours(reduce, count, in_a_row, &code);

        if (!code)
            code = keep_hvd_out(job);
        if (i == 0 || code)
            continue;
        add(job, "NCCL alone", bytes, in_a_row, theirs);
        add(job, "hvd_allreduce in a stream", bytes, in_a_row, mine);
        snprintf(name, sizeof(name), "hvd beside NCCL alone, %zu KiB, %s", bytes >> 10, job->way);
        figure_add(job->figures, "reduce", name, (uint32_t)hvd_size(), "%", 100.0 * theirs / mine);
    }
    return code;
}

/* Until NCCL is certainly there, for all equally often. */
static int warm_up(const struct reduce *reduce)
{
    int64_t start_us = job_now_us();
    uint8_t again = 1;
    int code = 0;

    while (again && !code) {
        ours(reduce, JOB_MIB / sizeof(float), 1, &code);
        again = job_now_us() < start_us + WARM_UP_US;
        if (!code)
            code = hvd_broadcast(&again, 1, HVD_UINT8, 0);
    }
    return code ? code : keep_hvd_out(reduce->job);
}

int job_reduce(struct job *job)
{
    static const size_t sizes[] = { (size_t)64 << 10, JOB_MIB, 16 * JOB_MIB, 128 * JOB_MIB };
    struct reduce reduce = { .job = job };
    int code = warm_up(&reduce);

    if (!code)
        code = open_nccl(&reduce);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && !code; i++)
        if (sizes[i] <= job->mib * JOB_MIB)
            code = beside(&reduce, sizes[i]);
    if (!code)
        code = keep_hvd_out(job); /* and what was ours is with all */
    if (reduce.comm)
        settle(&reduce, reduce.nccl->comm_abort(reduce.comm), "an abort");
    return code;
}
