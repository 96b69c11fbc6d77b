/*
 * Calls that make no sense, members that do not mean the same, and counts of nothing.
 */
#include "base/mem.h"
#include "os/clock.h"
#include "tests/lib/coll_crew.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)
#define NUMBERS              4000
#define IN_TIME_US           (20 * INT64_C(1000000)) /* that of a machine with much to do */

/* A row of a table of structs. */
#define RAW(...)    \
    {               \
        __VA_ARGS__ \
    }

/* On one host, on several, uneven, each alone; and over the link alone. */
static const char *const layouts[] = { "aaaa", "aabb", "abbb", "abcd", "aaaa", "aaaa" };
#define FLAT_GLOO 4
#define FLAT_TCP  5

static int open_layout(struct crew *crew, size_t layout)
{
    const struct coll_options options = { .carrier = layout == FLAT_GLOO  ? COLL_BY_GLOO
                                                     : layout == FLAT_TCP ? COLL_BY_TCP
                                                                          : COLL_BY_BEST,
                                          .flat = layout >= FLAT_GLOO };

    return crew_open(crew, layouts[layout], &options);
}

/* ---- members that do not mean the same ---- */

static const size_t two_each[] = { 2, 2, 2, 2 };
static const size_t three_of_first[] = { 2, 3, 1, 2 }; /* the same sum, and the same for rank 0 */
static const size_t three_each[] = { 3, 3, 3, 3 };

static const struct coll_piece pieces[] = {
    {NULL,  NULL, 10},
    { NULL, NULL, 20}
};
static const struct coll_piece longer[] = {
    {NULL,  NULL, 10},
    { NULL, NULL, 21}
};

#define ARGS(...) __VA_ARGS__
#define PAIR(first, other) \
    {                      \
        { first },         \
        {                  \
            other          \
        }                  \
    }

/* What all do, and what rank 1 does. Buffers are set later. */
static const struct {
    struct coll_call usual, odd;
} pairs[] = {
    PAIR(ARGS(.kind = COLL_ALLREDUCE, .count = 1000), ARGS(.kind = COLL_ALLREDUCE, .count = 2000)),
    PAIR(ARGS(.kind = COLL_ALLREDUCE, .count = 10, .type = HVD_FLOAT32),
         ARGS(.kind = COLL_ALLREDUCE, .count = 10, .type = HVD_INT32)),
    PAIR(ARGS(.kind = COLL_ALLREDUCE, .count = 10, .op = HVD_MAX),
         ARGS(.kind = COLL_ALLREDUCE, .count = 10, .op = HVD_MIN)),
    PAIR(ARGS(.kind = COLL_ALLREDUCE, .count = 10, .type = HVD_FLOAT32),
         ARGS(.kind = COLL_ALLREDUCE, .count = 10, .type = HVD_FLOAT32, .prescale = 0.5)),
    PAIR(ARGS(.kind = COLL_ALLREDUCE, .count = 10, .type = HVD_FLOAT32, .postscale = 2),
         ARGS(.kind = COLL_ALLREDUCE, .count = 10, .type = HVD_FLOAT32)),
    PAIR(ARGS(.kind = COLL_ALLREDUCE, .pieces = pieces, .piece_count = 2),
         ARGS(.kind = COLL_ALLREDUCE, .pieces = longer, .piece_count = 2)),
    PAIR(ARGS(.kind = COLL_BROADCAST, .count = 10, .root = 0),
         ARGS(.kind = COLL_BROADCAST, .count = 10, .root = 1)),
    PAIR(ARGS(.kind = COLL_BROADCAST, .count = 10, .root = 1),
         ARGS(.kind = COLL_BROADCAST, .count = 11, .root = 1)),
    PAIR(ARGS(.kind = COLL_BROADCAST, .count = 10), ARGS(.kind = COLL_BARRIER)),
    PAIR(ARGS(.kind = COLL_ALLGATHER, .count = 1), ARGS(.kind = COLL_ALLGATHER, .count = 2)),
    PAIR(ARGS(.kind = COLL_ALLGATHER, .count = 2, .counts = two_each),
         ARGS(.kind = COLL_ALLGATHER, .count = 3, .counts = three_of_first)),
    PAIR(ARGS(.kind = COLL_REDUCESCATTER, .count = 100),
         ARGS(.kind = COLL_REDUCESCATTER, .count = 101)),
    PAIR(ARGS(.kind = COLL_REDUCESCATTER, .count = 2, .counts = two_each),
         ARGS(.kind = COLL_REDUCESCATTER, .count = 3, .counts = three_of_first)),
    PAIR(ARGS(.kind = COLL_REDUCESCATTER, .count = 10),
         ARGS(.kind = COLL_REDUCESCATTER, .count = 10, .op = HVD_PRODUCT)),
    PAIR(ARGS(.kind = COLL_ALLTOALL, .count = 3), ARGS(.kind = COLL_ALLTOALL, .count = 2)),
    PAIR(ARGS(.kind = COLL_ALLTOALL, .counts = two_each, .out_counts = two_each),
         ARGS(.kind = COLL_ALLTOALL, .counts = three_each, .out_counts = two_each)),
    PAIR(ARGS(.kind = COLL_ALLREDUCE, .count = 10), ARGS(.kind = COLL_ALLGATHER, .count = 10)),
    PAIR(ARGS(.kind = COLL_BROADCAST, .count = 10), ARGS(.kind = COLL_JOIN)),
    PAIR(ARGS(.kind = COLL_JOIN), ARGS(.kind = COLL_ALLGATHER, .count = 1)),
};

static struct coll_call with_buffers(const struct coll_call *call, struct coll_piece own[2],
                                     const int32_t *in, int32_t *out)
{
    struct coll_call whole = *call;

    whole.in = in;
    whole.out = out;
    for (size_t i = 0; i < call->piece_count; i++)
        own[i] = (struct coll_piece){ in + 100 * i, out + 100 * i, call->pieces[i].count };
    if (call->pieces)
        whole.pieces = own;
    return whole;
}

static atomic_uint returned;

static int run_call(struct crew *crew, uint32_t rank, const struct coll_call *call)
{
    int32_t *in = mem_zalloc_array(NUMBERS, sizeof(*in));
    int32_t *out = mem_zalloc_array(NUMBERS, sizeof(*out));
    struct coll_piece own[2];
    struct coll_call whole = with_buffers(call, own, in, out);
    int rc = in && out ? coll_run(crew->colls[rank], &whole, &crew->err[rank]) : HVD_E_NOMEM;

    mem_free(in);
    mem_free(out);
    return rc;
}

static int run_barrier(struct crew *crew, uint32_t rank)
{
    return run_call(crew, rank, &(struct coll_call){ .kind = COLL_BARRIER });
}

static void act_mismatch(struct crew *crew, uint32_t rank)
{
    int *rc = &crew->rc[rank];

    crew_act_connect(crew, rank);
    if (!*rc)
        *rc = run_call(crew, rank, rank == 1 ? &pairs[crew->way].odd : &pairs[crew->way].usual);
    if (!*rc) /* it has all that it needs of this one, and learns it in the next */
        *rc = run_barrier(crew, rank);
    atomic_fetch_add(&returned, 1);
}

/* Whoever waits too long is cancelled, and the test fails by the code. */
static void run_in_time(struct crew *crew, void (*act)(struct crew *crew, uint32_t rank))
{
    int64_t until_us = clock_now_us() + IN_TIME_US;

    atomic_store(&returned, 0);
    crew_start(crew, act);
    while (atomic_load(&returned) < crew->size && clock_now_us() < until_us)
        (void)sched_yield();
    if (atomic_load(&returned) < crew->size) {
        for (uint32_t i = 0; i < crew->size; i++)
            coll_cancel(crew->colls[i]);
    }
    crew_await(crew);
}

/* All have heard of it, and of the same one. */
static void check_mismatch(struct test *t, struct crew *crew, const char *what)
{
    run_in_time(crew, act_mismatch);
    for (uint32_t i = 0; i < crew->size; i++) {
        if (crew->rc[i] != HVD_E_MISMATCH) {
            test_fail(t, __FILE__, __LINE__, "%s, pair %d, rank %u: %s: %s", what, crew->way, i,
                      err_name(crew->rc[i]), crew->err[i].text);
            goto out;
        }
        CHECK_HAS(t, crew->err[i].text, "rank 1");
        CHECK_HAS(t, crew->err[i].text, accord_kind_name(pairs[crew->way].odd.kind));
        CHECK_HAS(t, crew->err[i].text, accord_kind_name(pairs[crew->way].usual.kind));
        CHECK_CODE(t, run_barrier(crew, i), HVD_E_REVOKED);
    }
out:;
}

static void a_mismatch_is_named_on_all(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, open_layout(&crew, layout));
        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
            crew_part(&crew);
            CHECK_OK(t, crew_make(&crew, i + 2));
            crew.way = (int)i;
            check_mismatch(t, &crew, layout >= FLAT_GLOO ? "flat" : layouts[layout]);
            if (t->failed)
                goto out;
        }
        crew_close(&crew);
    }
out:
    crew_close(&crew);
}

/* Once too often on one. */
static void act_once_too_often(struct crew *crew, uint32_t rank)
{
    int *rc = &crew->rc[rank];

    crew_act_connect(crew, rank);
    for (unsigned i = 0; i < 3 && !*rc; i++)
        *rc = run_call(crew, rank, &(struct coll_call){ .kind = COLL_ALLREDUCE, .count = 2000 });
    if (!*rc && rank == 1)
        *rc = run_call(crew, rank, &(struct coll_call){ .kind = COLL_ALLREDUCE, .count = 10 });
    if (!*rc)
        *rc = run_barrier(crew, rank);
    if (!*rc)
        *rc = run_barrier(crew, rank);
    atomic_fetch_add(&returned, 1);
}

static void one_call_too_many(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, open_layout(&crew, layout));
        run_in_time(&crew, act_once_too_often);
        for (uint32_t i = 0; i < crew.size; i++) {
            CHECK_CODE(t, crew.rc[i], HVD_E_MISMATCH);
            CHECK_HAS(t, crew.err[i].text, "operation 4 is ");
        }
        crew_close(&crew);
    }
out:
    crew_close(&crew);
}

/* ---- groups ---- */

static const uint32_t low_ranks[] = { 0, 1 };
static const uint32_t odd_ranks[] = { 1, 3 };
static const struct coll_ranks groups[] = {
    {low_ranks,  2},
    { odd_ranks, 2},
    { NULL,      0}
};

static int open_groups(struct crew *crew, size_t layout)
{
    int rc = open_layout(crew, layout);

    crew_part(crew);
    crew->groups = groups;
    crew->group_count = ARRAY_SIZE(groups);
    return rc ? rc : crew_make(crew, 2);
}

/* Rank 3 is not in the first group: for the others it is as if it had called nothing. */
static void act_outside(struct crew *crew, uint32_t rank)
{
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .group = (size_t)crew->way,
                                    .count = 5 };

    crew_act_connect(crew, rank);
    if (!crew->rc[rank])
        crew->rc[rank] = rank == 3 ? run_call(crew, rank, &call) : run_barrier(crew, rank);
    atomic_fetch_add(&returned, 1);
}

static void who_is_not_in_a_group(struct test *t)
{
    static const int ways[] = { 1, 3, 4 }; /* others, nobody, no such group */
    struct crew crew = { .size = 0 };

    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, open_groups(&crew, layout));
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
            crew_part(&crew);
            CHECK_OK(t, crew_make(&crew, 3 + i));
            crew.way = ways[i];
            run_in_time(&crew, act_outside);
            CHECK_CODE(t, crew.rc[3], HVD_E_INVAL);
            for (uint32_t k = 0; k < 3; k++) /* LOST: it is still connecting */
                if (crew.rc[k] != HVD_E_LOST)
                    CHECK_CODE(t, crew.rc[k], HVD_E_REVOKED);
        }
        crew_close(&crew);
    }
out:
    crew_close(&crew);
}

/* Rank 3 has an odd idea of what its group does; rank 1 meets it there, and all are told. */
static void act_in_groups(struct crew *crew, uint32_t rank)
{
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .group = rank % 2 ? 2 : 0,
                                    .count = rank == 3 ? 50 : 51 };

    crew_act_connect(crew, rank);
    if (!crew->rc[rank])
        crew->rc[rank] = rank % 2 ? run_call(crew, rank, &call) : run_barrier(crew, rank);
    atomic_fetch_add(&returned, 1);
}

static void a_mismatch_in_a_group(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, open_groups(&crew, layout));
        run_in_time(&crew, act_in_groups);
        for (uint32_t i = 0; i < crew.size; i++) {
            CHECK_CODE(t, crew.rc[i], HVD_E_MISMATCH);
            CHECK_HAS(t, crew.err[i].text, "rank 3");
        }
        crew_close(&crew);
    }
out:
    crew_close(&crew);
}

/* ---- counts of nothing ---- */

static void act_nothing(struct crew *crew, uint32_t rank)
{
    static const size_t none[] = { 0, 0, 0, 0 };
    static const struct coll_piece empty[] = {
        {NULL,  NULL, 0},
        { NULL, NULL, 0}
    };
    static const struct coll_call calls[] = {
        RAW(.kind = COLL_ALLREDUCE),
        RAW(.kind = COLL_ALLREDUCE, .pieces = empty, .piece_count = 2),
        RAW(.kind = COLL_BROADCAST, .root = 3),
        RAW(.kind = COLL_ALLGATHER),
        RAW(.kind = COLL_ALLGATHER, .counts = none),
        RAW(.kind = COLL_REDUCESCATTER),
        RAW(.kind = COLL_REDUCESCATTER, .counts = none),
        RAW(.kind = COLL_ALLTOALL),
        RAW(.kind = COLL_ALLTOALL, .counts = none, .out_counts = none),
    };

    crew_act_connect(crew, rank);
    for (size_t i = 0; i < ARRAY_SIZE(calls) && !crew->rc[rank]; i++)
        crew->rc[rank] = coll_run(crew->colls[rank], &calls[i], &crew->err[rank]);
    atomic_fetch_add(&returned, 1);
}

static void nothing_needs_no_buffers(struct test *t)
{
    struct crew crew = { .size = 0 };

    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, open_layout(&crew, layout));
        run_in_time(&crew, act_nothing);
        for (uint32_t i = 0; i < crew.size; i++)
            CHECK_OK(t, crew.rc[i]);
        crew_close(&crew);
    }
out:
    crew_close(&crew);
}

/* ---- calls that make no sense ---- */

static float four[] = { 1, 2, 3, 4 };
static const size_t three[] = { 3 };
static const size_t too_much[] = { SIZE_MAX / 2 };
static const struct coll_piece nowhere[] = {
    {NULL, four, 4}
};
static const struct coll_piece endless[] = {
    {four,  four, SIZE_MAX / 8},
    { four, four, SIZE_MAX / 8}
};

#define CALL(...)                                                             \
    {                                                                         \
        .type = HVD_FLOAT32, .in = four, .out = four, .count = 4, __VA_ARGS__ \
    }

static const struct coll_call senseless[] = {
    CALL(.kind = (enum coll_kind)0),
    CALL(.kind = (enum coll_kind)99),
    RAW(.kind = COLL_ALLREDUCE, .type = (hvd_dtype)8, .in = four, .out = four, .count = 4),
    RAW(.kind = COLL_BROADCAST, .type = (hvd_dtype)99, .out = four, .count = 4),
    RAW(.kind = COLL_ALLGATHER, .type = (hvd_dtype)99, .in = four, .out = four, .count = 4),
    CALL(.kind = COLL_ALLREDUCE, .op = (hvd_op)5),
    CALL(.kind = COLL_REDUCESCATTER, .op = (hvd_op)-1),
    RAW(.kind = COLL_ALLREDUCE, .type = HVD_FLOAT32, .in = NULL, .out = four, .count = 4),
    RAW(.kind = COLL_ALLREDUCE, .type = HVD_FLOAT32, .in = four, .out = NULL, .count = 4),
    RAW(.kind = COLL_BROADCAST, .type = HVD_FLOAT32, .out = NULL, .count = 4),
    RAW(.kind = COLL_ALLGATHER, .type = HVD_FLOAT32, .in = NULL, .out = four, .count = 4),
    RAW(.kind = COLL_ALLTOALL, .type = HVD_FLOAT32, .in = four, .out = NULL, .count = 4),
    RAW(.kind = COLL_REDUCESCATTER, .type = HVD_FLOAT32, .in = NULL, .out = four, .count = 4),
    RAW(.kind = COLL_ALLREDUCE, .in = four, .out = four, .type = HVD_FLOAT32,
        .count = SIZE_MAX / 2),
    RAW(.kind = COLL_ALLGATHER, .in = four, .out = four, .type = HVD_FLOAT32,
        .count = SIZE_MAX / 2),
    RAW(.kind = COLL_ALLTOALL, .in = four, .out = four, .type = HVD_FLOAT32, .count = SIZE_MAX / 2),
    CALL(.kind = COLL_BROADCAST, .root = 1),
    CALL(.kind = COLL_BROADCAST, .group = 1),
    CALL(.kind = COLL_ALLGATHER, .counts = three),
    CALL(.kind = COLL_REDUCESCATTER, .counts = three),
    CALL(.kind = COLL_ALLTOALL, .counts = three),
    CALL(.kind = COLL_ALLTOALL, .counts = too_much, .out_counts = too_much),
    CALL(.kind = COLL_ALLREDUCE, .pieces = nowhere, .piece_count = 1),
    CALL(.kind = COLL_ALLREDUCE, .pieces = endless, .piece_count = 2),
    RAW(.kind = COLL_ALLREDUCE, .type = HVD_INT32, .in = four, .out = four, .count = 4,
        .prescale = 2),
    RAW(.kind = COLL_ALLREDUCE, .type = HVD_UINT8, .in = four, .out = four, .count = 4,
        .postscale = 2),
};

/* The others would wait for this rank: the round is over. */
static void a_wrong_call_ends_the_round(struct test *t)
{
    const struct coll_peer peers[] = {
        {.incarnation = 1, .host = "a"}
    };
    const struct coll_roster one = { .round = 7, .size = 1, .peers = peers };
    const struct coll_call barrier = { .kind = COLL_BARRIER };
    const struct coll_call right = CALL(.kind = COLL_ALLREDUCE, .op = HVD_AVERAGE);
    struct hvd_err err = { .text = "" };
    struct coll *coll = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(senseless); i++) {
        int rc;

        CHECK_OK(t, coll_create(NULL, &one, &coll, &err));
        CHECK_OK(t, coll_connect(coll, 0, &err));
        CHECK_OK(t, coll_run(coll, &right, &err));
        CHECK(t, four[3] > 3.9f && four[3] < 4.1f);
        rc = coll_run(coll, &senseless[i], &err);
        if (rc != HVD_E_INVAL) {
            test_fail(t, __FILE__, __LINE__, "call %zu: %s", i, err_name(rc));
            goto out;
        }
        CHECK_HAS(t, err.text, "rank 0: ");
        CHECK_CODE(t, coll_run(coll, &barrier, &err), HVD_E_REVOKED);
        coll_free(coll);
        coll = NULL;
    }
out:
    coll_free(coll);
}

static void one_alone(struct test *t)
{
    const struct coll_peer peers[] = {
        {.incarnation = 1, .host = "a"}
    };
    const struct coll_roster one = { .round = 7, .size = 1, .peers = peers };
    const struct coll_roster none = { .round = 7, .size = 0, .peers = peers };
    const struct coll_roster outside = { .round = 7, .rank = 1, .size = 1, .peers = peers };
    const struct coll_call barrier = { .kind = COLL_BARRIER };
    struct hvd_err err = { .text = "" };
    struct coll *coll = NULL;
    uint32_t last = 9;
    const struct coll_call join = { .kind = COLL_JOIN, .ret_last = &last };

    CHECK_CODE(t, coll_create(NULL, &none, &coll, &err), HVD_E_INVAL);
    CHECK_CODE(t, coll_create(NULL, &outside, &coll, &err), HVD_E_INVAL);
    CHECK_OK(t, coll_create(NULL, &one, &coll, &err));
    CHECK_OK(t, coll_connect(coll, 0, &err));
    CHECK_OK(t, coll_run(coll, &barrier, &err));
    CHECK_OK(t, coll_run(coll, &join, &err));
    CHECK_INT(t, last, ==, 0);
    CHECK_OK(t, coll_run(coll, &barrier, &err));
    coll_cancel(coll);
    coll_cancel(coll);
    CHECK_CODE(t, coll_run(coll, &barrier, &err), HVD_E_REVOKED);
    CHECK_HAS(t, err.text, "round 7 was revoked");
out:
    coll_free(coll);
}

/* Lists of ranks that are no groups. */
static void groups_that_cannot_be(struct test *t)
{
    static const uint32_t falling[] = { 1, 0 }, twice[] = { 0, 0 }, beyond[] = { 0, 2 };
    static const struct coll_ranks wrong[] = {
        {falling, 2},
        { twice,  2},
        { beyond, 2}
    };
    const struct coll_peer peers[] = {
        {.incarnation = 1,  .host = "a"},
        { .incarnation = 2, .host = "a"}
    };
    struct coll_roster roster = { .round = 7, .size = 2, .peers = peers, .group_count = 1 };
    struct hvd_err err = { .text = "" };
    struct coll *coll = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        roster.groups = &wrong[i];
        CHECK_CODE(t, coll_create(NULL, &roster, &coll, &err), HVD_E_INVAL);
        CHECK(t, !coll && err.text[0]);
    }
out:
    coll_free(coll);
}

TESTS(NO_TORTURE(a_mismatch_is_named_on_all), NO_TORTURE(one_call_too_many),
      NO_TORTURE(who_is_not_in_a_group), NO_TORTURE(a_mismatch_in_a_group),
      NO_TORTURE(nothing_needs_no_buffers), CASE(a_wrong_call_ends_the_round), CASE(one_alone),
      CASE(groups_that_cannot_be))
