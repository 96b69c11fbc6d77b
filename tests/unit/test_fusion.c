/* Which started requests become one operation: a rank among two, whose collectives end when the
 * test tells them to. All ranks must close a batch at the same place, so nothing here depends on
 * how fast the thread is. */
#include "os/thread.h"
#include "tests/lib/fake_coll.h"
#include "tests/lib/fixture.h"
#include "worker/fusion.h"
#include "worker/rounds_groups.h"
#include "worker/rounds_internal.h"

#include <string.h>

#define SELF      7
#define THRESHOLD ((size_t)1024 * 1024)
#define SMALL     (THRESHOLD / FUSION_SMALL)
#define SHARE     (THRESHOLD / FUSION_SHARE / SMALL) /* so many of the largest ones */
#define MANY      200

static const struct msg_member self = { .incarnation = SELF, .host = "a" };
static const struct msg_member both[] = {
    {.incarnation = SELF,      .host = "a"},
    { .incarnation = SELF + 1, .host = "a"}
};
static const struct msg_member_list members = { both, 2 };
static const struct msg_member_list alone = { &self, 1 };
static struct groups *groups;
static struct rounds *rounds;
static struct hvd_err err;
static uint64_t the_round;
static hvd_request *requests[512];
static uint8_t memory[512][2]; /* in and out of a small request */

/* The threads of a case; the end of the case waits for them. */
static pthread_t threads[4];
static size_t started;

static void on_prepared(void *arg, uint64_t round, const struct hvd_err *outcome)
{
    (void)arg;
    (void)round;
    (void)outcome;
}

MUST_CHECK static int enter(const struct msg_member_list *list)
{
    const struct rounds_order order = { .incarnation = SELF,
                                        .round = ++the_round,
                                        .members = list };
    int rc = rounds_enter(rounds, &order, false, &err);

    if (!rc)
        rounds_open(rounds, true);
    return rc;
}

static void begin(struct test *t)
{
    fake_coll_reset();
    err = (struct hvd_err){ .code = 0 };
    the_round = 0;
    rounds = NULL;
    groups = NULL;
    CHECK_OK(t, groups_create(&groups));
    CHECK_OK(t, rounds_create(groups, on_prepared, NULL, &rounds, &err));
    rounds_use_fusion(rounds, THRESHOLD);
}

static void end(struct test *t)
{
    (void)t;
    fake_coll_go();
    if (started)
        rounds_cancel(rounds, the_round);
    while (started)
        pthread_join(threads[--started], NULL);
    rounds_free(rounds);
    groups_free(groups);
}
FIXTURE(begin, end)

static hvd_call small(size_t index)
{
    return (hvd_call){ .kind = HVD_ALLREDUCE,
                       .in = &memory[index][0],
                       .out = &memory[index][1],
                       .count = 1,
                       .type = HVD_UINT8 };
}

MUST_CHECK static int start_call(const hvd_call *call, size_t index)
{
    return requests_start(rounds, call, &requests[index], &err);
}

/* Starts small requests with the numbers from..until-1. */
MUST_CHECK static int start(size_t from, size_t until)
{
    int rc = 0;

    for (size_t i = from; i < until && !rc; i++) {
        const hvd_call call = small(i);

        rc = start_call(&call, i);
    }
    return rc;
}

MUST_CHECK static int await(size_t from, size_t until)
{
    int rc = 0;

    for (size_t i = from; i < until && !rc; i++)
        rc = requests_wait(rounds, requests[i], &err);
    return rc;
}

/* The operations so far were made of so many requests each; 1: not fused. The last is 0. */
static bool made_of(const size_t *sizes)
{
    const struct fake_coll_seen seen = fake_coll_seen();
    size_t count = 0;

    while (sizes[count]) {
        if (count >= seen.ran_count || (seen.fused[count] ? seen.fused[count] : 1) != sizes[count])
            return false;
        count++;
    }
    return count == seen.ran_count;
}
#define MADE_OF(...) made_of((const size_t[]){ __VA_ARGS__, 0 })

/* ---- how many -------------------------------------------------------------------------------- */

TEST(hundreds_of_requests_become_a_few_operations)
{
    CHECK_OK(t, enter(&members));
    for (int step = 0; step < 2; step++) {
        fake_coll_reset();
        CHECK_OK(t, start(0, MANY));
        CHECK_OK(t, await(0, MANY));
        CHECK(t, MADE_OF(1, 4, 16, 64, MANY - 85));
    }
}

TEST(a_batch_has_a_largest_number_of_requests)
{
    CHECK_OK(t, enter(&members));
    CHECK_OK(t, start(0, 85 + REQUESTS_FUSED_MAX + 1));
    CHECK_OK(t, await(0, 85 + REQUESTS_FUSED_MAX + 1));
    CHECK(t, MADE_OF(1, 4, 16, 64, REQUESTS_FUSED_MAX, 1));
}

/* Nothing waits for more that may never come. */
TEST(a_request_by_itself_begins_at_once)
{
    CHECK_OK(t, enter(&members));
    for (size_t i = 0; i < 3; i++) {
        fake_coll_hold(1);
        CHECK_OK(t, start(i, i + 1));
        CHECK(t, fake_coll_await(1));
        fake_coll_go();
        CHECK_OK(t, await(i, i + 1));
    }
    CHECK(t, MADE_OF(1, 1, 1));
}

/* Requests that wait in a full or closed batch begin without a word of the program. */
TEST(a_full_batch_begins_at_once)
{
    CHECK_OK(t, enter(&members));
    fake_coll_hold(4);
    CHECK_OK(t, start(0, 5));
    CHECK(t, fake_coll_await(4));
    fake_coll_go();
    CHECK_OK(t, await(0, 5));
    CHECK(t, MADE_OF(1, 4));
}

/* The order counts, not what the thread has done meanwhile. */
TEST(the_thread_has_no_say)
{
    for (int held = 0; held < 2; held++) {
        CHECK_OK(t, enter(&members));
        fake_coll_reset();
        fake_coll_hold((size_t)held);
        CHECK_OK(t, start(0, 1));
        if (!held)
            while (!fake_coll_seen().ran_count) /* done before the next one is started */
                (void)sched_yield();
        CHECK_OK(t, start(1, 8));
        fake_coll_go();
        CHECK_OK(t, await(0, 8));
        CHECK(t, MADE_OF(1, 4, 3));
    }
}

TEST(a_batch_begins_with_its_share_of_the_threshold)
{
    static uint8_t large[SHARE + 2][SMALL + 1];
    hvd_call call = { .kind = HVD_ALLREDUCE, .type = HVD_UINT8, .count = SMALL };

    CHECK_OK(t, enter(&members));
    CHECK_OK(t, start(0, 21)); /* the next batch has room for more than its share */
    for (size_t i = 0; i < SHARE + 1; i++) {
        call.in = call.out = large[i];
        CHECK_OK(t, start_call(&call, 21 + i));
    }
    CHECK_OK(t, start(100, 102));
    call.in = call.out = large[SHARE + 1]; /* not small; what is before it comes before it */
    call.count = SMALL + 1;
    CHECK_OK(t, start_call(&call, 102));
    CHECK_OK(t, start(103, 105));
    CHECK_OK(t, await(0, 21 + SHARE + 1));
    CHECK_OK(t, await(100, 105));
    CHECK(t, MADE_OF(1, 4, 16, SHARE, 3, 1, 2));
}

/* ---- what is not fused ----------------------------------------------------------------------- */

TEST(nothing_is_fused_without_a_threshold)
{
    rounds_use_fusion(rounds, 0);
    CHECK_OK(t, enter(&members));
    CHECK_OK(t, start(0, 6));
    CHECK_OK(t, await(0, 6));
    CHECK(t, MADE_OF(1, 1, 1, 1, 1, 1));
}

TEST(nothing_is_fused_by_a_worker_alone)
{
    CHECK_OK(t, enter(&alone));
    CHECK_OK(t, start(0, 6));
    CHECK_OK(t, await(0, 6));
    CHECK(t, MADE_OF(1, 1, 1, 1, 1, 1));
}

/* Other ranks do not know of such a group: what they fuse is the same as here. The request of the
 * group comes before the batch that is open, and counts for nothing. */
TEST(a_group_of_some_members_changes_no_batch)
{
    const int ranks[] = { 0 };
    hvd_group *group;
    hvd_call call = small(300);

    for (int with = 0; with < 2; with++) {
        CHECK_OK(t, enter(&members));
        fake_coll_reset();
        CHECK_OK(t, rounds_open_apart(rounds, ranks, 1, 5, &group, &err));
        call.group = group;
        CHECK_OK(t, start(0, 3));
        if (with) {
            CHECK_OK(t, start_call(&call, 300));
            CHECK_OK(t, await(300, 301));
            CHECK_OK(t, requests_run(rounds, &call, &err));
        }
        CHECK_OK(t, start(3, 21));
        CHECK_OK(t, await(0, 21));
        if (with)
            CHECK(t, MADE_OF(1, 1, 1, 4, 16));
        else
            CHECK(t, MADE_OF(1, 4, 16));
    }
}

TEST(a_call_of_some_members_must_not_need_a_batch)
{
    const int ranks[] = { 0 };
    hvd_group *group;
    hvd_call call = small(300);

    for (int way = 0; way < 4; way++) {
        const hvd_call other = small(1);
        const hvd_piece piece = { other.out, &memory[300][1], 1 };

        CHECK_OK(t, enter(&members));
        CHECK_OK(t, rounds_open_apart(rounds, ranks, 1, 5, &group, &err));
        call = small(300);
        call.group = group;
        call.in = way == 0 ? other.out : call.in; /* what the batch writes is read */
        call.out = way == 1 ? other.out : way == 2 ? (void *)(uintptr_t)other.in : call.out;
        if (way == 3)
            call = (hvd_call){ .kind = HVD_ALLREDUCE,
                               .group = group,
                               .type = HVD_UINT8,
                               .pieces = &piece,
                               .piece_count = 1 };
        CHECK_OK(t, start(0, 3)); /* requests 1 and 2 are in the open batch */
        CHECK_CODE(t, start_call(&call, 300), HVD_E_INVAL);
        CHECK_HAS(t, err.text, "uses memory of an earlier request");
        CHECK_HAS(t, fake_coll_seen().refused, "wait for that request first");
    }
}

TEST(nothing_is_fused_where_there_are_groups)
{
    const int ranks[] = { 0 };
    hvd_group *group;

    CHECK_OK(t, groups_add_ranks(groups, ranks, 1, &group, &err));
    CHECK_OK(t, enter(&members));
    CHECK_OK(t, start(0, 6));
    CHECK_OK(t, await(0, 6));
    CHECK(t, MADE_OF(1, 1, 1, 1, 1, 1));
}

TEST(nothing_is_fused_after_a_group_was_opened)
{
    const int ranks[] = { 0 };
    const struct group_rule rule = { .listed = true, .ranks = ranks, .count = 1 };
    hvd_group *group;

    CHECK_OK(t, enter(&members));
    CHECK_OK(t, rounds_open_group(rounds, &rule, &group, &err));
    fake_coll_reset();
    CHECK_OK(t, start(0, 6));
    CHECK_OK(t, await(0, 6));
    CHECK(t, MADE_OF(1, 1, 1, 1, 1, 1));
}

/* Requests 5 and 6 wait in a batch with room for 16. Request 7, of another sort, closes this batch
 * and is not fused. */
TEST(a_batch_is_of_one_sort)
{
    static double number;
    static const hvd_piece piece = { &number, &number, 1 };
    static const hvd_call others[] = {
        {.kind = HVD_ALLREDUCE,  .in = &number, .out = &number, .count = 1, .type = HVD_FLOAT64 },
        { .kind = HVD_ALLREDUCE,
         .in = &number,
         .out = &number,
         .count = 1,
         .type = HVD_UINT8,
         .op = HVD_MAX },
        { .kind = HVD_BROADCAST,   .out = &number, .count = 1, .type = HVD_UINT8 },
        { .kind = HVD_ALLREDUCE, .pieces = &piece, .piece_count = 1, .type = HVD_UINT8 },
        { .kind = HVD_BARRIER        },
    };

    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        CHECK_OK(t, enter(&members));
        fake_coll_reset();
        CHECK_OK(t, start(0, 7));
        CHECK_OK(t, start_call(&others[i], 7));
        CHECK_OK(t, start(8, 10));
        CHECK_OK(t, await(0, 10));
        CHECK(t, MADE_OF(1, 4, 2, 1, 2));
    }
}

TEST(a_scale_is_part_of_the_sort)
{
    float numbers[8] = { 0 };
    hvd_call call = { .kind = HVD_ALLREDUCE, .count = 1, .type = HVD_FLOAT32 };

    CHECK_OK(t, enter(&members));
    for (size_t i = 0; i < 8; i++) {
        call.in = call.out = &numbers[i];
        call.prescale = i < 3 ? 0 : i < 6 ? 1 : 0.5; /* 0 counts as 1 */
        call.postscale = i == 7 ? 2 : 0;
        CHECK_OK(t, start_call(&call, i));
    }
    CHECK_OK(t, await(0, 8));
    CHECK(t, MADE_OF(1, 4, 1, 1, 1));
}

/* Started calls are made in their order: one may read what the one before it writes. */
TEST(requests_that_depend_on_each_other_are_not_fused)
{
    uint8_t *const in = &memory[100][0], *const out = &memory[100][1];
    const hvd_call base = { .kind = HVD_ALLREDUCE, .count = 1, .type = HVD_UINT8 };
    uint8_t more[3];

    for (int way = 0; way < 4; way++) {
        hvd_call first = base, second = base;

        first.in = in;
        first.out = out;
        second.in = way == 0 ? out : more; /* reads the result; or writes over it, or the input */
        second.out = way == 1 ? out : way == 2 ? in : &more[1];
        CHECK_OK(t, enter(&members));
        fake_coll_reset();
        CHECK_OK(t, start(0, 6));
        CHECK_OK(t, start_call(&first, 6));
        CHECK_OK(t, start_call(&second, 7));
        CHECK_OK(t, start(8, 9));
        CHECK_OK(t, await(0, 9));
        if (way < 3)
            CHECK(t, MADE_OF(1, 4, 2, 2));
        else
            CHECK(t, MADE_OF(1, 4, 4));
    }
}

/* ---- what the program does meanwhile --------------------------------------------------------- */

TEST(a_batch_is_closed_by_what_waits_for_it)
{
    const hvd_call barrier = { .kind = HVD_BARRIER };
    int done = 0;

    for (int way = 0; way < 4; way++) {
        CHECK_OK(t, enter(&members));
        fake_coll_reset();
        CHECK_OK(t, start(0, 7));
        if (way == 0) {
            CHECK_OK(t, await(6, 7));
        } else if (way == 1) {
            while (!done)
                CHECK_OK(t, requests_test(rounds, requests[5], &done, &err));
        } else if (way == 2) {
            CHECK_OK(t, requests_run(rounds, &barrier, &err));
        } else {
            requests_flush(rounds); /* as a commit and a check do */
            requests_flush(rounds);
        }
        CHECK_OK(t, start(7, 8));
        CHECK_OK(t, await(0, way ? 8 : 6));
        CHECK_OK(t, await(way ? 8 : 7, 8));
        if (way == 2)
            CHECK(t, MADE_OF(1, 4, 2, 1, 1));
        else
            CHECK(t, MADE_OF(1, 4, 2, 1));
    }
}

/* A loop that tests what was begun before does not decide about what was not. */
TEST(a_batch_stays_open_for_those_who_ask_for_another)
{
    int done = 0;

    CHECK_OK(t, enter(&members));
    CHECK_OK(t, start(0, 7));
    while (!done)
        CHECK_OK(t, requests_test(rounds, requests[2], &done, &err));
    CHECK_OK(t, await(0, 3));
    CHECK_OK(t, start(7, 10));
    CHECK_OK(t, await(3, 10));
    CHECK(t, MADE_OF(1, 4, 5));
}

/* Ranks may join at different places, by a call that waits or by a started one, whose wait may
 * come after other starts. */
TEST(a_join_makes_all_ranks_begin_anew)
{
    static const struct {
        size_t before;
        bool started;
    } cases[] = {
        {0,  false},
        { 7, false},
        { 0, true },
        { 7, true }
    };
    const hvd_call join = { .kind = HVD_JOIN };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t before = cases[i].before;

        CHECK_OK(t, enter(&members));
        CHECK_OK(t, start(0, before));
        CHECK_OK(t, cases[i].started ? start_call(&join, 9) : requests_run(rounds, &join, &err));
        CHECK_OK(t, start(10, 16));
        CHECK_OK(t, await(10, 16));
        CHECK_OK(t, before ? await(0, before) : 0);
        CHECK_OK(t, cases[i].started ? await(9, 10) : 0);
        CHECK_OK(t, start(16, 18));
        CHECK_OK(t, await(16, 18));
        if (before)
            CHECK(t, MADE_OF(1, 4, 2, 1, 1, 4, 1, 1, 1));
        else
            CHECK(t, MADE_OF(1, 1, 4, 1, 1, 1));
        fake_coll_reset();
    }
}

/* A rank that has come later has no requests of old rounds. */
TEST(a_round_makes_all_ranks_begin_anew)
{
    CHECK_OK(t, enter(&members));
    CHECK_OK(t, start(0, 7));
    requests_flush(rounds);
    CHECK_OK(t, enter(&members));
    fake_coll_reset();
    CHECK_OK(t, start(10, 12));
    for (size_t i = 0; i < 7; i++)
        CHECK(t, await(i, i + 1) != HVD_E_INVAL); /* the round has ended some of them */
    CHECK_OK(t, start(12, 16));
    CHECK_OK(t, await(10, 16));
    CHECK(t, MADE_OF(1, 4, 1));
}

/* ---- failures -------------------------------------------------------------------------------- */

TEST(an_operation_that_fails_fails_all_its_requests)
{
    CHECK_OK(t, enter(&members));
    fake_coll_fail(4, HVD_E_MISMATCH);
    fake_coll_hold(1);
    CHECK_OK(t, start(0, 7)); /* the last two are in an open batch */
    fake_coll_go();
    CHECK_OK(t, await(0, 1));
    for (size_t i = 1; i < 5; i++) {
        CHECK_CODE(t, await(i, i + 1), HVD_E_MISMATCH);
        CHECK_HAS(t, err.text, "count 4 does not please");
    }
    for (size_t i = 5; i < 7; i++) {
        CHECK_CODE(t, await(i, i + 1), HVD_E_REVOKED);
        CHECK_HAS(t, err.text, "count 4 does not please");
    }
    CHECK_INT(t, rounds_failed(rounds), ==, HVD_E_MISMATCH);
    CHECK_CODE(t, start(8, 9), HVD_E_REVOKED);
    CHECK_OK(t, enter(&members));
    CHECK_OK(t, start(0, 1));
    CHECK_OK(t, await(0, 1));
}

TEST(a_revoke_ends_all_requests_of_a_batch)
{
    for (int held = 1; held <= 4; held += 3) { /* the one before, or the batch itself */
        CHECK_OK(t, enter(&members));
        fake_coll_hold((size_t)held);
        CHECK_OK(t, start(0, 7));
        CHECK(t, fake_coll_await((size_t)held));
        rounds_cancel(rounds, the_round);
        for (size_t i = 7; i-- > 1;)
            CHECK_CODE(t, await(i, i + 1), HVD_E_REVOKED);
        if (held == 1)
            CHECK_CODE(t, await(0, 1), HVD_E_REVOKED);
        else
            CHECK_OK(t, await(0, 1));
        fake_coll_go();
    }
}

/* No operation is in progress when the round is revoked, and none is begun for what waits. */
TEST(a_revoke_ends_requests_that_wait_for_more)
{
    CHECK_OK(t, enter(&members));
    CHECK_OK(t, start(0, 7));
    CHECK_OK(t, await(0, 5));
    rounds_cancel(rounds, the_round);
    CHECK_CODE(t, await(6, 7), HVD_E_REVOKED);
    CHECK_CODE(t, await(5, 6), HVD_E_REVOKED);
    CHECK(t, MADE_OF(1, 4));
}

TEST(train_may_return_with_an_open_batch)
{
    int done = 0;

    for (int held = 0; held < 2; held++) {
        CHECK_OK(t, enter(&members));
        fake_coll_reset();
        fake_coll_hold(held ? 4 : 0);
        CHECK_OK(t, start(0, 7));
        if (held)
            CHECK(t, fake_coll_await(4));
        else
            CHECK_OK(t, await(0, 5));
        rounds_open(rounds, false);
        for (size_t i = held ? 1 : 5; i < 7; i++) {
            CHECK_OK(t, requests_test(rounds, requests[i], &done, &err));
            CHECK_INT(t, done, ==, 1);
            CHECK_CODE(t, await(i, i + 1), HVD_E_REVOKED);
            CHECK_HAS(t, err.text, "train has returned");
        }
        if (held)
            CHECK_OK(t, await(0, 1));
        CHECK(t, !rounds_failed(rounds));
        fake_coll_go();
    }
}

/* A wrong call behind an open batch ends the round, and the batch with it. */
TEST(a_wrong_call_ends_an_open_batch)
{
    hvd_call wrong = small(7);

    CHECK_OK(t, enter(&members));
    CHECK_OK(t, start(0, 7));
    wrong.op = (hvd_op)9;
    CHECK_CODE(t, start_call(&wrong, 7), HVD_E_INVAL);
    for (size_t i = 5; i < 7; i++)
        CHECK_CODE(t, await(i, i + 1), HVD_E_REVOKED);
    CHECK_OK(t, enter(&members));
    CHECK_OK(t, start(0, 2));
    CHECK_OK(t, await(0, 2));
}

TEST_FLAGS(the_end_may_come_at_any_moment, TEST_NO_TORTURE)
{
    for (size_t i = 0; i < 100; i++) {
        CHECK_OK(t, enter(&members));
        CHECK_OK(t, start(0, i % 23));
        if (i % 3 == 0)
            rounds_cancel(rounds, the_round);
        for (size_t k = i % 23; k > i % 7 && i % 2; k--)
            CHECK(t, await(k - 1, k) != HVD_E_INVAL);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *await_all(void *arg)
{
    size_t from = (size_t)(uintptr_t)arg;
    struct hvd_err why;
    int rc = 0;

    for (size_t i = from; i < 40 && !rc; i += 4)
        rc = requests_wait(rounds, requests[i], &why);
    return rc ? &requests[from] : NULL;
}

TEST_FLAGS(several_threads_may_wait_for_one_batch, TEST_NO_TORTURE)
{
    void *failed;

    CHECK_OK(t, enter(&members));
    for (int i = 0; i < 50; i++) {
        fake_coll_reset();
        CHECK_OK(t, start(0, 40));
        for (; started < 4; started++)
            CHECK_OK(t, thread_start(&threads[started], 0, await_all, (void *)started));
        while (started) {
            pthread_join(threads[--started], &failed);
            CHECK(t, !failed);
        }
        CHECK(t, MADE_OF(1, 4, 16, 19));
    }
}
