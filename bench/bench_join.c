/*
 * bench_join: the cost of a joining host with slow workers for the members: the time between the
 * last step without the joiners and the first step with them, and the longest step during their
 * boot. The real programs on hosts of this machine.
 *
 *     bench_join [TIMES [BOOT-MS]]
 */
#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"
#include "bench/elastic_job.h"
#include "bench/memory.h"
#include "bench/times.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TIMES   5
#define BOOT_MS 10000
#define HOSTS   2
#define STEP_US 1000

struct figures {
    struct times join;
    struct times booting;
    struct times leave;
    struct times whole;
};

static struct figures figures;

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* From the last step in the one round to the first in the other, for those that are in both. */
static void note_change(const struct elastic_job *job, uint64_t before, struct times *pauses)
{
    int64_t pause_us = 0, booting_us = 0;

    for (size_t i = 0; i < job->count; i++) {
        uint64_t who = job->incarnations[i];
        const struct board_round *old = elastic_job_round(job, who, before);
        const struct board_round *now = elastic_job_round(job, who, job->round);

        if (old->number != before)
            continue;
        pause_us = later(pause_us, now->step_us - old->last_us);
        booting_us = later(booting_us, old->pause_us);
    }
    times_add(pauses, pause_us);
    if (pauses == &figures.join)
        times_add(&figures.booting, booting_us);
}

/* There may be more than one round on the way: each is a pause. */
static int change(struct elastic_job *job, uint32_t hosts, struct times *pauses,
                  struct hvd_err *err)
{
    size_t wanted = (size_t)hosts * job->plan.slots;
    int rc = elastic_job_hosts(job, hosts, err);

    for (size_t i = 0; i < job->count; i++) /* from here on it counts */
        elastic_job_round(job, job->incarnations[i], job->round)->pause_us = 0;

    while (!rc && job->count != wanted) {
        uint64_t before = job->round;

        rc = elastic_job_await(job, 0, err);
        if (!rc)
            note_change(job, before, pauses);
    }
    return rc;
}

static int come_and_go(struct elastic_job *job, struct hvd_err *err)
{
    int64_t began_us = clock_now_us();
    int rc = change(job, HOSTS + 1, &figures.join, err);

    if (rc)
        return rc;
    times_add(&figures.whole, clock_now_us() - began_us);
    return change(job, HOSTS, &figures.leave, err);
}

static void report(const struct elastic_plan *plan)
{
    printf("%" PRIu32 " hosts x %" PRIu32 " workers of %" PRIu32
           " MiB; another host joins, and boots for %.1f s\n",
           plan->hosts, plan->slots, plan->state_mib, (double)plan->boot_ms / 1e3);
    times_line(&figures.join, "pause of those that train");
    times_line(&figures.booting, "their longest step meanwhile");
    times_line(&figures.leave, "pause when it leaves");
    times_line(&figures.whole, "from listed to training");
    fflush(stdout);
}

static int measure(const struct elastic_plan *plan, uint32_t times, struct hvd_err *err)
{
    struct elastic_job job;
    int rc;

    if (!memory_suffices((HOSTS + 1) * plan->slots, plan->state_mib))
        return 0;
    memset(&figures, 0, sizeof(figures));
    rc = elastic_job_begin(&job, plan, err);
    for (uint32_t i = 0; !rc && i < times; i++)
        rc = come_and_go(&job, err);
    elastic_job_end(&job);
    if (figures.join.count)
        report(plan);
    return rc;
}

static int run(uint32_t times, uint32_t boot_ms, struct hvd_err *err)
{
    const struct elastic_plan plans[] = {
        {HOSTS,  2, 1,    STEP_US, boot_ms, "commit", NULL},
        { HOSTS, 1, 1024, STEP_US, boot_ms, "check",  NULL},
    };
    int rc = 0;

    for (size_t i = 0; !rc && i < ARRAY_SIZE(plans); i++)
        rc = measure(&plans[i], times, err);
    return rc;
}

static int read_number(const char *text, const char *name, uint64_t most, uint64_t *ret_number,
                       struct hvd_err *err)
{
    return text_parse_u64((struct span){ text, strlen(text) }, 0, most, name, ret_number, err);
}

int main(int argc, char **argv)
{
    struct hvd_err err = { 0 };
    uint64_t times = TIMES, boot_ms = BOOT_MS;

    if ((argc > 1 && read_number(argv[1], "how many times", 1000, &times, &err)) ||
        (argc > 2 && read_number(argv[2], "the boot", 600000, &boot_ms, &err))) {
        fprintf(stderr, "bench_join: %s\n", err.text);
        return 2;
    }
    if (run((uint32_t)times, (uint32_t)boot_ms, &err)) {
        fprintf(stderr, "bench_join: %s\n", err.text);
        return 1;
    }
    return 0;
}
