/*
 * replay.c: reads the journal into the core before the start, and handles the start. A record that
 * is in the journal twice has no second effect. An impossible record is damage (HVD_E_CORRUPT):
 * this program wrote the journal, so the driver does not guess. After the start the agents report
 * the rest in their hellos (hello.c).
 */
#include "driver/core/replay.h"

#include "driver/core/finish.h"
#include "driver/core/goodput.h"
#include "driver/core/joins.h"
#include "driver/core/keys.h"
#include "driver/core/notice.h"
#include "driver/core/over.h"
#include "driver/core/places.h"
#include "driver/core/progress.h"
#include "driver/core/reported.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/slots.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"
#include "driver/core/tokens.h"
#include "driver/core/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Sets the error for a record that cannot be true; `what` says why. Returns HVD_E_CORRUPT. */
static int replay_corrupt(struct hvd_err *err, const struct journal_record *record,
                          const char *what)
{
    char line[JOURNAL_LINE_MAX];

    return err_set(err, HVD_E_CORRUPT,
                   "the journal's record %s: %s; start the job anew with an empty state directory",
                   journal_describe(record, line), what);
}

/* Restores a worker that was launched. The worker counts as BOOTING until a later record or its
 * agent says more. `value` of the record is 1 more than the rank that LAUNCH told the worker; 0: no
 * rank was told. */
static int replay_launch(struct core *core, const struct journal_record *record,
                         struct hvd_err *err)
{
    uint64_t known = core->roster.incarnations;
    struct core_host *host;
    struct worker *worker;

    if (record->incarnation && record->incarnation <= known)
        return 0; /* the journal has this record twice, or BASE stands for it */
    if (record->incarnation != known + 1 || record->incarnation >= LIMIT_INCARNATIONS)
        return replay_corrupt(err, record, "the incarnation is not the next one");
    if (record->slot >= LIMIT_SLOTS_PER_HOST ||
        host_name_check(record->host, strlen(record->host), NULL))
        return replay_corrupt(err, record, "no job can have this host or slot");
    host = roster_host(core, record->host);
    if (!host)
        return HVD_E_NOMEM;
    if (record->slot < host->slot_count && host->slots[record->slot].worker)
        return replay_corrupt(err, record, "an earlier worker still has the slot");
    worker = roster_add(core, record->incarnation, host, record->slot, WORKER_BOOTING);
    if (worker && record->value &&
        (record->value < 0 || !places_restore(core, worker, (uint32_t)record->value - 1)))
        return replay_corrupt(err, record, "no worker can have this rank");
    if (worker) {
        worker->launched_us = record->wall_us; /* a time of day until replay_start */
        (void)progress_on_launch(core, host, record->slot);
    }
    return worker && !core->step.failed ? 0 : HVD_E_NOMEM;
}

/* Restores a round that has begun. A round that is known already is skipped. */
static int replay_round(struct core *core, const struct journal_record *record, struct hvd_err *err)
{
    if (record->round && record->round <= core->current.number)
        return 0;
    if (!record->round || !record->members.count || record->members.count > LIMIT_WORKERS ||
        record->holders.count > record->members.count || record->cause >= CAUSE_COUNT ||
        /* a switch needs a round before it */
        (record->cause == CAUSE_SWITCH && !core->current.number))
        return replay_corrupt(err, record, "no driver can begin this round");
    if (record->previous != core->current.number)
        return replay_corrupt(err, record, "the round does not follow the round before");
    for (size_t i = 0; i < record->members.count; i++)
        if (!record->members.items[i] || record->members.items[i] > core->roster.incarnations)
            return replay_corrupt(err, record, "a member of the round was never launched");
    return round_replay(core, record);
}

/* Restores that a worker has finished: from then on no further round begins. `worker` NULL: a later
 * record says that the worker has ended. */
static void replay_finished(struct core *core, struct worker *worker)
{
    core->over.closed = true;
    if (!worker || worker->state == WORKER_FINISHED)
        return;
    roster_restore(core, worker, WORKER_FINISHED);
    over_note_finished(core);
}

/* Restores the end of a worker, and counts it as loss.c counted it, as far as the record has the
 * facts. Its field `code` says who was to blame (enum journal_blame). */
static void replay_ended(struct core *core, const struct journal_record *record)
{
    struct worker *worker = roster_worker(core, record->incarnation);
    struct over_ending end = {
        .ended = (enum msg_ended)record->ended,
        .clean = record->ended == ENDED_EXIT && record->value == 0,
        .why = "the worker did not end well after its training had finished",
    };
    const struct round *round = &core->current;
    const char *why = "the worker failed under an earlier driver";
    bool failed_start, command_done;

    if (!worker) /* an earlier record, or a BASE, has told its end already */
        return;
    failed_start = !worker->joined && record->ended == ENDED_EXIT && !end.clean;
    command_done = !worker->joined && !core->launch.anyone_joined && end.clean;
    /* After the first FINISHED, a member that ends without its own FINISHED is `unfinished`. */
    if (core->over.closed && worker->state != WORKER_FINISHED)
        for (size_t i = 0; i < round->members.count; i++)
            end.unfinished |= round->members.items[i] == record->incarnation;
    over_note_end(core, worker, &end);
    if (record->code)
        goodput_note_failure(core, worker->host->name);
    /* A failed start, or a failed plain command, counts for the slot and the job. */
    if (record->code == BLAME_START || record->code == BLAME_RUN)
        progress_note_start(core, worker, (enum journal_blame)record->code, why);
    /* A failure of a member counts for its slot (BLAME_SLOT) or for its host. */
    else if (record->code)
        progress_note_failure(core, worker, record->code == BLAME_HOST, why);
    /* A negative value is an error code of LAUNCH_FAILED: the process was never started. */
    if (failed_start) {
        core->failures.boots++;
        core->failures.never_started += record->value < 0;
    }
    /* A plain command, which never joins, has succeeded: its slot is done. */
    if (command_done) {
        roster_mark_done(core, worker);
        places_note_done(core, worker);
        progress_note_success(core);
    }
    roster_remove(core, worker);
}

/* Restores a NOTICE record (counts of notices of machines), a GOODPUT record (for what time was
 * used) or a REPORTED record. */
static int replay_counts(struct core *core, const struct journal_record *record,
                         struct hvd_err *err)
{
    if (record->kind == JOURNAL_NOTICE)
        return notice_replay(core, record)
                   ? 0
                   : replay_corrupt(err, record, "a count of notices is not possible");
    if (record->kind == JOURNAL_REPORTED && !reported_replay(core, record))
        return replay_corrupt(err, record, "no program can report this value");
    if (record->kind == JOURNAL_REPORTED)
        return core->step.failed ? HVD_E_NOMEM : 0;
    return goodput_replay(core, record)
               ? 0
               : replay_corrupt(err, record, "no job can have spent this time");
}

/* Restores a drain. Until replay_start, the field drain_us holds the time of day of the
 * deadline. */
static int replay_drain(struct core *core, const struct journal_record *record, struct hvd_err *err)
{
    struct core_host *host;
    bool draining = record->wall_us != 0;

    if (host_name_check(record->host, strlen(record->host), NULL) || record->wall_us < 0 ||
        (record->slot != EVENT_WHOLE_HOST && record->slot >= LIMIT_SLOTS_PER_HOST))
        return replay_corrupt(err, record, "no job can have this host or slot");
    host = roster_host(core, record->host);
    if (!host)
        return HVD_E_NOMEM;
    if (record->slot == EVENT_WHOLE_HOST) {
        host->draining = draining;
        host->notice.given = record->code != DRAIN_BY_OPERATOR;
        if (record->code == DRAIN_BY_MACHINE)
            notice_open(host, TIME_NEVER); /* this driver does not know the lead time */
        else
            notice_drop(host);
        host->drain_us = record->wall_us;
        return 0;
    }
    if (!roster_slots(core, host, record->slot + 1))
        return HVD_E_NOMEM;
    host->slots[record->slot].draining = draining;
    host->slots[record->slot].drain_us = record->wall_us;
    return 0;
}

/* Restores a BASE record, which stands for records that core_compact has left out. A field raises
 * the number that is known, or replaces it; 0 changes nothing. */
static int replay_base(struct core *core, const struct journal_record *record, struct hvd_err *err)
{
    struct core_rounds *rounds = &core->rounds;

    /* a BASE comes before the records of rounds; its fields have other meanings than theirs:
     * `check` is a count of resets, `previous` the current round, `code` says that a worker has
     * joined */
    if (record->incarnation >= LIMIT_INCARNATIONS || record->check > UINT32_MAX ||
        record->value < 0 || (record->previous && core->current.members.count))
        return replay_corrupt(err, record, "a number is not possible");
    if (record->code && !core->launch.anyone_joined) {
        slots_first_joined(core);
        core->manifest.digest = record->manifest;
        core->manifest.known = true;
    }
    if (core->roster.incarnations < record->incarnation)
        core->roster.incarnations = record->incarnation;
    if (core->roster.keys.versions < (uint32_t)record->value)
        core->roster.keys.versions = (uint32_t)record->value;
    if (rounds->told < record->round)
        rounds->told = record->round;
    if (record->previous)
        core->current.number = record->previous;
    if (record->check)
        rounds->resets = (uint32_t)record->check;
    if (record->commit)
        rounds->resume_min_commit = record->commit;
    return 0;
}

/* Restores what one record of the journal says, before the start. A record that was read before has
 * no second effect. Returns 0, HVD_E_NOMEM, or HVD_E_CORRUPT for an impossible record. */
int core_replay(struct core *core, const struct journal_record *record, struct hvd_err *err)
{
    struct worker *worker = roster_worker(core, record->incarnation);
    struct core_rounds *rounds = &core->rounds;
    int rc;

    ASSERT(core->job == JOB_NEW);
    switch (record->kind) {
    case JOURNAL_TERM:
        if (core->term < record->term)
            core->term = record->term;
        return 0;
    case JOURNAL_LAUNCH: return replay_launch(core, record, err);
    case JOURNAL_READY:
        if (!core->launch.anyone_joined)
            slots_first_joined(core);
        /* only the first manifest counts: a worker with another one was refused */
        if (!core->manifest.known)
            core->manifest.digest = record->manifest;
        core->manifest.known = true;
        if (!worker)
            return 0;
        worker->joined = true;
        return roster_keep_addresses(worker, &record->addresses) ? 0 : HVD_E_NOMEM;
    case JOURNAL_NUMBER:
        if (rounds->told < record->round)
            rounds->told = record->round;
        return 0;
    case JOURNAL_ROUND: progress_on_round(core); return replay_round(core, record, err);
    case JOURNAL_ENTERED: /* members train from the round's commit: no older one counts any more */
        if (record->round == core->current.number &&
            rounds->resume_min_commit < core->current.commit)
            rounds->resume_min_commit = core->current.commit;
        return 0;
    case JOURNAL_FINISHED: replay_finished(core, worker); return 0;
    case JOURNAL_ENDED: replay_ended(core, record); return 0;
    case JOURNAL_NOTICE:
    case JOURNAL_REPORTED:
    case JOURNAL_GOODPUT: return replay_counts(core, record, err);
    case JOURNAL_DRAIN: return replay_drain(core, record, err);
    case JOURNAL_STUCK:
        rc = progress_replay(core, record);
        return rc == HVD_E_CORRUPT
                   ? replay_corrupt(err, record,
                                    "the count of failures, the host or the slot is not possible")
                   : rc;
    case JOURNAL_KEY:
        return !keys_replay(core, record)
                   ? replay_corrupt(err, record,
                                    "the host, or the version of its key, is not possible")
               : core->step.failed ? HVD_E_NOMEM
                                   : 0;
    case JOURNAL_BASE: return replay_base(core, record, err);
    case JOURNAL_STORE:
        rc = values_replay(core, record);
        return rc == HVD_E_CORRUPT ? replay_corrupt(err, record, "no worker can store this value")
                                   : rc;
    case JOURNAL_TOKEN: return tokens_replay(core, record, err);
    case JOURNAL_OVER:
        core->over.exit_code = record->code;
        snprintf(core->over.exit_text, sizeof(core->over.exit_text), "%s",
                 *record->text ? record->text : "the job has ended");
        return 0;
    }
    return replay_corrupt(err, record,
                          "this version of hvd-elastic does not know this kind of record");
}

/* Restores one record of the blacklist, before the start. now_us and wall_us are the times of the
 * start, so that a cooldown (a time of day) is converted to the driver's clock. */
int core_replay_blacklist(struct core *core, const struct blacklist_record *record, int64_t now_us,
                          int64_t wall_us, struct hvd_err *err)
{
    ASSERT(core->job == JOB_NEW);
    return blacklist_load(&core->blacklist, record, (struct blacklist_moment){ now_us, wall_us },
                          err);
}

/* Converts a time of day to the monotonic clock of this driver; a time that has passed becomes now.
 */
static int64_t replay_from_wall(const struct core *core, int64_t wall_us)
{
    if (wall_us == TIME_NEVER)
        return TIME_NEVER;
    return wall_us <= core->wall_us ? core->now_us
                                    : time_add(core->now_us, wall_us - core->wall_us);
}

/* Restores the deadlines of drains, and asks for the agents of all hosts that have workers. */
static void replay_start_hosts(struct core *core)
{
    int64_t lease_us = core->config.lease_us, start_us = core->config.agent_start_us;

    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        host->drain_us = replay_from_wall(core, host->drain_us);
        for (uint32_t slot = 0; slot < host->slot_count; slot++) {
            host->slots[slot].drain_us = replay_from_wall(core, host->slots[slot].drain_us);
            host->slots[slot].starts.since_us = core->now_us;
        }
        if (!host->taken)
            continue;
        roster_move_agent(host, AGENT_AWAY);
        /* The driver may need an ssh to tell the agent its address. So the agent has as much time
         * to dial as an agent that is started: agent_start_us. */
        host->heard_us = core->now_us;
        if (start_us > lease_us)
            host->heard_us = time_add(core->now_us, start_us - lease_us);
        host->started_us = core->now_us;
        keys_start_agent(core, host);
    }
}

/* Gives the members of the current round their ranks. Workers of the round before it that are not
 * members have to leave. False: a member has ended, so the round cannot go on. */
static bool replay_start_members(struct core *core)
{
    const struct round *current = &core->current, *last = &core->last;
    bool whole = true;

    for (size_t i = 0; i < current->members.count; i++) {
        struct worker *worker = roster_worker(core, current->members.items[i]);

        whole = whole && worker;
        if (!worker)
            continue;
        worker->rank = (uint32_t)i;
        if (worker->state == WORKER_BOOTING)
            roster_restore(core, worker, WORKER_MEMBER);
    }
    for (size_t i = 0; i < last->members.count; i++) {
        struct worker *worker = roster_worker(core, last->members.items[i]);

        if (!worker || worker->state != WORKER_BOOTING)
            continue;
        roster_restore(core, worker, WORKER_LEAVING);
        worker->may_block_switch = current->cause == CAUSE_SWITCH;
        worker_limit(core, worker, core->config.stall_us,
                     "the worker was told to leave, but did not");
    }
    return whole;
}

/* Handles EVENT_START, the first event, after the journal was read: writes the record of the new
 * term, converts times of day to the monotonic clock, asks for agents, and moves the job to its
 * first state. In a new job there is no round, and no worker is known. */
void replay_start(struct core *core)
{
    bool whole = replay_start_members(core);
    const struct round *current = &core->current;
    struct worker *worker;

    /* This driver may have a lower --max-np than the earlier one. No member is sent away only for
     * that. */
    if (core->config.max_np < current->members.count)
        core->config.max_np = (uint32_t)current->members.count;

    core->term++;
    tell_record(core, JOURNAL_TERM);
    core->launch.gate_open = core->roster.incarnations > 0;
    core_say(core, core->roster.incarnations ? TRACE_INFO : TRACE_DETAIL,
             FACTS(.kind = KIND_DRIVER_STARTED, .size = core->roster.staying + core->roster.going),
             "job %s: term %" PRIu64 ", %zu workers known, round %" PRIu64, core->config.job,
             core->term, core->roster.staying + core->roster.going, current->number);
    core->leases.anybody_us = core->now_us;
    keys_start(core);
    reported_start(core);
    joins_start(core);
    replay_start_hosts(core);
    /* Old hosts keep their order: before the first discovery, the hosts of members are put on the
     * list in the order of ranks. */
    for (size_t i = 0; i < current->members.count; i++) {
        worker = roster_worker(core, current->members.items[i]);
        if (worker && hosts_add(&core->listing.hosts, worker->host->name, 0) == HVD_E_NOMEM)
            core_fail(core);
    }
    for (size_t i = 0; (worker = roster_next(core, &i));) {
        int64_t ran_us = core->wall_us - worker->launched_us;

        worker->since_us = core->now_us; /* this driver does not know an earlier time */
        worker->launched_us = core->now_us - (worker->launched_us && ran_us > 0 ? ran_us : 0);
        if (worker->state == WORKER_BOOTING)
            worker_limit(core, worker, core->config.start_timeout_us,
                         "the worker did not call hvd_elastic_run within --start-timeout");
    }
    core->listing.next_us = core->now_us;
    core->leases.next_beat_us = core->now_us;
    core->step.due_us = core->now_us;
    if (*core->over.exit_text || core->over.closed) {
        finish_restart(core);
        return;
    }
    core_move_job(core, current->number ? JOB_RUNNING : JOB_GATHERING);
    if (current->number)
        round_wait_enter(core); /* PROTOCOL.md, Greeting: workers repeat ENTERED to a new driver */
    if (!whole)
        round_revoke(core, NULL, "a member has ended under an earlier driver");
}
