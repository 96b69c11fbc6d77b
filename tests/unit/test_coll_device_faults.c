/*
 * Calls on memory of a device when something is in the way: NCCL that is late, or not to be had on
 * one member; one that has joined, or means memory of the host; a round that dies in a kernel.
 */
#include "collectives/device.h"
#include "collectives/engine_inside.h"
#include "os/clock.h"
#include "tests/lib/gpu_crew.h"

#include <sched.h>
#include <string.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)
#define LONG_US              COLL_CREW_LONG_US
#define COUNT                1000

/* ---- what members do ---- */

/* An allreduce of ranks + 1; who: how many give something. */
static int sum_in(struct crew *crew, uint32_t rank, size_t group, uint32_t who)
{
    struct gpu_twin twin = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT * sizeof(int32_t), &twin);
    int32_t *numbers = twin.host;
    struct coll_call call;

    for (size_t i = 0; i < COUNT && !rc; i++)
        numbers[i] = (int32_t)rank + 1;
    call = (struct coll_call){ .kind = COLL_ALLREDUCE,
                               .group = group,
                               .type = HVD_INT32,
                               .in = twin.device,
                               .out = twin.device,
                               .count = COUNT,
                               .device = gpu_crew_device(rank) };
    if (!rc)
        rc = coll_run(crew->colls[rank], &call, &crew->err[rank]);
    if (rc && coll_settle(crew->colls[rank], NULL) == HVD_E_TIMEOUT)
        rc = HVD_E_TIMEOUT; /* until it is settled the device may write there */
    for (size_t i = 0; i < COUNT && !rc; i++) {
        if (numbers[i] != (int32_t)(who * (who + 1) / 2))
            rc = 1;
    }
    gpu_twin_free(rank, &twin);
    return rc;
}

static int sum(struct crew *crew, uint32_t rank)
{
    return sum_in(crew, rank, 0, crew->size);
}

static bool by_nccl(const struct crew *crew, uint32_t rank)
{
    return device_progress(&crew->colls[rank]->groups[0]) > 0;
}

static bool given_up(const struct crew *crew, uint32_t rank)
{
    return crew->colls[rank]->groups[0].no_comm;
}

/* All see the same in each call, so they end after the same one. */
static int sum_until(struct crew *crew, uint32_t rank,
                     bool (*is_there)(const struct crew *crew, uint32_t rank))
{
    int64_t until_us = clock_now_us() + LONG_US;
    int rc = 0;

    while (!rc && !is_there(crew, rank))
        rc = clock_now_us() < until_us ? sum(crew, rank) : HVD_E_TIMEOUT;
    return rc;
}

static void settle(struct crew *crew, uint32_t rank)
{
    int rc = coll_settle(crew->colls[rank], &crew->err[rank]);

    crew->rc[rank] = crew->rc[rank] ? crew->rc[rank] : rc;
}

static void act_sum(struct crew *crew, uint32_t rank)
{
    crew->rc[rank] = sum(crew, rank);
    settle(crew, rank);
}

static void act_sum_until_nccl(struct crew *crew, uint32_t rank)
{
    crew_act_connect(crew, rank);
    if (!crew->rc[rank])
        crew->rc[rank] = sum(crew, rank);
    if (!crew->rc[rank] && by_nccl(crew, rank))
        crew->rc[rank] = 1; /* it cannot be there yet */
    if (!crew->rc[rank])
        crew->rc[rank] = sum_until(crew, rank, by_nccl);
    settle(crew, rank);
}

static void act_sum_until_given_up(struct crew *crew, uint32_t rank)
{
    crew_act_connect(crew, rank);
    if (!crew->rc[rank])
        crew->rc[rank] = sum_until(crew, rank, given_up);
    for (int i = 0; i < 3 && !crew->rc[rank]; i++)
        crew->rc[rank] = sum(crew, rank);
    settle(crew, rank);
}

static void act_connect_and_sum(struct crew *crew, uint32_t rank)
{
    crew_act_connect(crew, rank);
    for (int i = 0; i < 5 && !crew->rc[rank]; i++)
        crew->rc[rank] = sum(crew, rank);
    settle(crew, rank);
}

/* ---- NCCL is late, or cannot be had ---- */

static void while_nccl_is_late_it_goes_through_the_host(struct test *t)
{
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aab", NULL, true));
    fake_gpu_faults("init:slow=200");
    crew_run(&crew, act_sum_until_nccl);
    CHECK_CREW(t, &crew);
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    crew_close(&crew);
}

static void where_one_cannot_all_go_through_the_host(struct test *t)
{
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aab", NULL, true));
    fake_gpu_faults("init@1:error");
    crew_run(&crew, act_sum_until_given_up);
    CHECK_CREW(t, &crew);
    crew_part(&crew);
    fake_gpu_faults(NULL); /* the next round tries again */
    CHECK_OK(t, crew_make(&crew, 2));
    crew_run(&crew, act_sum_until_nccl);
    for (uint32_t i = 0; i < crew.size; i++)
        CHECK(t, !given_up(&crew, i));
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    crew_close(&crew);
}

static void while_one_cannot_nobody_waits_for_the_rest(struct test *t)
{
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aab", NULL, true));
    fake_gpu_faults("init@1:error");
    crew_run(&crew, gpu_crew_act_connect);
    CHECK_CREW(t, &crew);
    for (uint32_t i = 0; i < crew.size; i++)
        CHECK(t, given_up(&crew, i));
    crew_run(&crew, act_sum);
    CHECK_CREW(t, &crew);
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    fake_gpu_faults(NULL);
    crew_close(&crew);
}

/* NCCL has no way to give one back. */
static void no_id_is_made_that_nobody_uses(struct test *t)
{
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aab", NULL, true));
    crew.engines[1]->nccl_version++; /* as if it had another one */
    crew_run(&crew, act_connect_and_sum);
    CHECK_CREW(t, &crew);
    for (uint32_t i = 0; i < crew.size; i++)
        CHECK(t, given_up(&crew, i) && !by_nccl(&crew, i));
    CHECK_INT(t, fake_gpu_live("ids"), ==, 0);
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    crew_close(&crew);
}

static void one_that_is_never_ready_holds_nobody_up(struct test *t)
{
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "ab", NULL, true));
    fake_gpu_faults("init:hang");
    crew_run(&crew, act_connect_and_sum);
    CHECK_CREW(t, &crew);
    for (uint32_t i = 0; i < crew.size; i++)
        CHECK(t, !by_nccl(&crew, i) && !given_up(&crew, i));
    crew_part(&crew);
    fake_gpu_faults(NULL);
    CHECK_OK(t, crew_make(&crew, 2));
    crew_run(&crew, gpu_crew_act_connect);
    CHECK_CREW(t, &crew);
    crew_run(&crew, act_sum);
    CHECK_CREW(t, &crew);
    CHECK(t, by_nccl(&crew, 0));
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    crew_close(&crew);
}

static void where_nccl_is_asked_for_nothing_else_will_do(struct test *t)
{
    const struct coll_options options = { .gpu = COLL_GPU_NCCL };
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aa", &options, true));
    fake_gpu_faults("init@1:error");
    crew_run(&crew, act_sum_until_given_up);
    for (uint32_t i = 0; i < crew.size; i++) {
        CHECK(t, crew.rc[i] == HVD_E_UNSUPPORTED || crew.rc[i] == HVD_E_REVOKED);
        CHECK_HAS(t, crew.err[i].text, "NCCL cannot be used in this group");
        CHECK_HAS(t, crew.err[i].text, "--gpu-operations auto");
    }
out:
    crew_close(&crew);
}

/* Two of one version would not understand a third; who has which is said. */
static void another_version_is_named(struct test *t)
{
    const struct coll_options options = { .gpu = COLL_GPU_NCCL };
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aab", &options, true));
    crew.engines[1]->nccl_version = 21805;
    crew_run(&crew, act_sum_until_given_up);
    for (uint32_t i = 0; i < crew.size; i++) {
        CHECK(t, crew.rc[i] == HVD_E_UNSUPPORTED || crew.rc[i] == HVD_E_REVOKED);
        CHECK_HAS(t, crew.err[i].text, "rank 1 of it has version 2.18.5, and rank 0 of it 2.28.9;");
        CHECK_HAS(t, crew.err[i].text, "--gpu-operations auto");
    }
out:
    crew_close(&crew);
}

static void a_device_that_is_known_late_is_tied_late(struct test *t)
{
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aab", NULL, false));
    crew_run(&crew, act_sum_until_nccl);
    CHECK_CREW(t, &crew);
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    crew_close(&crew);
}

/* ---- groups ---- */

static bool group_by_nccl(const struct crew *crew, uint32_t rank)
{
    return device_progress(&crew->colls[rank]->groups[1]) > 0;
}

static void act_in_group(struct crew *crew, uint32_t rank)
{
    int64_t until_us = clock_now_us() + LONG_US;

    crew_act_connect(crew, rank);
    while (rank < 2 && !crew->rc[rank] && !group_by_nccl(crew, rank))
        crew->rc[rank] = clock_now_us() < until_us ? sum_in(crew, rank, 1, 2) : HVD_E_TIMEOUT;
    if (!crew->rc[rank])
        crew->rc[rank] = sum(crew, rank);
    settle(crew, rank);
}

static void a_group_is_tied_at_its_first_call(struct test *t)
{
    static const uint32_t first[] = { 0, 1 };
    static const struct coll_ranks groups[] = {
        {first, 2}
    };
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aba", NULL, true));
    crew_part(&crew);
    crew.groups = groups;
    crew.group_count = 1;
    CHECK_OK(t, crew_make(&crew, 2));
    crew_run(&crew, act_in_group);
    CHECK_CREW(t, &crew);
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    crew_close(&crew);
}

/* ---- one that has joined, and one that means something else ---- */

/* The last one joins first; the others sum without it, through the host, and join. */
static void act_join(struct crew *crew, uint32_t rank)
{
    uint32_t last = 99;
    struct coll_call join = { .kind = COLL_JOIN, .ret_last = &last };
    uint64_t before = device_progress(&crew->colls[rank]->groups[0]);

    for (int i = 0; i < 3 && rank + 1 < crew->size && !crew->rc[rank]; i++)
        crew->rc[rank] = sum_in(crew, rank, 0, crew->size - 1);
    if (!crew->rc[rank] && device_progress(&crew->colls[rank]->groups[0]) != before)
        crew->rc[rank] = 1;
    if (!crew->rc[rank])
        crew->rc[rank] = coll_run(crew->colls[rank], &join, &crew->err[rank]);
    if (!crew->rc[rank] && last + 1 >= crew->size)
        crew->rc[rank] = 2;
    if (!crew->rc[rank])
        crew->rc[rank] = sum(crew, rank);
    if (!crew->rc[rank] && device_progress(&crew->colls[rank]->groups[0]) == before)
        crew->rc[rank] = 3;
    settle(crew, rank);
}

static void who_has_joined_is_done_without(struct test *t)
{
    static const char *const layouts[] = { "aaa", "aab", "abc", "abb" };
    struct crew crew = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_crew_open(&crew, layouts[i], NULL, true));
        crew_run(&crew, gpu_crew_act_connect);
        CHECK_CREW(t, &crew);
        crew_run(&crew, act_join);
        CHECK_CREW(t, &crew);
        crew_close(&crew);
    }
    CHECK_NOTHING_LEFT(t);
out:
    crew_close(&crew);
}

static void act_mixed(struct crew *crew, uint32_t rank)
{
    int32_t numbers[COUNT] = { 0 };
    const struct coll_call call = {
        .kind = COLL_ALLREDUCE, .type = HVD_INT32, .in = numbers, .out = numbers, .count = COUNT
    };

    if (rank == 0)
        crew->rc[rank] = coll_run(crew->colls[rank], &call, &crew->err[rank]);
    else
        crew->rc[rank] = sum(crew, rank);
    settle(crew, rank);
}

static void memory_of_the_host_on_one_is_a_mismatch(struct test *t)
{
    static const char *const layouts[] = { "aa", "ab", "aab", "aabb" };
    struct crew crew = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_crew_open(&crew, layouts[i], NULL, true));
        crew_run(&crew, gpu_crew_act_connect);
        CHECK_CREW(t, &crew);
        crew_run(&crew, act_mixed);
        for (uint32_t k = 0; k < crew.size; k++) {
            CHECK_CODE(t, crew.rc[k], HVD_E_MISMATCH);
            CHECK_HAS(t, crew.err[k].text, "in the memory of a GPU");
        }
        crew_close(&crew);
    }
    CHECK_NOTHING_LEFT(t);
out:
    crew_close(&crew);
}

/* ---- sizes that do not fit together ---------------------------------------------------------- */

enum {
    ALLTOALL_GIVES,
    ALLGATHER_COUNTS,
    REDUCESCATTER_COUNTS,
    BROADCAST_SIZE,
    CUT_OTHERWISE,
    ONE_PIECE_MORE,
    MISFITS
};

/* The last one means something else; what it has reads and writes room enough in any case. */
struct misfit {
    size_t counts[COLL_CREW_MAX], out_counts[COLL_CREW_MAX];
    struct coll_piece pieces[3];
    struct coll_call call;
};

static void plan_misfit(const struct crew *crew, uint32_t rank, void *in, void *out,
                        struct misfit *misfit)
{
    static const enum coll_kind kinds[] = { COLL_ALLTOALL,  COLL_ALLGATHER, COLL_REDUCESCATTER,
                                            COLL_BROADCAST, COLL_ALLREDUCE, COLL_ALLREDUCE };
    bool last = rank + 1 == crew->size;
    size_t first = crew->way == CUT_OTHERWISE && last ? 40 : 60;

    *misfit = (struct misfit){
        .call = {.kind = kinds[crew->way],
                 .type = HVD_INT32,
                 .in = in,
                 .out = out,
                 .count = 3,
                 .device = gpu_crew_device(rank)}
    };
    for (uint32_t i = 0; i < crew->size; i++)
        misfit->counts[i] = misfit->out_counts[i] = 3;
    misfit->pieces[0] = (struct coll_piece){ in, in, first };
    misfit->pieces[1] = (struct coll_piece){ out, out, 100 - first };
    if (crew->way == ALLTOALL_GIVES) {
        misfit->out_counts[0] = last ? 5 : 3;
        misfit->call.out_counts = misfit->out_counts;
    } else if (crew->way < BROADCAST_SIZE) {
        misfit->counts[0] = last ? 4 : 3;
    } else if (crew->way == BROADCAST_SIZE) {
        misfit->call.count = last ? 4 : 3;
    } else {
        misfit->call.pieces = misfit->pieces;
        misfit->call.piece_count = crew->way == ONE_PIECE_MORE && last ? 3 : 2;
    }
    if (crew->way < BROADCAST_SIZE)
        misfit->call.counts = misfit->counts;
}

static void act_misfit(struct crew *crew, uint32_t rank)
{
    struct gpu_twin in = { NULL, NULL }, out = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT, &in);
    struct misfit misfit;

    if (!rc)
        rc = gpu_twin_make(rank, COUNT, &out);
    plan_misfit(crew, rank, in.device, out.device, &misfit);
    crew->rc[rank] = rc ? rc : coll_run(crew->colls[rank], &misfit.call, &crew->err[rank]);
    settle(crew, rank);
    gpu_twin_free(rank, &in);
    gpu_twin_free(rank, &out);
}

static int try_misfit(struct crew *crew, struct test *t, const char *hosts,
                      const struct coll_options *options)
{
    for (int way = 0; way < MISFITS; way++) {
        CHECK_OK(t, gpu_crew_open(crew, hosts, options, true));
        crew_run(crew, gpu_crew_act_connect);
        CHECK_CREW(t, crew);
        crew->way = way;
        crew_run(crew, act_misfit);
        for (uint32_t k = 0; k < crew->size; k++) {
            CHECK_CODE(t, crew->rc[k], HVD_E_MISMATCH);
            CHECK_HAS(t, crew->err[k].text,
                      way == ALLTOALL_GIVES ? "rank 0 gives rank" : "all ranks must make the same");
            CHECK(t, !by_nccl(crew, k));
        }
        crew_close(crew);
    }
    return 0;
out:
    return 1;
}

static void sizes_that_do_not_fit_are_a_mismatch(struct test *t)
{
    static const char *const layouts[] = { "aa", "ab", "aab" };
    const struct coll_options by_host = { .gpu = COLL_GPU_CPU };
    struct crew crew = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        if (try_misfit(&crew, t, layouts[i], NULL) || try_misfit(&crew, t, layouts[i], &by_host))
            goto out;
    }
    CHECK_OK(t, gpu_crew_open(&crew, "a", NULL, true)); /* by who is alone, too */
    crew.way = ALLTOALL_GIVES;
    crew_run(&crew, act_misfit);
    CHECK_CODE(t, crew.rc[0], HVD_E_MISMATCH);
    CHECK_HAS(t, crew.err[0].text, "rank 0 gives rank 0 3 numbers, and that one expects 5");
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    crew_close(&crew);
}

/* ---- a round dies ---- */

static bool await_inside(struct crew *crew)
{
    int64_t until_us = clock_now_us() + LONG_US;
    uint32_t inside = 0;

    while (inside < crew->size && clock_now_us() < until_us) {
        inside = 0;
        for (uint32_t i = 0; i < crew->size; i++) {
            struct coll_wait wait;

            coll_wait_look(crew->colls[i], &wait);
            inside += wait.operation && strstr(wait.operation, "by NCCL") && !wait.missing_count;
        }
        sched_yield();
    }
    return inside == crew->size;
}

static void act_sum_only(struct crew *crew, uint32_t rank)
{
    crew->rc[rank] = sum(crew, rank);
}

/* The kernel of one never ends: so it is when a member dies in it. */
static void a_round_that_is_revoked_leaves_no_kernel(struct test *t)
{
    struct crew crew = { .size = 0 };
    bool begun = false;

    CHECK_OK(t, gpu_crew_open(&crew, "aab", NULL, true));
    crew_run(&crew, gpu_crew_act_connect);
    CHECK_CREW(t, &crew);
    fake_gpu_faults("collective@0:hang");
    crew_start(&crew, act_sum_only);
    begun = true;
    CHECK(t, await_inside(&crew));
    coll_cancel(crew.colls[1]); /* the others hear of it from this one */
    crew_await(&crew);
    begun = false;
    for (uint32_t i = 0; i < crew.size; i++) {
        CHECK_CODE(t, crew.rc[i], HVD_E_REVOKED);
        CHECK_OK(t, coll_settle(crew.colls[i], &crew.err[i]));
    }
    crew_part(&crew);
    fake_gpu_faults(NULL);
    CHECK_OK(t, crew_make(&crew, 2));
    crew_run(&crew, gpu_crew_act_connect);
    CHECK_CREW(t, &crew);
    crew_run(&crew, act_sum);
    CHECK_CREW(t, &crew);
    CHECK(t, by_nccl(&crew, 2));
    crew_close(&crew);
    CHECK_NOTHING_LEFT(t);
out:
    if (begun) {
        coll_cancel(crew.colls[0]);
        crew_await(&crew);
    }
    crew_close(&crew);
}

static bool never(const struct crew *crew, uint32_t rank)
{
    return !crew->size && rank;
}

/* Who has got its result may be in the next one when it hears of it. */
static void act_sum_for_ever(struct crew *crew, uint32_t rank)
{
    crew->rc[rank] = sum_until(crew, rank, never);
    settle(crew, rank);
}

static void an_error_of_nccl_ends_the_round_for_all(struct test *t)
{
    static const char *const faults[] = { "collective@1:error", "collective@1:fail" };
    struct crew crew = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        CHECK_OK(t, gpu_crew_open(&crew, "aab", NULL, true));
        crew_run(&crew, gpu_crew_act_connect);
        CHECK_CREW(t, &crew);
        fake_gpu_faults(faults[i]);
        crew_run(&crew, act_sum_for_ever);
        for (uint32_t k = 0; k < crew.size; k++)
            CHECK(t, crew.rc[k] == HVD_E_REVOKED || (k == 1 && crew.rc[k] == HVD_E_IO));
        CHECK_HAS(t, crew.err[0].text, "rank 1: ");
        crew_close(&crew);
    }
    fake_gpu_faults(NULL);
    CHECK_NOTHING_LEFT(t);
out:
    crew_close(&crew);
}

static void note_stuck(void *arg, const char *why)
{
    if (why[0])
        atomic_fetch_add((atomic_uint *)arg, 1);
}

/* A copy that does not end in time, of a round that is dead: nothing may be restored. */
static void act_streamed_once(struct crew *crew, uint32_t rank)
{
    struct gpu_twin from = { NULL, NULL }, to = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT, &from);
    struct coll_call call;

    if (!rc)
        rc = gpu_twin_make(rank, COUNT, &to);
    call = (struct coll_call){ .kind = COLL_ALLREDUCE,
                               .type = HVD_UINT8,
                               .in = from.device,
                               .out = to.device,
                               .count = COUNT,
                               .device = gpu_crew_device(rank),
                               .streamed = true };
    crew->rc[rank] = rc ? rc : coll_run(crew->colls[rank], &call, &crew->err[rank]);
    coll_cancel(crew->colls[rank]);
    if (!crew->rc[rank])
        crew->rc[rank] = coll_settle(crew->colls[rank], &crew->err[rank]);
    gpu_twin_free(rank, &from); /* waits for it */
    gpu_twin_free(rank, &to);
}

static void what_is_not_settled_in_time_is_said(struct test *t)
{
    atomic_uint told = 0;
    const struct coll_options options = {
        .gpu = COLL_GPU_CPU, .gpu_bound_us = 50000, .stuck = note_stuck, .arg = &told
    };
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "a", &options, false));
    crew_run(&crew, crew_act_connect);
    CHECK_CREW(t, &crew);
    fake_gpu_faults("copy#1:slow=2000");
    crew_run(&crew, act_streamed_once);
    CHECK_CODE(t, crew.rc[0], HVD_E_TIMEOUT);
    CHECK_HAS(t, crew.err[0].text, "does not end the copies");
    CHECK_INT(t, atomic_load(&told), ==, 1);
out:
    fake_gpu_faults(NULL);
    crew_close(&crew);
}

static void an_error_of_the_driver_ends_it_too(struct test *t)
{
    const struct coll_options options = { .gpu = COLL_GPU_CPU };
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "aab", &options, false));
    crew_run(&crew, crew_act_connect);
    CHECK_CREW(t, &crew);
    fake_gpu_faults("copy#1:fail");
    crew_run(&crew, act_sum_only);
    for (uint32_t i = 0; i < crew.size; i++) {
        CHECK(t, crew.rc[i] == HVD_E_REVOKED || crew.rc[i] == HVD_E_IO);
        CHECK_HAS(t, crew.err[i].text, "the device: ");
    }
out:
    fake_gpu_faults(NULL);
    crew_close(&crew);
}

/* ---- memory ---- */

/* Through the host, by counts of its own. */
static void act_scatter(struct crew *crew, uint32_t rank)
{
    const size_t counts[] = { COUNT };
    struct gpu_twin in = { NULL, NULL }, out = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT * sizeof(float), &in);
    struct coll_call call;

    crew_act_connect(crew, rank);
    if (!rc)
        rc = gpu_twin_make(rank, COUNT * sizeof(float), &out);
    call = (struct coll_call){ .kind = COLL_REDUCESCATTER,
                               .type = HVD_FLOAT32,
                               .prescale = 2,
                               .in = in.device,
                               .out = out.device,
                               .count = COUNT,
                               .counts = counts,
                               .device = gpu_crew_device(rank) };
    if (!rc && !crew->rc[rank])
        crew->rc[rank] = coll_run(crew->colls[rank], &call, &crew->err[rank]);
    settle(crew, rank);
    crew->rc[rank] = rc ? rc : crew->rc[rank];
    gpu_twin_free(rank, &in);
    gpu_twin_free(rank, &out);
}

static void memory_runs_out(struct test *t)
{
    struct crew crew = { .size = 0 };

    CHECK_OK(t, gpu_crew_open(&crew, "a", NULL, true));
    crew_run(&crew, act_scatter);
    CHECK_CREW(t, &crew);
out:
    crew_close(&crew);
}

TESTS(CASE(memory_runs_out), NO_TORTURE(while_nccl_is_late_it_goes_through_the_host),
      NO_TORTURE(where_one_cannot_all_go_through_the_host),
      NO_TORTURE(while_one_cannot_nobody_waits_for_the_rest),
      NO_TORTURE(no_id_is_made_that_nobody_uses),
      NO_TORTURE(one_that_is_never_ready_holds_nobody_up),
      NO_TORTURE(where_nccl_is_asked_for_nothing_else_will_do),
      NO_TORTURE(another_version_is_named), NO_TORTURE(a_device_that_is_known_late_is_tied_late),
      NO_TORTURE(a_group_is_tied_at_its_first_call), NO_TORTURE(who_has_joined_is_done_without),
      NO_TORTURE(memory_of_the_host_on_one_is_a_mismatch),
      NO_TORTURE(sizes_that_do_not_fit_are_a_mismatch),
      NO_TORTURE(a_round_that_is_revoked_leaves_no_kernel),
      NO_TORTURE(an_error_of_nccl_ends_the_round_for_all),
      NO_TORTURE(what_is_not_settled_in_time_is_said),
      NO_TORTURE(an_error_of_the_driver_ends_it_too))
