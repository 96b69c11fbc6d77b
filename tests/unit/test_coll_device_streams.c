/*
 * Calls by NCCL that return before their work is done (streamed calls), and fail after that: which
 * member is told of the failure, and when.
 */
#include "collectives/device.h"
#include "collectives/nccl/nccl_thread.h"
#include "os/clock.h"
#include "tests/lib/fixture.h"
#include "tests/lib/gpu_team.h"

#include <sched.h>
#include <string.h>

#define LONG_US COLL_TEAM_LONG_US
#define COUNT   1000

/* ---- the next call reports the failure ---- */

static struct coll_call streamed_sum(uint32_t rank, const struct gpu_twin *twin)
{
    return (struct coll_call){ .kind = COLL_ALLREDUCE,
                               .type = HVD_INT32,
                               .in = twin->device,
                               .out = twin->device,
                               .count = COUNT,
                               .device = gpu_team_device(rank),
                               .streamed = true };
}

static atomic_uint queued; /* the number of members whose call is queued */

static bool await_count(uint32_t count)
{
    int64_t until_us = clock_now_us() + LONG_US;

    while (atomic_load(&queued) < count && clock_now_us() < until_us)
        sched_yield();
    return atomic_load(&queued) >= count;
}

static bool await_queued(const struct team *team)
{
    return await_count(team->size);
}

static void wait_here(void *arg)
{
    (void)await_queued(arg);
}

/* Queues the call. Its kernel does not begin, nor fail, before the call has returned on all
 * members. */
static int queue(struct team *team, uint32_t rank, const struct coll_call *call)
{
    int rc = gpu_enter(call->device, &team->err[rank]);

    if (rc)
        return rc;
    fake_gpu_run(NULL, wait_here, team);
    gpu_leave(call->device);
    rc = coll_run(team->colls[rank], call, &team->err[rank]);
    atomic_fetch_add(&queued, 1);
    return rc;
}

/* Queues a call that fails; the next call must report the failure. */
static void act_streamed(struct team *team, uint32_t rank)
{
    const struct coll_call barrier = { .kind = COLL_BARRIER };
    int64_t until_us = clock_now_us() + LONG_US;
    struct gpu_twin twin = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT * sizeof(int32_t), &twin);
    const struct coll_call call = streamed_sum(rank, &twin);

    if (!rc)
        rc = coll_run(team->colls[rank], &call, &team->err[rank]);
    while (!rc && clock_now_us() < until_us)
        rc = coll_run(team->colls[rank], &barrier, &team->err[rank]);
    team->rc[rank] = rc;
    rc = coll_settle(team->colls[rank], NULL);
    if (rc && rc != HVD_E_REVOKED)
        team->rc[rank] = rc;
    gpu_twin_free(rank, &twin);
}

static struct team own;
static bool begun; /* members run, and the test has not yet waited for them */

static void end_case(struct test *t)
{
    (void)t;
    if (begun) {
        coll_cancel(own.colls[own.size - 1]);
        team_await(&own);
        begun = false;
    }
    fake_gpu_faults(NULL);
    team_close(&own);
}
FIXTURE(NULL, end_case)

TEST_FLAGS(a_failure_after_a_call_is_told_by_the_next, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_team_open(&own, "aab", NULL, true));
    team_run(&own, gpu_team_act_connect);
    CHECK_TEAM(t, &own);
    fake_gpu_faults("collective@1:error");
    team_run(&own, act_streamed);
    for (uint32_t i = 0; i < own.size; i++) {
        CHECK_CODE(t, own.rc[i], HVD_E_REVOKED);
        CHECK_HAS(t, own.err[i].text, "rank 1: ");
    }
    team_close(&own);
    CHECK_NOTHING_LEFT(t);
}

/* The communicator fails between two calls. The second call has looked at the state before that, so
 * it meets the failure in NCCL. */
static void act_goes_on(struct team *team, uint32_t rank)
{
    struct coll_group *group = &team->colls[rank]->groups[0];
    struct comm *comm = atomic_load(&group->nccl.comm);
    int64_t until_us = clock_now_us() + LONG_US;
    struct gpu_twin twin = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT * sizeof(int32_t), &twin);
    const struct coll_call call = streamed_sum(rank, &twin);

    if (!rc)
        rc = queue(team, rank, &call);
    while (!rc && rank == 1 && comm_look(comm, NULL) != COMM_FAILED)
        rc = clock_now_us() < until_us ? 0 : HVD_E_TIMEOUT;
    if (!rc && device_comm_state(team->colls[rank], group) != DEVICE_READY)
        rc = 1;
    if (!rc && group->nccl.given_up)
        rc = 2;
    if (!rc)
        rc = coll_run(team->colls[rank], &call, &team->err[rank]);
    team->rc[rank] = rc;
    if (coll_settle(team->colls[rank], NULL))
        team->rc[rank] = 3;
    gpu_twin_free(rank, &twin);
}

/* Otherwise half of the members would be in the host's operation, and the others would wait on the
 * device. */
TEST_FLAGS(a_user_of_nccl_does_not_go_back_to_the_host, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_team_open(&own, "aab", NULL, true));
    team_run(&own, gpu_team_act_connect);
    CHECK_TEAM(t, &own);
    fake_gpu_faults("collective#1@1:error");
    atomic_store(&queued, 0);
    team_run(&own, act_goes_on);
    for (uint32_t i = 0; i < own.size; i++) {
        CHECK_CODE(t, own.rc[i], HVD_E_REVOKED);
        CHECK_HAS(t, own.err[i].text, "rank 1: ");
        CHECK(t, !own.colls[i]->groups[0].nccl.given_up);
    }
    team_close(&own);
    CHECK_NOTHING_LEFT(t);
}

/* ---- no call follows the failed one ---- */

/* The last call of a round: only settling tells its result. The buffer is freed when no kernel
 * writes to it any more. */
static void act_streamed_last(struct team *team, uint32_t rank)
{
    struct gpu_twin twin = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT * sizeof(int32_t), &twin);
    const struct coll_call call = streamed_sum(rank, &twin);

    if (!rc)
        rc = queue(team, rank, &call);
    team->rc[rank] = rc ? 1 : coll_settle(team->colls[rank], &team->err[rank]);
    gpu_twin_free(rank, &twin);
}

TEST_FLAGS(the_last_queued_operation_is_awaited, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_team_open(&own, "aab", NULL, true));
    team_run(&own, gpu_team_act_connect);
    CHECK_TEAM(t, &own);
    fake_gpu_faults("collective@2:slow=100");
    atomic_store(&queued, 0);
    team_run(&own, act_streamed_last);
    CHECK_TEAM(t, &own);
    for (uint32_t i = 0; i < own.size; i++)
        CHECK(t, coll_is_whole(own.colls[i]));
    team_close(&own);
    CHECK_NOTHING_LEFT(t);
}

/* The other members' kernels wait for the kernel of the failed member; without a message they would
 * wait for ever. */
TEST_FLAGS(a_late_failure_on_one_member_is_known_to_all, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_team_open(&own, "aab", NULL, true));
    team_run(&own, gpu_team_act_connect);
    CHECK_TEAM(t, &own);
    fake_gpu_faults("collective@1:error");
    atomic_store(&queued, 0);
    team_run(&own, act_streamed_last);
    for (uint32_t i = 0; i < own.size; i++) {
        CHECK_CODE(t, own.rc[i], HVD_E_REVOKED);
        CHECK_HAS(t, own.err[i].text, "rank 1: ");
        CHECK_OK(t, coll_settle(own.colls[i], NULL)); /* the failure is told once */
    }
    team_close(&own);
    CHECK_NOTHING_LEFT(t);
}

TEST_FLAGS(a_death_in_the_last_operation_is_known_to_all, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_team_open(&own, "aab", NULL, true));
    team_run(&own, gpu_team_act_connect);
    CHECK_TEAM(t, &own);
    fake_gpu_faults("collective@0:hang");
    atomic_store(&queued, 0);
    team_start(&own, act_streamed_last);
    begun = true;
    CHECK(t, await_queued(&own));
    coll_cancel(own.colls[2]);
    team_await(&own);
    begun = false;
    for (uint32_t i = 0; i < own.size; i++)
        CHECK_CODE(t, own.rc[i], HVD_E_REVOKED);
    team_close(&own);
    CHECK_NOTHING_LEFT(t);
}

/* ---- leaving in order ------------------------------------------------------------------------ */

/* Leaves as a process that ends: it keeps nothing for its peers. */
static void leave_for_good(struct team *team, uint32_t rank)
{
    coll_bye(team->colls[rank]);
    coll_free(team->colls[rank]);
    team->colls[rank] = NULL;
    nccl_thread_agreed(team->engines[rank]->nccl_thread, UINT64_MAX);
}

static void act_streamed_and_part(struct team *team, uint32_t rank)
{
    act_streamed_last(team, rank);
    if (!team->rc[rank] && !coll_is_whole(team->colls[rank]))
        team->rc[rank] = 2;
    coll_part(team->colls[rank]);
    leave_for_good(team, rank);
}

/* The last member's kernel still runs when the kernels of the others have ended. */
TEST_FLAGS(a_finished_member_stays_while_other_members_wait, TEST_NO_TORTURE)
{
    static const char *const layouts[] = { "aa", "ab", "aab" };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_team_open(&own, layouts[i], NULL, true));
        team_run(&own, gpu_team_act_connect);
        CHECK_TEAM(t, &own);
        fake_gpu_faults(own.size == 2 ? "collective@1:late=100" : "collective@2:late=100");
        atomic_store(&queued, 0);
        team_run(&own, act_streamed_and_part);
        CHECK_TEAM(t, &own);
        team_close(&own);
    }
    CHECK_NOTHING_LEFT(t);
}

/* The first member parts when no kernel runs any more that needs it. Only this wait is short: a
 * thread of NCCL that is held up that long would count as stuck. */
static void act_streamed_and_first_parts(struct team *team, uint32_t rank)
{
    act_streamed_last(team, rank);
    atomic_fetch_add(&queued, 1);
    if (rank)
        return;
    if (!await_count(2 * team->size))
        team->rc[rank] = HVD_E_TIMEOUT;
    team->engines[rank]->options.gpu_bound_us = 100000;
    coll_part(team->colls[rank]);
    leave_for_good(team, rank);
}

static void act_part(struct team *team, uint32_t rank)
{
    if (rank)
        coll_part(team->colls[rank]);
}

/* The missing member is waited for only for a time, and is not harmed. */
TEST_FLAGS(a_missing_member_is_left_behind, TEST_NO_TORTURE)
{
    static const char *const layouts[] = { "aa", "ab", "aab" };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_team_open(&own, layouts[i], NULL, true));
        team_run(&own, gpu_team_act_connect);
        CHECK_TEAM(t, &own);
        atomic_store(&queued, 0);
        team_run(&own, act_streamed_and_first_parts);
        CHECK_TEAM(t, &own);
        for (uint32_t k = 1; k < own.size; k++)
            CHECK_OK(t, coll_settle(own.colls[k], &own.err[k]));
        team_run(&own, act_part);
        for (uint32_t k = 1; k < own.size; k++)
            CHECK(t, coll_is_whole(own.colls[k]));
        team_close(&own);
    }
    CHECK_NOTHING_LEFT(t);
}

static void act_one_goes_on(struct team *team, uint32_t rank)
{
    const struct coll_call barrier = { .kind = COLL_BARRIER };

    act_streamed_last(team, rank);
    if (rank + 1 < team->size)
        coll_part(team->colls[rank]);
    else if (!team->rc[rank])
        team->rc[rank] = coll_run(team->colls[rank], &barrier, &team->err[rank]);
    atomic_fetch_add(&queued, 1);
}

/* A member that has ended does not delay the end of the job, which then ends the other members. */
TEST_FLAGS(a_member_that_calls_again_is_not_awaited, TEST_NO_TORTURE)
{
    static const char *const layouts[] = { "aa", "ab", "aaa", "aab", "abb" };
    const struct coll_options options = { .gpu_bound_us = 2 * LONG_US };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_team_open(&own, layouts[i], &options, true));
        team_run(&own, gpu_team_act_connect);
        CHECK_TEAM(t, &own);
        atomic_store(&queued, 0);
        team_start(&own, act_one_goes_on);
        begun = true;
        CHECK(t, await_count(2 * own.size - 1));
        coll_cancel(own.colls[own.size - 1]);
        team_await(&own);
        begun = false;
        for (uint32_t k = 0; k < own.size; k++)
            CHECK_CODE(t, own.rc[k], k + 1 < own.size ? 0 : HVD_E_REVOKED);
        team_close(&own);
    }
    CHECK_NOTHING_LEFT(t);
}

static uint32_t joiner; /* the rank that joins (hvd_join), while the other members leave in order */

static void act_one_joins(struct team *team, uint32_t rank)
{
    uint32_t last = 0;
    const struct coll_call join = { .kind = COLL_JOIN, .ret_last = &last };

    act_streamed_last(team, rank);
    if (rank != joiner)
        coll_part(team->colls[rank]);
    else if (!team->rc[rank])
        team->rc[rank] = coll_run(team->colls[rank], &join, &team->err[rank]);
    atomic_fetch_add(&queued, 1);
}

/* A rank that has joined does not delay members that end, on its host or on another host. The rank
 * then waits for the end of the round, and reports no mismatch. */
TEST_FLAGS(a_joined_rank_waits_beside_an_ended_rank, TEST_NO_TORTURE)
{
    static const char *const layouts[] = { "aa",  "ab",   "aaa",  "aab", "abb",
                                           "abc", "aabc", "abbc", "abcd" };
    const struct coll_options options = { .gpu_bound_us = 2 * LONG_US };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
        for (joiner = 0; joiner < strlen(layouts[i]); joiner++) {
            CHECK_OK(t, gpu_team_open(&own, layouts[i], &options, true));
            team_run(&own, gpu_team_act_connect);
            CHECK_TEAM(t, &own);
            atomic_store(&queued, 0);
            team_start(&own, act_one_joins);
            begun = true;
            CHECK(t, await_count(2 * own.size - 1));
            coll_cancel(own.colls[joiner]);
            team_await(&own);
            begun = false;
            for (uint32_t k = 0; k < own.size; k++)
                CHECK_CODE(t, own.rc[k], k == joiner ? HVD_E_REVOKED : 0);
            team_close(&own);
        }
    CHECK_NOTHING_LEFT(t);
}
