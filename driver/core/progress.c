/*
 * progress.c: counts failures between which there was no progress, and ends a job that makes none.
 * loss.c notes failures, recovery.c and slots.c ask for the verdict, replay.c restores the counts.
 * Invariant: a count is in the journal before the next round is told, and before the slot is used
 * again, so a job whose driver dies again and again ends after the same number of failures.
 */
#include "driver/core/progress.h"

#include "driver/core/elect.h"
#include "driver/core/over.h"
#include "driver/core/roster.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Notes that a member has failed (`of_host`: because its whole host has failed). If there was a
 * newer commit before this failure, the counts begin again with it; progress_judge finds that out,
 * and until then the failure is `pending`. progress_judge decides when the next round begins, or,
 * if `early` is true, as soon as it knows enough. */
void progress_note_failure(struct core *core, const struct worker *worker, bool of_host,
                           const char *why)
{
    struct core_progress *progress = &core->progress;
    char name[WORKER_NAME_MAX];

    /* progress_judge needs to know the commits of all workers. A driver that has just taken over
     * does not know them yet, and after the loss of a whole host no driver does: then the failure
     * is only judged when the next round begins. */
    progress->early = (!progress->pending || progress->early) && !of_host && core->job != JOB_NEW;
    progress->pending = true;
    progress->counted_launched = core->roster.incarnations;
    worker->host->slots[worker->slot].failed_as_member |= !of_host;
    snprintf(progress->last, sizeof(progress->last), "%s: %s", worker_name(worker, name), why);
}

/* Returns the commit from which the job can go on: the newest that a live worker holds. When no
 * member of the current round is left to hold it, the commit may be a newer one that agents keep,
 * or that a checkpoint has; then only its number is known, and its checksum is 0. */
static struct msg_held progress_newest(const struct core *core)
{
    struct msg_held newest = { .commit = 0 };
    const struct worker *worker;
    bool is_held;
    uint64_t kept;

    for (size_t i = 0; (worker = roster_next(core, &i));)
        for (size_t k = 0; k < worker->held_count && worker_is_alive(worker); k++)
            if (newest.commit < worker->held[k].commit)
                newest = worker->held[k];
    is_held = newest.commit != 0;
    for (size_t i = 0; i < core->roster.hosts.count && !(is_held && elect_has_survivor(core));
         i++) {
        const struct core_host *host = core->roster.hosts.items[i];

        for (uint32_t slot = 0; slot < host->slot_count; slot++) {
            kept = host->slots[slot].commit;
            /* The first commit of a round may be made before its first step, and be no progress. */
            if (newest.commit < kept && (!is_held || COMMIT_PLACE_OF(kept) > 1))
                newest = (struct msg_held){ .commit = kept };
        }
    }
    /* When many hosts are lost at once, a checkpoint may be newer than all that is left. */
    if (newest.commit < core->checkpoint.newest)
        newest = (struct msg_held){ .commit = core->checkpoint.newest };
    return newest;
}

/* Adds `more` failures to the count of the slot, and writes the counts of the slot and of the job
 * to the journal. `slot` NULL: a whole host has failed. Returns the count of the slot. */
static uint32_t progress_count(struct core *core, const struct core_host *host,
                               struct core_slot *slot, uint32_t more)
{
    const struct core_progress *progress = &core->progress;
    struct journal_record *record;

    if (slot && slot->stuck_since != progress->commit)
        slot->stuck = 0;
    if (slot) {
        slot->stuck += more;
        slot->stuck_since = progress->commit;
    }
    record = tell_record(core, JOURNAL_STUCK);
    record->host = slot ? tell_text(core, "%s", host->name) : "";
    record->slot = slot ? (uint32_t)(slot - host->slots) : 0;
    record->value = slot ? (int32_t)slot->stuck : 0;
    record->code = (int32_t)progress->failures;
    record->round = progress->counted_round;
    record->commit = progress->commit;
    record->check = progress->checksum;
    record->incarnation = progress->counted_launched;
    return slot ? slot->stuck : 0;
}

/* Ends the job if there were too many failures in the whole job, or in one slot: the slot `culprit`
 * ("": none) has failed `most` times. `of_start`: the last failure was a failed start; false: a
 * member failed. Fewer failures are only logged. */
static void progress_give_verdict(struct core *core, const char *culprit, uint32_t most,
                                  bool of_start)
{
    const struct core_progress *progress = &core->progress;
    const struct core_config *config = &core->config;
    const char *what = core->launch.anyone_joined ? "training" : "command";
    const char *counted = !of_start              ? "rounds"
                          : core->current.number ? "rounds and starts"
                                                 : "starts";
    const char *progress_is = "a newer commit";
    bool waits = of_start && over_awaits_others(core);
    char text[TIME_TEXT_MAX];

    if (!core->launch.anyone_joined)
        progress_is =
            tell_text(core, "a run of %s or a success", time_format(LIMIT_COMMAND_RUN_US, text));
    if (most > config->progress_restarts && !waits)
        over_fail(core,
                  tell_text(core,
                            "%s has failed %" PRIu32 " times without %s in between, more than "
                            "--progress-restarts %" PRIu32
                            " allows: the %s makes no progress; the last: %s",
                            culprit, most, progress_is, config->progress_restarts, what,
                            progress->last));
    else if (progress->failures > config->progress_restarts_job && !waits)
        over_fail(core, tell_text(core,
                                  "%" PRIu32 " %s in a row ended by a failure without %s in "
                                  "between, more than --progress-restarts-job %" PRIu32
                                  " allows: the %s makes no progress; the last: %s",
                                  progress->failures, counted, progress_is,
                                  config->progress_restarts_job, what, progress->last));
    else if (progress->failures > 1)
        CORE_WARN(core, FACTS(.kind = KIND_NO_PROGRESS),
                  "the last %" PRIu32 " %s ended by failures without %s in between%s; "
                  "--progress-restarts limits that",
                  progress->failures, counted, progress_is,
                  *culprit ? tell_text(core, ", %" PRIu32 " of them in %s", most, culprit) : "");
}

/* Judges the failures of members that are `pending`. If there is a newer commit than at the last
 * judgement, the job has made progress, and the count of failures begins again at 1; otherwise it
 * grows. `forming`: true: the next round begins now, so the judgement must be made; false: it may
 * be put off until more is known. Returns false if the job has ended. */
bool progress_judge(struct core *core, bool forming)
{
    struct core_progress *progress = &core->progress;
    const struct worker *worker;
    struct msg_held newest;
    char culprit[LIMIT_HOST_NAME_BYTES + 32] = "";
    uint32_t most = 0;
    bool newer, counted = false;

    if (!progress->pending || (!forming && !progress->early))
        return true;
    /* A worker that counts as dead (WORKER_DOOMED) may have made a newer commit. If the agent of
     * its host is connected, that agent still sends the message EXITED, which names the worker's
     * newest commit. So the verdict waits for that message. */
    for (size_t i = 0; !forming && (worker = roster_next(core, &i));)
        if (worker->state == WORKER_DOOMED && worker->joined && worker->host->agent == AGENT_THERE)
            return true;
    newest = progress_newest(core);
    if (newest.commit == progress->commit && !progress->checksum)
        progress->checksum = newest.checksum;
    newer = newest.commit > progress->commit;
    /* A commit with a higher number is not always progress: a training loop may commit before its
     * first step, and then the new commit has the same contents as the previous commit. The
     * checksums show that. If only agents keep the newest commit, its checksum is unknown until a
     * worker holds the commit, so the judgement waits until then. */
    if (newer && !newest.checksum && !forming)
        return true;
    if (newer && newest.checksum && newest.checksum == progress->checksum)
        newer = false;
    if (newer) {
        progress->failures = 0;
        progress->commit = newest.commit;
        progress->checksum = newest.checksum;
    }
    progress->pending = false;
    if (progress->counted_round != core->current.number || newer)
        progress->failures++;
    progress->counted_round = core->current.number;
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        const struct core_host *host = core->roster.hosts.items[i];

        for (uint32_t k = 0; k < host->slot_count; k++) {
            if (!host->slots[k].failed_as_member)
                continue;
            counted = true;
            host->slots[k].failed_as_member = false;
            if (progress_count(core, host, &host->slots[k], 1) <= most)
                continue;
            most = host->slots[k].stuck;
            snprintf(culprit, sizeof(culprit), "%s:%" PRIu32, host->name, k);
        }
    }
    if (!counted)
        /* only the job's count is written: a whole host has failed, and no single slot */
        progress_count(core, NULL, NULL, 0);
    progress_give_verdict(core, culprit, most, false /* a member has failed, not a start */);
    return core->job == JOB_RECOVERING;
}

/* ---- starts --------------------------------------------------------------------------------- */

/* True: the job is GATHERING or RECOVERING. No round trains then, so a worker that fails to start
 * holds the job up. */
static bool progress_job_stands(const struct core *core)
{
    return core->job == JOB_GATHERING || core->job == JOB_RECOVERING;
}

/* Returns how the failure of a worker that has not joined counts: not at all while a round trains
 * (BLAME_NONE), as a failed start (BLAME_START), or as a plain command that ran for long before it
 * failed (BLAME_RUN). */
enum journal_blame progress_start_blame(const struct core *core, const struct worker *worker)
{
    if (!progress_job_stands(core))
        return BLAME_NONE;
    /* As long as no worker has joined, the job may be plain commands. For these a run of
     * LIMIT_COMMAND_RUN_US is progress; for a training only a newer commit is. */
    return !core->launch.anyone_joined && core->now_us - worker->launched_us >= LIMIT_COMMAND_RUN_US
               ? BLAME_RUN
               : BLAME_START;
}

/* A plain command has ended with 0 or has run for long: that is progress, so the failures of the
 * job count from 0 again. `commit` counts such progress as long as there are no commits. */
void progress_note_success(struct core *core)
{
    core->progress.commit++;
    core->progress.failures = 0;
}

/* Notes that a worker has failed before it joined. The failed start is not counted at once,
 * because the whole host may be failing: it counts (progress_count_starts) when a worker is
 * launched in the slot again, or when the host has lived on for a lease. BLAME_RUN: a plain
 * command had run for so long that its run counts as progress. */
void progress_note_start(struct core *core, const struct worker *worker, enum journal_blame blame,
                         const char *why)
{
    struct slot_starts *starts = &worker->host->slots[worker->slot].starts;
    char name[WORKER_NAME_MAX];

    if (blame == BLAME_RUN)
        progress_note_success(core);
    starts->failed++;
    starts->since_us = core->now_us;
    starts->incarnation = worker->incarnation;
    starts->launched = core->roster.incarnations;
    snprintf(core->progress.last, sizeof(core->progress.last), "%s: %s", worker_name(worker, name),
             why);
    core_want_timer(core, time_add(core->now_us, core->config.lease_us));
}

/* Counts the failed starts of a slot. Exception: while the failure of a member is still to be
 * judged (`pending`), it is not known whether a newer commit has set the counts back to 0, so
 * the starts are not counted yet. But there was no commit between the starts: if they alone are
 * more than the limit, the job ends at once. */
static void progress_count_starts(struct core *core, struct core_host *host, uint32_t slot)
{
    struct core_progress *progress = &core->progress;
    struct slot_starts *starts = &host->slots[slot].starts;
    uint32_t most = starts->failed;

    if (progress->pending && most <= core->config.progress_restarts)
        return;
    if (!progress->pending) {
        /* Workers that were launched before the last counted failure count for the slot alone: for
         * the job they belong to that failure. */
        if (starts->incarnation > progress->counted_launched) {
            progress->failures++;
            progress->counted_launched = starts->launched;
        }
        starts->failed = 0;
        most = progress_count(core, host, &host->slots[slot], most);
    }
    progress_give_verdict(core, tell_text(core, "%s:%" PRIu32, host->name, slot), most,
                          true /* a start has failed */);
}

/* Called when a worker is about to be launched in this slot, and when replay.c reads that an
 * earlier driver has launched one: the failed starts of the slot are counted now. Returns false
 * if they have ended the job. */
bool progress_on_launch(struct core *core, struct core_host *host, uint32_t slot)
{
    struct slot_starts *starts = &host->slots[slot].starts;

    /* In a replay nothing is counted: the counts that the earlier driver has made are in the
     * journal themselves. */
    if (core->job == JOB_NEW && !core->progress.pending)
        starts->failed = 0;
    if (starts->failed && progress_job_stands(core))
        progress_count_starts(core, host, slot);
    return core->job < JOB_FINISHING;
}

/* A round begins: failed starts that were not counted before are forgotten. */
void progress_on_round(struct core *core)
{
    for (size_t i = 0; i < core->roster.hosts.count; i++)
        for (uint32_t k = 0; k < core->roster.hosts.items[i]->slot_count; k++)
            core->roster.hosts.items[i]->slots[k].starts.failed = 0;
}

/* Counts the failed starts on hosts whose agent was heard a lease later, while no round trains.
 * If the host is gone by then, its failed starts are forgotten: the fault was the host's. */
void progress_expire(struct core *core)
{
    for (size_t i = 0; i < core->roster.hosts.count && progress_job_stands(core); i++) {
        struct core_host *host = core->roster.hosts.items[i];
        /* A host whose agent this driver has never heard does not count as gone. */
        bool gone = (host->agent <= AGENT_STARTING && host->agent_id) || host->draining ||
                    (core->listing.discovered && !host->listed);

        for (uint32_t k = 0; k < host->slot_count && progress_job_stands(core); k++) {
            struct slot_starts *starts = &host->slots[k].starts;
            int64_t due_us = time_add(starts->since_us, core->config.lease_us);

            if (!starts->failed)
                continue;
            if (gone) {
                starts->failed = 0;
            } else if (due_us > core->now_us || due_us > host->heard_us) {
                /* the host may be dying: wait for the agent's next heartbeat, or for the end of
                 * its lease */
                if (due_us <= core->now_us)
                    due_us = time_add(core->now_us, core->config.beat_us);
                core_want_timer(core, due_us);
            } else {
                /* progress_count_starts may count nothing now (`pending`): then these starts are
                 * tried again after a lease */
                starts->since_us = core->now_us;
                core_want_timer(core, time_add(core->now_us, core->config.lease_us));
                progress_count_starts(core, host, k);
            }
        }
    }
}

/* Restores the counts of failures from a JOURNAL_STUCK record, which has the count of a slot and
 * of the job. Failures of this slot that were noted before the record are in its counts. */
int progress_replay(struct core *core, const struct journal_record *record)
{
    struct core_progress *progress = &core->progress;
    struct core_host *host;

    if (record->value < 0 || record->code < 0 || record->slot >= LIMIT_SLOTS_PER_HOST)
        return HVD_E_CORRUPT;
    progress->commit = record->commit;
    progress->checksum = record->check;
    progress->failures = (uint32_t)record->code;
    progress->counted_round = record->round;
    progress->counted_launched = record->incarnation;
    progress->pending = false;
    if (*record->host) {
        if (host_name_check(record->host, strlen(record->host), NULL))
            return HVD_E_CORRUPT;
        host = roster_host(core, record->host);
        if (!host || !roster_slots(core, host, record->slot + 1))
            return HVD_E_NOMEM;
        host->slots[record->slot].stuck = (uint32_t)record->value;
        host->slots[record->slot].stuck_since = record->commit;
        host->slots[record->slot].failed_as_member = false;
        host->slots[record->slot].starts.failed = 0;
    }
    /* When several slots fail together, each has a record of its own. The earlier driver may have
     * died after the first of them: then the failures of the other slots are still to be judged. */
    for (size_t i = 0; i < core->roster.hosts.count; i++)
        for (uint32_t k = 0; k < core->roster.hosts.items[i]->slot_count; k++)
            progress->pending |= core->roster.hosts.items[i]->slots[k].failed_as_member;
    return 0;
}
