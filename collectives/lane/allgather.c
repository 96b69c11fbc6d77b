#include "collectives/operation.h"
#include "collectives/reduce/reduce.h"

#include <string.h>

struct job {
    struct coll *coll;
    uint8_t *out;
    const size_t *counts; /* NULL: all give count */
    size_t count, bytes;
};

static size_t bytes_of(const struct job *job, uint32_t rank)
{
    return (job->counts ? job->counts[rank] : job->count) * job->bytes;
}

static uint8_t *block_of(const struct job *job, uint32_t rank)
{
    size_t before = 0;

    if (!job->counts)
        return job->out + rank * job->count * job->bytes;
    for (uint32_t i = 0; i < rank; i++)
        before += job->counts[i];
    return job->out + before * job->bytes;
}

/* Around the ring: each passes on what it has got the step before. */
static int pass_around(const struct job *job)
{
    struct coll *coll = job->coll;
    int rc = coll_open_with(coll, NULL, 0, NULL);

    for (uint32_t step = 0; step < coll->size - 1 && !rc; step++) {
        uint32_t out = (coll->rank + coll->size - step) % coll->size;
        uint32_t in = (out + coll->size - 1) % coll->size;
        const struct coll_exchange exchange = {
            .to = (coll->rank + 1) % coll->size,
            .from = (coll->rank + coll->size - 1) % coll->size,
            .out = block_of(job, out),
            .in = block_of(job, in),
            .out_bytes = bytes_of(job, out),
            .in_bytes = bytes_of(job, in),
        };

        rc = coll_exchange(coll, step, &exchange);
    }
    return rc;
}

/* What must be the same on all; false: more than there can be memory for. */
static bool sum_counts(const struct job *job, uint64_t *ret_sum)
{
    size_t left = SIZE_MAX / 2 / job->bytes;
    uint64_t sum = job->counts != NULL;

    for (uint32_t i = 0; i < job->coll->size; i++) {
        size_t count = job->counts ? job->counts[i] : job->count;

        if (count > left)
            return false;
        left -= count;
        sum = (sum ^ count) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    *ret_sum = sum;
    return true;
}

int coll_allgather(struct coll *coll, const void *in, size_t count, void *out, const size_t *counts,
                   hvd_dtype type, struct hvd_err *err)
{
    struct job job = { coll, out, counts, count, reduce_type_bytes(type) };
    struct coll_call call = { .kind = COLL_ALLGATHER, .type = (uint32_t)type };
    int rc;

    if (!job.bytes)
        return coll_refuse(coll, err, "allgather: no such type");
    if (counts && counts[coll->rank] != count)
        return coll_refuse(coll, err, "allgather: rank %u gives %zu, but counts says %zu",
                           coll->rank, count, counts[coll->rank]);
    if ((count && (!in || !out)) || !sum_counts(&job, &call.count))
        return coll_refuse(coll, err, "allgather: no memory for %zu %s of each rank", count,
                           reduce_type_name(type));
    rc = coll_begin(coll, &call, err);
    if (rc)
        return rc;
    if (count && in != block_of(&job, coll->rank))
        memmove(block_of(&job, coll->rank), in, count * job.bytes);
    if (coll->size > 1)
        rc = pass_around(&job);
    return coll_end(coll, rc, err);
}
