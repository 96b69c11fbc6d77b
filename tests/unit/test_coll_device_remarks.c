/*
 * What people are told of calls on memory of a device that go through the host: why, once, by
 * whoever knows; and nothing where that was asked for.
 */
#include "collectives/device.h"
#include "collectives/engine_inside.h"
#include "os/clock.h"
#include "tests/lib/gpu_crew.h"

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

/* Of one number of each; it becomes the sum. */
static int sum(struct crew *crew, uint32_t rank, uint8_t *number)
{
    struct gpu_twin twin = { NULL, NULL };
    int rc = gpu_twin_make(rank, 1, &twin);
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .type = HVD_UINT8,
                                    .in = twin.device,
                                    .out = twin.device,
                                    .count = 1,
                                    .device = gpu_crew_device(rank) };

    if (rc)
        return rc;
    *(uint8_t *)twin.host = *number;
    rc = coll_run(crew->colls[rank], &call, &crew->err[rank]);
    if (!rc)
        *number = *(uint8_t *)twin.host;
    gpu_twin_free(rank, &twin);
    return rc;
}

static void act_sums(struct crew *crew, uint32_t rank)
{
    uint8_t number = 1;

    for (int i = 0; i < 5 && !crew->rc[rank]; i++)
        crew->rc[rank] = sum(crew, rank, &number);
}

static void act_wait_and_sum(struct crew *crew, uint32_t rank)
{
    gpu_crew_act_connect(crew, rank);
    act_sums(crew, rank);
}

static void act_connect_and_sum(struct crew *crew, uint32_t rank)
{
    crew_act_connect(crew, rank);
    act_sums(crew, rank);
}

/* What they sum is how many have remarked, so that all end after the same call. */
static void act_sum_until_all_remark(struct crew *crew, uint32_t rank)
{
    int64_t until_us = clock_now_us() + COLL_CREW_LONG_US;
    uint8_t number = 0;

    crew_act_connect(crew, rank);
    while (!crew->rc[rank] && number < crew->size) {
        number = crew->colls[rank]->groups[0].remarked;
        crew->rc[rank] = clock_now_us() < until_us ? sum(crew, rank, &number) : HVD_E_TIMEOUT;
    }
    if (!crew->rc[rank])
        crew->rc[rank] = sum(crew, rank, &number);
}

static int play(struct crew *crew, const struct coll_options *options, const char *faults,
                void (*act)(struct crew *crew, uint32_t rank))
{
    struct coll_options heard_by = *options;
    int rc;

    heard.count = 0;
    heard_by.remark = hear;
    rc = gpu_crew_open(crew, "aab", &heard_by, true);
    if (rc)
        return rc;
    fake_gpu_faults(faults);
    crew_run(crew, act);
    gpu_crew_show(crew);
    for (uint32_t i = 0; i < crew->size; i++)
        rc = rc ? rc : crew->rc[i];
    return rc;
}

static void who_cannot_says_why(struct test *t)
{
    const struct coll_options options = { .gpu = COLL_GPU_AUTO };
    struct crew crew = { .size = 0 };

    CHECK_OK(t, play(&crew, &options, "init@1:error", act_wait_and_sum));
    CHECK_INT(t, heard.count, ==, 1);
    CHECK_HAS(t, heard.last,
              "collectives on memory of GPUs go through the host: "
              "NCCL cannot be used in this group: ");
    CHECK(t, !strstr(heard.last, "a member of it cannot"));
    crew_part(&crew); /* again in each round: nobody may have been there to hear it */
    CHECK_OK(t, crew_make(&crew, 2));
    crew_run(&crew, act_wait_and_sum);
    CHECK_CREW(t, &crew);
    CHECK_INT(t, heard.count, ==, 2);
out:
    fake_gpu_faults(NULL);
    crew_close(&crew);
}

/* Members that fit each other no more: the first of them says what all have found. */
static void what_all_have_found_one_says(struct test *t)
{
    const struct coll_options options = { .gpu = COLL_GPU_AUTO, .remark = hear };
    struct crew crew = { .size = 0 };

    heard.count = 0;
    CHECK_OK(t, gpu_crew_open(&crew, "aab", &options, true));
    crew.engines[1]->nccl_version = 21805;
    crew_run(&crew, act_connect_and_sum);
    CHECK_CREW(t, &crew);
    CHECK_INT(t, heard.count, ==, 1);
    CHECK_HAS(t, heard.last, "rank 1 of it has version 2.18.5, and rank 0 of it 2.28.9");
out:
    crew_close(&crew);
}

static void what_is_never_ready_is_remarked_on(struct test *t)
{
    static const enum coll_gpu wanted[] = { COLL_GPU_AUTO, COLL_GPU_NCCL };
    struct crew crew = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        const struct coll_options options = { .gpu = wanted[i], .slow_us = 50000 };

        CHECK_OK(t, play(&crew, &options, "init:hang", act_sum_until_all_remark));
        CHECK_INT(t, heard.count, ==, 3); /* each has its own to wait for */
        CHECK_HAS(t, heard.last, "NCCL's communicator is not ready after 50ms; NCCL_DEBUG=INFO");
        fake_gpu_faults(NULL);
        crew_close(&crew);
    }
out:
    fake_gpu_faults(NULL);
    crew_close(&crew);
}

static void what_was_asked_for_is_not(struct test *t)
{
    static const struct coll_options asked[] = {
        {.gpu = COLL_GPU_CPU  },
        { .gpu = COLL_GPU_AUTO, .fixed_order = true },
        { .gpu = COLL_GPU_AUTO                   }, /* all is well */
    };
    struct crew crew = { .size = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        CHECK_OK(t, play(&crew, &asked[i], NULL, act_wait_and_sum));
        CHECK_INT(t, heard.count, ==, 0);
        crew_close(&crew);
    }
    CHECK_NOTHING_LEFT(t);
out:
    crew_close(&crew);
}

TESTS(CASE_FLAGS(who_cannot_says_why, TEST_NO_TORTURE),
      CASE_FLAGS(what_all_have_found_one_says, TEST_NO_TORTURE),
      CASE_FLAGS(what_is_never_ready_is_remarked_on, TEST_NO_TORTURE),
      CASE_FLAGS(what_was_asked_for_is_not, TEST_NO_TORTURE))
