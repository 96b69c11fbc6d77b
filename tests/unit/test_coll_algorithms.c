/*
 * What the operations come to, over links that are played: threads of this process. Numbers are
 * small enough that every order gives the same, but for where it is the order that is looked at.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "collectives/coll_inside.h"
#include "collectives/reduce/half.h"
#include "collectives/reduce/reduce.h"
#include "tests/lib/fake_link.h"
#include "tests/lib/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)
#define SIZE_LIMIT           17

struct crew {
    struct fake_net *net;
    struct coll *colls[SIZE_LIMIT];
    uint32_t size;
    int rc[SIZE_LIMIT];
    struct hvd_err err[SIZE_LIMIT];
    void *out[SIZE_LIMIT]; /* what an operation came to */

    void (*act)(struct crew *crew, uint32_t rank);
    size_t count, counts[SIZE_LIMIT];
    hvd_dtype type;
    hvd_op op;
    uint32_t root;
    bool random;
};

struct seat {
    struct crew *crew;
    uint32_t rank;
    pthread_t thread;
};

static void crew_open(struct crew *crew, uint32_t size)
{
    struct coll_peer peers[SIZE_LIMIT] = { { 0 } };

    memset(crew, 0, sizeof(*crew));
    crew->size = size;
    crew->net = fake_net_create(size);
    for (uint32_t i = 0; i < size; i++)
        peers[i].incarnation = 100 + i;
    for (uint32_t i = 0; i < size; i++) {
        const struct coll_roster roster = { 1, i, size, peers };

        if (coll_create(NULL, &roster, &crew->colls[i], NULL))
            abort();
        crew->colls[i]->link = fake_net_link(crew->net, i);
    }
}

static void crew_close(struct crew *crew)
{
    for (uint32_t i = 0; i < crew->size; i++) {
        coll_free(crew->colls[i]);
        mem_free(crew->out[i]);
    }
    fake_net_free(crew->net);
}

static void *play(void *arg)
{
    struct seat *seat = arg;

    seat->crew->act(seat->crew, seat->rank);
    return NULL;
}

static void crew_run(struct crew *crew, void (*act)(struct crew *crew, uint32_t rank))
{
    struct seat seats[SIZE_LIMIT];

    crew->act = act;
    for (uint32_t i = 0; i < crew->size; i++) {
        mem_free(crew->out[i]);
        crew->out[i] = NULL;
        seats[i] = (struct seat){ .crew = crew, .rank = i };
        if (pthread_create(&seats[i].thread, NULL, play, &seats[i]))
            abort();
    }
    for (uint32_t i = 0; i < crew->size; i++)
        pthread_join(seats[i].thread, NULL);
}

/* ---- numbers ---- */

static void put(hvd_dtype type, void *base, size_t at, double number)
{
    switch (type) {
    case HVD_UINT8: ((uint8_t *)base)[at] = (uint8_t)number; break;
    case HVD_INT8: ((int8_t *)base)[at] = (int8_t)number; break;
    case HVD_INT32: ((int32_t *)base)[at] = (int32_t)number; break;
    case HVD_INT64: ((int64_t *)base)[at] = (int64_t)number; break;
    case HVD_FLOAT16: ((uint16_t *)base)[at] = half_from_float((float)number); break;
    case HVD_BFLOAT16: ((uint16_t *)base)[at] = bfloat_from_float((float)number); break;
    case HVD_FLOAT32: ((float *)base)[at] = (float)number; break;
    case HVD_FLOAT64: ((double *)base)[at] = number; break;
    }
}

/* From 1 to 4; a product of nine of them is exact in no less than 24 bits: there, 1 or 2. */
static double input(const struct crew *crew, uint32_t rank, size_t at)
{
    size_t spread = crew->op == HVD_PRODUCT ? 2 : 4;

    if (crew->op == HVD_PRODUCT && rank > 5)
        return 1;
    return (double)(1 + (rank * 7 + at * 3) % spread);
}

static double expected(const struct crew *crew, size_t at)
{
    double result = input(crew, 0, at);

    for (uint32_t i = 1; i < crew->size; i++) {
        double next = input(crew, i, at);

        switch (crew->op) {
        case HVD_SUM:
        case HVD_AVERAGE: result += next; break;
        case HVD_MIN: result = next < result ? next : result; break;
        case HVD_MAX: result = next > result ? next : result; break;
        case HVD_PRODUCT: result *= next; break;
        }
    }
    if (crew->op != HVD_AVERAGE)
        return result;
    if (crew->type <= HVD_INT64)
        return floor(result / crew->size);
    return crew->type == HVD_FLOAT64 ? result / crew->size
                                     : (double)((float)result / (float)crew->size);
}

static void fill(const struct crew *crew, void *into, uint32_t rank)
{
    struct rng rng;

    rng_seed(&rng, rank + 1);
    for (size_t i = 0; i < crew->count; i++)
        put(crew->type, into, i,
            crew->random ? (double)rng_below(&rng, 1000000) / 7.0 : input(crew, rank, i));
}

/* ---- allreduce ---- */

static void act_allreduce(struct crew *crew, uint32_t rank)
{
    size_t bytes = crew->count * reduce_type_bytes(crew->type);
    void *in = mem_zalloc(bytes);
    bool in_place = rank % 2;

    crew->out[rank] = mem_zalloc(bytes);
    if (!in || !crew->out[rank])
        abort();
    fill(crew, in_place ? crew->out[rank] : in, rank);
    crew->rc[rank] =
        coll_allreduce(crew->colls[rank], in_place ? crew->out[rank] : in, crew->out[rank],
                       crew->count, crew->type, crew->op, &crew->err[rank]);
    mem_free(in);
}

static void check_allreduce(struct test *t, struct crew *crew)
{
    size_t bytes = crew->count * reduce_type_bytes(crew->type);
    void *right = mem_zalloc(bytes);

    CHECK(t, right);
    crew_run(crew, act_allreduce);
    for (size_t i = 0; i < crew->count; i++)
        put(crew->type, right, i, expected(crew, i));
    for (uint32_t i = 0; i < crew->size; i++) {
        CHECK_OK(t, crew->rc[i]);
        CHECK(t, !memcmp(crew->out[i], crew->out[0], bytes));
        if (!crew->random)
            CHECK(t, !memcmp(crew->out[i], right, bytes));
    }
    CHECK(t, !fake_net_strayed(crew->net));
out:
    mem_free(right);
}

/* One of each algorithm, and the edges between them. */
static const size_t counts[] = { 0, 1, 2, 5, 511, 512, 1025, 3000, 8193, 20000 };

static void allreduce_of_each_type_and_op(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (uint32_t size = 1; size <= 9; size++) {
        crew_open(&crew, size);
        for (crew.type = HVD_UINT8; crew.type <= HVD_FLOAT64; crew.type++) {
            for (crew.op = HVD_SUM; crew.op <= HVD_PRODUCT; crew.op++) {
                crew.count = counts[(crew.type * 5 + crew.op + size) % ARRAY_SIZE(counts)];
                check_allreduce(t, &crew);
                CHECK(t, !t->failed);
            }
        }
        crew_close(&crew);
        crew.size = 0;
    }
out:
    if (crew.size)
        crew_close(&crew);
}

static void allreduce_of_each_size_and_count(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (uint32_t size = 1; size <= SIZE_LIMIT; size++) {
        crew_open(&crew, size);
        for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
            crew.type = HVD_FLOAT32;
            crew.count = counts[i];
            check_allreduce(t, &crew);
            CHECK(t, !t->failed);
        }
        crew_close(&crew);
        crew.size = 0;
    }
out:
    if (crew.size)
        crew_close(&crew);
}

/* More than one segment in each part, and parts that end within one. */
static void allreduce_of_much(struct test *t)
{
    struct crew crew;

    crew_open(&crew, 3);
    crew.type = HVD_FLOAT32;
    crew.count = 3 * (SEGMENT_BYTES / 4) * 2 + 12345;
    check_allreduce(t, &crew);
    crew.type = HVD_FLOAT16;
    crew.op = HVD_AVERAGE;
    check_allreduce(t, &crew);
    crew_close(&crew);
}

/* Sums whose order matters. */
static void results_are_the_same_bit_for_bit(struct test *t)
{
    static const hvd_dtype types[] = { HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32, HVD_FLOAT64 };
    struct crew crew = { .size = 0 };

    for (uint32_t size = 2; size <= 9; size++) {
        crew_open(&crew, size);
        crew.random = true;
        for (size_t i = 0; i < ARRAY_SIZE(types) * 4; i++) {
            crew.type = types[i % 4];
            crew.op = i / 4 % 2 ? HVD_PRODUCT : HVD_AVERAGE;
            crew.count = counts[4 + i % 6];
            check_allreduce(t, &crew);
            CHECK(t, !t->failed);
        }
        crew_close(&crew);
        crew.size = 0;
    }
out:
    if (crew.size)
        crew_close(&crew);
}

static void act_tiny_steps(struct crew *crew, uint32_t rank)
{
    uint16_t *out = mem_zalloc(crew->count * sizeof(*out));

    if (!out)
        abort();
    for (size_t i = 0; i < crew->count; i++)
        out[i] = half_from_float(rank ? 0.5f : 2048.0f);
    crew->out[rank] = out;
    crew->rc[rank] = coll_allreduce(crew->colls[rank], out, out, crew->count, HVD_FLOAT16, HVD_SUM,
                                    &crew->err[rank]);
}

/* In fp16, 2048 + 0.5 is 2048, eight times; in fp32 the sum is 2052. */
static void fp16_is_summed_in_fp32(struct test *t)
{
    static const size_t each[] = { 3, 5000, 50000 };
    struct crew crew;

    crew_open(&crew, 9);
    for (size_t k = 0; k < ARRAY_SIZE(each); k++) {
        crew.count = each[k];
        crew_run(&crew, act_tiny_steps);
        for (uint32_t i = 0; i < crew.size; i++) {
            CHECK_OK(t, crew.rc[i]);
            for (size_t j = 0; j < crew.count; j++)
                CHECK(t, ((uint16_t *)crew.out[i])[j] == half_from_float(2052));
        }
    }
out:
    crew_close(&crew);
}

/* ---- the others ---- */

static void act_broadcast(struct crew *crew, uint32_t rank)
{
    uint8_t *out = mem_zalloc(crew->count);

    if (!out)
        abort();
    if (rank == crew->root)
        fill(crew, out, rank);
    crew->out[rank] = out;
    crew->rc[rank] = coll_broadcast(crew->colls[rank], out, crew->count, HVD_UINT8, crew->root,
                                    &crew->err[rank]);
}

static void broadcast_from_each(struct test *t)
{
    static const size_t each[] = { 0, 1, 1000, 70000 };
    struct crew crew = { .size = 0 };

    for (uint32_t size = 1; size <= SIZE_LIMIT; size++) {
        crew_open(&crew, size);
        crew.random = true;
        for (crew.root = 0; crew.root < size; crew.root++) {
            crew.count = crew.root == 1 ? 3 * SEGMENT_BYTES + 1 : each[crew.root % 4];
            crew_run(&crew, act_broadcast);
            for (uint32_t i = 0; i < size; i++) {
                CHECK_OK(t, crew.rc[i]);
                CHECK(t, !memcmp(crew.out[i], crew.out[crew.root], crew.count));
            }
        }
        CHECK(t, !fake_net_strayed(crew.net));
        crew_close(&crew);
        crew.size = 0;
    }
out:
    if (crew.size)
        crew_close(&crew);
}

static void act_allgather(struct crew *crew, uint32_t rank)
{
    size_t own = crew->counts[rank], all = 0, before = 0;
    bool in_place = rank % 2;
    int32_t *in;

    for (uint32_t i = 0; i < crew->size; i++) {
        before += i < rank ? crew->counts[i] : 0;
        all += crew->counts[i];
    }
    crew->out[rank] = mem_zalloc(all * sizeof(*in));
    in = in_place ? (int32_t *)crew->out[rank] + before : mem_zalloc(own * sizeof(*in));
    if (!in || !crew->out[rank])
        abort();
    for (size_t i = 0; i < own; i++)
        in[i] = (int32_t)(rank * 1000000 + i);
    crew->rc[rank] =
        coll_allgather(crew->colls[rank], in, own, crew->out[rank],
                       crew->random ? crew->counts : NULL, HVD_INT32, &crew->err[rank]);
    if (!in_place)
        mem_free(in);
}

static void check_allgather(struct test *t, struct crew *crew)
{
    crew_run(crew, act_allgather);
    for (uint32_t i = 0; i < crew->size; i++) {
        const int32_t *out = crew->out[i];

        CHECK_OK(t, crew->rc[i]);
        for (uint32_t j = 0; j < crew->size; j++) {
            for (size_t k = 0; k < crew->counts[j]; k++)
                CHECK_INT(t, *out++, ==, j * 1000000 + k);
        }
    }
out:;
}

static void allgather_of_equal_and_unequal_parts(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (uint32_t size = 1; size <= 9; size++) {
        crew_open(&crew, size);
        for (uint32_t i = 0; i < size; i++)
            crew.counts[i] = 777;
        check_allgather(t, &crew);
        crew.random = true; /* counts are given */
        for (uint32_t i = 0; i < size; i++)
            crew.counts[i] = i % 3 == 1 ? 0 : (size_t)i * 1000 + 1;
        crew.counts[size - 1] = 400000;
        check_allgather(t, &crew);
        CHECK(t, !t->failed);
        crew_close(&crew);
        crew.size = 0;
    }
out:
    if (crew.size)
        crew_close(&crew);
}

static atomic_uint arrived;

static void act_barrier(struct crew *crew, uint32_t rank)
{
    for (unsigned i = 1; i <= 20 && !crew->rc[rank]; i++) {
        atomic_fetch_add(&arrived, 1);
        crew->rc[rank] = coll_barrier(crew->colls[rank], &crew->err[rank]);
        if (atomic_load(&arrived) < i * crew->size)
            crew->rc[rank] = 1;
    }
}

static void nobody_leaves_a_barrier_early(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (uint32_t size = 1; size <= SIZE_LIMIT; size++) {
        atomic_store(&arrived, 0);
        crew_open(&crew, size);
        crew_run(&crew, act_barrier);
        for (uint32_t i = 0; i < size; i++)
            CHECK_OK(t, crew.rc[i]);
        crew_close(&crew);
        crew.size = 0;
    }
out:
    if (crew.size)
        crew_close(&crew);
}

/* ---- what is wrong ---- */

static int wrong_call(struct coll *coll, int which, struct hvd_err *err)
{
    size_t three[] = { 3 };
    float x[4] = { 1, 2, 3, 4 };

    switch (which) {
    case 0: return coll_allreduce(coll, x, x, 4, (hvd_dtype)8, HVD_SUM, err);
    case 1: return coll_allreduce(coll, x, x, 4, HVD_FLOAT32, (hvd_op)5, err);
    case 2: return coll_allreduce(coll, NULL, x, 4, HVD_FLOAT32, HVD_SUM, err);
    case 3: return coll_allreduce(coll, x, x, SIZE_MAX / 2, HVD_FLOAT32, HVD_SUM, err);
    case 4: return coll_broadcast(coll, x, 4, HVD_FLOAT32, 1, err);
    case 5: return coll_broadcast(coll, x, 4, (hvd_dtype)99, 0, err);
    case 6: return coll_broadcast(coll, NULL, 4, HVD_FLOAT32, 0, err);
    case 7: return coll_allgather(coll, x, 4, x, three, HVD_FLOAT32, err);
    case 8: return coll_allgather(coll, x, SIZE_MAX / 2, x, NULL, HVD_FLOAT32, err);
    case 9: return coll_allgather(coll, NULL, 4, x, NULL, HVD_FLOAT32, err);
    case 10: return coll_allgather(coll, x, 4, x, NULL, (hvd_dtype)99, err);
    default: return 1;
    }
}

/* The others would wait for this rank: the round is over. */
static void a_wrong_call_ends_the_round(struct test *t)
{
    const struct coll_peer peers[] = { { .incarnation = 1 } };
    const struct coll_roster one = { 7, 0, 1, peers };
    struct hvd_err err = { .text = "" };
    struct coll *coll = NULL;
    float x = 4;

    for (int which = 0; which <= 10; which++) {
        CHECK_OK(t, coll_create(NULL, &one, &coll, &err));
        CHECK_OK(t, coll_connect(coll, 0, &err));
        CHECK_OK(t, coll_allreduce(coll, &x, &x, 1, HVD_FLOAT32, HVD_AVERAGE, &err));
        CHECK(t, x == 4);
        CHECK_CODE(t, wrong_call(coll, which, &err), HVD_E_INVAL);
        CHECK_HAS(t, err.text, "rank 0: ");
        CHECK_CODE(t, coll_barrier(coll, &err), HVD_E_REVOKED);
        coll_free(coll);
        coll = NULL;
    }
out:
    coll_free(coll);
}

static void one_alone(struct test *t)
{
    const struct coll_peer peers[] = { { .incarnation = 1 } };
    const struct coll_roster one = { 7, 0, 1, peers };
    const struct coll_roster none = { 7, 0, 0, peers }, outside = { 7, 1, 1, peers };
    struct hvd_err err = { .text = "" };
    struct coll *coll = NULL;

    CHECK_CODE(t, coll_create(NULL, &none, &coll, &err), HVD_E_INVAL);
    CHECK_CODE(t, coll_create(NULL, &outside, &coll, &err), HVD_E_INVAL);
    CHECK_OK(t, coll_create(NULL, &one, &coll, &err));
    CHECK_OK(t, coll_connect(coll, 0, &err));
    CHECK_OK(t, coll_barrier(coll, &err));
    coll_cancel(coll);
    coll_cancel(coll);
    CHECK_CODE(t, coll_barrier(coll, &err), HVD_E_REVOKED);
    CHECK_HAS(t, err.text, "round 7 was revoked");
out:
    coll_free(coll);
}

static void act_differently(struct crew *crew, uint32_t rank)
{
    int32_t x[600] = { 0 };

    if (rank == crew->root)
        crew->rc[rank] =
            coll_allreduce(crew->colls[rank], x, x, 600, HVD_INT32, HVD_SUM, &crew->err[rank]);
    else
        crew->rc[rank] =
            coll_allreduce(crew->colls[rank], x, x, 500, HVD_INT32, HVD_SUM, &crew->err[rank]);
}

/* The one after it and it itself can say what; here nobody tells the others. */
static void other_counts_are_a_mismatch(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (uint32_t size = 2; size <= 5; size++) {
        uint32_t named = 0;

        crew_open(&crew, size);
        crew.root = size - 1;
        crew_run(&crew, act_differently);
        for (uint32_t i = 0; i < size; i++) {
            CHECK(t, crew.rc[i] == HVD_E_MISMATCH || crew.rc[i] == HVD_E_REVOKED);
            named += crew.rc[i] == HVD_E_MISMATCH;
            if (crew.rc[i] == HVD_E_MISMATCH)
                CHECK_HAS(t, crew.err[i].text, "operation 1 is allreduce (sum) of 600 int32");
            CHECK_CODE(t, coll_barrier(crew.colls[i], &crew.err[i]), HVD_E_REVOKED);
        }
        CHECK_INT(t, named, >=, 1);
        crew_close(&crew);
        crew.size = 0;
    }
out:
    if (crew.size)
        crew_close(&crew);
}

static void act_until_revoked(struct crew *crew, uint32_t rank)
{
    struct coll_wait wait;
    float x = 1;

    if (rank == crew->root) { /* stops the first one, once that waits for it or has begun */
        do
            coll_wait_look(crew->colls[rank ? 0 : 1], &wait);
        while (!wait.number);
        coll_cancel(crew->colls[rank ? 0 : 1]);
        return;
    }
    while (!crew->rc[rank])
        crew->rc[rank] =
            coll_allreduce(crew->colls[rank], &x, &x, 1, HVD_FLOAT32, HVD_MAX, &crew->err[rank]);
}

static void cancelling_one_ends_all(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (uint32_t size = 2; size <= 9; size++) {
        crew_open(&crew, size);
        crew.root = size / 2;
        crew_run(&crew, act_until_revoked);
        for (uint32_t i = 0; i < size; i++)
            CHECK_INT(t, crew.rc[i], ==, i == crew.root ? 0 : HVD_E_REVOKED);
        crew_close(&crew);
        crew.size = 0;
    }
out:
    if (crew.size)
        crew_close(&crew);
}

/* An operation in which everybody waits for rank 0, which looks on. */
static void act_looked_at(struct crew *crew, uint32_t rank)
{
    struct coll_wait wait = { .number = 0 };

    if (rank == 0) {
        while (wait.missing_count != 1 || wait.missing[0] != 100)
            coll_wait_look(crew->colls[1], &wait);
        crew->rc[0] = wait.number == 1 && !strcmp(wait.operation, "barrier") ? 0 : 1;
    }
    if (!crew->rc[rank])
        crew->rc[rank] = coll_barrier(crew->colls[rank], &crew->err[rank]);
}

static void who_is_waited_for_can_be_seen(struct test *t)
{
    struct coll_wait wait;
    struct crew crew;

    crew_open(&crew, 3);
    coll_wait_look(crew.colls[1], &wait);
    CHECK(t, !wait.operation && !wait.number && !wait.progress && !wait.missing_count);
    crew_run(&crew, act_looked_at);
    for (uint32_t i = 0; i < crew.size; i++)
        CHECK_OK(t, crew.rc[i]);
    coll_wait_look(crew.colls[1], &wait);
    CHECK(t, !wait.operation && wait.number == 1 && wait.progress && !wait.missing_count);
out:
    crew_close(&crew);
}

TESTS(NO_TORTURE(allreduce_of_each_type_and_op), NO_TORTURE(allreduce_of_each_size_and_count),
      NO_TORTURE(allreduce_of_much), NO_TORTURE(results_are_the_same_bit_for_bit),
      NO_TORTURE(fp16_is_summed_in_fp32), NO_TORTURE(broadcast_from_each),
      NO_TORTURE(allgather_of_equal_and_unequal_parts), NO_TORTURE(nobody_leaves_a_barrier_early),
      CASE(a_wrong_call_ends_the_round), CASE(one_alone), NO_TORTURE(other_counts_are_a_mismatch),
      NO_TORTURE(cancelling_one_ends_all), NO_TORTURE(who_is_waited_for_can_be_seen))
