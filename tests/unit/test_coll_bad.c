/*
 * Wrong calls, members whose calls differ, and calls with a count of 0. A layout has the host of
 * each member as a letter; team->way is what a run tries: the index of a pair
 * of calls that differ, or the wrong group of a call.
 */
#include "base/mem.h"
#include "collectives/coll_internal.h"
#include "os/clock.h"
#include "tests/lib/coll_team.h"
#include "tests/lib/fixture.h"

#include <sched.h>
#include <stdatomic.h>

#define NUMBERS    4000
#define IN_TIME_US (100 * INT64_C(1000000)) /* long enough for a busy machine */

/* A row of a table of structs. */
#define RAW(...)    \
    {               \
        __VA_ARGS__ \
    }

/* All members on one host, on two hosts, uneven, each on its own; and twice over the link alone. */
static const char *const layouts[] = { "aaaa", "aabb", "abbb", "abcd", "gloo aaaa", "tcp aaaa" };

/* ---- members whose calls differ ---- */

static const size_t two_each[] = { 2, 2, 2, 2 };
/* differs from two_each, but not in the sum and in the count of rank 0 */
static const size_t three_for_rank_1[] = { 2, 3, 1, 2 };
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

/* The call of all ranks, and the different call of rank 1. Buffers are set later. */
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
         ARGS(.kind = COLL_ALLGATHER, .count = 3, .counts = three_for_rank_1)),
    PAIR(ARGS(.kind = COLL_REDUCESCATTER, .count = 100),
         ARGS(.kind = COLL_REDUCESCATTER, .count = 101)),
    PAIR(ARGS(.kind = COLL_REDUCESCATTER, .count = 2, .counts = two_each),
         ARGS(.kind = COLL_REDUCESCATTER, .count = 3, .counts = three_for_rank_1)),
    PAIR(ARGS(.kind = COLL_REDUCESCATTER, .count = 10),
         ARGS(.kind = COLL_REDUCESCATTER, .count = 10, .op = HVD_PRODUCT)),
    PAIR(ARGS(.kind = COLL_ALLTOALL, .count = 3), ARGS(.kind = COLL_ALLTOALL, .count = 2)),
    PAIR(ARGS(.kind = COLL_ALLTOALL, .counts = two_each, .out_counts = two_each),
         ARGS(.kind = COLL_ALLTOALL, .counts = three_each, .out_counts = two_each)),
    PAIR(ARGS(.kind = COLL_ALLREDUCE, .count = 10), ARGS(.kind = COLL_ALLGATHER, .count = 10)),
    PAIR(ARGS(.kind = COLL_BROADCAST, .pieces = pieces, .piece_count = 2),
         ARGS(.kind = COLL_BROADCAST, .pieces = longer, .piece_count = 2)),
    PAIR(ARGS(.kind = COLL_REDUCE, .count = 10), ARGS(.kind = COLL_REDUCE, .count = 11)),
    PAIR(ARGS(.kind = COLL_REDUCE, .count = 10), ARGS(.kind = COLL_REDUCE, .count = 10, .root = 2)),
    PAIR(ARGS(.kind = COLL_REDUCE, .count = 10), ARGS(.kind = COLL_ALLREDUCE, .count = 10)),
    PAIR(ARGS(.kind = COLL_GATHER, .count = 3), ARGS(.kind = COLL_GATHER, .count = 2)),
    PAIR(ARGS(.kind = COLL_GATHER, .count = 3), ARGS(.kind = COLL_GATHER, .count = 3, .root = 1)),
    PAIR(ARGS(.kind = COLL_SCATTER, .count = 3), ARGS(.kind = COLL_SCATTER, .count = 3, .root = 3)),
    PAIR(ARGS(.kind = COLL_SCATTER, .count = 3), ARGS(.kind = COLL_GATHER, .count = 3)),
    PAIR(ARGS(.kind = COLL_ALLREDUCE, .count = 10, .tag = 12345),
         ARGS(.kind = COLL_ALLREDUCE, .count = 10, .tag = 54321)),
    PAIR(ARGS(.kind = COLL_BARRIER, .tag = 1), ARGS(.kind = COLL_BARRIER)),
    PAIR(ARGS(.kind = COLL_REDUCE, .count = 10), ARGS(.kind = COLL_JOIN)),
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

static int run_call(struct team *team, uint32_t rank, const struct coll_call *call)
{
    int32_t *in = mem_zalloc_array(NUMBERS, sizeof(*in));
    int32_t *out = mem_zalloc_array(NUMBERS, sizeof(*out));
    struct coll_piece own[2];
    struct coll_call whole = with_buffers(call, own, in, out);
    int rc = in && out ? coll_run(team->colls[rank], &whole, &team->err[rank]) : HVD_E_NOMEM;

    mem_free(in);
    mem_free(out);
    return rc;
}

static int run_barrier(struct team *team, uint32_t rank)
{
    return run_call(team, rank, &(struct coll_call){ .kind = COLL_BARRIER });
}

static void act_mismatch(struct team *team, uint32_t rank)
{
    int *rc = &team->rc[rank];

    team_act_connect(team, rank);
    if (!*rc)
        *rc = run_call(team, rank, rank == 1 ? &pairs[team->way].odd : &pairs[team->way].usual);
    /* The first call may succeed: this member had all that it needs from rank 1 before it could
     * hear of the mismatch. Then its next call reports the mismatch. */
    if (!*rc)
        *rc = run_barrier(team, rank);
    atomic_fetch_add(&returned, 1);
}

/* Runs act on all members. A member that waits too long is cancelled, so the test fails. */
static void run_in_time(struct team *team, void (*act)(struct team *team, uint32_t rank))
{
    int64_t until_us = clock_now_us() + IN_TIME_US;

    atomic_store(&returned, 0);
    team_start(team, act);
    while (atomic_load(&returned) < team->size && clock_now_us() < until_us)
        (void)sched_yield();
    if (atomic_load(&returned) < team->size) {
        for (uint32_t i = 0; i < team->size; i++)
            coll_cancel(team->colls[i]);
    }
    team_await(team);
}

/* All members report a mismatch, with the same text. */
static void check_mismatch(struct test *t, struct team *team, const char *what)
{
    run_in_time(team, act_mismatch);
    for (uint32_t i = 0; i < team->size; i++) {
        if (team->rc[i] != HVD_E_MISMATCH) {
            test_fail(t, __FILE__, __LINE__, "%s, pair %d, rank %u: %s: %s", what, team->way, i,
                      err_name(team->rc[i]), team->err[i].text);
            test_leave(t);
        }
        CHECK_HAS(t, team->err[i].text, "rank 1");
        CHECK_HAS(t, team->err[i].text, coll_kind_name(pairs[team->way].odd.kind));
        CHECK_HAS(t, team->err[i].text, coll_kind_name(pairs[team->way].usual.kind));
        if (pairs[team->way].usual.tag == 12345) {
            CHECK_HAS(t, team->err[i].text, "tag 12345");
            CHECK_HAS(t, team->err[i].text, "tag 54321");
        }
        CHECK_CODE(t, run_barrier(team, i), HVD_E_REVOKED);
    }
}

static struct team own;
static struct coll *coll;
static struct hvd_err err;

static void begin(struct test *t)
{
    (void)t;
    own = (struct team){ .size = 0 };
    coll = NULL;
}

static void end(struct test *t)
{
    (void)t;
    team_close(&own);
    coll_free(coll);
}
FIXTURE(begin, end)

/* In each pair rank 1 makes the odd call and all others the usual one: the error of every member
 * names rank 1 and both operations. */
TEST_FLAGS(a_mismatch_is_named_on_all, TEST_NO_TORTURE)
{
    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
            team_part(&own);
            CHECK_OK(t, team_make(&own, i + 2));
            own.way = (int)i;
            check_mismatch(t, &own, layouts[layout]);
        }
        team_close(&own);
    }
}

/* One rank makes one call more than the others. */
static void act_once_too_often(struct team *team, uint32_t rank)
{
    int *rc = &team->rc[rank];

    team_act_connect(team, rank);
    for (unsigned i = 0; i < 3 && !*rc; i++)
        *rc = run_call(team, rank, &(struct coll_call){ .kind = COLL_ALLREDUCE, .count = 2000 });
    if (!*rc && rank == 1)
        *rc = run_call(team, rank, &(struct coll_call){ .kind = COLL_ALLREDUCE, .count = 10 });
    if (!*rc)
        *rc = run_barrier(team, rank);
    if (!*rc)
        *rc = run_barrier(team, rank);
    atomic_fetch_add(&returned, 1);
}

TEST_FLAGS(a_call_too_many_is_found, TEST_NO_TORTURE)
{
    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        run_in_time(&own, act_once_too_often);
        for (uint32_t i = 0; i < own.size; i++) {
            CHECK_CODE(t, own.rc[i], HVD_E_MISMATCH);
            CHECK_HAS(t, own.err[i].text, "operation 4 is ");
        }
        team_close(&own);
    }
}

/* The member that has found a mismatch ends at once. The others of its host hear first that the
 * round is revoked: it is a mismatch all the same. */
TEST_FLAGS(a_mismatch_outlives_the_rank_that_found_it, TEST_NO_TORTURE)
{
    CHECK_OK(t, team_open_layout(&own, "aaaa"));
    team_run(&own, team_act_connect);
    for (uint32_t i = 0; i < own.size; i++)
        CHECK_OK(t, own.rc[i]);
    CHECK_CODE(t, coll_fail(own.colls[0], HVD_E_MISMATCH, 0, "ranks differ"), HVD_E_MISMATCH);
    for (uint32_t i = 1; i < own.size; i++)
        coll_cancel(own.colls[i]);
    for (uint32_t i = 0; i < own.size; i++) {
        CHECK_CODE(t, coll_failure(own.colls[i], &err), HVD_E_MISMATCH);
        CHECK_TEXT(t, err.text, "ranks differ");
    }
    team_close(&own);
}

/* ---- groups ---- */

static const uint32_t low_ranks[] = { 0, 1 };
static const uint32_t odd_ranks[] = { 1, 3 };
static const struct coll_ranks groups[] = {
    {low_ranks,  2},
    { odd_ranks, 2},
    { NULL,      0}
};

static int open_groups(struct team *team, size_t layout)
{
    int rc = team_open_layout(team, layouts[layout]);

    team_part(team);
    team->groups = groups;
    team->group_count = ARRAY_SIZE(groups);
    return rc ? rc : team_make(team, 2);
}

/* Rank 3 calls in a group to which it does not belong: the group's members do not see the call. */
static void act_outside(struct team *team, uint32_t rank)
{
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .group = (size_t)team->way,
                                    .count = 5 };

    team_act_connect(team, rank);
    if (!team->rc[rank])
        team->rc[rank] = rank == 3 ? run_call(team, rank, &call) : run_barrier(team, rank);
    atomic_fetch_add(&returned, 1);
}

TEST_FLAGS(a_call_from_outside_a_group_is_refused, TEST_NO_TORTURE)
{
    static const int ways[] = { 1, 3, 4 }; /* a group without this rank, an empty group, no group */

    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, open_groups(&own, layout));
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
            team_part(&own);
            CHECK_OK(t, team_make(&own, 3 + i));
            own.way = ways[i];
            run_in_time(&own, act_outside);
            CHECK_CODE(t, own.rc[3], HVD_E_INVAL);
            for (uint32_t k = 0; k < 3; k++) /* LOST: the member is still connecting */
                if (own.rc[k] != HVD_E_LOST)
                    CHECK_CODE(t, own.rc[k], HVD_E_REVOKED);
        }
        team_close(&own);
    }
}

/* Rank 3 calls another operation in its group than rank 1: all members get the mismatch. */
static void act_in_groups(struct team *team, uint32_t rank)
{
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .group = rank % 2 ? 2 : 0,
                                    .count = rank == 3 ? 50 : 51 };

    team_act_connect(team, rank);
    if (!team->rc[rank])
        team->rc[rank] = rank % 2 ? run_call(team, rank, &call) : run_barrier(team, rank);
    atomic_fetch_add(&returned, 1);
}

TEST_FLAGS(a_mismatch_in_a_group, TEST_NO_TORTURE)
{
    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, open_groups(&own, layout));
        run_in_time(&own, act_in_groups);
        for (uint32_t i = 0; i < own.size; i++) {
            CHECK_CODE(t, own.rc[i], HVD_E_MISMATCH);
            CHECK_HAS(t, own.err[i].text, "rank 3");
        }
        team_close(&own);
    }
}

/* ---- counts of nothing ---- */

static void act_nothing(struct team *team, uint32_t rank)
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

    team_act_connect(team, rank);
    for (size_t i = 0; i < ARRAY_SIZE(calls) && !team->rc[rank]; i++)
        team->rc[rank] = coll_run(team->colls[rank], &calls[i], &team->err[rank]);
    atomic_fetch_add(&returned, 1);
}

TEST_FLAGS(nothing_needs_no_buffers, TEST_NO_TORTURE)
{
    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        run_in_time(&own, act_nothing);
        for (uint32_t i = 0; i < own.size; i++)
            CHECK_OK(t, own.rc[i]);
        team_close(&own);
    }
}

/* ---- wrong calls ---- */

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
    RAW(.kind = COLL_ALLREDUCE, .type = (hvd_dtype)98, .in = four, .out = four, .count = 4),
    RAW(.kind = COLL_BROADCAST, .type = (hvd_dtype)99, .out = four, .count = 4),
    RAW(.kind = COLL_ALLGATHER, .type = (hvd_dtype)99, .in = four, .out = four, .count = 4),
    CALL(.kind = COLL_ALLREDUCE, .op = (hvd_op)99),
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

/* The other members would wait for this rank for ever, so the wrong call ends the round. */
TEST(a_wrong_call_ends_the_round)
{
    const struct coll_peer peers[] = {
        {.incarnation = 1, .host = "a"}
    };
    const struct coll_roster one = { .round = 7, .size = 1, .peers = peers };
    const struct coll_call barrier = { .kind = COLL_BARRIER };
    const struct coll_call right = CALL(.kind = COLL_ALLREDUCE, .op = HVD_AVERAGE);

    for (size_t i = 0; i < ARRAY_SIZE(senseless); i++) {
        int rc;

        CHECK_OK(t, coll_create(NULL, &one, &coll, &err));
        CHECK_OK(t, coll_connect(coll, 0, &err));
        CHECK_OK(t, coll_run(coll, &right, &err));
        CHECK(t, four[3] > 3.9f && four[3] < 4.1f);
        rc = coll_run(coll, &senseless[i], &err);
        if (rc != HVD_E_INVAL) {
            test_fail(t, __FILE__, __LINE__, "call %zu: %s", i, err_name(rc));
            test_leave(t);
        }
        CHECK_HAS(t, err.text, "rank 0: ");
        CHECK_CODE(t, coll_run(coll, &barrier, &err), HVD_E_REVOKED);
        coll_free(coll);
        coll = NULL;
    }
}

/* A round of one member needs no peer; a roster without this member is refused. */
TEST(a_member_alone_needs_no_peer)
{
    const struct coll_peer peers[] = {
        {.incarnation = 1, .host = "a"}
    };
    const struct coll_roster one = { .round = 7, .size = 1, .peers = peers };
    const struct coll_roster none = { .round = 7, .size = 0, .peers = peers };
    const struct coll_roster outside = { .round = 7, .rank = 1, .size = 1, .peers = peers };
    const struct coll_call barrier = { .kind = COLL_BARRIER };
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
}

/* Nothing protects the numbers that Gloo sends off the loopback. */
TEST(gloo_off_the_loopback_is_refused)
{
    static const struct {
        const char *host;
        enum link_security security;
    } refused[] = {
        {"192.0.2.1",  LINK_SECURITY_AUTO         },
        { "192.0.2.1", LINK_SECURITY_ENCRYPTED    },
        { "127.0.0.1", LINK_SECURITY_AUTHENTICATED},
        { "::1",       LINK_SECURITY_ENCRYPTED    },
    };
    struct coll_engine *engine = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct coll_options options = { .host = refused[i].host,
                                        .carrier = COLL_BY_GLOO,
                                        .security = refused[i].security };

        CHECK_CODE(t, coll_engine_open(&options, &engine, &err), HVD_E_UNSUPPORTED);
        CHECK_HAS(t, err.text, "--data-security none");
        CHECK(t, !engine);
    }
}

/* A round without its secret could be joined by any process. */
TEST(a_round_without_a_secret_is_refused)
{
    const struct coll_peer peers[2] = { { .host = "a" }, { .host = "b" } };
    struct coll_roster roster = { .round = 7, .size = 2, .peers = peers };

    CHECK_CODE(t, coll_create(NULL, &roster, &coll, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "no secret for round 7");
    roster.secret = coll_team_secret;
    roster.secret_length = sizeof(coll_team_secret) - 1;
    CHECK_CODE(t, coll_create(NULL, &roster, &coll, &err), HVD_E_PROTO);
}

/* Lists of ranks that cannot be a group. */
TEST(impossible_groups_are_refused)
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

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        roster.groups = &wrong[i];
        CHECK_CODE(t, coll_create(NULL, &roster, &coll, &err), HVD_E_INVAL);
        CHECK(t, !coll && err.text[0]);
    }
}
