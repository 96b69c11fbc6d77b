/*
 * Communicators without faults: made, used, revoked and freed, in every order. Faults:
 * test_nccl_faults.c; the results of calls: test_nccl_calls.c. To settle is to wait until no kernel
 * of the communicator runs.
 */
#include "base/rng.h"
#include "os/clock.h"
#include "tests/lib/comm_team.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/fixture.h"

#include <sched.h>
#include <string.h>

static int64_t in_time(void)
{
    return clock_now_us() + COMM_TEAM_LONG_US;
}

/* Two numbers of each member, on its device; greatest_of_ones says what the second number is
 * for. */
static void *numbers[COMM_TEAM_MAX];
static struct CUstream_st *streams[COMM_TEAM_MAX];

/* Gives the member its numbers (the first is 1) and its stream. */
static int make_one(struct comm_team *team, uint32_t rank)
{
    const double one = 1;
    int rc = fake_gpu_alloc(rank, 2 * sizeof(one), &numbers[rank]);

    if (!rc)
        rc = comm_team_put(team, rank, numbers[rank], &one, sizeof(one));
    if (!rc)
        rc = gpu_enter(team->devices[rank], NULL);
    if (rc)
        return rc;
    rc = cuda_judge(team->cuda,
                    team->cuda->stream_create(&streams[rank], CUDA_STREAM_NON_BLOCKING, 0),
                    "a stream", NULL);
    gpu_leave(team->devices[rank]);
    return rc;
}

static int open_all(struct comm_team *team, uint32_t size)
{
    int rc = comm_team_open(team, size, 0);

    for (uint32_t i = 0; i < size && !rc; i++)
        rc = make_one(team, i);
    return rc;
}

static void close_all(struct comm_team *team)
{
    uint32_t size = team->size;

    comm_team_close(team); /* then no thread uses the streams */
    for (uint32_t i = 0; i < size; i++) {
        fake_gpu_free(i, numbers[i]);
        numbers[i] = NULL;
        if (streams[i] && team->cuda->stream_destroy(streams[i]))
            team->rc[i] = HVD_E_IO;
        streams[i] = NULL;
    }
}

static int sum_in(struct comm *comm, uint32_t rank, bool streamed, struct hvd_err *err)
{
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .type = HVD_FLOAT64,
                                    .op = HVD_SUM,
                                    .in = numbers[rank],
                                    .out = numbers[rank],
                                    .count = 1 };

    return comm_run(comm, &call, streams[rank], streamed, err);
}

static void act_sum(struct comm_team *team, uint32_t rank)
{
    team->rc[rank] = sum_in(team->comms[rank], rank, false, &team->err[rank]);
}

static double number_of(struct comm_team *team, uint32_t rank)
{
    double number = 0;

    return comm_team_get(team, rank, &number, numbers[rank], sizeof(number)) ? -1 : number;
}

/* true: the result of each member is the number. */
static bool all_are(struct comm_team *team, double number)
{
    for (uint32_t i = 0; i < team->size; i++)
        if (team->rc[i] || number_of(team, i) != number)
            return false;
    return true;
}

/* Makes communicators and makes the first call, which waits for all members because they
 * connect. */
static int make_warm(struct comm_team *team)
{
    int rc = comm_team_make(team);

    if (rc)
        return rc;
    comm_team_run(team, act_sum);
    for (uint32_t i = 0; i < team->size && !rc; i++)
        rc = team->rc[i];
    return rc;
}

/* ---- being made ---- */

static struct comm_team own;
static struct comm *first[COMM_TEAM_MAX]; /* the earlier communicators */

static void end_case(struct test *t)
{
    (void)t;
    fake_gpu_faults(NULL);
    for (uint32_t i = 0; i < COMM_TEAM_MAX; i++) {
        comm_free(first[i]);
        first[i] = NULL;
    }
    close_all(&own);
}
FIXTURE(NULL, end_case)

TEST(is_made_and_used)
{
    CHECK_OK(t, open_all(&own, 3));
    CHECK_OK(t, comm_team_make(&own));
    comm_team_run(&own, act_sum);
    for (uint32_t i = 0; i < own.size; i++) {
        CHECK_OK(t, own.rc[i]);
        CHECK_INT(t, comm_look(own.comms[i], NULL), ==, COMM_READY);
        CHECK_INT(t, comm_progress(own.comms[i]), ==, 1);
        CHECK_OK(t, comm_settle(own.comms[i], NULL));
    }
    CHECK(t, all_are(&own, 3));
}

TEST(works_for_a_single_member)
{
    CHECK_OK(t, open_all(&own, 1));
    CHECK_OK(t, comm_team_make(&own));
    comm_team_run(&own, act_sum);
    CHECK(t, all_are(&own, 1));
}

/* A call may come before the communicator is ready. */
TEST(a_communicator_is_used_while_starting)
{
    CHECK_OK(t, open_all(&own, 2));
    CHECK_OK(t, comm_team_begin(&own));
    comm_team_run(&own, act_sum);
    CHECK(t, all_are(&own, 2));
}

static int begin_first_alone(struct comm_team *team)
{
    struct comm_spec spec = { .size = team->size };
    int rc = comm_make_id(team->threads[0], &spec.id, &team->err[0]);

    return rc ? rc : comm_begin(team->threads[0], &spec, &team->comms[0], &team->err[0]);
}

TEST(waits_for_all_members_while_starting)
{
    struct hvd_err why;

    CHECK_OK(t, open_all(&own, 2));
    CHECK_OK(t, begin_first_alone(&own));
    CHECK_INT(t, comm_await(own.comms[0], clock_now_us() + 1000), ==, COMM_STARTING);
    CHECK_OK(t, comm_settle(own.comms[0], NULL)); /* no kernel of this communicator runs */
    comm_revoke(own.comms[0]);
    CHECK_INT(t, comm_await(own.comms[0], in_time()), ==, COMM_FAILED);
    CHECK_INT(t, comm_look(own.comms[0], &why), ==, COMM_FAILED);
    CHECK_INT(t, why.code, ==, HVD_E_REVOKED);
    CHECK_CODE(t, sum_in(own.comms[0], 0, false, NULL), HVD_E_REVOKED);
    CHECK_OK(t, comm_settle(own.comms[0], NULL));
    comm_team_part(&own);
    CHECK_OK(t, comm_team_make(&own));
    comm_team_run(&own, act_sum);
    CHECK(t, all_are(&own, 2));
}

TEST(a_communicator_is_freed_while_starting)
{
    CHECK_OK(t, open_all(&own, 2));
    for (int i = 0; i < 5; i++) { /* at once, and after some time */
        CHECK_OK(t, begin_first_alone(&own));
        if (i & 1)
            (void)comm_await(own.comms[0], clock_now_us() + 1000 * i);
        comm_team_part(&own);
    }
    CHECK_OK(t, comm_team_make(&own));
    comm_team_run(&own, act_sum);
    CHECK(t, all_are(&own, 2));
}

TEST(a_communicator_is_revoked_before_beginning)
{
    CHECK_OK(t, open_all(&own, 2));
    CHECK_OK(t, begin_first_alone(&own));
    comm_revoke(own.comms[0]);
    comm_revoke(own.comms[0]);
    CHECK_INT(t, comm_look(own.comms[0], NULL), ==, COMM_FAILED);
}

/* ---- streams ---- */

#define MANY 600 /* more calls than may be in flight */

/* Makes 600 streamed calls: every hundredth one is a sum, the others take the maximum. Then
 * settles. */
static void act_many(struct comm_team *team, uint32_t rank)
{
    const struct coll_call greatest = { .kind = COLL_ALLREDUCE,
                                        .type = HVD_FLOAT64,
                                        .op = HVD_MAX,
                                        .in = numbers[rank],
                                        .out = numbers[rank],
                                        .count = 1 };
    struct comm *comm = team->comms[rank];
    int rc = 0;

    for (int i = 0; i < MANY && !rc; i++)
        rc = i % 100 == 50 ? sum_in(comm, rank, true, &team->err[rank])
                           : comm_run(comm, &greatest, streams[rank], true, &team->err[rank]);
    if (!rc)
        rc = comm_settle(comm, &team->err[rank]);
    team->rc[rank] = rc;
}

TEST_FLAGS(streams_many, TEST_NO_TORTURE)
{
    CHECK_OK(t, open_all(&own, 2));
    CHECK_OK(t, comm_team_make(&own));
    comm_team_run(&own, act_many);
    CHECK(t, all_are(&own, 1 << MANY / 100));
    CHECK_INT(t, comm_progress(own.comms[0]), ==, MANY);
}

/* Work that is queued behind a streamed call sees its result; the call sees the work before it. */
static void act_in_stream(struct comm_team *team, uint32_t rank)
{
    cuda_address number = (cuda_address)(uintptr_t)numbers[rank];
    const double five = 5;
    double came_to = 0;
    int code = team->cuda->to_device(number, &five, sizeof(five), streams[rank]);

    team->rc[rank] = code ? HVD_E_IO : sum_in(team->comms[rank], rank, true, &team->err[rank]);
    if (team->rc[rank])
        return;
    code = team->cuda->to_host(&came_to, number, sizeof(came_to), streams[rank]);
    if (code || team->cuda->stream_sync(streams[rank]) || came_to != 10)
        team->rc[rank] = HVD_E_CORRUPT;
}

static void act_in_stream_entered(struct comm_team *team, uint32_t rank)
{
    team->rc[rank] = gpu_enter(team->devices[rank], &team->err[rank]);
    if (team->rc[rank])
        return;
    for (int i = 0; i < 20 && !team->rc[rank]; i++)
        act_in_stream(team, rank);
    gpu_leave(team->devices[rank]);
}

TEST_FLAGS(keeps_the_order_of_a_stream, TEST_NO_TORTURE)
{
    CHECK_OK(t, open_all(&own, 2));
    CHECK_OK(t, comm_team_make(&own));
    comm_team_run(&own, act_in_stream_entered);
    CHECK_OK(t, own.rc[0]);
    CHECK_OK(t, own.rc[1]);
}

/* ---- being revoked ---- */

/* The last member never comes; the calls of the other members are revoked. */
static void check_revoked_in_a_call(struct test *t, int (*make)(struct comm_team *team))
{
    CHECK_OK(t, open_all(&own, 3));
    CHECK_OK(t, make(&own));
    own.away[2] = true;
    comm_team_start(&own, act_sum);
    comm_team_revoke(&own);
    comm_team_await(&own);
    own.away[2] = false;
    CHECK_INT(t, own.rc[0], ==, HVD_E_REVOKED);
    CHECK_INT(t, own.rc[1], ==, HVD_E_REVOKED);
    for (uint32_t i = 0; i < own.size; i++)
        CHECK_OK(t, comm_settle(own.comms[i], NULL));
    CHECK_INT(t, own.cuda->stream_sync(streams[0]), ==, 0);
    comm_team_part(&own);
    CHECK_OK(t, comm_team_make(&own));
    comm_team_run(&own, act_sum);
    for (uint32_t i = 0; i < own.size; i++)
        CHECK_OK(t, own.rc[i]);
}

TEST(is_revoked_in_a_launch)
{
    check_revoked_in_a_call(t, comm_team_make);
}

TEST(is_revoked_in_a_call)
{
    check_revoked_in_a_call(t, make_warm);
}

static void act_streamed(struct comm_team *team, uint32_t rank)
{
    team->rc[rank] = sum_in(team->comms[rank], rank, true, &team->err[rank]);
}

/* The call has returned, and the stream waits for a member that never comes. */
TEST(is_revoked_behind_a_streamed_call)
{
    CHECK_OK(t, open_all(&own, 2));
    CHECK_OK(t, make_warm(&own));
    own.away[1] = true;
    comm_team_run(&own, act_streamed);
    CHECK_OK(t, own.rc[0]);
    CHECK_INT(t, comm_progress(own.comms[0]), ==, 1);
    CHECK(t, comm_is_whole(own.comms[0]));
    comm_revoke(own.comms[0]);
    CHECK_CODE(t, sum_in(own.comms[0], 0, true, NULL), HVD_E_REVOKED);
    CHECK_OK(t, comm_settle(own.comms[0], NULL));
    CHECK_OK(t, comm_settle(own.comms[0], NULL));
    CHECK_INT(t, own.cuda->stream_sync(streams[0]), ==, 0);
    CHECK(t, !comm_is_whole(own.comms[0])); /* the result in the stream is not valid */
}

static void set(void *arg)
{
    atomic_store((atomic_bool *)arg, true);
}

/* From here on no call of the driver returns, and the NCCL thread is in such a call: it asks
 * whether the kernel has ended. Another call, which may wait for the kernel, has the driver's
 * lock. */
static int hold_up(struct comm_team *team, atomic_bool *passed, const char *faults)
{
    int64_t until_us = in_time();
    int rc = open_all(team, 2);

    atomic_store(passed, false);
    if (!rc)
        rc = make_warm(team);
    if (rc)
        return rc;
    team->away[1] = true;
    comm_team_run(team, act_streamed);
    fake_gpu_run(streams[0], set, passed); /* runs after the kernel */
    fake_gpu_faults(faults);
    while (!fake_gpu_live("staying") && clock_now_us() < until_us)
        sched_yield();
    return team->rc[0];
}

static bool has_passed(const atomic_bool *passed)
{
    int64_t until_us = in_time();

    while (!atomic_load(passed) && clock_now_us() < until_us)
        sched_yield();
    return atomic_load(passed);
}

TEST_FLAGS(is_revoked_while_the_driver_blocks, TEST_NO_TORTURE)
{
    static atomic_bool passed;

    CHECK_OK(t, hold_up(&own, &passed, "device:hang"));
    comm_revoke(own.comms[0]);
    CHECK(t, has_passed(&passed));
    CHECK(t, !comm_is_whole(own.comms[0]));
    fake_gpu_faults(NULL);
    CHECK_OK(t, comm_settle(own.comms[0], NULL));
    CHECK_CODE(t, sum_in(own.comms[0], 0, true, NULL), HVD_E_REVOKED);
}

/* The NCCL thread revokes once its launch has returned. */
TEST_FLAGS(is_revoked_after_a_launch_that_hung, TEST_NO_TORTURE)
{
    int64_t until_us = in_time();
    static atomic_bool passed;

    CHECK_OK(t, hold_up(&own, &passed, "device:hang revoke#1:error"));
    comm_revoke(own.comms[0]);
    while (comm_is_whole(own.comms[0]) && clock_now_us() < until_us)
        sched_yield();
    CHECK(t, !comm_is_whole(own.comms[0]));
    fake_gpu_faults(NULL);
    CHECK_OK(t, comm_settle(own.comms[0], NULL));
    CHECK(t, has_passed(&passed));
}

/* All calls have their results; the later failure of the round does not change a result. */
TEST(is_revoked_at_rest)
{
    CHECK_OK(t, open_all(&own, 2));
    CHECK_OK(t, make_warm(&own));
    comm_team_run(&own, act_streamed);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_OK(t, own.rc[i]);
        CHECK_INT(t, own.cuda->stream_sync(streams[i]), ==, 0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        comm_revoke(own.comms[i]);
        CHECK_OK(t, comm_settle(own.comms[i], NULL));
        CHECK(t, comm_is_whole(own.comms[i]));
    }
}

/* A freed communicator keeps its memory until all members have left its round. */
TEST(is_given_back_when_all_agree)
{
    int64_t until_us = in_time();

    CHECK_OK(t, open_all(&own, 2));
    CHECK_OK(t, make_warm(&own));
    for (uint32_t i = 0; i < own.size; i++) {
        struct comm *comm = own.comms[i];

        CHECK_OK(t, comm_settle(comm, NULL));
        own.comms[i] = NULL;
        comm_free(comm);
    }
    /* the next communicator of each NCCL thread, made after the first */
    CHECK_OK(t, make_warm(&own));
    CHECK_INT(t, fake_gpu_live("communicators"), ==, 4);
    nccl_thread_agreed(own.threads[0], 0); /* a communicator's own round counts */
    nccl_thread_agreed(own.threads[0], 1);
    while (fake_gpu_live("communicators") != 3 && clock_now_us() < until_us)
        sched_yield();
    CHECK_INT(t, fake_gpu_live("communicators"), ==, 3);
}

static void act_streamed_once(struct comm_team *team, uint32_t rank)
{
    team->rc[rank] = sum_in(team->comms[rank], rank, true, &team->err[rank]);
}

/* One member has its result and goes on to the next round while the kernel of the other member
 * still runs: the end of the first communicator must not cut the kernel short. */
TEST_FLAGS(does_not_cut_another_short, TEST_NO_TORTURE)
{
    CHECK_OK(t, open_all(&own, 2));
    CHECK_OK(t, make_warm(&own));
    fake_gpu_faults("collective@1:held");
    comm_team_run(&own, act_streamed_once);
    for (uint32_t i = 0; i < own.size; i++)
        CHECK_OK(t, own.rc[i]);
    CHECK_OK(t, comm_settle(own.comms[0], NULL));
    CHECK_INT(t, comm_progress(own.comms[1]), ==, 1); /* the kernel of this member is held */
    first[1] = own.comms[1];
    comm_free(own.comms[0]);
    own.comms[0] = own.comms[1] = NULL;
    CHECK_OK(t, comm_team_begin(&own));
    fake_gpu_faults(NULL);
    CHECK_OK(t, comm_settle(first[1], NULL));
    CHECK(t, comm_is_whole(first[1]));
    CHECK_INT(t, comm_progress(first[1]), ==, 2);
    CHECK(t, number_of(&own, 0) == 4 && number_of(&own, 1) == 4);
}

/* While a launch is in progress, the NCCL thread puts nothing else into its stream; the stand-in
 * reports a breach. */
TEST_FLAGS(next_waits_for_a_launch, TEST_NO_TORTURE)
{
    CHECK_OK(t, open_all(&own, 2));
    for (int i = 0; i < 5; i++) {
        CHECK_OK(t, comm_team_make(&own));
        fake_gpu_faults("revoke:error abort:slow=30");
        own.away[1] = true;
        comm_team_start(&own, act_sum);
        (void)comm_team_await_until(&own, clock_now_us() + 10000);
        comm_team_revoke(&own);
        comm_team_await(&own);
        CHECK_INT(t, own.rc[0], ==, HVD_E_REVOKED);
        comm_team_part(&own);
        own.away[1] = false;
        CHECK_OK(t, make_warm(&own));
        comm_team_part(&own);
        fake_gpu_faults(NULL);
    }
}

/* Freed during a call, and the NCCL thread is closed at once. */
TEST(is_freed_in_flight)
{
    CHECK_OK(t, open_all(&own, 2));
    CHECK_OK(t, make_warm(&own));
    own.away[1] = true;
    comm_team_run(&own, act_streamed);
    CHECK_OK(t, own.rc[0]);
}

/* Two communicators of one team are used in turn; then one is revoked and freed, and the other
 * works on. */
TEST(next_is_made_beside)
{
    CHECK_OK(t, open_all(&own, 2));
    CHECK_OK(t, comm_team_make(&own));
    memcpy(first, own.comms, sizeof(first));
    memset(own.comms, 0, sizeof(own.comms));
    CHECK_OK(t, comm_team_make(&own)); /* the second communicator */
    for (int turn = 0; turn < 4; turn++) {
        struct comm *other[COMM_TEAM_MAX];

        comm_team_run(&own, act_sum);
        CHECK(t, all_are(&own, 2 << turn));
        memcpy(other, own.comms, sizeof(other));
        memcpy(own.comms, first, sizeof(first));
        memcpy(first, other, sizeof(first));
    }
    for (uint32_t i = 0; i < own.size; i++) /* one of the two is revoked */
        comm_revoke(own.comms[i]);
    for (uint32_t i = 0; i < own.size; i++)
        CHECK_OK(t, comm_settle(own.comms[i], NULL));
    comm_team_part(&own);
    memcpy(own.comms, first, sizeof(first));
    memset(first, 0, sizeof(first));
    comm_team_run(&own, act_sum);
    CHECK(t, all_are(&own, 32));
}

/* ---- random orders ---- */

/* Makes a call and checks its result, also if a revoke comes at the same time. In a round that is
 * not settled the call has a buffer of its own, because the kernel may write until the buffer is
 * given back. */
static int greatest_of_ones(struct comm_team *team, uint32_t rank, bool settled, bool streamed)
{
    double *number = (double *)numbers[rank] + !settled;
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .type = HVD_FLOAT64,
                                    .op = HVD_MAX,
                                    .in = number,
                                    .out = number,
                                    .count = 1 };
    int rc = comm_run(team->comms[rank], &call, streams[rank], streamed, &team->err[rank]);

    if (rc || streamed || !settled || number_of(team, rank) == 1)
        return rc;
    return err_set(&team->err[rank], HVD_E_CORRUPT, "rank %u has %g", rank, number_of(team, rank));
}

static void act_until_the_end(struct comm_team *team, uint32_t rank)
{
    const bool *settled = team->arg;
    const double one = 1;
    int rc = comm_team_put(team, rank, numbers[rank], &one, sizeof(one));

    for (int i = 0; i < 30 && !rc; i++)
        rc = greatest_of_ones(team, rank, *settled, i % 3 != 2);
    if (!rc)
        rc = comm_settle(team->comms[rank], &team->err[rank]);
    team->rc[rank] = rc;
}

/* One round after the other is revoked: while it starts, in a launch, in flight, or at its end. The
 * next round begins while the former one is given back. */
TEST_FLAGS(survives_random_failures, TEST_NO_TORTURE)
{
    struct rng rng;

    rng_seed(&rng, 8);
    CHECK_OK(t, open_all(&own, 3));
    for (int round = 0; round < 200; round++) {
        bool settled = round % 4 != 0;
        uint64_t looks = rng_below(&rng, 1 + (uint64_t)round * 10);

        CHECK_OK(t, comm_team_begin(&own));
        own.arg = &settled;
        comm_team_start(&own, act_until_the_end);
        while (looks-- && comm_progress(own.comms[0]) < 30)
            sched_yield();
        comm_team_revoke(&own);
        comm_team_await(&own);
        for (uint32_t i = 0; i < own.size; i++) {
            if (own.rc[i] != HVD_E_REVOKED)
                CHECK_OK(t, own.rc[i]);
            if (settled)
                CHECK_OK(t, comm_settle(own.comms[i], NULL));
        }
        comm_team_part(&own);
    }
    CHECK_OK(t, make_warm(&own));
}

/* After all tests no object and no memory is left. */
TEST_FLAGS(leaves_nothing, TEST_NO_TORTURE)
{
    for (int i = 0; i < 3; i++) {
        CHECK_OK(t, open_all(&own, 2));
        CHECK_OK(t, comm_team_make(&own));
        comm_team_run(&own, act_many);
        if (i == 1)
            comm_team_revoke(&own);
        close_all(&own);
        CHECK_INT(t, fake_gpu_live("communicators"), ==, 0);
        CHECK_INT(t, fake_gpu_live("streams"), ==, 0);
        CHECK_INT(t, fake_gpu_live("events"), ==, 0);
        CHECK_INT(t, fake_gpu_live("memory"), ==, 0);
    }
}
