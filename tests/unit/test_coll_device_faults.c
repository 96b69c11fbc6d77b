/*
 * Calls on memory of a device (a GPU) while something prevents NCCL: NCCL is late, or missing on
 * one member; one member has joined (it takes no more part), or calls with memory of the host; a
 * round is revoked while a kernel runs. A way is the variant of a test that all members read from
 * the team.
 */
#include "collectives/device.h"
#include "os/clock.h"
#include "tests/lib/fixture.h"
#include "tests/lib/gpu_team.h"

#include <sched.h>
#include <string.h>

#define LONG_US COLL_TEAM_LONG_US
#define COUNT   1000

/* ---- what members do ---- */

/* Sums rank + 1 over all ranks and checks the sum. who: the number of ranks that contribute. */
static int sum_in(struct team *team, uint32_t rank, size_t group, uint32_t who)
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
                               .device = gpu_team_device(rank) };
    if (!rc)
        rc = coll_run(team->colls[rank], &call, &team->err[rank]);
    if (rc && coll_settle(team->colls[rank], NULL) == HVD_E_TIMEOUT)
        rc = HVD_E_TIMEOUT; /* the device may still write to the buffer */
    for (size_t i = 0; i < COUNT && !rc; i++) {
        if (numbers[i] != (int32_t)(who * (who + 1) / 2))
            rc = 1;
    }
    gpu_twin_free(rank, &twin);
    return rc;
}

static int sum(struct team *team, uint32_t rank)
{
    return sum_in(team, rank, 0, team->size);
}

static bool by_nccl(const struct team *team, uint32_t rank)
{
    return device_progress(&team->colls[rank]->groups[0]) > 0;
}

static bool given_up(const struct team *team, uint32_t rank)
{
    return team->colls[rank]->groups[0].nccl.given_up;
}

/* Sums until the state is as expected. All members have the same view in each call, so all stop
 * after the same call. */
static int sum_until(struct team *team, uint32_t rank,
                     bool (*is_there)(const struct team *team, uint32_t rank))
{
    int64_t until_us = clock_now_us() + LONG_US;
    int rc = 0;

    while (!rc && !is_there(team, rank))
        rc = clock_now_us() < until_us ? sum(team, rank) : HVD_E_TIMEOUT;
    return rc;
}

static void settle(struct team *team, uint32_t rank)
{
    int rc = coll_settle(team->colls[rank], &team->err[rank]);

    team->rc[rank] = team->rc[rank] ? team->rc[rank] : rc;
}

static void act_sum(struct team *team, uint32_t rank)
{
    team->rc[rank] = sum(team, rank);
    settle(team, rank);
}

static void act_sum_until_nccl(struct team *team, uint32_t rank)
{
    team_act_connect(team, rank);
    if (!team->rc[rank])
        team->rc[rank] = sum_until(team, rank, by_nccl);
    settle(team, rank);
}

static void act_sum_until_given_up(struct team *team, uint32_t rank)
{
    team_act_connect(team, rank);
    if (!team->rc[rank])
        team->rc[rank] = sum_until(team, rank, given_up);
    for (int i = 0; i < 3 && !team->rc[rank]; i++)
        team->rc[rank] = sum(team, rank);
    settle(team, rank);
}

static void act_connect_and_sum(struct team *team, uint32_t rank)
{
    team_act_connect(team, rank);
    for (int i = 0; i < 5 && !team->rc[rank]; i++)
        team->rc[rank] = sum(team, rank);
    settle(team, rank);
}

/* ---- NCCL is late, or cannot be had ---- */

static struct team all;
static bool begun; /* members run, and the test has not yet waited for them */

static void begin(struct test *t)
{
    (void)t;
    all = (struct team){ .size = 0 };
}

static void end(struct test *t)
{
    (void)t;
    if (begun) {
        coll_cancel(all.colls[0]);
        team_await(&all);
        begun = false;
    }
    fake_gpu_faults(NULL);
    team_close(&all);
}
FIXTURE(begin, end)

TEST_FLAGS(calls_go_through_the_host_while_nccl_is_late, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_team_open(&all, "aab", NULL, true));
    fake_gpu_faults("init:slow=200");
    team_run(&all, act_sum_until_nccl);
    CHECK_TEAM(t, &all);
    team_close(&all);
    CHECK_NOTHING_LEFT(t);
}

TEST_FLAGS(a_member_without_nccl_sends_all_through_the_host, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_team_open(&all, "aab", NULL, true));
    fake_gpu_faults("init@1:error");
    team_run(&all, act_sum_until_given_up);
    CHECK_TEAM(t, &all);
    team_part(&all);
    fake_gpu_faults(NULL); /* the next round tries NCCL again */
    CHECK_OK(t, team_make(&all, 2));
    team_run(&all, act_sum_until_nccl);
    for (uint32_t i = 0; i < all.size; i++)
        CHECK(t, !given_up(&all, i));
    team_close(&all);
    CHECK_NOTHING_LEFT(t);
}

TEST_FLAGS(a_member_without_nccl_delays_no_member, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_team_open(&all, "aab", NULL, true));
    fake_gpu_faults("init@1:error");
    team_run(&all, gpu_team_act_connect);
    CHECK_TEAM(t, &all);
    for (uint32_t i = 0; i < all.size; i++)
        CHECK(t, given_up(&all, i));
    team_run(&all, act_sum);
    CHECK_TEAM(t, &all);
    team_close(&all);
    CHECK_NOTHING_LEFT(t);
}

/* NCCL cannot give back an id, so an id is made only when it will be used. */
TEST_FLAGS(an_unused_id_is_never_made, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_team_open(&all, "aab", NULL, true));
    all.engines[1]->nccl_version++; /* as if this member had another version of NCCL */
    team_run(&all, act_connect_and_sum);
    CHECK_TEAM(t, &all);
    for (uint32_t i = 0; i < all.size; i++)
        CHECK(t, given_up(&all, i) && !by_nccl(&all, i));
    CHECK_INT(t, fake_gpu_live("ids"), ==, 0);
    team_close(&all);
    CHECK_NOTHING_LEFT(t);
}

TEST_FLAGS(a_member_that_is_never_ready_delays_no_member, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_team_open(&all, "ab", NULL, true));
    fake_gpu_faults("init:hang");
    team_run(&all, act_connect_and_sum);
    CHECK_TEAM(t, &all);
    for (uint32_t i = 0; i < all.size; i++)
        CHECK(t, !by_nccl(&all, i) && !given_up(&all, i));
    team_part(&all);
    fake_gpu_faults(NULL);
    CHECK_OK(t, team_make(&all, 2));
    team_run(&all, gpu_team_act_connect);
    CHECK_TEAM(t, &all);
    team_run(&all, act_sum);
    CHECK_TEAM(t, &all);
    CHECK(t, by_nccl(&all, 0));
    team_close(&all);
    CHECK_NOTHING_LEFT(t);
}

TEST_FLAGS(a_demand_for_nccl_allows_nothing_else, TEST_NO_TORTURE)
{
    const struct coll_options options = { .gpu = COLL_GPU_NCCL };

    CHECK_OK(t, gpu_team_open(&all, "aa", &options, true));
    fake_gpu_faults("init@1:error");
    team_run(&all, act_sum_until_given_up);
    for (uint32_t i = 0; i < all.size; i++) {
        CHECK(t, all.rc[i] == HVD_E_UNSUPPORTED || all.rc[i] == HVD_E_REVOKED);
        CHECK_HAS(t, all.err[i].text, "NCCL cannot be used in this group");
        CHECK_HAS(t, all.err[i].text, "--gpu-operations auto");
    }
}

/* Members with two versions of NCCL must not use it together; the log names the versions. */
TEST_FLAGS(another_version_is_named, TEST_NO_TORTURE)
{
    const struct coll_options options = { .gpu = COLL_GPU_NCCL };

    CHECK_OK(t, gpu_team_open(&all, "aab", &options, true));
    all.engines[1]->nccl_version = 21805;
    team_run(&all, act_sum_until_given_up);
    for (uint32_t i = 0; i < all.size; i++) {
        CHECK(t, all.rc[i] == HVD_E_UNSUPPORTED || all.rc[i] == HVD_E_REVOKED);
        CHECK_HAS(t, all.err[i].text,
                  "rank 1 of the group has NCCL 2.18.5, and rank 0 has NCCL 2.28.9;");
        CHECK_HAS(t, all.err[i].text, "--gpu-operations auto");
    }
}

TEST_FLAGS(a_device_that_is_known_late_is_tied_late, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_team_open(&all, "aab", NULL, false));
    team_run(&all, act_sum_until_nccl);
    CHECK_TEAM(t, &all);
    team_close(&all);
    CHECK_NOTHING_LEFT(t);
}

/* ---- groups ---- */

static void act_in_group(struct team *team, uint32_t rank)
{
    int64_t until_us = clock_now_us() + LONG_US;

    team_act_connect(team, rank);
    while (rank < 2 && !team->rc[rank] && !(device_progress(&team->colls[rank]->groups[1]) > 0))
        team->rc[rank] = clock_now_us() < until_us ? sum_in(team, rank, 1, 2) : HVD_E_TIMEOUT;
    if (!team->rc[rank])
        team->rc[rank] = sum(team, rank);
    settle(team, rank);
}

TEST_FLAGS(a_group_is_tied_at_its_first_call, TEST_NO_TORTURE)
{
    static const uint32_t first[] = { 0, 1 };
    static const struct coll_ranks groups[] = {
        {first, 2}
    };

    CHECK_OK(t, gpu_team_open(&all, "aba", NULL, true));
    team_part(&all);
    all.groups = groups;
    all.group_count = 1;
    CHECK_OK(t, team_make(&all, 2));
    team_run(&all, act_in_group);
    CHECK_TEAM(t, &all);
    team_close(&all);
    CHECK_NOTHING_LEFT(t);
}

/* ---- a member that has joined, and a member whose call differs ---- */

/* The last member joins first. The other members sum without that member, through the host, and
 * join later. */
static void act_join(struct team *team, uint32_t rank)
{
    uint32_t last = 99;
    struct coll_call join = { .kind = COLL_JOIN, .ret_last = &last };
    uint64_t before = device_progress(&team->colls[rank]->groups[0]);

    for (int i = 0; i < 3 && rank + 1 < team->size && !team->rc[rank]; i++)
        team->rc[rank] = sum_in(team, rank, 0, team->size - 1);
    if (!team->rc[rank] && device_progress(&team->colls[rank]->groups[0]) != before)
        team->rc[rank] = 1;
    if (!team->rc[rank])
        team->rc[rank] = coll_run(team->colls[rank], &join, &team->err[rank]);
    if (!team->rc[rank] && last + 1 >= team->size)
        team->rc[rank] = 2;
    if (!team->rc[rank])
        team->rc[rank] = sum(team, rank);
    if (!team->rc[rank] && device_progress(&team->colls[rank]->groups[0]) == before)
        team->rc[rank] = 3;
    settle(team, rank);
}

TEST_FLAGS(joined_ranks_are_left_out, TEST_NO_TORTURE)
{
    static const char *const layouts[] = { "aaa", "aab", "abc", "abb" };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_team_open(&all, layouts[i], NULL, true));
        team_run(&all, gpu_team_act_connect);
        CHECK_TEAM(t, &all);
        team_run(&all, act_join);
        CHECK_TEAM(t, &all);
        team_close(&all);
    }
    CHECK_NOTHING_LEFT(t);
}

static void act_mixed(struct team *team, uint32_t rank)
{
    int32_t numbers[COUNT] = { 0 };
    const struct coll_call call = {
        .kind = COLL_ALLREDUCE, .type = HVD_INT32, .in = numbers, .out = numbers, .count = COUNT
    };

    if (rank == 0)
        team->rc[rank] = coll_run(team->colls[rank], &call, &team->err[rank]);
    else
        team->rc[rank] = sum(team, rank);
    settle(team, rank);
}

TEST_FLAGS(host_memory_on_one_member_is_a_mismatch, TEST_NO_TORTURE)
{
    static const char *const layouts[] = { "aa", "ab", "aab", "aabb" };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_team_open(&all, layouts[i], NULL, true));
        team_run(&all, gpu_team_act_connect);
        CHECK_TEAM(t, &all);
        team_run(&all, act_mixed);
        for (uint32_t k = 0; k < all.size; k++) {
            CHECK_CODE(t, all.rc[k], HVD_E_MISMATCH);
            CHECK_HAS(t, all.err[k].text, "in the memory of a GPU");
        }
        team_close(&all);
    }
    CHECK_NOTHING_LEFT(t);
}

/* ---- a group that is opened in the round ------------------------------------------------------
 */

static void act_open(struct team *team, uint32_t rank)
{
    static const uint32_t both[] = { 0, 1 };
    struct coll_opening opening = {
        .ranks = {both, rank < 2 ? 2 : 0},
          .most = 2, .hash = 7
    };
    const struct coll_call open = { .kind = COLL_OPEN, .opening = &opening };
    size_t group = coll_group_count(team->colls[rank]);
    struct coll *coll = team->colls[rank];
    int64_t until_us = clock_now_us() + LONG_US;

    team->rc[rank] = coll_run(coll, &open, &team->err[rank]);
    while (rank < 2 && !team->rc[rank] && !device_progress(&coll->groups[group]))
        team->rc[rank] = clock_now_us() < until_us ? sum_in(team, rank, group, 2) : HVD_E_TIMEOUT;
    opening.group = group;
    if (!team->rc[rank])
        team->rc[rank] = coll_run(
            coll, &(struct coll_call){ .kind = COLL_CLOSE, .opening = &opening }, &team->err[rank]);
    if (!team->rc[rank])
        team->rc[rank] = sum(team, rank);
    settle(team, rank);
}

/* It gets a communicator at its first call; until that is ready its calls go through the host. */
TEST_FLAGS(an_opened_group_comes_to_nccl, TEST_NO_TORTURE)
{
    static const char *const layouts[] = { "aaa", "aab", "abc" };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CHECK_OK(t, gpu_team_open(&all, layouts[i], NULL, true));
        team_run(&all, gpu_team_act_connect);
        CHECK_TEAM(t, &all);
        team_run(&all, act_open);
        CHECK_TEAM(t, &all);
        team_close(&all);
    }
    CHECK_NOTHING_LEFT(t);
}

/* ---- a ragged result in the wrong place -------------------------------------------------------
 */

static int32_t on_host[COUNT];

static void *give_host_memory(void *arg, size_t bytes)
{
    (void)arg;
    return bytes <= sizeof(on_host) ? on_host : NULL;
}

static void *give_device_memory(void *arg, size_t bytes)
{
    const struct gpu_twin *twin = arg;

    return bytes <= COUNT * sizeof(int32_t) ? twin->device : NULL;
}

/* Rank 1 puts its result into memory of the host (way 0), or says nothing of where (way 1). */
static void act_misplace(struct team *team, uint32_t rank)
{
    struct gpu_twin in, out;
    size_t counts[COLL_TEAM_MAX];
    struct coll_received received = { .memory = give_device_memory, .arg = &out, .counts = counts };
    struct coll_call call = { .kind = COLL_ALLGATHER_RAGGED,
                              .type = HVD_INT32,
                              .count = rank,
                              .received = &received,
                              .device = gpu_team_device(rank) };

    team->rc[rank] = gpu_twin_make(rank, COUNT * sizeof(int32_t), &in);
    if (team->rc[rank])
        return;
    team->rc[rank] = gpu_twin_make(rank, COUNT * sizeof(int32_t), &out);
    call.in = in.device;
    if (rank == 1)
        received.memory = team->way ? NULL : give_host_memory;
    if (!team->rc[rank])
        team->rc[rank] = coll_run(team->colls[rank], &call, &team->err[rank]);
    settle(team, rank);
    gpu_twin_free(rank, &in);
    gpu_twin_free(rank, &out);
}

TEST_FLAGS(a_ragged_result_lies_where_its_input_does, TEST_NO_TORTURE)
{
    static const char *const texts[] = {
        "rank 1: ragged allgather: the memory for the result is not on the same device as the "
        "buffer \"in\"; give memory of the same GPU",
        "a function that allocates the result"
    };

    for (int way = 0; way < 2; way++) {
        CHECK_OK(t, gpu_team_open(&all, "aab", NULL, true));
        team_run(&all, gpu_team_act_connect);
        CHECK_TEAM(t, &all);
        all.way = way;
        team_run(&all, act_misplace);
        for (uint32_t k = 0; k < all.size; k++) {
            CHECK_CODE(t, all.rc[k], k == 1 ? HVD_E_INVAL : HVD_E_REVOKED);
            CHECK_HAS(t, all.err[k].text, texts[way]);
        }
        team_close(&all);
    }
    CHECK_NOTHING_LEFT(t);
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

/* The call of the last member differs from the others in one size. Its buffers are large enough for
 * all calls. */
struct misfit {
    size_t counts[COLL_TEAM_MAX], out_counts[COLL_TEAM_MAX];
    struct coll_piece pieces[3];
    struct coll_call call;
};

/* Fills *misfit with the call of this member for the team's way; only the last member's call has
 * another size. */
static void plan_misfit(const struct team *team, uint32_t rank, void *in, void *out,
                        struct misfit *misfit)
{
    static const enum coll_kind kinds[] = { COLL_ALLTOALL,  COLL_ALLGATHER, COLL_REDUCESCATTER,
                                            COLL_BROADCAST, COLL_ALLREDUCE, COLL_ALLREDUCE };
    bool last = rank + 1 == team->size;
    size_t first = team->way == CUT_OTHERWISE && last ? 40 : 60;

    *misfit = (struct misfit){
        .call = {.kind = kinds[team->way],
                 .type = HVD_INT32,
                 .in = in,
                 .out = out,
                 .count = 3,
                 .device = gpu_team_device(rank)}
    };
    for (uint32_t i = 0; i < team->size; i++)
        misfit->counts[i] = misfit->out_counts[i] = 3;
    misfit->pieces[0] = (struct coll_piece){ in, in, first };
    misfit->pieces[1] = (struct coll_piece){ out, out, 100 - first };
    if (team->way == ALLTOALL_GIVES) {
        misfit->out_counts[0] = last ? 5 : 3;
        misfit->call.out_counts = misfit->out_counts;
    } else if (team->way < BROADCAST_SIZE) {
        misfit->counts[0] = last ? 4 : 3;
    } else if (team->way == BROADCAST_SIZE) {
        misfit->call.count = last ? 4 : 3;
    } else {
        misfit->call.pieces = misfit->pieces;
        misfit->call.piece_count = team->way == ONE_PIECE_MORE && last ? 3 : 2;
    }
    if (team->way < BROADCAST_SIZE)
        misfit->call.counts = misfit->counts;
}

static void act_misfit(struct team *team, uint32_t rank)
{
    struct gpu_twin in = { NULL, NULL }, out = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT, &in);
    struct misfit misfit;

    if (!rc)
        rc = gpu_twin_make(rank, COUNT, &out);
    plan_misfit(team, rank, in.device, out.device, &misfit);
    team->rc[rank] = rc ? rc : coll_run(team->colls[rank], &misfit.call, &team->err[rank]);
    settle(team, rank);
    gpu_twin_free(rank, &in);
    gpu_twin_free(rank, &out);
}

/* Plays each way in a new team: all members must report HVD_E_MISMATCH, with the reason, and NCCL
 * must not run. */
static void try_misfit(struct team *team, struct test *t, const char *hosts,
                       const struct coll_options *options)
{
    for (int way = 0; way < MISFITS; way++) {
        CHECK_OK(t, gpu_team_open(team, hosts, options, true));
        team_run(team, gpu_team_act_connect);
        CHECK_TEAM(t, team);
        team->way = way;
        team_run(team, act_misfit);
        for (uint32_t k = 0; k < team->size; k++) {
            CHECK_CODE(t, team->rc[k], HVD_E_MISMATCH);
            CHECK_HAS(t, team->err[k].text,
                      way == ALLTOALL_GIVES ? "rank 0 gives rank" : "all ranks must make the same");
            CHECK(t, !by_nccl(team, k));
        }
        team_close(team);
    }
}

TEST_FLAGS(sizes_that_do_not_fit_are_a_mismatch, TEST_NO_TORTURE)
{
    static const char *const layouts[] = { "aa", "ab", "aab" };
    const struct coll_options by_host = { .gpu = COLL_GPU_CPU };

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        try_misfit(&all, t, layouts[i], NULL);
        try_misfit(&all, t, layouts[i], &by_host);
    }
    /* a call of a team of one member is checked, too */
    CHECK_OK(t, gpu_team_open(&all, "a", NULL, true));
    all.way = ALLTOALL_GIVES;
    team_run(&all, act_misfit);
    CHECK_CODE(t, all.rc[0], HVD_E_MISMATCH);
    CHECK_HAS(t, all.err[0].text, "rank 0 gives rank 0 3 numbers, but the receiver expects 5");
    team_close(&all);
    CHECK_NOTHING_LEFT(t);
}

/* ---- a round dies ---- */

/* Waits until all members are in an operation by NCCL for which no member is missing. false: this
 * took too long. */
static bool await_inside(struct team *team)
{
    int64_t until_us = clock_now_us() + LONG_US;
    uint32_t inside = 0;

    while (inside < team->size && clock_now_us() < until_us) {
        inside = 0;
        for (uint32_t i = 0; i < team->size; i++) {
            struct coll_wait wait;

            coll_wait_look(team->colls[i], &wait);
            inside += wait.operation && strstr(wait.operation, "by NCCL") && !wait.missing_count;
        }
        sched_yield();
    }
    return inside == team->size;
}

static void act_sum_only(struct team *team, uint32_t rank)
{
    team->rc[rank] = sum(team, rank);
}

/* The kernel of one member never ends, as happens when another member dies during the operation. */
TEST_FLAGS(a_round_that_is_revoked_leaves_no_kernel, TEST_NO_TORTURE)
{
    CHECK_OK(t, gpu_team_open(&all, "aab", NULL, true));
    team_run(&all, gpu_team_act_connect);
    CHECK_TEAM(t, &all);
    fake_gpu_faults("collective@0:hang");
    team_start(&all, act_sum_only);
    begun = true;
    CHECK(t, await_inside(&all));
    coll_cancel(all.colls[1]); /* the other members hear of the failure from this member */
    team_await(&all);
    begun = false;
    for (uint32_t i = 0; i < all.size; i++) {
        CHECK_CODE(t, all.rc[i], HVD_E_REVOKED);
        CHECK_OK(t, coll_settle(all.colls[i], &all.err[i]));
    }
    team_part(&all);
    fake_gpu_faults(NULL);
    CHECK_OK(t, team_make(&all, 2));
    team_run(&all, gpu_team_act_connect);
    CHECK_TEAM(t, &all);
    team_run(&all, act_sum);
    CHECK_TEAM(t, &all);
    CHECK(t, by_nccl(&all, 2));
    team_close(&all);
    CHECK_NOTHING_LEFT(t);
}

static bool never(const struct team *team, uint32_t rank)
{
    return !team->size && rank;
}

/* A member that has its result may already be in the next operation when it hears of the
 * failure. */
static void act_sum_for_ever(struct team *team, uint32_t rank)
{
    team->rc[rank] = sum_until(team, rank, never);
    settle(team, rank);
}

TEST_FLAGS(an_error_of_nccl_ends_the_round_for_all, TEST_NO_TORTURE)
{
    static const char *const faults[] = { "collective@1:error", "collective@1:fail" };

    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        CHECK_OK(t, gpu_team_open(&all, "aab", NULL, true));
        team_run(&all, gpu_team_act_connect);
        CHECK_TEAM(t, &all);
        fake_gpu_faults(faults[i]);
        team_run(&all, act_sum_for_ever);
        for (uint32_t k = 0; k < all.size; k++)
            CHECK(t, all.rc[k] == HVD_E_REVOKED || (k == 1 && all.rc[k] == HVD_E_IO));
        CHECK_HAS(t, all.err[0].text, "rank 1: ");
        team_close(&all);
    }
    fake_gpu_faults(NULL);
    CHECK_NOTHING_LEFT(t);
}

static void note_stuck(void *arg, const char *why)
{
    if (why[0])
        atomic_fetch_add((atomic_uint *)arg, 1);
}

static atomic_bool copy_may_begin;

static void hold_copy(void *arg)
{
    (void)arg;
    while (!atomic_load(&copy_may_begin))
        sched_yield();
}

/* A copy of a dead round has not ended in time: the buffer must not be restored, because the copy
 * may still write to it. The copy stands behind a kernel that runs until the round is settled. */
static void act_streamed_once(struct team *team, uint32_t rank)
{
    struct gpu_twin from = { NULL, NULL }, to = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT, &from);
    struct coll_call call;

    if (!rc)
        rc = gpu_twin_make(rank, COUNT, &to);
    if (!rc)
        rc = gpu_enter(gpu_team_device(rank), &team->err[rank]);
    if (!rc) {
        fake_gpu_run(NULL, hold_copy, NULL);
        gpu_leave(gpu_team_device(rank));
    }
    call = (struct coll_call){ .kind = COLL_ALLREDUCE,
                               .type = HVD_UINT8,
                               .in = from.device,
                               .out = to.device,
                               .count = COUNT,
                               .device = gpu_team_device(rank),
                               .streamed = true };
    team->rc[rank] = rc ? rc : coll_run(team->colls[rank], &call, &team->err[rank]);
    coll_cancel(team->colls[rank]);
    if (!team->rc[rank])
        team->rc[rank] = coll_settle(team->colls[rank], &team->err[rank]);
    atomic_store(&copy_may_begin, true);
    gpu_twin_free(rank, &from); /* gpu_twin_free waits for the copy */
    gpu_twin_free(rank, &to);
}

TEST_FLAGS(a_communicator_that_does_not_settle_is_reported, TEST_NO_TORTURE)
{
    atomic_uint told = 0;
    const struct coll_options options = {
        .gpu = COLL_GPU_CPU, .gpu_bound_us = 50000, .stuck = note_stuck, .arg = &told
    };

    CHECK_OK(t, gpu_team_open(&all, "a", &options, false));
    team_run(&all, team_act_connect);
    CHECK_TEAM(t, &all);
    team_run(&all, act_streamed_once);
    CHECK_CODE(t, all.rc[0], HVD_E_TIMEOUT);
    CHECK_HAS(t, all.err[0].text, "has not ended the copies");
    CHECK_INT(t, atomic_load(&told), ==, 1);
}

TEST_FLAGS(an_error_of_the_driver_ends_the_round_too, TEST_NO_TORTURE)
{
    const struct coll_options options = { .gpu = COLL_GPU_CPU };

    CHECK_OK(t, gpu_team_open(&all, "aab", &options, false));
    team_run(&all, team_act_connect);
    CHECK_TEAM(t, &all);
    fake_gpu_faults("copy#1:fail");
    team_run(&all, act_sum_only);
    for (uint32_t i = 0; i < all.size; i++) {
        CHECK(t, all.rc[i] == HVD_E_REVOKED || all.rc[i] == HVD_E_IO);
        CHECK_HAS(t, all.err[i].text, "the device: ");
    }
}

/* ---- memory ---- */

/* Reduces and scatters through the host, with counts that differ between members. */
static void act_scatter(struct team *team, uint32_t rank)
{
    const size_t counts[] = { COUNT };
    struct gpu_twin in = { NULL, NULL }, out = { NULL, NULL };
    int rc = gpu_twin_make(rank, COUNT * sizeof(float), &in);
    struct coll_call call;

    team_act_connect(team, rank);
    if (!rc)
        rc = gpu_twin_make(rank, COUNT * sizeof(float), &out);
    call = (struct coll_call){ .kind = COLL_REDUCESCATTER,
                               .type = HVD_FLOAT32,
                               .prescale = 2,
                               .in = in.device,
                               .out = out.device,
                               .count = COUNT,
                               .counts = counts,
                               .device = gpu_team_device(rank) };
    if (!rc && !team->rc[rank])
        team->rc[rank] = coll_run(team->colls[rank], &call, &team->err[rank]);
    settle(team, rank);
    team->rc[rank] = rc ? rc : team->rc[rank];
    gpu_twin_free(rank, &in);
    gpu_twin_free(rank, &out);
}

TEST(memory_runs_out)
{
    CHECK_OK(t, gpu_team_open(&all, "a", NULL, true));
    team_run(&all, act_scatter);
    CHECK_TEAM(t, &all);
}
