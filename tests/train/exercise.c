#include "tests/train/exercise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON (-1.0)

int exercise_settle(const struct card *card)
{
    return card->stream ? hvd_barrier() : 0;
}

static void expect(double found, double right, const char *what, size_t at)
{
    if (found == right)
        return;
    fprintf(stderr, "cadet: wrong: %s: rank %d of %d finds %.0f at %zu, not %.0f\n", what,
            hvd_rank(), hvd_size(), found, at, right);
    exit(EXERCISE_WRONG);
}

static void put(const struct exercise *self, size_t count)
{
    card_put(self->card, self->in, self->host, count * sizeof(*self->host));
}

/* In the end the numbers are here. */
static int get(const struct exercise *self, int rc, const double *from, size_t count)
{
    if (rc)
        return rc;
    card_get(self->card, self->host, from, count * sizeof(*self->host));
    return exercise_settle(self->card);
}

static int least(const struct exercise *self)
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

static int from_root(const struct exercise *self, int root)
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

static int of_all(const struct exercise *self)
{
    const size_t count = (size_t)hvd_size() * EXERCISE_PART;
    int rc;

    for (size_t i = 0; i < EXERCISE_PART; i++)
        self->host[i] = (double)((size_t)hvd_rank() * EXERCISE_PART + i);
    put(self, EXERCISE_PART);
    rc = hvd_allgather(self->in, EXERCISE_PART, self->out, NULL, HVD_FLOAT64);
    rc = get(self, rc, self->out, count);
    for (size_t i = 0; !rc && i < count; i++)
        expect(self->host[i], (double)i, "what all have gathered", i);
    return rc;
}

/* Rank r gives 1, 2, ... as many as r + 1 times. */
static int of_each_another_count(const struct exercise *self)
{
    size_t counts[EXERCISE_RANKS_MAX];
    size_t mine = (size_t)hvd_rank() % EXERCISE_PART + 1, all = 0, at = 0;
    int rc;

    for (size_t rank = 0; rank < (size_t)hvd_size(); rank++)
        all += counts[rank] = rank % EXERCISE_PART + 1;
    for (size_t i = 0; i < mine; i++)
        self->host[i] = (double)(i + 1);
    put(self, mine);
    rc = hvd_allgather(self->in, mine, self->out, counts, HVD_FLOAT64);
    rc = get(self, rc, self->out, all);
    for (size_t rank = 0; !rc && rank < (size_t)hvd_size(); rank++)
        for (size_t i = 0; i < counts[rank]; i++, at++)
            expect(self->host[at], (double)(i + 1), "what each has gathered", at);
    return rc;
}

static int in_parts(const struct exercise *self)
{
    const size_t size = (size_t)hvd_size(), count = size * EXERCISE_PART;
    const size_t mine = (size_t)hvd_rank() * EXERCISE_PART;
    int rc;

    for (size_t i = 0; i < count; i++)
        self->host[i] = (double)(i + (size_t)hvd_rank());
    put(self, count);
    rc = hvd_reducescatter(self->in, self->out, EXERCISE_PART, NULL, HVD_FLOAT64, HVD_SUM);
    rc = get(self, rc, self->out, EXERCISE_PART);
    for (size_t i = 0; !rc && i < EXERCISE_PART; i++) {
        const size_t ranks = size * (size - 1) / 2;

        expect(self->host[i], (double)(size * (mine + i) + ranks), "its part of a sum", i);
    }
    return rc;
}

static int to_each(const struct exercise *self)
{
    const size_t size = (size_t)hvd_size(), count = size * EXERCISE_PART;
    int rc;

    for (size_t i = 0; i < count; i++)
        self->host[i] = (double)((size_t)hvd_rank() * count + i);
    put(self, count);
    rc = hvd_alltoall(self->in, self->out, EXERCISE_PART, HVD_FLOAT64);
    rc = get(self, rc, self->out, count);
    for (size_t from = 0; !rc && from < size; from++)
        for (size_t i = 0; i < EXERCISE_PART; i++)
            expect(self->host[from * EXERCISE_PART + i],
                   (double)(from * count + (size_t)hvd_rank() * EXERCISE_PART + i),
                   "what each has given it", from);
    return rc;
}

static int half_of(const hvd_place *place, void *arg)
{
    (void)arg;
    return place->rank % 2;
}

int exercise_make_groups(struct exercise *self)
{
    return hvd_group_create(half_of, NULL, &self->halves);
}

/* Among every second rank: a communicator of their own. */
static int by_halves(const struct exercise *self)
{
    const hvd_call call = { .kind = HVD_ALLREDUCE,
                            .group = self->halves,
                            .type = HVD_FLOAT64,
                            .op = HVD_SUM,
                            .in = self->in,
                            .out = self->out,
                            .count = EXERCISE_PART };
    double right = 0;
    int rc;

    for (size_t i = 0; i < EXERCISE_PART; i++)
        self->host[i] = hvd_rank();
    put(self, EXERCISE_PART);
    rc = hvd_run(&call);
    rc = get(self, rc, self->out, EXERCISE_PART);
    for (int rank = hvd_rank() % 2; rank < hvd_size(); rank += 2)
        right += rank;
    for (size_t i = 0; !rc && i < EXERCISE_PART; i++)
        expect(self->host[i], right, "a sum of every second rank", i);
    return rc;
}

/* Two at once, by a thread of the library: both are to be waited for, whatever the first came to.
 */
static int meanwhile(const struct exercise *self)
{
    hvd_call call = { .kind = HVD_ALLREDUCE,
                      .type = HVD_FLOAT64,
                      .op = HVD_SUM,
                      .in = self->in,
                      .out = self->out,
                      .count = EXERCISE_PART };
    hvd_request *requests[2] = { NULL, NULL };
    int rc = 0;

    for (size_t i = 0; i < (size_t)2 * EXERCISE_PART; i++)
        self->host[i] = (double)i;
    put(self, (size_t)2 * EXERCISE_PART);
    for (int i = 0; !rc && i < 2; i++) {
        call.in = self->in + (size_t)i * EXERCISE_PART;
        call.out = self->out + (size_t)i * EXERCISE_PART;
        rc = hvd_start(&call, &requests[i]);
    }
    for (int i = 0; i < 2; i++) {
        int waited = requests[i] ? hvd_wait(requests[i]) : 0;

        rc = rc ? rc : waited;
    }
    rc = get(self, rc, self->out, (size_t)2 * EXERCISE_PART);
    for (size_t i = 0; !rc && i < (size_t)2 * EXERCISE_PART; i++)
        expect(self->host[i], (double)(i * (size_t)hvd_size()), "a request's sum", i);
    return rc;
}

int exercise(const struct exercise *self, int64_t step)
{
    if (hvd_size() > EXERCISE_RANKS_MAX)
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
