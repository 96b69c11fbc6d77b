/*
 * gpu_collectives.c: a different collective on device memory in each step, in all forms and in
 * groups, with a result that every rank can compute.
 */
#include "tests/workers/gpu_collectives.h"

#include "tests/workers/worker_report.h"

#include <string.h>

#define POISON (-1.0)

int gpu_settle(const struct gpu_memory *gpu)
{
    return gpu->stream ? hvd_barrier() : 0;
}

static void expect(double found, double right, const char *what, size_t at)
{
    if (found != right)
        worker_wrong("%s: rank %d of %d finds %.0f at %zu, not %.0f", what, hvd_rank(), hvd_size(),
                     found, at, right);
}

static void put(const struct gpu_collectives *self, size_t count)
{
    gpu_memory_put(self->gpu, self->in, self->host, count * sizeof(*self->host));
}

/* Copies the result of a collective to the host, where its numbers are checked. */
static int get(const struct gpu_collectives *self, int rc, const double *from, size_t count)
{
    if (rc)
        return rc;
    gpu_memory_get(self->gpu, self->host, from, count * sizeof(*self->host));
    return gpu_settle(self->gpu);
}

static int least(const struct gpu_collectives *self)
{
    int rc;

    memcpy(self->host, self->weights, self->count * sizeof(*self->host));
    put(self, self->count);
    rc = hvd_allreduce(self->in, self->out, self->count, HVD_FLOAT64, HVD_MIN);
    rc = get(self, rc, self->out, self->count);
    for (size_t i = 0; !rc && i < self->count; i++)
        expect(self->host[i], self->weights[i], "the least weight of all", i);
    return rc;
}

static int from_root(const struct gpu_collectives *self, int root)
{
    int rc;

    for (size_t i = 0; i < self->count; i++)
        self->host[i] = hvd_rank() == root ? self->weights[i] : POISON;
    put(self, self->count);
    rc = hvd_broadcast(self->in, self->count, HVD_FLOAT64, root);
    rc = get(self, rc, self->in, self->count);
    for (size_t i = 0; !rc && i < self->count; i++)
        expect(self->host[i], self->weights[i], "a weight of the root's", i);
    return rc;
}

static int of_all(const struct gpu_collectives *self)
{
    const size_t count = (size_t)hvd_size() * GPU_COLLECTIVES_PART;
    int rc;

    for (size_t i = 0; i < GPU_COLLECTIVES_PART; i++)
        self->host[i] = (double)((size_t)hvd_rank() * GPU_COLLECTIVES_PART + i);
    put(self, GPU_COLLECTIVES_PART);
    rc = hvd_allgather(self->in, GPU_COLLECTIVES_PART, self->out, NULL, HVD_FLOAT64);
    rc = get(self, rc, self->out, count);
    for (size_t i = 0; !rc && i < count; i++)
        expect(self->host[i], (double)i, "an allgather", i);
    return rc;
}

/* An allgather in which rank r gives the numbers 1, 2, ..., r + 1. */
static int of_each_another_count(const struct gpu_collectives *self)
{
    size_t counts[GPU_COLLECTIVES_RANKS_MAX];
    size_t mine = (size_t)hvd_rank() % GPU_COLLECTIVES_PART + 1, all = 0, at = 0;
    int rc;

    for (size_t rank = 0; rank < (size_t)hvd_size(); rank++)
        all += counts[rank] = rank % GPU_COLLECTIVES_PART + 1;
    for (size_t i = 0; i < mine; i++)
        self->host[i] = (double)(i + 1);
    put(self, mine);
    rc = hvd_allgather(self->in, mine, self->out, counts, HVD_FLOAT64);
    rc = get(self, rc, self->out, all);
    for (size_t rank = 0; !rc && rank < (size_t)hvd_size(); rank++)
        for (size_t i = 0; i < counts[rank]; i++, at++)
            expect(self->host[at], (double)(i + 1), "an uneven allgather", at);
    return rc;
}

/* A reducescatter whose sums every rank can compute. */
static int in_parts(const struct gpu_collectives *self)
{
    const size_t size = (size_t)hvd_size(), count = size * GPU_COLLECTIVES_PART;
    const size_t mine = (size_t)hvd_rank() * GPU_COLLECTIVES_PART;
    int rc;

    for (size_t i = 0; i < count; i++)
        self->host[i] = (double)(i + (size_t)hvd_rank());
    put(self, count);
    rc = hvd_reducescatter(self->in, self->out, GPU_COLLECTIVES_PART, NULL, HVD_FLOAT64, HVD_SUM);
    rc = get(self, rc, self->out, GPU_COLLECTIVES_PART);
    for (size_t i = 0; !rc && i < GPU_COLLECTIVES_PART; i++) {
        const size_t ranks = size * (size - 1) / 2;

        expect(self->host[i], (double)(size * (mine + i) + ranks), "a reducescatter", i);
    }
    return rc;
}

/* An alltoall; each number tells its sender and its place. */
static int to_each(const struct gpu_collectives *self)
{
    const size_t size = (size_t)hvd_size(), count = size * GPU_COLLECTIVES_PART;
    int rc;

    for (size_t i = 0; i < count; i++)
        self->host[i] = (double)((size_t)hvd_rank() * count + i);
    put(self, count);
    rc = hvd_alltoall(self->in, self->out, GPU_COLLECTIVES_PART, HVD_FLOAT64);
    rc = get(self, rc, self->out, count);
    for (size_t from = 0; !rc && from < size; from++)
        for (size_t i = 0; i < GPU_COLLECTIVES_PART; i++)
            expect(self->host[from * GPU_COLLECTIVES_PART + i],
                   (double)(from * count + (size_t)hvd_rank() * GPU_COLLECTIVES_PART + i),
                   "an alltoall", from);
    return rc;
}

static int half_of(const hvd_place *place, void *arg)
{
    (void)arg;
    return place->rank % 2;
}

int gpu_collectives_make_groups(struct gpu_collectives *self)
{
    return hvd_group_create(half_of, NULL, &self->halves);
}

/* A collective in groups of every second rank, which have communicators of their own. */
static int by_halves(const struct gpu_collectives *self)
{
    const hvd_call call = { .kind = HVD_ALLREDUCE,
                            .group = self->halves,
                            .type = HVD_FLOAT64,
                            .op = HVD_SUM,
                            .in = self->in,
                            .out = self->out,
                            .count = GPU_COLLECTIVES_PART };
    double right = 0;
    int rc;

    for (size_t i = 0; i < GPU_COLLECTIVES_PART; i++)
        self->host[i] = hvd_rank();
    put(self, GPU_COLLECTIVES_PART);
    rc = hvd_run(&call);
    rc = get(self, rc, self->out, GPU_COLLECTIVES_PART);
    for (int rank = hvd_rank() % 2; rank < hvd_size(); rank += 2)
        right += rank;
    for (size_t i = 0; !rc && i < GPU_COLLECTIVES_PART; i++)
        expect(self->host[i], right, "a sum of every second rank", i);
    return rc;
}

/* Two operations at once, in a thread of the library. Both must be waited for, even if the first
 * has failed. */
static int meanwhile(const struct gpu_collectives *self)
{
    hvd_call call = { .kind = HVD_ALLREDUCE,
                      .type = HVD_FLOAT64,
                      .op = HVD_SUM,
                      .in = self->in,
                      .out = self->out,
                      .count = GPU_COLLECTIVES_PART };
    hvd_request *requests[2] = { NULL, NULL };
    int rc = 0;

    for (size_t i = 0; i < (size_t)2 * GPU_COLLECTIVES_PART; i++)
        self->host[i] = (double)i;
    put(self, (size_t)2 * GPU_COLLECTIVES_PART);
    for (int i = 0; !rc && i < 2; i++) {
        call.in = self->in + (size_t)i * GPU_COLLECTIVES_PART;
        call.out = self->out + (size_t)i * GPU_COLLECTIVES_PART;
        rc = hvd_start(&call, &requests[i]);
    }
    for (int i = 0; i < 2; i++) {
        int waited = requests[i] ? hvd_wait(requests[i]) : 0;

        rc = rc ? rc : waited;
    }
    rc = get(self, rc, self->out, (size_t)2 * GPU_COLLECTIVES_PART);
    for (size_t i = 0; !rc && i < (size_t)2 * GPU_COLLECTIVES_PART; i++)
        expect(self->host[i], (double)(i * (size_t)hvd_size()), "a request's sum", i);
    return rc;
}

int gpu_collective_check(const struct gpu_collectives *self, int64_t step)
{
    if (hvd_size() > GPU_COLLECTIVES_RANKS_MAX)
        return HVD_E_LIMIT;
    switch (step % 8) {
    case 0: return least(self);
    case 1: return from_root(self, (int)(step / 8 % hvd_size()));
    case 2: return of_all(self);
    case 3: return of_each_another_count(self);
    case 4: return in_parts(self);
    case 5: return by_halves(self);
    case 6: return meanwhile(self);
    default: return to_each(self);
    }
}
