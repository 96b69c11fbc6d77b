/*
 * Remarks to the operator that calls on device memory go through the host: with the reason, once,
 * from a member that knows it; and none where the host was asked for.
 */
#include "collectives/device.h"
#include "collectives/engine_internal.h"
#include "os/clock.h"
#include "tests/lib/gpu_team.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct {
    pthread_mutex_t mutex;
    uint32_t count;
    char last[512];
} heard = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void hear(void *arg, const char *text)
{
    (void)arg;
    pthread_mutex_lock(&heard.mutex);
    heard.count++;
    snprintf(heard.last, sizeof(heard.last), "%s", text);
    pthread_mutex_unlock(&heard.mutex);
}

/* Sums one number of each member, in place. */
static int sum(struct team *team, uint32_t rank, uint8_t *number)
{
    struct gpu_twin twin = { NULL, NULL };
    int rc = gpu_twin_make(rank, 1, &twin);
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .type = HVD_UINT8,
                                    .in = twin.device,
                                    .out = twin.device,
                                    .count = 1,
                                    .device = gpu_team_device(rank) };

    if (rc)
        return rc;
    *(uint8_t *)twin.host = *number;
    rc = coll_run(team->colls[rank], &call, &team->err[rank]);
    if (!rc)
        *number = *(uint8_t *)twin.host;
    gpu_twin_free(rank, &twin);
    return rc;
}

static void act_sums(struct team *team, uint32_t rank)
{
    uint8_t number = 1;

    for (int i = 0; i < 5 && !team->rc[rank]; i++)
        team->rc[rank] = sum(team, rank, &number);
}

static void act_wait_and_sum(struct team *team, uint32_t rank)
{
    gpu_team_act_connect(team, rank);
    act_sums(team, rank);
}

static void act_connect_and_sum(struct team *team, uint32_t rank)
{
    team_act_connect(team, rank);
    act_sums(team, rank);
}

/* The members sum how many of them have sent the remark, so that all end after the same call. */
static void act_sum_until_all_remark(struct team *team, uint32_t rank)
{
    int64_t until_us = clock_now_us() + COLL_TEAM_LONG_US;
    uint8_t number = 0;

    team_act_connect(team, rank);
    while (!team->rc[rank] && number < team->size) {
        number = team->colls[rank]->groups[0].nccl.remarked;
        team->rc[rank] = clock_now_us() < until_us ? sum(team, rank, &number) : HVD_E_TIMEOUT;
    }
    if (!team->rc[rank])
        team->rc[rank] = sum(team, rank, &number);
}

static int play(struct team *team, const struct coll_options *options, const char *faults,
                void (*act)(struct team *team, uint32_t rank))
{
    struct coll_options heard_by = *options;
    int rc;

    heard.count = 0;
    heard_by.remark = hear;
    rc = gpu_team_open(team, "aab", &heard_by, true);
    if (rc)
        return rc;
    fake_gpu_faults(faults);
    team_run(team, act);
    gpu_team_show(team);
    for (uint32_t i = 0; i < team->size; i++)
        rc = rc ? rc : team->rc[i];
    return rc;
}

TEST_FLAGS(a_member_without_nccl_says_why, TEST_NO_TORTURE)
{
    const struct coll_options options = { .gpu = COLL_GPU_AUTO };
    struct team team = { .size = 0 };

    CHECK_OK(t, play(&team, &options, "init@1:error", act_wait_and_sum));
    CHECK_INT(t, heard.count, ==, 1);
    CHECK_HAS(t, heard.last,
              "collectives on memory of GPUs go through the host: "
              "NCCL cannot be used in this group: ");
    CHECK(t, !strstr(heard.last, "another member of the group has no usable NCCL"));
    team_part(&team); /* again in each round: the earlier remark may have been lost */
    CHECK_OK(t, team_make(&team, 2));
    team_run(&team, act_wait_and_sum);
    CHECK_TEAM(t, &team);
    CHECK_INT(t, heard.count, ==, 2);
out:
    fake_gpu_faults(NULL);
    team_close(&team);
}

/* The members no longer fit each other: the first member reports what all have found. */
TEST_FLAGS(a_common_finding_is_remarked_once, TEST_NO_TORTURE)
{
    const struct coll_options options = { .gpu = COLL_GPU_AUTO, .remark = hear };
    struct team team = { .size = 0 };

    heard.count = 0;
    CHECK_OK(t, gpu_team_open(&team, "aab", &options, true));
    team.engines[1]->nccl_version = 21805;
    team_run(&team, act_connect_and_sum);
    CHECK_TEAM(t, &team);
    CHECK_INT(t, heard.count, ==, 1);
    CHECK_HAS(t, heard.last, "rank 1 of the group has NCCL 2.18.5, and rank 0 has NCCL 2.28.9");
out:
    team_close(&team);
}

TEST_FLAGS(a_communicator_that_is_never_ready_is_remarked_on, TEST_NO_TORTURE)
{
    static const enum coll_gpu wanted[] = { COLL_GPU_AUTO, COLL_GPU_NCCL };
    struct team team = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        const struct coll_options options = { .gpu = wanted[i], .slow_us = 50000 };

        CHECK_OK(t, play(&team, &options, "init:hang", act_sum_until_all_remark));
        CHECK_INT(t, heard.count, ==, 3); /* each member waits for its own */
        CHECK_HAS(t, heard.last, "NCCL's communicator is not ready after 50ms; NCCL_DEBUG=INFO");
        fake_gpu_faults(NULL);
        team_close(&team);
    }
out:
    fake_gpu_faults(NULL);
    team_close(&team);
}

TEST_FLAGS(a_requested_setting_is_not_remarked_on, TEST_NO_TORTURE)
{
    static const struct coll_options asked[] = {
        {.gpu = COLL_GPU_CPU  },
        { .gpu = COLL_GPU_AUTO, .fixed_order = true },
        { .gpu = COLL_GPU_AUTO                   }, /* no reason for a remark */
    };
    struct team team = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        CHECK_OK(t, play(&team, &asked[i], NULL, act_wait_and_sum));
        CHECK_INT(t, heard.count, ==, 0);
        team_close(&team);
    }
    CHECK_NOTHING_LEFT(t);
out:
    team_close(&team);
}
