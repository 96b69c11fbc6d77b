#include "driver/core/replay.h"

#include "driver/core/agents.h"
#include "driver/core/clock.h"
#include "driver/core/finish.h"
#include "driver/core/listing.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/seats.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int corrupt(struct hvd_err *err, const struct journal_record *record, const char *what)
{
    char line[JOURNAL_LINE_MAX];

    return err_set(err, HVD_E_CORRUPT,
                   "the journal's record %s: %s; start the job anew with an empty state directory",
                   journal_describe(record, line), what);
}

static int replay_launch(struct core *core, const struct journal_record *record,
                         struct hvd_err *err)
{
    struct core_host *host;

    if (record->incarnation && record->incarnation <= core->incarnations)
        return 0;
    if (record->incarnation != core->incarnations + 1 || record->incarnation >= LIMIT_INCARNATIONS)
        return corrupt(err, record, "its incarnation is not the next one");
    if (record->slot >= LIMIT_SLOTS_PER_HOST ||
        host_name_check(record->host, strlen(record->host), NULL))
        return corrupt(err, record, "there can be no such host or slot");
    host = roster_host(core, record->host);
    if (!host)
        return HVD_E_NOMEM;
    if (record->slot < host->seat_count && host->seats[record->slot].worker)
        return corrupt(err, record, "the slot is taken");
    return roster_add(core, record->incarnation, host, record->slot, WORKER_BOOTING) ? 0
                                                                                     : HVD_E_NOMEM;
}

static int replay_ready(struct core *core, const struct journal_record *record)
{
    struct worker *worker = roster_worker(core, record->incarnation);

    if (!core->anyone_joined)
        seats_first_joined(core);
    if (!core->manifest.known)
        core->manifest.digest = record->manifest; /* the first: a later one may have been refused */
    core->manifest.known = true;
    if (!worker)
        return 0;
    worker->joined = true;
    return roster_keep_addresses(worker, &record->addresses) ? 0 : HVD_E_NOMEM;
}

static const char *judge_round(const struct core *core, const struct journal_record *record)
{
    if (!record->round || !record->members.count || record->members.count > LIMIT_WORKERS ||
        record->holders.count > record->members.count || record->cause >= CAUSE_COUNT)
        return "there can be no such round";
    if (record->previous != core->current.number)
        return "it does not follow on the round before it";
    for (size_t i = 0; i < record->members.count; i++)
        if (!record->members.items[i] || record->members.items[i] > core->incarnations)
            return "one of its members was never launched";
    return NULL;
}

static int replay_round(struct core *core, const struct journal_record *record, struct hvd_err *err)
{
    struct round *round = &core->next;
    const char *wrong;

    if (record->round && record->round <= core->current.number)
        return 0;
    wrong = judge_round(core, record);
    if (wrong)
        return corrupt(err, record, wrong);
    round_clear(round);
    for (size_t i = 0; i < record->members.count; i++)
        if (!round_add(core, round, record->members.items[i]))
            return HVD_E_NOMEM;
    if (VEC_RESERVE(&round->holders, record->holders.count, LIMIT_WORKERS))
        return HVD_E_NOMEM;
    for (size_t i = 0; i < record->holders.count; i++)
        round->holders.items[round->holders.count++] = record->holders.items[i];
    round->number = record->round;
    round->previous = record->previous;
    round->commit = record->commit;
    round->check = record->check;
    round->cause = (enum msg_cause)record->cause;
    round_rotate(core);
    core->resets += record->cause != CAUSE_FIRST;
    if (core->rounds < record->round)
        core->rounds = record->round;
    return 0;
}

static int replay_entered(struct core *core, const struct journal_record *record)
{
    if (record->round != core->current.number)
        return 0;
    if (core->floor < core->current.commit)
        core->floor = core->current.commit;
    return 0;
}

static int replay_finished(struct core *core, const struct journal_record *record)
{
    struct worker *worker = roster_worker(core, record->incarnation);

    core->membership_closed = true;
    if (worker && worker_state(worker) != WORKER_FINISHED) {
        roster_restore(core, worker, WORKER_FINISHED);
        core->finished++;
    }
    return 0;
}

static bool is_member(const struct core *core, uint64_t incarnation)
{
    for (size_t i = 0; i < core->current.members.count; i++)
        if (core->current.members.items[i] == incarnation)
            return true;
    return false;
}

static int replay_ended(struct core *core, const struct journal_record *record)
{
    struct worker *worker = roster_worker(core, record->incarnation);
    bool clean = record->ended == ENDED_EXIT && record->value == 0;

    if (!worker)
        return 0;
    if (core->membership_closed && worker_state(worker) != WORKER_FINISHED)
        core->unfinished += is_member(core, record->incarnation);
    if (!worker->joined && record->ended == ENDED_EXIT && !clean) {
        core->boot_failures++;
        core->never_started += record->value < 0;
    }
    if (!worker->joined && !core->anyone_joined && clean)
        worker->host->seats[worker->slot].done = true; /* counted when its host is listed */
    if (worker_state(worker) == WORKER_FINISHED && record->ended == ENDED_SILENT)
        core->unseen++;
    else if (worker_state(worker) == WORKER_FINISHED && !clean)
        finish_failed_late(core, worker, "it did not end well after its training had finished");
    roster_remove(core, worker);
    return 0;
}

/* The time by the wall clock stands in the place of the deadline until the start. */
static int replay_drain(struct core *core, const struct journal_record *record, struct hvd_err *err)
{
    struct core_host *host;
    bool draining = record->wall_us != 0;

    if (host_name_check(record->host, strlen(record->host), NULL) || record->wall_us < 0 ||
        (record->slot != EVENT_WHOLE_HOST && record->slot >= LIMIT_SLOTS_PER_HOST))
        return corrupt(err, record, "there can be no such host or slot");
    host = roster_host(core, record->host);
    if (!host)
        return HVD_E_NOMEM;
    if (record->slot == EVENT_WHOLE_HOST) {
        host->draining = draining;
        host->noticed = record->code != 0;
        host->drain_us = record->wall_us;
        return 0;
    }
    if (!roster_seats(core, host, record->slot + 1))
        return HVD_E_NOMEM;
    host->seats[record->slot].draining = draining;
    host->seats[record->slot].drain_us = record->wall_us;
    return 0;
}

static int replay_over(struct core *core, const struct journal_record *record)
{
    core->exit_code = record->code;
    snprintf(core->exit_text, sizeof(core->exit_text), "%s",
             *record->text ? record->text : "the job has ended");
    return 0;
}

int core_replay(struct core *core, const struct journal_record *record, struct hvd_err *err)
{
    ASSERT(job_state(core) == JOB_NEW);
    switch (record->kind) {
    case JOURNAL_TERM:
        if (core->term < record->term)
            core->term = record->term;
        return 0;
    case JOURNAL_LAUNCH: return replay_launch(core, record, err);
    case JOURNAL_READY: return replay_ready(core, record);
    case JOURNAL_NUMBER:
        if (core->rounds < record->round)
            core->rounds = record->round;
        return 0;
    case JOURNAL_ROUND: return replay_round(core, record, err);
    case JOURNAL_ENTERED: return replay_entered(core, record);
    case JOURNAL_FINISHED: return replay_finished(core, record);
    case JOURNAL_ENDED: return replay_ended(core, record);
    case JOURNAL_DRAIN: return replay_drain(core, record, err);
    case JOURNAL_OVER: return replay_over(core, record);
    }
    return corrupt(err, record, "a kind that this version does not know");
}

int core_replay_blacklist(struct core *core, const struct blacklist_record *record, int64_t now_us,
                          int64_t wall_us, struct hvd_err *err)
{
    ASSERT(job_state(core) == JOB_NEW);
    return blacklist_load(&core->blacklist, record, now_us, wall_us, err);
}

static int64_t from_wall(const struct core *core, int64_t wall_us)
{
    if (wall_us == TIME_NEVER)
        return TIME_NEVER;
    return wall_us <= core->wall_us ? core->now_us
                                    : time_add(core->now_us, wall_us - core->wall_us);
}

static void start_hosts(struct core *core)
{
    for (size_t i = 0; i < core->hosts.count; i++) {
        struct core_host *host = core->hosts.items[i];

        host->drain_us = from_wall(core, host->drain_us);
        for (uint32_t slot = 0; slot < host->seat_count; slot++)
            host->seats[slot].drain_us = from_wall(core, host->seats[slot].drain_us);
        if (!host->taken)
            continue;
        host->agent = AGENT_AWAY;
        /* It may take an ssh to tell it where we are, so it has as long as one that is started. */
        host->heard_us = core->now_us;
        if (core->config.agent_start_us > core->config.lease_us)
            host->heard_us =
                time_add(core->now_us, core->config.agent_start_us - core->config.lease_us);
        host->started_us = core->now_us;
        tell_start_agent(core, host);
    }
}

/* The members have their ranks; those of the round before that are not in it are to leave. */
static bool start_members(struct core *core)
{
    bool whole = true;

    for (size_t i = 0; i < core->current.members.count; i++) {
        struct worker *worker = roster_worker(core, core->current.members.items[i]);

        whole = whole && worker;
        if (!worker)
            continue;
        worker->rank = (uint32_t)i;
        if (worker_state(worker) == WORKER_BOOTING)
            roster_restore(core, worker, WORKER_MEMBER);
    }
    for (size_t i = 0; i < core->last.members.count; i++) {
        struct worker *worker = roster_worker(core, core->last.members.items[i]);

        if (!worker || worker_state(worker) != WORKER_BOOTING)
            continue;
        roster_restore(core, worker, WORKER_LEAVING);
        worker->tied = core->current.cause == CAUSE_SWITCH;
        clock_limit(core, worker, core->config.stall_us, "it was to leave and did not");
    }
    return whole;
}

/* Old hosts keep their places: the first discovery finds them in the order of their ranks. */
static void start_order(struct core *core)
{
    for (size_t i = 0; i < core->current.members.count; i++) {
        const struct worker *worker = roster_worker(core, core->current.members.items[i]);
        int rc = worker ? hosts_add(&core->listing, worker->host->name, 0) : 0;

        if (rc == HVD_E_NOMEM)
            core->broken = true;
    }
}

static void start_workers(struct core *core)
{
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        worker->since_us = worker->launched_us = core->now_us; /* as far as this driver knows */
        if (worker_state(worker) == WORKER_BOOTING)
            clock_limit(core, worker, core->config.start_timeout_us,
                        "it did not call hvd_elastic_run within --start-timeout");
    }
}

void replay_start(struct core *core)
{
    bool whole = start_members(core);

    if (core->config.max_np < core->current.members.count) /* nobody is sent away for it */
        core->config.max_np = (uint32_t)core->current.members.count;

    core->term++;
    tell_record(core, JOURNAL_TERM);
    core->gate_open = core->incarnations > 0;
    CORE_TRACE(core, "job %s: term %" PRIu64 ", %zu workers known, round %" PRIu64,
               core->config.job, core->term, core->staying + core->going, core->current.number);
    core->anybody_us = core->now_us;
    start_hosts(core);
    start_order(core);
    start_workers(core);
    core->next_discovery_us = core->now_us;
    core->next_beat_us = core->now_us;
    core->earliest_us = core->now_us;
    if (*core->exit_text || core->membership_closed) {
        finish_restart(core);
        return;
    }
    sm_move(&core->sm, core->current.number ? JOB_RUNNING : JOB_GATHERING, core->now_us, "");
    if (core->current.number) { /* ENTERED is said again */
        core->enter_deadline_us = time_add(core->now_us, core->config.stall_us);
        clock_want(core, core->enter_deadline_us);
    }
    if (!whole)
        round_revoke(core, NULL, "a member has ended under an earlier driver");
}
