/*
 * bench_recovery: from the SIGKILL of a worker, at a random moment, to the first step of the round
 * without it; the real programs on hosts of this machine. The figure is the time until the last
 * of the survivors was there.
 *
 *     bench_recovery [KILLS [HOSTS SLOTS MIB]]
 */
#include "base/limits.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/time.h"
#include "bench/elastic_job.h"
#include "bench/memory.h"
#include "bench/times.h"
#include "os/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KILLS     100
#define KILLS_MAX 1000
#define STEP_US   1000
#define PAUSE_US  20000 /* from when all train to the kill: at most so long */

struct phases {
    struct times told;    /* the kill: until train was told to return */
    struct times rebuilt; /* until the next round is agreed on and connected */
    struct times stated;  /* until all members have their state */
    struct times stepped; /* until a step is done */
    struct times all;
};

static struct phases phases;

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* All that survived have been told in the round before, and are in the next. */
static void note(const struct elastic_job *job, uint64_t before, int64_t killed_us)
{
    int64_t told_us = killed_us, reset_us = 0, train_us = 0, step_us = 0;

    for (size_t i = 0; i < job->count; i++) {
        uint64_t who = job->incarnations[i];
        const struct board_round *old = elastic_job_round(job, who, before);
        const struct board_round *now = elastic_job_round(job, who, job->round);

        if (old->number == before)
            told_us = later(told_us, old->told_us);
        reset_us = later(reset_us, now->reset_us);
        train_us = later(train_us, now->train_us);
        step_us = later(step_us, now->step_us);
    }
    times_add(&phases.told, told_us - killed_us);
    times_add(&phases.rebuilt, reset_us - told_us);
    times_add(&phases.stated, train_us - reset_us);
    times_add(&phases.stepped, step_us - train_us);
    times_add(&phases.all, step_us - killed_us);
}

static int kill_one(struct elastic_job *job, struct rng *rng, struct hvd_err *err)
{
    size_t whole = (size_t)job->plan.hosts * job->plan.slots;
    uint64_t victim = job->incarnations[rng_below(rng, job->count)];
    uint64_t before = job->round;
    int64_t killed_us;
    int rc;

    board_await(job->board, job->board->bell, clock_now_us() + (int64_t)rng_below(rng, PAUSE_US));
    killed_us = clock_now_us();
    kill(board_slot(job->board, victim)->pid, SIGKILL);
    rc = elastic_job_await(job, 0, err);
    if (rc)
        return rc;
    note(job, before, killed_us);
    return job->count == whole ? 0 : elastic_job_await(job, whole, err);
}

static void report(const struct elastic_plan *plan)
{
    printf("%" PRIu32 " hosts x %" PRIu32 " workers of %" PRIu32 " MiB, one killed\n", plan->hosts,
           plan->slots, plan->state_mib);
    times_line(&phases.told, "detected, and told to all");
    times_line(&phases.rebuilt, "agreed, and connected anew");
    times_line(&phases.stated, "state");
    times_line(&phases.stepped, "first step");
    times_line(&phases.all, "together");
    fflush(stdout);
}

static int measure(const struct elastic_plan *plan, uint32_t kills, struct hvd_err *err)
{
    struct elastic_job job;
    struct rng rng;
    int rc;

    if (!memory_suffices(plan->hosts * plan->slots, plan->state_mib))
        return 0;
    rng_seed(&rng, (uint64_t)clock_wall_us());
    memset(&phases, 0, sizeof(phases));
    rc = elastic_job_begin(&job, plan, err);
    for (uint32_t i = 0; !rc && i < kills; i++)
        rc = kill_one(&job, &rng, err);
    elastic_job_end(&job);
    if (phases.all.count)
        report(plan);
    return rc;
}

static int run(uint32_t kills, struct hvd_err *err)
{
    static const struct elastic_plan plans[] = {
        {2,  2, 1,    STEP_US, 0, "commit", NULL},
        { 4, 4, 1,    STEP_US, 0, "commit", NULL},
        { 2, 2, 1024, STEP_US, 0, "check",  NULL},
        { 4, 4, 1024, STEP_US, 0, "check",  NULL},
    };
    int rc = 0;

    for (size_t i = 0; !rc && i < ARRAY_SIZE(plans); i++)
        rc = measure(&plans[i], kills, err);
    return rc;
}

static int read_number(const char *text, const char *name, uint64_t most, uint64_t *ret_number,
                       struct hvd_err *err)
{
    return text_parse_u64((struct span){ text, strlen(text) }, 1, most, name, ret_number, err);
}

static int read_words(int argc, char **argv, struct elastic_plan *plan, uint64_t *ret_kills,
                      struct hvd_err *err)
{
    uint64_t hosts = 0, slots = 0, mib = 0;

    if (argc > 1 && read_number(argv[1], "the number of kills", KILLS_MAX, ret_kills, err))
        return HVD_E_INVAL;
    if (argc == 5 && (read_number(argv[2], "the number of hosts", 32, &hosts, err) ||
                      read_number(argv[3], "the number of slots", 32, &slots, err) ||
                      read_number(argv[4], "MiB", 65536, &mib, err)))
        return HVD_E_INVAL;
    *plan = (struct elastic_plan){ (uint32_t)hosts,
                                   (uint32_t)slots,
                                   (uint32_t)mib,
                                   STEP_US,
                                   0,
                                   mib > 64 ? "check" : "commit",
                                   NULL };
    return 0;
}

int main(int argc, char **argv)
{
    struct hvd_err err = { 0 };
    struct elastic_plan plan;
    uint64_t kills = KILLS;
    int rc;

    if (read_words(argc, argv, &plan, &kills, &err)) {
        fprintf(stderr, "bench_recovery: %s\n", err.text);
        return 2;
    }
    rc = plan.hosts ? measure(&plan, (uint32_t)kills, &err) : run((uint32_t)kills, &err);
    if (rc) {
        fprintf(stderr, "bench_recovery: %s\n", err.text);
        return 1;
    }
    return 0;
}
