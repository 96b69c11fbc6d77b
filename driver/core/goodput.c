/*
 * goodput.c: counts for what the time of the job's workers was used. core.c calls it at the
 * beginning and at the end of each step; loss.c reports failures; replay.c and compact.c restore
 * and keep the sums. Invariant: the sums of all uses together are the life of the job; a part moves
 * from one use to another when it becomes known what the part was.
 */
#include "driver/core/goodput.h"

#include "driver/core/reported.h"
#include "driver/core/tell.h"

#include <stdio.h>
#include <string.h>

/* As long as the use of time stays the same, its sums are written to the journal at most this
 * often, so a driver that dies loses no more time than this. */
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

/* Returns `us` for each of the workers, at most INT64_MAX. */
static int64_t goodput_times(int64_t us, uint64_t workers)
{
    return workers && us > INT64_MAX / (int64_t)workers ? INT64_MAX : us * (int64_t)workers;
}

/* Adds a part (time, and the same time for each worker) to the sum of a use, and notes that its
 * record has to be written again. */
static void goodput_add(struct core_goodput *goodput, enum goodput_use use,
                        struct goodput_part part)
{
    struct goodput_part *sum = &goodput->sums[use];

    if (!part.time_us)
        return;
    sum->time_us = time_add(sum->time_us, part.time_us);
    sum->worker_us = time_add(sum->worker_us, part.worker_us);
    goodput->changed |= 1U << use;
}

/* Moves a part of the time from one use to another; if the first has less, all that it has. */
static void goodput_move(struct core_goodput *goodput, enum goodput_use from, enum goodput_use to,
                         struct goodput_part part)
{
    struct goodput_part *sum = &goodput->sums[from];

    if (part.time_us > sum->time_us)
        part.time_us = sum->time_us;
    if (part.worker_us > sum->worker_us)
        part.worker_us = sum->worker_us;
    sum->time_us -= part.time_us;
    sum->worker_us -= part.worker_us;
    goodput->changed |= 1U << from;
    goodput_add(goodput, to, part);
}

/* Called when the time of a step is set: adds the time since the step before to the use that
 * goodput_look has chosen at the end of that step. */
void goodput_count(struct core *core)
{
    struct core_goodput *goodput = &core->costs.goodput;
    int64_t gone_us = core->now_us - goodput->counted_us;
    size_t workers = goodput->trained_with ? goodput->trained_with : core->current.members.count;
    struct goodput_part part;

    if (!workers)
        workers = core->config.np;

    goodput->counted_us = core->now_us;
    /* In the first step of a driver the time since the last record of an earlier one counts as time
     * without a driver, until the round is seen to train: see goodput_look. A clock that was
     * set back gives no time. */
    if (core->job == JOB_NEW) {
        gone_us = goodput->wall_us ? core->wall_us - goodput->wall_us : 0;
        if (gone_us < 0 || gone_us > LIMIT_DURATION_US)
            gone_us = 0;
        goodput->use = GOODPUT_NO_DRIVER;
        goodput->unseen_round = core->current.number;
        goodput->unseen = (struct goodput_part){ gone_us, goodput_times(gone_us, workers) };
        goodput_add(goodput, GOODPUT_NO_DRIVER, goodput->unseen);
        return;
    }
    part = (struct goodput_part){ gone_us, goodput_times(gone_us, workers) };
    goodput_add(goodput, goodput->use, part);
    if (core->current.state == ROUND_TRAINING) {
        goodput->trained.time_us = time_add(goodput->trained.time_us, part.time_us);
        goodput->trained.worker_us = time_add(goodput->trained.worker_us, part.worker_us);
    } else if (goodput->use == GOODPUT_NO_DRIVER) {
        goodput->unseen.time_us = time_add(goodput->unseen.time_us, part.time_us);
        goodput->unseen.worker_us = time_add(goodput->unseen.worker_us, part.worker_us);
    }
}

/* ---- what is known now ---------------------------------------------------------------------- */

/* Returns for what the time counts from now on, as the state of the job and of its round says. */
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
        /* After a switch was agreed on, the members still train in the round before, until its
         * agreed check. */
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

/* Fills in the GOODPUT record of one use (journal.h says which field has which sum). False: no time
 * was used for it, so no record is needed. */
bool goodput_record(const struct core *core, enum goodput_use use, struct journal_record *record)
{
    const struct core_goodput *goodput = &core->costs.goodput;

    record->slot = use;
    record->check = (uint64_t)goodput->sums[use].worker_us;
    record->manifest = (uint64_t)goodput->sums[use].time_us;
    record->wall_us = goodput->wall_us;
    return goodput->sums[use].time_us != 0;
}

/* Fills in the GOODPUT record of the host with this index in the table of failures; behind the last
 * one, of all other hosts. False: there is no such record. */
bool goodput_host_record(const struct core *core, size_t number, struct journal_record *record)
{
    const struct core_goodput *goodput = &core->costs.goodput;
    const struct goodput_host *host = &goodput->others;

    if (number < goodput->host_count)
        host = &goodput->hosts[number];
    else if (number > goodput->host_count || !goodput->others.failures)
        return false;
    record->host = host->name;
    record->check = host->failures;
    return true;
}

/* Takes from a sum what is moved elsewhere. */
static int64_t goodput_less(int64_t sum_us, int64_t us)
{
    return sum_us > us ? sum_us - us : 0;
}

/* A round was revoked whose members had made no step for a while (cost.c): this while was no
 * training. */
static void goodput_take_silence(struct core *core)
{
    struct core_goodput *goodput = &core->costs.goodput;
    int64_t us = core->costs.noticed_us - core->costs.lost_us;
    struct goodput_part part;

    if (goodput->noticed_us == core->costs.noticed_us)
        return;
    goodput->noticed_us = core->costs.noticed_us;
    if (us <= 0)
        return;
    part = (struct goodput_part){ us, goodput_times(us, core->current.members.count) };
    goodput_move(goodput, GOODPUT_TRAINING, GOODPUT_RECOVERY, part);
    goodput->trained.time_us = goodput_less(goodput->trained.time_us, part.time_us);
    goodput->trained.worker_us = goodput_less(goodput->trained.worker_us, part.worker_us);
}

/* Called at the end of each step. Moves time to another use when it becomes known what it was,
 * chooses the use of the time from now on, and writes the sums to the journal now and then. */
void goodput_look(struct core *core)
{
    struct core_goodput *goodput = &core->costs.goodput;
    const struct round *round = &core->current;
    const struct core_costs *costs = &core->costs;
    const struct view_change *cost = costs->count ? &costs->kept[costs->count - 1] : NULL;
    enum goodput_use use;

    goodput_take_silence(core);
    /* A recovery that resumes from a commit that is not newer than the beginning of the round
     * before makes all training of that round again; with a newer commit it is not known how many
     * steps were made after it. */
    if (goodput->round != round->number) {
        if (round->cause == CAUSE_RECOVERY && round->commit <= COMMIT_FIRST_OF(goodput->round))
            goodput_move(goodput, GOODPUT_TRAINING, GOODPUT_LOST_STEPS, goodput->trained);
        goodput->trained = (struct goodput_part){ 0, 0 };
        goodput->round = round->number;
        goodput->trains = false;
    }
    /* All members of the round train for the first time under this driver. The pause of a switch
     * was counted as training, because members trained until the agreed check; it is moved to its
     * own use. If a new driver hears that the round of an earlier driver trains, the time without a
     * driver was training. */
    if (round->state == ROUND_TRAINING && !goodput->trains) {
        goodput->trains = true;
        goodput->trained_with = round->members.count;
        if (cost && cost->round == goodput->round && cost->cause == CAUSE_SWITCH)
            goodput_move(
                goodput, GOODPUT_TRAINING, GOODPUT_SWITCH,
                (struct goodput_part){
                    cost->pause_us,
                    goodput_times(cost->pause_us, cost->from < cost->to ? cost->from : cost->to) });
        if (goodput->unseen_round == goodput->round)
            goodput_move(goodput, GOODPUT_NO_DRIVER, GOODPUT_TRAINING, goodput->unseen);
        goodput->unseen_round = 0;
    }
    use = goodput_use_now(core);
    /* Plain commands, which never join, have done their work while the driver waited for them. */
    if (goodput->use == GOODPUT_START && use == GOODPUT_ENDING && core->roster.done_slots)
        goodput_move(goodput, GOODPUT_START, GOODPUT_TRAINING, goodput->sums[GOODPUT_START]);
    /* Sums that have changed are written in steps that write other records, so that no message
     * waits for the disk because of a sum; and at least once in RECORD_EVERY_US. When the job is
     * over, no record is written. */
    goodput->stale |= use != goodput->use;
    if (goodput->changed && core->wall_us > 0 && core->job != JOB_OVER &&
        ((goodput->stale && core->out.records != goodput->records_seen) ||
         core->now_us - goodput->written_us >= RECORD_EVERY_US)) {
        goodput->wall_us = core->wall_us;
        goodput->written_us = core->now_us;
        for (size_t i = 0; i < GOODPUT_COUNT; i++)
            if (goodput->changed & 1U << i)
                (void)goodput_record(core, (enum goodput_use)i, tell_record(core, JOURNAL_GOODPUT));
        goodput->changed = 0;
        goodput->stale = false;
    }
    goodput->records_seen = core->out.records;
    goodput->use = use;
    reported_look(core); /* what the program has reported goes into the same steps */
}

/* ---- failures, and what an earlier driver has counted ---------------------------------------- */

/* Returns the entry of the host. The table keeps the first GOODPUT_HOSTS hosts that have failed;
 * the last entry (`others`) counts for all further hosts, under the name of one of them. In a
 * compacted journal a record with this name is replayed last: it finds the table full, and so the
 * last entry. */
static struct goodput_host *goodput_host(struct core_goodput *goodput, const char *name)
{
    struct goodput_host *entry;
    size_t i = 0;

    while (i < goodput->host_count && strcmp(goodput->hosts[i].name, name) != 0)
        i++;
    if (i < goodput->host_count)
        return &goodput->hosts[i];
    entry = i == GOODPUT_HOSTS ? &goodput->others : &goodput->hosts[goodput->host_count++];
    snprintf(entry->name, sizeof(entry->name), "%.*s", LIMIT_HOST_NAME_BYTES, name);
    return entry;
}

void goodput_note_failure(struct core *core, const char *host)
{
    goodput_host(&core->costs.goodput, host)->failures++;
}

/* Restores the counts of a GOODPUT record. False: no job can have such a record. */
bool goodput_replay(struct core *core, const struct journal_record *record)
{
    struct core_goodput *goodput = &core->costs.goodput;

    /* journal.h, JOURNAL_GOODPUT: in a record with a host, `check` counts the failures there; in
     * one without, `check` is a time of workers and `manifest` a time, both for the use `slot`. */
    if (record->check > INT64_MAX || record->manifest > INT64_MAX)
        return false;
    if (*record->host) {
        goodput_host(goodput, record->host)->failures = record->check;
        return true;
    }
    if (record->slot >= GOODPUT_COUNT)
        return false;
    goodput->sums[record->slot] =
        (struct goodput_part){ (int64_t)record->manifest, (int64_t)record->check };
    goodput->wall_us = record->wall_us;
    return true;
}
