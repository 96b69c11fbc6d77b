#include "driver/core/round.h"

#include "driver/core/change.h"
#include "driver/core/clock.h"
#include "driver/core/cost.h"
#include "driver/core/elect.h"
#include "driver/core/finish.h"
#include "driver/core/loss.h"
#include "driver/core/roster.h"
#include "driver/core/stall.h"
#include "driver/core/tell.h"
#include "proto/commit.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * The first round after one that brought nothing begins at once: a death in the middle of a
 * recovery is common. From the second on the cause is likely to be still there, and each try costs
 * every survivor its connections; so they wait, twice as long each time. A round has brought
 * something when it leaves a newer commit with other contents, or has trained for as long as the
 * longest wait: before it is tried again that much has been gained. Where everybody had begun and
 * one died, the cause is gone with it.
 */
#define BARREN_DELAY_US     (100 * TIME_MS)
#define BARREN_DELAY_US_MAX (10 * TIME_S)

#define MISMATCHES_MAX      5 /* barren rounds in a row: it is the program */
#define GIVE_UPS_MAX        3 /* of one worker in a row: the others train without it */

void round_release(struct round *round)
{
    VEC_RELEASE(&round->members);
    VEC_RELEASE(&round->holders);
}

void round_clear(struct round *round)
{
    round->members.count = 0;
    round->holders.count = 0;
    round->entered = round->prepared = round->at = round->failed_by_exit = 0;
    round->number = round->previous = round->commit = round->check = round->max_check = 0;
    round->lost = 0;
    round->failed_with = 0;
    round->trains_us = TIME_NEVER;
    round->revoked = round->weighed = false;
}

bool round_add(struct core *core, struct round *round, uint64_t incarnation)
{
    if (VEC_RESERVE(&round->members, 1, LIMIT_WORKERS)) {
        core->broken = true;
        return false;
    }
    round->members.items[round->members.count++] = incarnation;
    return true;
}

bool round_has(const struct round *round, const struct worker *worker)
{
    return worker->rank < round->members.count &&
           round->members.items[worker->rank] == worker->incarnation;
}

bool round_allowed(struct core *core)
{
    if (!core->rounds || core->config.reset_limit == CORE_NO_RESET_LIMIT ||
        core->resets < core->config.reset_limit)
        return true;
    finish_fail(core,
                tell_text(core,
                          "change %" PRIu32
                          " of the membership is one more than --reset-limit %" PRIu32 " allows",
                          core->resets + 1, core->config.reset_limit));
    return false;
}

static bool holds_floor(const struct core *core, const struct worker *worker)
{
    for (size_t i = 0; i < worker->held_count; i++)
        if (worker->held[i].commit >= core->floor)
            return true;
    return false;
}

static void add_joiners(struct core *core, bool only_holders)
{
    for (size_t i = 0; i < core->listed.count; i++) {
        struct core_host *host = core->listed.items[i];

        if (host->agent != AGENT_THERE)
            continue; /* it would keep the others waiting */
        for (uint32_t slot = 0; slot < host->slots && host->taken; slot++) {
            struct worker *worker = host->seats[slot].worker;

            if (core->next.members.count >= core->config.max_np)
                return;
            if (worker && worker_state(worker) == WORKER_READY && !worker->has_to_go &&
                worker->next_rank == RANK_NONE && (!only_holders || holds_floor(core, worker)) &&
                round_add(core, &core->next, worker->incarnation))
                worker->next_rank = (uint32_t)core->next.members.count - 1;
        }
    }
}

/* Of those that a recovery has so far, nobody holds what the job has reached. */
static bool needs_holder(const struct core *core)
{
    if (!core->floor || job_state(core) != JOB_RECOVERING)
        return false;
    for (size_t i = 0; i < core->next.members.count; i++)
        if (holds_floor(core, roster_worker(core, core->next.members.items[i])))
            return false;
    return true;
}

/* When no survivor has it, those come first that bring along what the job has reached: there may be
 * more workers than members. */
void round_add_joiners(struct core *core)
{
    size_t first = core->next.members.count;

    if (needs_holder(core))
        add_joiners(core, true);
    add_joiners(core, false);
    for (size_t i = first; i < core->next.members.count; i++)
        roster_worker(core, core->next.members.items[i])->next_rank = RANK_NONE;
}

bool round_gathered(struct core *core, size_t need)
{
    size_t booting = core->count[WORKER_LAUNCHING] + core->count[WORKER_BOOTING];
    int64_t until_us;

    if (core->count[WORKER_READY] < need || !core->count[WORKER_READY]) {
        core->ready_since_us = TIME_NEVER;
        return false;
    }
    if (core->ready_since_us == TIME_NEVER)
        core->ready_since_us = core->now_us;
    until_us = time_add(core->ready_since_us, core->config.gather_us);
    if (!booting || core->now_us >= until_us || core->staying - booting >= core->config.max_np)
        return true;
    clock_want(core, until_us);
    return false;
}

/* Survivors first, in the order of their ranks: who is old keeps a low rank. */
static void add_survivors(struct core *core)
{
    for (size_t i = 0; i < core->current.members.count; i++) {
        struct worker *worker = roster_worker(core, core->current.members.items[i]);

        if (worker && worker_state(worker) == WORKER_RECOVERED)
            round_add(core, &core->next, worker->incarnation);
    }
}

/* Hosts that kept it when they were last heard: " b, c", or "". */
static const char *who_may_have_it(struct core *core)
{
    char text[LIMIT_REASON_BYTES + 1] = "";
    size_t used = 0;

    for (size_t i = 0; i < core->hosts.count && used < sizeof(text); i++) {
        const struct core_host *host = core->hosts.items[i];
        bool kept = false;

        for (uint32_t slot = 0; slot < host->seat_count; slot++)
            kept = kept || host->seats[slot].commit >= core->floor;
        if (kept && host->agent != AGENT_THERE)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s", used ? "," : "",
                                     host->name);
    }
    return tell_text(core, "%s%s", used ? ", last seen with it:" : "", text);
}

/* Nobody here holds what the job has reached: whoever does may still come back. */
static bool lacks_holder(struct core *core, uint64_t commit)
{
    bool lacks = commit < core->floor;

    if (lacks && !core->holder_missing)
        CORE_TRACE(core,
                   "commit %" PRIu64 ".%" PRIu32
                   " is held by nobody who is here: waiting for a host that has it%s",
                   COMMIT_ROUND_OF(core->floor), COMMIT_PLACE_OF(core->floor),
                   who_may_have_it(core));
    core->look_at_seats |= lacks != core->holder_missing;
    core->holder_missing = lacks;
    return lacks;
}

/* The first round, or one after a revoked one. */
static void form(struct core *core, enum msg_cause cause)
{
    struct round *next = &core->next;
    struct election election;
    uint64_t commit;

    round_clear(next);
    if (cause == CAUSE_RECOVERY)
        add_survivors(core);
    round_add_joiners(core);
    if (core->broken)
        return;
    election = elect(core, next);
    commit = election.commit < core->floor ? elect_kept(core) : election.commit;
    if (next->members.count < (cause == CAUSE_FIRST ? core->config.np : core->config.min_np) ||
        lacks_holder(core, commit) || !round_allowed(core)) {
        round_clear(next);
        return;
    }
    next->number = ++core->rounds;
    next->previous = core->current.number;
    next->cause = cause;
    next->commit = commit ? commit : COMMIT_FIRST_OF(next->number);
    if (commit == election.commit)
        elect_holders(core, next, &election);
    if (core->broken)
        return;
    round_begin(core);
    round_tell(core);
}

static void look_first(struct core *core)
{
    if (round_gathered(core, core->config.np))
        form(core, CAUSE_FIRST);
}

/* A commit is newer when its contents are: a loop may commit before its first step. */
static bool has_come_further(struct core *core)
{
    const struct round *round = &core->current;
    struct msg_held newest = { .commit = round->commit };
    bool further;

    for (size_t i = 0; i < round->members.count; i++) {
        const struct worker *worker = roster_worker(core, round->members.items[i]);

        for (size_t k = 0; worker && k < worker->held_count; k++)
            if (worker->held[k].commit > newest.commit)
                newest = worker->held[k];
    }
    further = newest.commit > round->commit &&
              (!newest.checksum || newest.checksum != core->vain.reached);
    if (newest.checksum)
        core->vain.reached = newest.checksum;
    return further;
}

/* Once for each round that has ended, when all that are left have said what they hold. */
static void weigh(struct core *core)
{
    struct round *round = &core->current;
    bool further = has_come_further(core);

    round->weighed = true;
    if (core->vain.barren && round->entered && (further || round->lost)) {
        core->vain.barren = 0;
        core->vain.not_before_us = core->now_us;
    }
    if (round->failed_with != HVD_E_MISMATCH || round->lost || !core->vain.barren)
        core->vain.mismatches = 0;
    else if (++core->vain.mismatches >= MISMATCHES_MAX)
        finish_fail(core, tell_text(core,
                                    "%d rounds in a row ended before anything new was committed, "
                                    "as ranks do not do the same: %s",
                                    MISMATCHES_MAX, core->vain.mismatch));
}

/* Whoever is left, plus whoever is ready: a recovery takes along even those that have to go, who
 * leave in order afterwards, as they may hold the newest commit. */
static void look_recovery(struct core *core)
{
    size_t least = core->config.min_np;

    if (core->count[WORKER_REVOKED] ||
        core->count[WORKER_RECOVERED] + core->count[WORKER_READY] < least)
        return;
    if (!core->current.weighed)
        weigh(core);
    if (job_state(core) != JOB_RECOVERING)
        return;
    if (!core->count[WORKER_RECOVERED] && !round_gathered(core, least))
        return;
    if (core->now_us < core->vain.not_before_us) {
        clock_want(core, core->vain.not_before_us);
        return;
    }
    form(core, CAUSE_RECOVERY);
}

void round_look(struct core *core)
{
    switch (job_state(core)) {
    case JOB_GATHERING: look_first(core); break;
    case JOB_RECOVERING: look_recovery(core); break;
    case JOB_RUNNING: change_look(core); break;
    default: break;
    }
}

static void enlist(struct core *core, struct worker *worker, uint32_t rank)
{
    worker->rank = rank;
    worker->next_rank = RANK_NONE;
    worker->entered = worker->prepared = worker->at = false;
    worker->failed_prepares = 0;
    worker->newcomer = worker_state(worker) == WORKER_READY;
    worker->held_count = 0;
    stall_moved(worker);
    if (worker_state(worker) != WORKER_MEMBER)
        roster_move(core, worker, WORKER_MEMBER);
}

static void record_round(struct core *core, const struct round *round)
{
    struct journal_record *record = tell_record(core, JOURNAL_ROUND);

    record->round = round->number;
    record->previous = round->previous;
    record->commit = round->commit;
    record->check = round->check;
    record->cause = round->cause;
    record->members = tell_ids(core, round->members.items, round->members.count);
    record->holders = tell_ids(core, round->holders.items, round->holders.count);
}

void round_rotate(struct core *core)
{
    struct round before = core->last;

    core->last = core->current;
    core->current = core->next;
    core->next = before;
    round_clear(&core->next);
    if (core->current.cause != CAUSE_SWITCH)
        round_clear(&core->last);
}

/* Who is who: "a:0,1 b:0", by rank. A line of the trace is cut where it is too long. */
static void trace_ranks(struct core *core, const struct round *round)
{
    const struct core_host *host = NULL;
    char text[TRACE_LINE_MAX] = "";
    size_t used = 0;

    for (size_t i = 0; i < round->members.count && used < sizeof(text); i++) {
        const struct worker *worker = roster_worker(core, round->members.items[i]);

        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s%s%" PRIu32,
                                 worker->host == host ? "," : " ",
                                 worker->host == host ? "" : worker->host->name,
                                 worker->host == host ? "" : ":", worker->slot);
        host = worker->host;
    }
    CORE_TRACE(core, "round %" PRIu64 ": by rank%s", round->number, text);
}

static void trace_round(struct core *core, const struct round *round)
{
    char holders[32];

    snprintf(holders, sizeof(holders), "held by %zu", round->holders.count);
    CORE_TRACE(core, "round %" PRIu64 " (%s): size %zu, from commit %" PRIu64 ".%" PRIu32 " %s",
               round->number, change_cause_name(round->cause), round->members.count,
               COMMIT_ROUND_OF(round->commit), COMMIT_PLACE_OF(round->commit),
               round->holders.count ? holders : "kept by agents");
    trace_ranks(core, round);
}

void round_begin(struct core *core)
{
    struct round *round = &core->current;

    ASSERT(core->next.number == core->rounds && core->next.members.count > 0);
    ASSERT(core->next.members.count <= core->config.max_np);
    round_rotate(core);
    if (round->cause != CAUSE_FIRST)
        core->resets++;
    if (round->cause == CAUSE_SWITCH)
        core->vain.barren = core->vain.mismatches = 0; /* the round before has come to it */
    for (size_t i = 0; i < round->members.count; i++)
        enlist(core, roster_worker(core, round->members.items[i]), (uint32_t)i);
    cost_begin(core);
    core->ready_since_us = TIME_NEVER;
    core->first_failure[0] = '\0';
    trace_round(core, round);
    core->enter_deadline_us = time_add(core->now_us, core->config.stall_us);
    clock_want(core, core->enter_deadline_us);
    stall_watch(core);
    record_round(core, round);
    sm_move(&core->sm, JOB_RUNNING, core->now_us, "");
}

struct msg *round_msg(struct core *core)
{
    const struct round *round = &core->current;
    struct msg *msg = tell_msg(core, MSG_ROUND, 0, round->number);

    msg->u.round = (struct msg_round){
        .cause = round->cause,
        .previous = round->previous,
        .commit = round->commit,
        .holders = tell_ids(core, round->holders.items, round->holders.count),
        .members = tell_members(core, round),
    };
    if (!round->holders.count)
        msg->u.round.sources = elect_sources(core, round->commit);
    return msg;
}

void round_tell(struct core *core)
{
    tell_rounds(core, &core->current, NULL, round_msg(core));
}

static bool has_trained_long(const struct core *core)
{
    return core->current.trains_us != TIME_NEVER &&
           core->now_us - core->current.trains_us >= BARREN_DELAY_US_MAX;
}

/* How long the next round waits: the more rounds came to nothing, the longer. What this one has
 * brought is known when all have said what they hold (weigh). */
static void delay_next(struct core *core, bool died)
{
    uint32_t doublings;
    int64_t delay_us = BARREN_DELAY_US;

    core->vain.not_before_us = core->now_us; /* a change that waits to be tried again is none now */
    core->vain.barren =
        (died && core->current.entered) || has_trained_long(core) ? 0 : core->vain.barren + 1;
    snprintf(core->vain.waited, sizeof(core->vain.waited), "%s", stall_said(core));
    if (core->vain.barren < 2)
        return;
    for (doublings = core->vain.barren - 2; doublings && delay_us < BARREN_DELAY_US_MAX;
         doublings--)
        delay_us *= 2;
    if (delay_us > BARREN_DELAY_US_MAX)
        delay_us = BARREN_DELAY_US_MAX;
    core->vain.not_before_us = core->now_us + delay_us;
}

/* A leaver that dies now is nobody's loss: everybody is past the agreed check, or it is too late.
 */
static void untie(struct core *core)
{
    for (size_t i = 0; i < core->last.members.count; i++) {
        struct worker *worker = roster_worker(core, core->last.members.items[i]);

        if (worker)
            worker->tied = false;
    }
    round_clear(&core->last);
}

struct msg *round_revoke_msg(struct core *core, const struct worker *lost, const char *why)
{
    struct msg *msg = tell_msg(core, MSG_REVOKE, 0, core->current.number);

    msg->u.revoke.reason = tell_text(core, "%s", why);
    if (lost)
        msg->u.revoke.lost = tell_ids(core, &lost->incarnation, 1);
    return msg;
}

void round_revoke(struct core *core, const struct worker *lost, const char *why)
{
    struct round *round = &core->current;

    ASSERT(!round->revoked && round->number && job_state(core) == JOB_RUNNING);
    round->revoked = true;
    cost_lost(core);
    core->enter_deadline_us = TIME_NEVER;
    CORE_TRACE(core, "round %" PRIu64 " is revoked: %s", round->number, why);
    tell_rounds(core, round, &core->last, round_revoke_msg(core, lost, why));
    untie(core);
    for (size_t i = 0; i < round->members.count; i++) {
        struct worker *worker = roster_worker(core, round->members.items[i]);

        if (!worker || worker_state(worker) != WORKER_MEMBER)
            continue;
        roster_move(core, worker, WORKER_REVOKED);
        clock_limit(core, worker, core->config.stall_us, "it did not stop for the recovery");
    }
    delay_next(core, lost != NULL);
    stall_watch(core);
    sm_move(&core->sm, JOB_RECOVERING, core->now_us, "");
}

void round_lost(struct core *core, const struct worker *worker, enum worker_state was,
                const char *why)
{
    bool member = worker->rank != RANK_NONE && was != WORKER_LEAVING && was != WORKER_FINISHED;
    char name[WORKER_NAME_MAX];

    core->current.lost += member;
    if (worker->next_rank != RANK_NONE || (member && core->next.number))
        change_abandon(core, tell_text(core, "%s: %s", worker_name(worker, name), why));
    if ((member || worker->tied) && job_state(core) == JOB_RUNNING)
        round_revoke(core, worker, tell_text(core, "%s: %s", worker_name(worker, name), why));
}

bool round_is_trained(const struct core *core, const struct core_host *with)
{
    bool any_there = false, any_trains = false;

    if (job_state(core) != JOB_RUNNING)
        return false;
    for (size_t i = 0; i < core->current.members.count; i++) {
        const struct worker *worker = roster_worker(core, core->current.members.items[i]);

        if (!worker)
            return false;
        any_there |= worker->host == with;
        if (worker->host->agent == AGENT_THERE && !worker->entered)
            return false;
        any_trains |= worker->host->agent == AGENT_THERE;
    }
    return any_there && any_trains;
}

/* It may have begun, and cannot say so. How long its agent may be silent is not judged here. */
static bool is_anyone_unheard(const struct core *core)
{
    for (size_t i = 0; i < core->current.members.count; i++) {
        const struct worker *worker = roster_worker(core, core->current.members.items[i]);

        if (worker && !worker->entered && worker->host->agent != AGENT_THERE)
            return true;
    }
    return false;
}

void round_wait_again(struct core *core)
{
    core->enter_deadline_us = time_add(core->now_us, core->config.stall_us);
    clock_want(core, core->enter_deadline_us);
}

void round_expire(struct core *core)
{
    core->enter_deadline_us = TIME_NEVER;
    if (job_state(core) != JOB_RUNNING || core->current.entered >= core->current.members.count)
        return;
    if (is_anyone_unheard(core))
        round_wait_again(core);
    else if (!stall_end_who_never_began(core))
        round_revoke(core, NULL, "not everybody began to train in time");
}

/* What a worker says of itself; of a connection it cannot know which side it was. */
static bool is_its_own(int code)
{
    return code == HVD_E_NOMEM || code == HVD_E_LIMIT;
}

static void note_failure(struct core *core, struct worker *worker,
                         const struct msg_recovering *said)
{
    core->current.failed_with = said->code;
    worker->gave_up = is_its_own(said->code) ? worker->gave_up + 1 : 0;
    if (said->code == HVD_E_MISMATCH)
        snprintf(core->vain.mismatch, sizeof(core->vain.mismatch), "%s", said->text);
}

/* It would hold up the next round too. What it holds is kept by its agent. */
static void end_who_gave_up(struct core *core, struct worker *worker, const char *why)
{
    loss_kill(core, worker,
              tell_text(core, "%" PRIu32 " rounds in a row came to nothing by it: %s",
                        worker->gave_up, why),
              false, core->config.kill_grace_us);
    core->vain.barren = 0;
    core->vain.not_before_us = core->now_us;
}

void round_on_recovering(struct core *core, struct worker *worker, const struct msg *msg)
{
    struct round *round = &core->current;
    enum worker_state state = worker_state(worker);
    bool is_current = msg->round == round->number;
    bool is_switching = round->cause == CAUSE_SWITCH && msg->round == round->previous;
    char name[WORKER_NAME_MAX];

    if (state == WORKER_LEAVING) {
        tell_drain(core, worker, 0, "it was to leave, and the round is revoked");
        return;
    }
    if (job_state(core) == JOB_FINISHING) {
        finish_on_recovering(core, worker);
        return;
    }
    if (state == WORKER_MEMBER && (is_current || (is_switching && !worker->entered)) &&
        job_state(core) <= JOB_PENDING) {
        const char *text = msg->u.recovering.text;
        const char *why = tell_text(core, "%s: %s", worker_name(worker, name),
                                    text && text[0] ? text : "its collectives failed");

        if (core->next.number)
            change_abandon(core, why);
        note_failure(core, worker, &msg->u.recovering);
        round_revoke(core, NULL, why);
        state = worker_state(worker);
    }
    if (!is_current || (state != WORKER_REVOKED && state != WORKER_RECOVERED))
        return;
    elect_note(core, worker, &msg->u.recovering.held);
    if (state == WORKER_REVOKED) {
        roster_move(core, worker, WORKER_RECOVERED);
        CORE_TRACE(core, "%s has recovered (%zu of %zu)", worker_name(worker, name),
                   core->count[WORKER_RECOVERED],
                   core->count[WORKER_RECOVERED] + core->count[WORKER_REVOKED]);
    }
    if (worker->gave_up >= GIVE_UPS_MAX)
        end_who_gave_up(core, worker, msg->u.recovering.text);
}

void round_on_entered(struct core *core, struct worker *worker, const struct msg *msg)
{
    struct round *round = &core->current;

    if (msg->round != round->number || !round_has(round, worker) || worker->entered)
        return;
    worker->entered = true;
    worker->gave_up = 0;
    stall_moved(worker);
    seat_note_commit(&worker->host->seats[worker->slot], round->commit);
    round->entered++;
    cost_entered(core, worker, &msg->u.entered);
    if (core->floor < round->commit) {
        core->floor = round->commit;
        tell_record(core, JOURNAL_ENTERED)->round = round->number;
    }
    if (round->entered < round->members.count || round->revoked)
        return;
    core->enter_deadline_us = TIME_NEVER;
    round->trains_us = core->now_us;
    untie(core);
    core->look_at_rounds = core->look_at_seats = true;
    cost_end(core);
    CORE_TRACE(core, "round %" PRIu64 ": all %zu train%s", round->number, round->members.count,
               cost_text(core));
}
