#include "base/mem.h"
#include "collectives/operation.h"
#include "collectives/reduce/reduce.h"

#include <string.h>

/* Every number is reduced on one rank only, in one order, and then passed on: so it is the same on
 * all, bit for bit. Or on all, in the same order of ranks. */

struct job {
    struct coll *coll;
    void *out;
    size_t count;
    hvd_dtype type, work_type;
    hvd_op op;
    size_t bytes, work_bytes; /* of one number */
    uint8_t *work;            /* all of them */
    uint8_t *heard;           /* a part of them, as it comes from the one before */
    size_t reducing;          /* where that part begins, in numbers */
};

/* ---- small: everybody gets what everybody has, and reduces it alone ---- */

#define SMALL_BYTES ((size_t)64 * 1024) /* of all ranks together */

static bool is_small(const struct job *job)
{
    size_t bytes = job->count * job->work_bytes;

    return bytes <= OPENING_MAX && bytes * job->coll->size <= SMALL_BYTES;
}

static void reduce_gathered(const struct job *job, const uint8_t *blocks)
{
    uint32_t size = job->coll->size, rank = job->coll->rank;
    size_t width = job->count * job->work_bytes;

    for (uint32_t i = 0; i < size; i++) {
        const uint8_t *block = blocks + (size_t)((rank + size - i) % size) * width;

        if (i == 0)
            memcpy(job->work, block, width);
        else
            reduce_two(job->work, job->work, block, job->count, job->work_type, job->op);
    }
    reduce_narrow(job->out, job->work, job->count, job->type, job->op, size);
}

/* blocks: that of the rank i before us is the i-th. Each step doubles how many there are. */
static int gather(const struct job *job, uint8_t *blocks)
{
    struct coll *coll = job->coll;
    size_t width = job->count * job->work_bytes;
    const void *payload = NULL;
    int rc = coll_open_with(coll, blocks, width, &payload);

    if (rc)
        return rc;
    memcpy(blocks + width, payload, width);
    for (uint32_t have = 2; have < coll->size && !rc; have *= 2) {
        uint32_t more = have < coll->size - have ? have : coll->size - have;
        struct coll_exchange exchange = {
            .to = (coll->rank + have) % coll->size,
            .from = (coll->rank + coll->size - have) % coll->size,
            .out = blocks,
            .in = blocks + have * width,
            .out_bytes = more * width,
            .in_bytes = more * width,
        };

        rc = coll_exchange(coll, have, &exchange);
    }
    return rc;
}

static int small(const struct job *job)
{
    size_t width = job->count * job->work_bytes;
    uint8_t *blocks = mem_zalloc_array(job->coll->size, width);
    int rc = blocks ? 0 : HVD_E_NOMEM;

    if (!rc) {
        memcpy(blocks, job->work, width);
        rc = gather(job, blocks);
    }
    if (!rc)
        reduce_gathered(job, blocks);
    if (!rc)
        rc = coll_await_all(job->coll); /* blocks are still being sent */
    coll_drop_all(job->coll);
    mem_free(blocks);
    return rc;
}

/* ---- middle: in pairs of growing distance, all of it each time ---- */

#define MIDDLE_BYTES ((size_t)64 * 1024)

static int trade(const struct job *job, size_t step, uint32_t rank, bool out, bool in)
{
    size_t bytes = job->count * job->work_bytes;
    const struct coll_exchange exchange = {
        .to = rank,
        .from = rank,
        .out = job->work,
        .in = job->heard,
        .out_bytes = out ? bytes : 0,
        .in_bytes = in ? bytes : 0,
    };
    int rc = coll_exchange(job->coll, step, &exchange);

    return rc ? rc : coll_await_all(job->coll); /* what was sent is about to change */
}

/* Both compute the same: what the lower ranks have, then what the higher ones have. */
static void merge(const struct job *job, bool we_are_higher)
{
    const uint8_t *low = we_are_higher ? job->heard : job->work;
    const uint8_t *high = we_are_higher ? job->work : job->heard;

    reduce_two(job->work, low, high, job->count, job->work_type, job->op);
}

/* Those past the last power of two give theirs to one below, and get the result from it. */
static int give_and_get(const struct job *job, uint32_t rank)
{
    struct coll_exchange exchange = { .from = rank, .in = job->out };
    int rc = trade(job, 0, rank, true, false);

    exchange.in_bytes = job->count * job->bytes;
    return rc ? rc : coll_exchange(job->coll, 1, &exchange);
}

static int return_to(const struct job *job, uint32_t rank)
{
    const struct coll_exchange exchange = { .to = rank,
                                            .out = job->out,
                                            .out_bytes = job->count * job->bytes };

    return coll_exchange(job->coll, 1, &exchange);
}

static int double_up(const struct job *job)
{
    struct coll *coll = job->coll;
    uint32_t power = 1;
    bool has_other;
    int rc = coll_open_with(coll, NULL, 0, NULL);

    while (power <= coll->size / 2)
        power *= 2;
    if (!rc && coll->rank >= power)
        return give_and_get(job, coll->rank - power);
    has_other = coll->rank < coll->size - power;
    if (!rc && has_other) {
        rc = trade(job, 0, coll->rank + power, false, true);
        if (!rc)
            merge(job, false);
    }
    for (uint32_t distance = 1; distance < power && !rc; distance *= 2) {
        rc = trade(job, 1 + (size_t)distance, coll->rank ^ distance, true, true);
        if (!rc)
            merge(job, coll->rank & distance);
    }
    if (rc)
        return rc;
    reduce_narrow(job->out, job->work, job->count, job->type, job->op, coll->size);
    return has_other ? return_to(job, coll->rank + power) : 0;
}

static int middle(struct job *job)
{
    int rc;

    job->heard = mem_alloc(job->count * job->work_bytes);
    rc = job->heard ? double_up(job) : HVD_E_NOMEM;
    if (!rc)
        rc = coll_await_all(job->coll);
    coll_drop_all(job->coll);
    mem_free(job->heard);
    return rc;
}

/* ---- large: around the ring, each rank reduces a part and passes it on ---- */

static size_t part_at(const struct job *job, uint32_t part)
{
    size_t even = job->count / job->coll->size, rest = job->count % job->coll->size;

    return part * even + (part < rest ? part : rest);
}

static size_t part_count(const struct job *job, uint32_t part)
{
    return part_at(job, part + 1) - part_at(job, part);
}

static void reduce_arrived(void *arg, size_t at, size_t length)
{
    struct job *job = arg;
    uint8_t *ours = job->work + job->reducing * job->work_bytes + at;

    reduce_two(ours, job->heard + at, ours, length / job->work_bytes, job->work_type, job->op);
}

static struct coll_exchange around(const struct coll *coll)
{
    return (struct coll_exchange){
        .to = (coll->rank + 1) % coll->size,
        .from = (coll->rank + coll->size - 1) % coll->size,
    };
}

static int reduce_scatter(struct job *job)
{
    struct coll *coll = job->coll;
    int rc = 0;

    for (uint32_t step = 0; step < coll->size - 1 && !rc; step++) {
        uint32_t out = (coll->rank + coll->size - step) % coll->size;
        uint32_t in = (out + coll->size - 1) % coll->size;
        struct coll_exchange exchange = around(coll);

        exchange.out = job->work + part_at(job, out) * job->work_bytes;
        exchange.out_bytes = part_count(job, out) * job->work_bytes;
        exchange.in = job->heard;
        exchange.in_bytes = part_count(job, in) * job->work_bytes;
        exchange.arrived = reduce_arrived;
        exchange.arg = job;
        job->reducing = part_at(job, in);
        rc = coll_exchange(coll, step, &exchange);
    }
    return rc;
}

static int pass_on(const struct job *job)
{
    struct coll *coll = job->coll;
    int rc = 0;

    for (uint32_t step = 0; step < coll->size - 1 && !rc; step++) {
        uint32_t out = (coll->rank + 1 + coll->size - step) % coll->size;
        uint32_t in = (out + coll->size - 1) % coll->size;
        struct coll_exchange exchange = around(coll);

        exchange.out = (uint8_t *)job->out + part_at(job, out) * job->bytes;
        exchange.out_bytes = part_count(job, out) * job->bytes;
        exchange.in = (uint8_t *)job->out + part_at(job, in) * job->bytes;
        exchange.in_bytes = part_count(job, in) * job->bytes;
        rc = coll_exchange(coll, (size_t)coll->size + step, &exchange);
    }
    return rc;
}

static int ring(struct job *job)
{
    uint32_t own = (job->coll->rank + 1) % job->coll->size;
    size_t at;
    int rc;

    job->heard = mem_alloc((part_count(job, 0) + 1) * job->work_bytes);
    rc = job->heard ? coll_open_with(job->coll, NULL, 0, NULL) : HVD_E_NOMEM;
    if (!rc)
        rc = reduce_scatter(job);
    if (!rc)
        rc = coll_await_all(job->coll);
    if (!rc) {
        at = part_at(job, own);
        reduce_narrow((uint8_t *)job->out + at * job->bytes, job->work + at * job->work_bytes,
                      part_count(job, own), job->type, job->op, job->coll->size);
        rc = pass_on(job);
    }
    if (!rc)
        rc = coll_await_all(job->coll);
    coll_drop_all(job->coll);
    mem_free(job->heard);
    return rc;
}

/* ---- */

static int alone(const struct job *job)
{
    reduce_narrow(job->out, job->work, job->count, job->type, job->op, 1);
    return 0;
}

static int reduce_work(struct job *job)
{
    if (job->coll->size == 1)
        return alone(job);
    if (is_small(job))
        return small(job);
    return job->count * job->work_bytes <= MIDDLE_BYTES ? middle(job) : ring(job);
}

static int reduce_among_all(struct job *job, const void *in)
{
    bool apart = job->work_type != job->type;
    int rc;

    if (!job->count)
        return job->coll->size == 1 ? 0 : coll_open_with(job->coll, NULL, 0, NULL);
    job->work = apart ? mem_alloc(job->count * job->work_bytes) : job->out;
    if (!job->work)
        return HVD_E_NOMEM;
    reduce_widen(job->work, in, job->count, job->type, job->op);
    rc = reduce_work(job);
    if (apart)
        mem_free(job->work);
    return rc;
}

int coll_allreduce(struct coll *coll, const void *in, void *out, size_t count, hvd_dtype type,
                   hvd_op op, struct hvd_err *err)
{
    const struct coll_call call = {
        .kind = COLL_ALLREDUCE, .type = (uint32_t)type, .op = (uint32_t)op, .count = count
    };
    struct job job = { .coll = coll, .out = out, .count = count, .type = type, .op = op };
    int rc;

    if (!reduce_knows(type, op))
        return coll_refuse(coll, err, "allreduce: no such type or operation");
    job.work_type = reduce_work_type(type, op);
    job.bytes = reduce_type_bytes(type);
    job.work_bytes = reduce_type_bytes(job.work_type);
    if (count > SIZE_MAX / 2 / sizeof(uint64_t) || (count && (!in || !out)))
        return coll_refuse(coll, err, "allreduce: no memory for %zu %s", count,
                           reduce_type_name(type));
    rc = coll_begin(coll, &call, err);
    if (rc)
        return rc;
    return coll_end(coll, reduce_among_all(&job, in), err);
}
