/*
 * goodput.c: counts for what the time of the job's workers was used. core.c calls it at the
 * beginning and at the end of each step; loss.c reports failures; replay.c and compact.c restore
 * and keep the sums. Invariant: the sums of all uses together are the life of the job; a part moves
 * from one use to another when it becomes known what the part was.
 */
#include "driver/core/goodput.h"

#include "driver/core/tell.h"

#include <stdio.h>
#include <string.h>

/* While nothing changes, records are written at most this often: a driver that dies loses no more.
 */
#define RECORD_EVERY_US TIME_MIN

static const char *const use_names[] = {
    [GOODPUT_TRAINING] = "training",     [GOODPUT_START] = "start",
    [GOODPUT_RECOVERY] = "recovery",     [GOODPUT_REBUILD] = "rebuild",
    [GOODPUT_SWITCH] = "switch",         [GOODPUT_WAITING] = "waiting",
    [GOODPUT_LOST_STEPS] = "lost_steps", [GOODPUT_NO_DRIVER] = "no_driver",
    [GOODPUT_ENDING] = "ending",
};
_Static_assert(ARRAY_SIZE(use_names) == GOODPUT_COUNT, "a use has no name");

const char *goodput_use_name(enum goodput_use use)
{
    ASSERT((size_t)use < ARRAY_SIZE(use_names));
    return use_names[use];
}

/* ---- sums ----------------------------------------------------------------------------------- */

static int64_t goodput_times(int64_t us, uint64_t workers)
{
    return workers && us > INT64_MAX / (int64_t)workers ? INT64_MAX : us * (int64_t)workers;
}

static void goodput_add(struct core_goodput *own, enum goodput_use use, struct goodput_part part)
{
    struct goodput_part *sum = &own->sums[use];

    if (!part.time_us)
        return;
    sum->time_us = time_add(sum->time_us, part.time_us);
    sum->worker_us = time_add(sum->worker_us, part.worker_us);
    own->changed |= 1U << use;
}

/* Moves a part from one use to another, at most all that the first one has. */
static void goodput_move(struct core_goodput *own, enum goodput_use from, enum goodput_use to,
                         struct goodput_part part)
{
    struct goodput_part *sum = &own->sums[from];

    if (part.time_us > sum->time_us)
        part.time_us = sum->time_us;
    if (part.worker_us > sum->worker_us)
        part.worker_us = sum->worker_us;
    sum->time_us -= part.time_us;
    sum->worker_us -= part.worker_us;
    own->changed |= 1U << from;
    goodput_add(own, to, part);
}

void goodput_count(struct core *core)
{
    struct core_goodput *own = &core->costs.goodput;
    int64_t gone_us = core->now_us - own->counted_us;
    size_t workers = own->trained_with ? own->trained_with : core->current.members.count;
    struct goodput_part part;

    if (!workers)
        workers = core->config.np;

    own->counted_us = core->now_us;
    /* In the first step of a driver the time since the last record of an earlier one counts as time
     * without a driver, until the round is seen to train: see goodput_look. A clock that was
     * set back gives no time. */
    if (core->job == JOB_NEW) {
        gone_us = own->wall_us ? core->wall_us - own->wall_us : 0;
        if (gone_us < 0 || gone_us > LIMIT_DURATION_US)
            gone_us = 0;
        own->use = GOODPUT_NO_DRIVER;
        own->unseen_round = core->current.number;
        own->unseen = (struct goodput_part){ gone_us, goodput_times(gone_us, workers) };
        goodput_add(own, GOODPUT_NO_DRIVER, own->unseen);
        return;
    }
    part = (struct goodput_part){ gone_us, goodput_times(gone_us, workers) };
    goodput_add(own, own->use, part);
    if (core->current.state == ROUND_TRAINING) {
        own->trained.time_us = time_add(own->trained.time_us, part.time_us);
        own->trained.worker_us = time_add(own->trained.worker_us, part.worker_us);
    } else if (own->use == GOODPUT_NO_DRIVER) {
        own->unseen.time_us = time_add(own->unseen.time_us, part.time_us);
        own->unseen.worker_us = time_add(own->unseen.worker_us, part.worker_us);
    }
}

/* ---- what is known now ---------------------------------------------------------------------- */

/* Returns for what the time is used from now on. */
static enum goodput_use goodput_use_now(const struct core *core)
{
    const struct round *round = &core->current;

    switch (core->job) {
    case JOB_NEW: break;
    case JOB_GATHERING: return core->launch.gate_open ? GOODPUT_START : GOODPUT_WAITING;
    case JOB_RUNNING:
    case JOB_PREPARING:
    case JOB_PENDING:
        if (round->state == ROUND_TRAINING)
            return GOODPUT_TRAINING;
        if (core->costs.goodput.unseen_round == round->number)
            return GOODPUT_NO_DRIVER;
        /* The members of the round before train until the agreed check. */
        if (round->cause == CAUSE_SWITCH)
            return GOODPUT_TRAINING;
        return round->cause == CAUSE_FIRST ? GOODPUT_START : GOODPUT_REBUILD;
    case JOB_RECOVERING:
        if (!core->roster.count[WORKER_REVOKED] && core->shortage.since_us != TIME_NEVER)
            return GOODPUT_WAITING;
        return GOODPUT_RECOVERY;
    case JOB_FINISHING:
    case JOB_STOPPING:
    case JOB_OVER:
    case JOB_STATE_COUNT: break;
    }
    return GOODPUT_ENDING;
}

/* ---- records -------------------------------------------------------------------------------- */

bool goodput_record(const struct core *core, enum goodput_use use, struct journal_record *record)
{
    const struct core_goodput *own = &core->costs.goodput;

    record->slot = use;
    record->check = (uint64_t)own->sums[use].worker_us;
    record->manifest = (uint64_t)own->sums[use].time_us;
    record->wall_us = own->wall_us;
    return own->sums[use].time_us != 0;
}

bool goodput_host_record(const struct core *core, size_t number, struct journal_record *record)
{
    const struct core_goodput *own = &core->costs.goodput;
    const struct goodput_host *host = &own->others;

    if (number < own->host_count)
        host = &own->hosts[number];
    else if (number > own->host_count || !own->others.failures)
        return false;
    record->host = host->name;
    record->check = host->failures;
    return true;
}

void goodput_look(struct core *core)
{
    struct core_goodput *own = &core->costs.goodput;
    const struct round *round = &core->current;
    const struct core_costs *costs = &core->costs;
    const struct view_change *cost = costs->count ? &costs->kept[costs->count - 1] : NULL;
    enum goodput_use use;

    /* A recovery that resumes from a commit that is not newer than the beginning of the round
     * before makes all training of that round again; with a newer commit it is not known how many
     * steps were made after it. */
    if (own->round != round->number) {
        if (round->cause == CAUSE_RECOVERY && round->commit <= COMMIT_FIRST_OF(own->round))
            goodput_move(own, GOODPUT_TRAINING, GOODPUT_LOST_STEPS, own->trained);
        own->trained = (struct goodput_part){ 0, 0 };
        own->round = round->number;
        own->trains = false;
    }
    /* All members train for the first time under this driver. The pause of a switch was counted as
     * training, because the members trained until the agreed check. If members say to a new driver
     * that they train in the round of the driver before, they have trained without a driver. */
    if (round->state == ROUND_TRAINING && !own->trains) {
        own->trains = true;
        own->trained_with = round->members.count;
        if (cost && cost->round == own->round && cost->cause == CAUSE_SWITCH)
            goodput_move(
                own, GOODPUT_TRAINING, GOODPUT_SWITCH,
                (struct goodput_part){
                    cost->pause_us,
                    goodput_times(cost->pause_us, cost->from < cost->to ? cost->from : cost->to) });
        if (own->unseen_round == own->round)
            goodput_move(own, GOODPUT_NO_DRIVER, GOODPUT_TRAINING, own->unseen);
        own->unseen_round = 0;
    }
    use = goodput_use_now(core);
    /* Plain commands, which never join, have done their work while the driver waited for them. */
    if (own->use == GOODPUT_START && use == GOODPUT_ENDING && core->roster.done_slots)
        goodput_move(own, GOODPUT_START, GOODPUT_TRAINING, own->sums[GOODPUT_START]);
    /* Sums that have changed are written in steps that write other records, so that no message
     * waits for the disk because of a sum; and once in RECORD_EVERY_US. Nothing follows on the end.
     */
    own->stale |= use != own->use;
    if (own->changed && core->wall_us > 0 && core->job != JOB_OVER &&
        ((own->stale && core->out.records != own->records_seen) ||
         core->now_us - own->written_us >= RECORD_EVERY_US)) {
        own->wall_us = core->wall_us;
        own->written_us = core->now_us;
        for (size_t i = 0; i < GOODPUT_COUNT; i++)
            if (own->changed & 1U << i)
                (void)goodput_record(core, (enum goodput_use)i, tell_record(core, JOURNAL_GOODPUT));
        own->changed = 0;
        own->stale = false;
    }
    own->records_seen = core->out.records;
    own->use = use;
}

/* ---- failures, and what an earlier driver has counted ---------------------------------------- */

/* Returns the entry of the host. The table keeps the first GOODPUT_HOSTS hosts that have failed;
 * the last entry stands for all others. Its name is that of one of them: a record of a compacted
 * journal with this name finds the table full, and so the last entry. */
static struct goodput_host *goodput_host(struct core_goodput *own, const char *name)
{
    struct goodput_host *entry;
    size_t i = 0;

    while (i < own->host_count && strcmp(own->hosts[i].name, name) != 0)
        i++;
    if (i < own->host_count)
        return &own->hosts[i];
    entry = i == GOODPUT_HOSTS ? &own->others : &own->hosts[own->host_count++];
    snprintf(entry->name, sizeof(entry->name), "%.*s", LIMIT_HOST_NAME_BYTES, name);
    return entry;
}

void goodput_note_failure(struct core *core, const char *host)
{
    goodput_host(&core->costs.goodput, host)->failures++;
}

bool goodput_replay(struct core *core, const struct journal_record *record)
{
    struct core_goodput *own = &core->costs.goodput;

    /* journal.h, JOURNAL_GOODPUT: in a record with a host, `check` counts the failures there; in
     * one without, `check` is a time of workers and `manifest` a time, both for the use `slot`. */
    if (record->check > INT64_MAX || record->manifest > INT64_MAX)
        return false;
    if (*record->host) {
        goodput_host(own, record->host)->failures = record->check;
        return true;
    }
    if (record->slot >= GOODPUT_COUNT)
        return false;
    own->sums[record->slot] =
        (struct goodput_part){ (int64_t)record->manifest, (int64_t)record->check };
    own->wall_us = record->wall_us;
    return true;
}
