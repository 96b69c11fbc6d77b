/*
 * Calls by NCCL that have returned before they are done, and what becomes of them then: who is told
 * that they have failed, and when.
 */
#include "collectives/device.h"
#include "collectives/nccl/hand.h"
#include "os/clock.h"
#include "tests/lib/gpu_crew.h"

#include <sched.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)
#define LONG_US              COLL_CREW_LONG_US
#define COUNT                1000

/* ---- the next call tells of it ----------------------------------------------------------------
 */

static struct coll_call streamed_sum(uint32_t rank, const struct gpu_twin *twin)
{
    return (struct coll_call){ .kind = COLL_ALLREDUCE,
                               .type = HVD_INT32,
                               .in = twin->device,
                               .out = twin->device,
                               .count = COUNT,
                               .device = gpu_crew_device(rank),
                               .streamed = true };
}

static atomic_uint queued; /* by so many members */

static bool await_count(uint32_t count)
{
    int64_t until_us = clock_now_us() + LONG_US;

    while (atomic_load(&queued) < count && clock_now_us() < until_us)
        sched_yield();
    return atomic_load(&queued) >= count;
}

static bool await_queued(const struct crew *crew)
{
    return await_count(crew->size);
}

static void wait_here(void *arg)
{
    (void)await_queued(arg);
}

/* Nothing of it begins, or fails, before it has returned on all members. */
static int queue(struct crew *crew, uint32_t rank, const struct coll_call *call)
{
    int rc = gpu_enter(call->device, &crew->err[rank]);

    if (rc)
        return rc;
    fake_gpu_run(NULL, wait_here, crew);
    gpu_leave(call->device);
    rc = coll_run(crew->colls[rank], call, &crew->err[rank]);
    atomic_fetch_add(&queued, 1);
    return rc;
}

/* The call has returned; whatever is called next tells of it. */
static void act_streamed(struct crew *crew, uint32_t rank)
{
    const struct coll_call barrier = { .kind = COLL_BARRIER };
    int64_t until_us = clock_now_us() + LONG_US;
    struct gpu_twin twin = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT * sizeof(int32_t), &twin);
    const struct coll_call call = streamed_sum(rank, &twin);

    if (!rc)
        rc = coll_run(crew->colls[rank], &call, &crew->err[rank]);
    while (!rc && clock_now_us() < until_us)
        rc = coll_run(crew->colls[rank], &barrier, &crew->err[rank]);
    crew->rc[rank] = rc;
    rc = coll_settle(crew->colls[rank], NULL);
    if (rc && rc != HVD_E_REVOKED)
        crew->rc[rank] = rc;
    gpu_twin_free(rank, &twin);
}

static void what_fails_after_a_call_is_told_by_the_next(struct test *t)
{
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aab", NULL, true));
    crew_run(&crew, gpu_crew_act_connect);
    CHECK_CREW(t, &crew);
    fake_gpu_faults("collective@1:error");
    crew_run(&crew, act_streamed);
    for (uint32_t i = 0; i < crew.size; i++) {
        CHECK_CODE(t, crew.rc[i], HVD_E_REVOKED);
        CHECK_HAS(t, crew.err[i].text, "rank 1: ");
    }
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    fake_gpu_faults(NULL);
    crew_close(&crew);
}

/* Between two calls the communicator fails; it is looked at as the second one does it, which is too
 * late for the look that each call begins with. */
static void act_goes_on(struct crew *crew, uint32_t rank)
{
    struct coll_group *group = &crew->colls[rank]->groups[0];
    struct comm *comm = atomic_load(&group->comm);
    int64_t until_us = clock_now_us() + LONG_US;
    struct gpu_twin twin = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT * sizeof(int32_t), &twin);
    const struct coll_call call = streamed_sum(rank, &twin);

    if (!rc)
        rc = queue(crew, rank, &call);
    while (!rc && rank == 1 && comm_look(comm, NULL) != COMM_FAILED)
        rc = clock_now_us() < until_us ? 0 : HVD_E_TIMEOUT;
    if (!rc && device_stand(crew->colls[rank], group) != DEVICE_READY)
        rc = 1;
    if (!rc && group->no_comm)
        rc = 2;
    if (!rc)
        rc = coll_run(crew->colls[rank], &call, &crew->err[rank]);
    crew->rc[rank] = rc;
    if (coll_settle(crew->colls[rank], NULL))
        crew->rc[rank] = 3;
    gpu_twin_free(rank, &twin);
}

/* Half of the members would be there, and the others wait on the device. */
static void who_has_used_nccl_does_not_go_back_to_the_host(struct test *t)
{
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aab", NULL, true));
    crew_run(&crew, gpu_crew_act_connect);
    CHECK_CREW(t, &crew);
    fake_gpu_faults("collective#1@1:error");
    atomic_store(&queued, 0);
    crew_run(&crew, act_goes_on);
    for (uint32_t i = 0; i < crew.size; i++) {
        CHECK_CODE(t, crew.rc[i], HVD_E_REVOKED);
        CHECK_HAS(t, crew.err[i].text, "rank 1: ");
        CHECK(t, !crew.colls[i]->groups[0].no_comm);
    }
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    fake_gpu_faults(NULL);
    crew_close(&crew);
}

/* ---- and no call comes after it -------------------------------------------------------------- */

/* One that returns before it is done; what it has come to is what settling says. The buffer is
 * freed when nothing writes there any more. */
static void act_streamed_last(struct crew *crew, uint32_t rank)
{
    struct gpu_twin twin = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT * sizeof(int32_t), &twin);
    const struct coll_call call = streamed_sum(rank, &twin);

    if (!rc)
        rc = queue(crew, rank, &call);
    crew->rc[rank] = rc ? 1 : coll_settle(crew->colls[rank], &crew->err[rank]);
    gpu_twin_free(rank, &twin);
}

static void what_is_queued_last_is_waited_for(struct test *t)
{
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aab", NULL, true));
    crew_run(&crew, gpu_crew_act_connect);
    CHECK_CREW(t, &crew);
    fake_gpu_faults("collective@2:slow=100");
    atomic_store(&queued, 0);
    crew_run(&crew, act_streamed_last);
    CHECK_CREW(t, &crew);
    for (uint32_t i = 0; i < crew.size; i++)
        CHECK(t, coll_is_whole(crew.colls[i]));
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    fake_gpu_faults(NULL);
    crew_close(&crew);
}

/* The others' kernels wait for this one's: without a word from it they would wait for ever. */
static void if_that_fails_on_one_all_know_once_it_is_settled(struct test *t)
{
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aab", NULL, true));
    crew_run(&crew, gpu_crew_act_connect);
    CHECK_CREW(t, &crew);
    fake_gpu_faults("collective@1:error");
    atomic_store(&queued, 0);
    crew_run(&crew, act_streamed_last);
    for (uint32_t i = 0; i < crew.size; i++) {
        CHECK_CODE(t, crew.rc[i], HVD_E_REVOKED);
        CHECK_HAS(t, crew.err[i].text, "rank 1: ");
        CHECK_OK(t, coll_settle(crew.colls[i], NULL)); /* it is told once */
    }
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    fake_gpu_faults(NULL);
    crew_close(&crew);
}

static void so_do_they_of_one_that_dies_in_it(struct test *t)
{
    struct crew crew = { .size = 0 };
    bool begun = false;

    CHECK_OK(t, gpu_crew_open(&crew, "aab", NULL, true));
    crew_run(&crew, gpu_crew_act_connect);
    CHECK_CREW(t, &crew);
    fake_gpu_faults("collective@0:hang");
    atomic_store(&queued, 0);
    crew_start(&crew, act_streamed_last);
    begun = true;
    CHECK(t, await_queued(&crew));
    coll_cancel(crew.colls[2]);
    crew_await(&crew);
    begun = false;
    for (uint32_t i = 0; i < crew.size; i++)
        CHECK_CODE(t, crew.rc[i], HVD_E_REVOKED);
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    if (begun) {
        coll_cancel(crew.colls[0]);
        crew_await(&crew);
    }
    fake_gpu_faults(NULL);
    crew_close(&crew);
}

/* ---- leaving in order ------------------------------------------------------------------------ */

/* As a process that ends: nothing is kept for anybody. */
static void leave_for_good(struct crew *crew, uint32_t rank)
{
    coll_bye(crew->colls[rank]);
    coll_free(crew->colls[rank]);
    crew->colls[rank] = NULL;
    hand_agreed(crew->engines[rank]->hand, UINT64_MAX);
}

static void act_streamed_and_part(struct crew *crew, uint32_t rank)
{
    act_streamed_last(crew, rank);
    if (!crew->rc[rank] && !coll_is_whole(crew->colls[rank]))
        crew->rc[rank] = 2;
    coll_part(crew->colls[rank]);
    leave_for_good(crew, rank);
}

/* The last one's kernel has not ended when those of the others have. */
static void who_is_done_stays_as_long_as_others_need_it(struct test *t)
{
    static const char *const layouts[] = { "aa", "ab", "aab" };
    struct crew crew = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_crew_open(&crew, layouts[i], NULL, true));
        crew_run(&crew, gpu_crew_act_connect);
        CHECK_CREW(t, &crew);
        fake_gpu_faults(crew.size == 2 ? "collective@1:late=100" : "collective@2:late=100");
        atomic_store(&queued, 0);
        crew_run(&crew, act_streamed_and_part);
        CHECK_CREW(t, &crew);
        crew_close(&crew);
    }
    CHECK_NOTHING_LEFT(t);
out:
    fake_gpu_faults(NULL);
    crew_close(&crew);
}

static void act_streamed_and_first_parts(struct crew *crew, uint32_t rank)
{
    act_streamed_last(crew, rank);
    if (rank)
        return;
    coll_part(crew->colls[rank]);
    leave_for_good(crew, rank);
}

static void act_part(struct crew *crew, uint32_t rank)
{
    if (rank)
        coll_part(crew->colls[rank]);
}

/* It is not waited for without end; nor does it come to any harm. */
static void one_that_does_not_come_is_left_behind(struct test *t)
{
    static const char *const layouts[] = { "aa", "ab", "aab" };
    const struct coll_options options = { .gpu_bound_us = 100000 };
    struct crew crew = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_crew_open(&crew, layouts[i], &options, true));
        crew_run(&crew, gpu_crew_act_connect);
        CHECK_CREW(t, &crew);
        atomic_store(&queued, 0);
        crew_run(&crew, act_streamed_and_first_parts);
        CHECK_CREW(t, &crew);
        for (uint32_t k = 1; k < crew.size; k++)
            CHECK_OK(t, coll_settle(crew.colls[k], &crew.err[k]));
        crew_run(&crew, act_part);
        for (uint32_t k = 1; k < crew.size; k++)
            CHECK(t, coll_is_whole(crew.colls[k]));
        crew_close(&crew);
    }
    CHECK_NOTHING_LEFT(t);
out:
    crew_close(&crew);
}

static void act_one_goes_on(struct crew *crew, uint32_t rank)
{
    const struct coll_call barrier = { .kind = COLL_BARRIER };

    act_streamed_last(crew, rank);
    if (rank + 1 < crew->size)
        coll_part(crew->colls[rank]);
    else if (!crew->rc[rank])
        crew->rc[rank] = coll_run(crew->colls[rank], &barrier, &crew->err[rank]);
    atomic_fetch_add(&queued, 1);
}

/* Who has ended does not hold up what comes then: that the job hears of it, and ends the others. */
static void one_that_calls_again_is_not_waited_for(struct test *t)
{
    static const char *const layouts[] = { "aa", "ab", "aaa" };
    const struct coll_options options = { .gpu_bound_us = 2 * LONG_US };
    struct crew crew = { .size = 0 };
    bool begun = false;

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_crew_open(&crew, layouts[i], &options, true));
        crew_run(&crew, gpu_crew_act_connect);
        CHECK_CREW(t, &crew);
        atomic_store(&queued, 0);
        crew_start(&crew, act_one_goes_on);
        begun = true;
        CHECK(t, await_count(2 * crew.size - 1));
        coll_cancel(crew.colls[crew.size - 1]);
        crew_await(&crew);
        begun = false;
        for (uint32_t k = 0; k < crew.size; k++)
            CHECK_CODE(t, crew.rc[k], k + 1 < crew.size ? 0 : HVD_E_REVOKED);
        crew_close(&crew);
    }
    CHECK_NOTHING_LEFT(t);
out:
    if (begun) {
        coll_cancel(crew.colls[crew.size - 1]);
        crew_await(&crew);
    }
    crew_close(&crew);
}

TESTS(NO_TORTURE(what_fails_after_a_call_is_told_by_the_next),
      NO_TORTURE(who_has_used_nccl_does_not_go_back_to_the_host),
      NO_TORTURE(what_is_queued_last_is_waited_for),
      NO_TORTURE(if_that_fails_on_one_all_know_once_it_is_settled),
      NO_TORTURE(so_do_they_of_one_that_dies_in_it),
      NO_TORTURE(who_is_done_stays_as_long_as_others_need_it),
      NO_TORTURE(one_that_does_not_come_is_left_behind),
      NO_TORTURE(one_that_calls_again_is_not_waited_for))
