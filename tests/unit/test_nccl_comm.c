/*
 * The life of communicators, without faults: made, used, revoked, freed, in every order that there
 * is. What goes wrong: test_nccl_faults.c; what calls come to: test_nccl_calls.c.
 */
#include "base/rng.h"
#include "os/clock.h"
#include "tests/lib/fake_gpu.h"
#include "tests/lib/hand_crew.h"
#include "tests/lib/test.h"

#include <sched.h>
#include <string.h>

#define NO_TORTURE TEST_NO_TORTURE

static int64_t in_time(void)
{
    return clock_now_us() + HAND_CREW_LONG_US;
}

/* A number of each member, on its device; and behind it another one. */
static void *numbers[HAND_CREW_MAX];
static struct CUstream_st *streams[HAND_CREW_MAX];

static int make_one(struct hand_crew *crew, uint32_t rank)
{
    const double one = 1;
    int rc = hand_crew_alloc(crew, rank, 2 * sizeof(one), &numbers[rank]);

    if (!rc)
        rc = hand_crew_put(crew, rank, numbers[rank], &one, sizeof(one));
    if (!rc)
        rc = gpu_enter(crew->devices[rank], NULL);
    if (rc)
        return rc;
    rc = cuda_judge(crew->cuda,
                    crew->cuda->stream_create(&streams[rank], CUDA_STREAM_NON_BLOCKING, 0),
                    "a stream", NULL);
    gpu_leave(crew->devices[rank]);
    return rc;
}

static void free_one(struct hand_crew *crew, uint32_t rank)
{
    hand_crew_free(crew, rank, numbers[rank]);
    numbers[rank] = NULL;
    if (streams[rank] && crew->cuda->stream_destroy(streams[rank]))
        crew->rc[rank] = HVD_E_IO;
    streams[rank] = NULL;
}

static int open_all(struct hand_crew *crew, uint32_t size)
{
    int rc = hand_crew_open(crew, size, 0);

    for (uint32_t i = 0; i < size && !rc; i++)
        rc = make_one(crew, i);
    return rc;
}

static void close_all(struct hand_crew *crew)
{
    uint32_t size = crew->size;

    hand_crew_close(crew); /* then nobody uses them */
    for (uint32_t i = 0; i < size; i++)
        free_one(crew, i);
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

static void act_sum(struct hand_crew *crew, uint32_t rank)
{
    crew->rc[rank] = sum_in(crew->comms[rank], rank, false, &crew->err[rank]);
}

static double number_of(struct hand_crew *crew, uint32_t rank)
{
    double number = 0;

    return hand_crew_get(crew, rank, &number, numbers[rank], sizeof(number)) ? -1 : number;
}

/* All of them have come to it. */
static bool all_are(struct hand_crew *crew, double number)
{
    for (uint32_t i = 0; i < crew->size; i++)
        if (crew->rc[i] || number_of(crew, i) != number)
            return false;
    return true;
}

/* The first call of all waits for all, as they connect. */
static int make_warm(struct hand_crew *crew)
{
    int rc = hand_crew_make(crew);

    if (rc)
        return rc;
    hand_crew_run(crew, act_sum);
    for (uint32_t i = 0; i < crew->size && !rc; i++)
        rc = crew->rc[i];
    return rc;
}

/* ---- being made ---- */

static void is_made_and_used(struct test *t)
{
    struct hand_crew crew = { .size = 0 };

    CHECK_OK(t, open_all(&crew, 3));
    CHECK_OK(t, hand_crew_make(&crew));
    hand_crew_run(&crew, act_sum);
    for (uint32_t i = 0; i < crew.size; i++) {
        CHECK_OK(t, crew.rc[i]);
        CHECK_INT(t, comm_look(crew.comms[i], NULL), ==, COMM_READY);
        CHECK_INT(t, comm_progress(crew.comms[i]), ==, 1);
        CHECK_OK(t, comm_settle(crew.comms[i], NULL));
    }
    CHECK(t, all_are(&crew, 3));
out:
    close_all(&crew);
}

static void of_one_alone(struct test *t)
{
    struct hand_crew crew = { .size = 0 };

    CHECK_OK(t, open_all(&crew, 1));
    CHECK_OK(t, hand_crew_make(&crew));
    hand_crew_run(&crew, act_sum);
    CHECK(t, all_are(&crew, 1));
out:
    close_all(&crew);
}

/* A call may come before it is ready. */
static void is_used_while_it_starts(struct test *t)
{
    struct hand_crew crew = { .size = 0 };

    CHECK_OK(t, open_all(&crew, 2));
    CHECK_OK(t, hand_crew_begin(&crew));
    hand_crew_run(&crew, act_sum);
    CHECK(t, all_are(&crew, 2));
out:
    close_all(&crew);
}

static int begin_first_alone(struct hand_crew *crew)
{
    struct comm_spec spec = { .size = crew->size };
    int rc = comm_make_id(crew->hands[0], &spec.id, &crew->err[0]);

    return rc ? rc : comm_begin(crew->hands[0], &spec, &crew->comms[0], &crew->err[0]);
}

static void waits_for_the_others_while_starting(struct test *t)
{
    struct hand_crew crew = { .size = 0 };
    struct hvd_err why;

    CHECK_OK(t, open_all(&crew, 2));
    CHECK_OK(t, begin_first_alone(&crew));
    CHECK_INT(t, comm_await(crew.comms[0], clock_now_us() + 1000), ==, COMM_STARTING);
    CHECK_OK(t, comm_settle(crew.comms[0], NULL)); /* nothing of it runs */
    comm_revoke(crew.comms[0]);
    CHECK_INT(t, comm_await(crew.comms[0], in_time()), ==, COMM_FAILED);
    CHECK_INT(t, comm_look(crew.comms[0], &why), ==, COMM_FAILED);
    CHECK_INT(t, why.code, ==, HVD_E_REVOKED);
    CHECK_CODE(t, sum_in(crew.comms[0], 0, false, NULL), HVD_E_REVOKED);
    CHECK_OK(t, comm_settle(crew.comms[0], NULL));
    hand_crew_part(&crew);
    CHECK_OK(t, hand_crew_make(&crew));
    hand_crew_run(&crew, act_sum);
    CHECK(t, all_are(&crew, 2));
out:
    close_all(&crew);
}

static void is_freed_while_it_starts(struct test *t)
{
    struct hand_crew crew = { .size = 0 };

    CHECK_OK(t, open_all(&crew, 2));
    for (int i = 0; i < 5; i++) { /* at once, and some time later */
        CHECK_OK(t, begin_first_alone(&crew));
        if (i & 1)
            (void)comm_await(crew.comms[0], clock_now_us() + 1000 * i);
        hand_crew_part(&crew);
    }
    CHECK_OK(t, hand_crew_make(&crew));
    hand_crew_run(&crew, act_sum);
    CHECK(t, all_are(&crew, 2));
out:
    close_all(&crew);
}

static void is_revoked_before_it_begins(struct test *t)
{
    struct hand_crew crew = { .size = 0 };

    CHECK_OK(t, open_all(&crew, 2));
    CHECK_OK(t, begin_first_alone(&crew));
    comm_revoke(crew.comms[0]);
    comm_revoke(crew.comms[0]);
    CHECK_INT(t, comm_look(crew.comms[0], NULL), ==, COMM_FAILED);
out:
    close_all(&crew);
}

/* ---- streams ---- */

#define MANY 600 /* more than may be in flight */

static void act_many(struct hand_crew *crew, uint32_t rank)
{
    const struct coll_call greatest = { .kind = COLL_ALLREDUCE,
                                        .type = HVD_FLOAT64,
                                        .op = HVD_MAX,
                                        .in = numbers[rank],
                                        .out = numbers[rank],
                                        .count = 1 };
    struct comm *comm = crew->comms[rank];
    int rc = 0;

    for (int i = 0; i < MANY && !rc; i++)
        rc = i % 100 == 50 ? sum_in(comm, rank, true, &crew->err[rank])
                           : comm_run(comm, &greatest, streams[rank], true, &crew->err[rank]);
    if (!rc)
        rc = comm_settle(comm, &crew->err[rank]);
    crew->rc[rank] = rc;
}

static void streams_many(struct test *t)
{
    struct hand_crew crew = { .size = 0 };

    CHECK_OK(t, open_all(&crew, 2));
    CHECK_OK(t, hand_crew_make(&crew));
    hand_crew_run(&crew, act_many);
    CHECK(t, all_are(&crew, 1 << MANY / 100));
    CHECK_INT(t, comm_progress(crew.comms[0]), ==, MANY);
out:
    close_all(&crew);
}

/* What is in the stream behind a streamed call sees its result; what was before it is seen by it.
 */
static void act_in_stream(struct hand_crew *crew, uint32_t rank)
{
    cuda_address number = (cuda_address)(uintptr_t)numbers[rank];
    const double five = 5;
    double came_to = 0;
    int code = crew->cuda->to_device(number, &five, sizeof(five), streams[rank]);

    crew->rc[rank] = code ? HVD_E_IO : sum_in(crew->comms[rank], rank, true, &crew->err[rank]);
    if (crew->rc[rank])
        return;
    code = crew->cuda->to_host(&came_to, number, sizeof(came_to), streams[rank]);
    if (code || crew->cuda->stream_sync(streams[rank]) || came_to != 10)
        crew->rc[rank] = HVD_E_CORRUPT;
}

static void act_in_stream_entered(struct hand_crew *crew, uint32_t rank)
{
    crew->rc[rank] = gpu_enter(crew->devices[rank], &crew->err[rank]);
    if (crew->rc[rank])
        return;
    for (int i = 0; i < 20 && !crew->rc[rank]; i++)
        act_in_stream(crew, rank);
    gpu_leave(crew->devices[rank]);
}

static void keeps_the_order_of_a_stream(struct test *t)
{
    struct hand_crew crew = { .size = 0 };

    CHECK_OK(t, open_all(&crew, 2));
    CHECK_OK(t, hand_crew_make(&crew));
    hand_crew_run(&crew, act_in_stream_entered);
    CHECK_OK(t, crew.rc[0]);
    CHECK_OK(t, crew.rc[1]);
out:
    close_all(&crew);
}

/* ---- being revoked ---- */

/* The last one never comes. */
static void check_revoked_in_a_call(struct test *t, int (*make)(struct hand_crew *crew))
{
    struct hand_crew crew = { .size = 0 };

    CHECK_OK(t, open_all(&crew, 3));
    CHECK_OK(t, make(&crew));
    crew.away[2] = true;
    hand_crew_start(&crew, act_sum);
    hand_crew_revoke(&crew);
    hand_crew_await(&crew);
    crew.away[2] = false;
    CHECK_INT(t, crew.rc[0], ==, HVD_E_REVOKED);
    CHECK_INT(t, crew.rc[1], ==, HVD_E_REVOKED);
    for (uint32_t i = 0; i < crew.size; i++)
        CHECK_OK(t, comm_settle(crew.comms[i], NULL));
    CHECK_INT(t, crew.cuda->stream_sync(streams[0]), ==, 0);
    hand_crew_part(&crew);
    CHECK_OK(t, hand_crew_make(&crew));
    hand_crew_run(&crew, act_sum);
    for (uint32_t i = 0; i < crew.size; i++)
        CHECK_OK(t, crew.rc[i]);
out:
    close_all(&crew);
}

static void is_revoked_in_a_launch(struct test *t)
{
    check_revoked_in_a_call(t, hand_crew_make);
}

static void is_revoked_in_a_call(struct test *t)
{
    check_revoked_in_a_call(t, make_warm);
}

static void act_streamed(struct hand_crew *crew, uint32_t rank)
{
    crew->rc[rank] = sum_in(crew->comms[rank], rank, true, &crew->err[rank]);
}

/* The caller has gone on: the stream waits for what never comes. */
static void is_revoked_behind_a_streamed_call(struct test *t)
{
    struct hand_crew crew = { .size = 0 };

    CHECK_OK(t, open_all(&crew, 2));
    CHECK_OK(t, make_warm(&crew));
    crew.away[1] = true;
    hand_crew_run(&crew, act_streamed);
    CHECK_OK(t, crew.rc[0]);
    CHECK_INT(t, comm_progress(crew.comms[0]), ==, 1);
    CHECK(t, comm_is_whole(crew.comms[0]));
    comm_revoke(crew.comms[0]);
    CHECK_CODE(t, sum_in(crew.comms[0], 0, true, NULL), HVD_E_REVOKED);
    CHECK_OK(t, comm_settle(crew.comms[0], NULL));
    CHECK_OK(t, comm_settle(crew.comms[0], NULL));
    CHECK_INT(t, crew.cuda->stream_sync(streams[0]), ==, 0);
    CHECK(t, !comm_is_whole(crew.comms[0])); /* what is found in the stream is rubbish */
out:
    close_all(&crew);
}

static void set(void *arg)
{
    atomic_store((atomic_bool *)arg, true);
}

/* From here on no call of the driver returns, and the hand is in one: it asks how far the kernel
 * is. Some other call has the driver's lock, perhaps one that waits for that kernel. */
static int hold_up(struct hand_crew *crew, atomic_bool *passed, const char *faults)
{
    int64_t until_us = in_time();
    int rc = open_all(crew, 2);

    atomic_store(passed, false);
    if (!rc)
        rc = make_warm(crew);
    if (rc)
        return rc;
    crew->away[1] = true;
    hand_crew_run(crew, act_streamed);
    fake_gpu_run(streams[0], set, passed); /* behind the kernel */
    fake_gpu_faults(faults);
    while (!fake_gpu_live("staying") && clock_now_us() < until_us)
        sched_yield();
    return crew->rc[0];
}

static bool has_passed(const atomic_bool *passed)
{
    int64_t until_us = in_time();

    while (!atomic_load(passed) && clock_now_us() < until_us)
        sched_yield();
    return atomic_load(passed);
}

static void is_revoked_while_the_driver_lets_nobody_in(struct test *t)
{
    struct hand_crew crew = { .size = 0 };
    static atomic_bool passed;

    CHECK_OK(t, hold_up(&crew, &passed, "device:hang"));
    comm_revoke(crew.comms[0]);
    CHECK(t, has_passed(&passed));
    CHECK(t, !comm_is_whole(crew.comms[0]));
    fake_gpu_faults(NULL);
    CHECK_OK(t, comm_settle(crew.comms[0], NULL));
    CHECK_CODE(t, sum_in(crew.comms[0], 0, true, NULL), HVD_E_REVOKED);
out:
    fake_gpu_faults(NULL);
    close_all(&crew);
}

/* By the hand, once it is back. */
static void what_could_not_be_revoked_then_is_later(struct test *t)
{
    struct hand_crew crew = { .size = 0 };
    int64_t until_us = in_time();
    static atomic_bool passed;

    CHECK_OK(t, hold_up(&crew, &passed, "device:hang revoke#1:error"));
    comm_revoke(crew.comms[0]);
    while (comm_is_whole(crew.comms[0]) && clock_now_us() < until_us)
        sched_yield();
    CHECK(t, !comm_is_whole(crew.comms[0]));
    fake_gpu_faults(NULL);
    CHECK_OK(t, comm_settle(crew.comms[0], NULL));
    CHECK(t, has_passed(&passed));
out:
    fake_gpu_faults(NULL);
    close_all(&crew);
}

/* All that was called has its result, whatever becomes of the round after that. */
static void is_revoked_at_rest(struct test *t)
{
    struct hand_crew crew = { .size = 0 };

    CHECK_OK(t, open_all(&crew, 2));
    CHECK_OK(t, make_warm(&crew));
    hand_crew_run(&crew, act_streamed);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_OK(t, crew.rc[i]);
        CHECK_INT(t, crew.cuda->stream_sync(streams[i]), ==, 0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        comm_revoke(crew.comms[i]);
        CHECK_OK(t, comm_settle(crew.comms[i], NULL));
        CHECK(t, comm_is_whole(crew.comms[i]));
    }
out:
    close_all(&crew);
}

/* What is freed keeps its memory until all have left its round. */
static void is_given_back_when_all_agree(struct test *t)
{
    struct hand_crew crew = { .size = 0 };
    int64_t until_us = in_time();

    CHECK_OK(t, open_all(&crew, 2));
    CHECK_OK(t, make_warm(&crew));
    for (uint32_t i = 0; i < crew.size; i++) {
        struct comm *comm = crew.comms[i];

        CHECK_OK(t, comm_settle(comm, NULL));
        crew.comms[i] = NULL;
        comm_free(comm);
    }
    CHECK_OK(t, make_warm(&crew)); /* the next one of each hand, behind the turns of that */
    CHECK_INT(t, fake_gpu_live("communicators"), ==, 4);
    hand_agreed(crew.hands[0], 0); /* that is its own round */
    hand_agreed(crew.hands[0], 1);
    while (fake_gpu_live("communicators") != 3 && clock_now_us() < until_us)
        sched_yield();
    CHECK_INT(t, fake_gpu_live("communicators"), ==, 3);
out:
    close_all(&crew);
}

static void act_streamed_once(struct hand_crew *crew, uint32_t rank)
{
    crew->rc[rank] = sum_in(crew->comms[rank], rank, true, &crew->err[rank]);
}

/* One has its result, leaves the round and goes on in the next; the other's kernel has not ended.
 */
static void does_not_cut_another_short(struct test *t)
{
    struct hand_crew crew = { .size = 0 };
    struct comm *late = NULL;

    CHECK_OK(t, open_all(&crew, 2));
    CHECK_OK(t, make_warm(&crew));
    fake_gpu_faults("collective@1:late=200");
    hand_crew_run(&crew, act_streamed_once);
    for (uint32_t i = 0; i < crew.size; i++)
        CHECK_OK(t, crew.rc[i]);
    CHECK_OK(t, comm_settle(crew.comms[0], NULL));
    CHECK_INT(t, comm_progress(crew.comms[1]), ==, 1); /* it is late */
    late = crew.comms[1];
    comm_free(crew.comms[0]);
    crew.comms[0] = crew.comms[1] = NULL;
    CHECK_OK(t, hand_crew_begin(&crew));
    CHECK_OK(t, comm_settle(late, NULL));
    CHECK(t, comm_is_whole(late));
    CHECK_INT(t, comm_progress(late), ==, 2);
    CHECK(t, number_of(&crew, 0) == 4 && number_of(&crew, 1) == 4);
out:
    comm_free(late);
    fake_gpu_faults(NULL);
    close_all(&crew);
}

/* As long as a launch is in progress, nothing else is put into the stream of the hand: the stand-in
 * would see it. */
static void next_waits_for_a_launch(struct test *t)
{
    struct hand_crew crew = { .size = 0 };

    CHECK_OK(t, open_all(&crew, 2));
    for (int i = 0; i < 5; i++) {
        CHECK_OK(t, hand_crew_make(&crew));
        fake_gpu_faults("revoke:error abort:slow=30");
        crew.away[1] = true;
        hand_crew_start(&crew, act_sum);
        (void)hand_crew_await_until(&crew, clock_now_us() + 10000);
        hand_crew_revoke(&crew);
        hand_crew_await(&crew);
        CHECK_INT(t, crew.rc[0], ==, HVD_E_REVOKED);
        hand_crew_part(&crew);
        crew.away[1] = false;
        CHECK_OK(t, make_warm(&crew));
        hand_crew_part(&crew);
        fake_gpu_faults(NULL);
    }
out:
    close_all(&crew);
}

/* Freed while it is at work, and the hand closed at once. */
static void is_freed_in_flight(struct test *t)
{
    struct hand_crew crew = { .size = 0 };

    CHECK_OK(t, open_all(&crew, 2));
    CHECK_OK(t, make_warm(&crew));
    crew.away[1] = true;
    hand_crew_run(&crew, act_streamed);
    CHECK_OK(t, crew.rc[0]);
out:
    close_all(&crew);
}

/* ---- two of one device ---- */

static void next_is_made_beside(struct test *t)
{
    struct hand_crew crew = { .size = 0 };
    struct comm *first[HAND_CREW_MAX] = { NULL };

    CHECK_OK(t, open_all(&crew, 2));
    CHECK_OK(t, hand_crew_make(&crew));
    memcpy(first, crew.comms, sizeof(first));
    memset(crew.comms, 0, sizeof(crew.comms));
    CHECK_OK(t, hand_crew_make(&crew)); /* the next one */
    for (int turn = 0; turn < 4; turn++) {
        struct comm *other[HAND_CREW_MAX];

        hand_crew_run(&crew, act_sum);
        CHECK(t, all_are(&crew, 2 << turn));
        memcpy(other, crew.comms, sizeof(other));
        memcpy(crew.comms, first, sizeof(first));
        memcpy(first, other, sizeof(first));
    }
    for (uint32_t i = 0; i < crew.size; i++) /* the first one goes */
        comm_revoke(crew.comms[i]);
    for (uint32_t i = 0; i < crew.size; i++)
        CHECK_OK(t, comm_settle(crew.comms[i], NULL));
    hand_crew_part(&crew);
    memcpy(crew.comms, first, sizeof(first));
    memset(first, 0, sizeof(first));
    hand_crew_run(&crew, act_sum);
    CHECK(t, all_are(&crew, 32));
out:
    for (uint32_t i = 0; i < HAND_CREW_MAX; i++)
        comm_free(first[i]);
    close_all(&crew);
}

/* ---- all of it, at any time ---- */

/* What a call has come to is there when it says so, though it be revoked at the same time. A round
 * that nobody settles has a number of its own, as it may write there until it is given back. */
static int greatest_of_ones(struct hand_crew *crew, uint32_t rank, bool settled, bool streamed)
{
    double *number = (double *)numbers[rank] + !settled;
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .type = HVD_FLOAT64,
                                    .op = HVD_MAX,
                                    .in = number,
                                    .out = number,
                                    .count = 1 };
    int rc = comm_run(crew->comms[rank], &call, streams[rank], streamed, &crew->err[rank]);

    if (rc || streamed || !settled || number_of(crew, rank) == 1)
        return rc;
    return err_set(&crew->err[rank], HVD_E_CORRUPT, "rank %u has %g", rank, number_of(crew, rank));
}

static void act_until_the_end(struct hand_crew *crew, uint32_t rank)
{
    const bool *settled = crew->arg;
    const double one = 1;
    int rc = hand_crew_put(crew, rank, numbers[rank], &one, sizeof(one));

    for (int i = 0; i < 30 && !rc; i++)
        rc = greatest_of_ones(crew, rank, *settled, i % 3 != 2);
    if (!rc)
        rc = comm_settle(crew->comms[rank], &crew->err[rank]);
    crew->rc[rank] = rc;
}

/* Round after round is revoked somewhere: while it starts, in a launch, in flight, at its end. The
 * next one is begun while the last one is being given back. */
static void storm(struct test *t)
{
    struct hand_crew crew = { .size = 0 };
    struct rng rng;

    rng_seed(&rng, 8);
    CHECK_OK(t, open_all(&crew, 3));
    for (int round = 0; round < 200; round++) {
        bool settled = round % 4 != 0;
        uint64_t looks = rng_below(&rng, 1 + (uint64_t)round * 10);

        CHECK_OK(t, hand_crew_begin(&crew));
        crew.arg = &settled;
        hand_crew_start(&crew, act_until_the_end);
        while (looks-- && comm_progress(crew.comms[0]) < 30)
            sched_yield();
        hand_crew_revoke(&crew);
        hand_crew_await(&crew);
        for (uint32_t i = 0; i < crew.size; i++) {
            if (crew.rc[i] != HVD_E_REVOKED)
                CHECK_OK(t, crew.rc[i]);
            if (settled)
                CHECK_OK(t, comm_settle(crew.comms[i], NULL));
        }
        hand_crew_part(&crew);
    }
    CHECK_OK(t, make_warm(&crew));
out:
    close_all(&crew);
}

/* Nothing is left of any of it. */
static void leaves_nothing(struct test *t)
{
    struct hand_crew crew = { .size = 0 };

    for (int i = 0; i < 3; i++) {
        CHECK_OK(t, open_all(&crew, 2));
        CHECK_OK(t, hand_crew_make(&crew));
        hand_crew_run(&crew, act_many);
        if (i == 1)
            hand_crew_revoke(&crew);
        close_all(&crew);
        CHECK_INT(t, fake_gpu_live("communicators"), ==, 0);
        CHECK_INT(t, fake_gpu_live("streams"), ==, 0);
        CHECK_INT(t, fake_gpu_live("events"), ==, 0);
        CHECK_INT(t, fake_gpu_live("memory"), ==, 0);
    }
out:
    close_all(&crew);
}

TESTS(CASE(is_made_and_used), CASE(of_one_alone), CASE(is_used_while_it_starts),
      CASE(waits_for_the_others_while_starting), CASE(is_freed_while_it_starts),
      CASE(is_revoked_before_it_begins), CASE_FLAGS(streams_many, NO_TORTURE),
      CASE_FLAGS(keeps_the_order_of_a_stream, NO_TORTURE), CASE(is_revoked_in_a_launch),
      CASE(is_revoked_in_a_call), CASE(is_revoked_behind_a_streamed_call),
      CASE_FLAGS(is_revoked_while_the_driver_lets_nobody_in, TEST_NO_TORTURE),
      CASE_FLAGS(what_could_not_be_revoked_then_is_later, TEST_NO_TORTURE),
      CASE(is_revoked_at_rest), CASE(is_given_back_when_all_agree),
      CASE_FLAGS(does_not_cut_another_short, NO_TORTURE),
      CASE_FLAGS(next_waits_for_a_launch, NO_TORTURE), CASE(is_freed_in_flight),
      CASE(next_is_made_beside), CASE_FLAGS(storm, NO_TORTURE),
      CASE_FLAGS(leaves_nothing, NO_TORTURE))
