/*
 * round.c: the data of rounds, and the moves of a round from its begin to its end. join.c,
 * change.c, recovery.c, stall.c and loss.c decide when a round begins or ends; this file does what
 * always follows: states, deadlines, journal, messages, costs, backoff. Invariant: core->next has a
 * number only while the job is PREPARING or PENDING.
 */
#include "driver/core/round.h"

#include "driver/core/backoff.h"
#include "driver/core/cost.h"
#include "driver/core/elect.h"
#include "driver/core/moves.h"
#include "driver/core/roster.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"
#include "driver/core/waits.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- data ----------------------------------------------------------------------------------- */

void round_release(struct round *round)
{
    VEC_RELEASE(&round->members);
    VEC_RELEASE(&round->holders);
}

/* Empties the round and keeps the memory of its lists. */
void round_clear(struct round *round)
{
    struct round cleared = { .members = round->members, .holders = round->holders };

    cleared.members.count = cleared.holders.count = 0;
    cleared.trains_us = TIME_NEVER;
    *round = cleared;
}

/* Appends a worker to the members of the round: its rank is its index. False: no memory is left,
 * and the core has failed. */
bool round_add(struct core *core, struct round *round, uint64_t incarnation)
{
    if (VEC_RESERVE(&round->members, 1, LIMIT_WORKERS)) {
        core_fail(core);
        return false;
    }
    round->members.items[round->members.count++] = incarnation;
    return true;
}

/* True: the worker is a member of this round, with the rank that it has now. */
bool round_has(const struct round *round, const struct worker *worker)
{
    return worker->rank < round->members.count &&
           round->members.items[worker->rank] == worker->incarnation;
}

/* True: all members train in the round; also true of a round without members. */
bool round_all_entered(const struct round *round)
{
    return round->entered >= round->members.count;
}

/* Moves the round to another state; the table in moves.c must have the move. */
static void round_move(struct round *round, enum round_state to)
{
    machine_check(&round_machine, round->state, to);
    round->state = to;
}

/* Keeps the text of the first failure of the current round, for the exit text of the job. */
void round_note_failure(struct core *core, const struct worker *worker, const char *why)
{
    char name[WORKER_NAME_MAX];

    if (!*core->rounds.first_failure)
        snprintf(core->rounds.first_failure, sizeof(core->rounds.first_failure), "%s: %s",
                 worker_name(worker, name), why);
}

/* Counts a member whose program ended with an error of its own. When all members do, over.c ends
 * the job. */
void round_note_error(struct core *core)
{
    core->current.failed_by_exit++;
}

/* over.c has judged the members that ended with an error: they are not judged again. */
void round_forget_errors(struct core *core)
{
    core->current.failed_by_exit = 0;
}

/* ---- messages ----------------------------------------------------------------------------- */

/* Returns the members of the round by rank, with host, slot and addresses, for a ROUND or PREPARE
 * message; an empty list when no memory is left. */
static struct msg_member_list msg_members(struct core *core, const struct round *round)
{
    size_t count = round->members.count;
    struct msg_member *members = tell_alloc(core, count, sizeof(*members));

    if (!members)
        return (struct msg_member_list){ NULL, 0 };
    for (size_t i = 0; i < count; i++) {
        const struct worker *worker = roster_worker(core, round->members.items[i]);

        ASSERT(worker);
        members[i] = (struct msg_member){ .incarnation = worker->incarnation,
                                          .host = worker->host->name,
                                          .slot = worker->slot,
                                          .addresses = worker->addresses };
    }
    return (struct msg_member_list){ members, count };
}

/* Makes a ROUND: members and commit of the current round. Each function msg_of_... describes the
 * rounds as they are now, so it makes the first message and also its repetition (PROTOCOL.md, K4:
 * every message may come twice). */
struct msg *msg_of_round(struct core *core)
{
    const struct round *round = &core->current;
    struct msg *msg = tell_msg(core, MSG_ROUND, 0, round->number);

    msg->u.round = (struct msg_round){
        .cause = round->cause,
        .previous = round->previous,
        .commit = round->commit,
        .holders = tell_ids(core, round->holders.items, round->holders.count),
        .members = msg_members(core, round),
    };
    /* PROTOCOL.md, Rounds: if no member holds the commit, the agents that keep it are its sources.
     */
    if (!round->holders.count)
        msg->u.round.sources = elect_sources(core, round->commit);
    return msg;
}

/* Makes a REVOKE of the current round. `lost`: the worker whose death is the reason; NULL: another
 * reason. */
struct msg *msg_of_revoke(struct core *core, const struct worker *lost, const char *why)
{
    struct msg *msg = tell_msg(core, MSG_REVOKE, 0, core->current.number);

    msg->u.revoke.reason = tell_text(core, "%s", why);
    if (lost)
        msg->u.revoke.lost = tell_ids(core, &lost->incarnation, 1);
    return msg;
}

/* Makes a PREPARE: it asks the members of `round` to connect while the round before runs on. */
struct msg *msg_of_prepare(struct core *core, const struct round *round)
{
    struct msg *msg = tell_msg(core, MSG_PREPARE, 0, round->number);

    msg->u.prepare =
        (struct msg_prepare){ .previous = round->previous, .members = msg_members(core, round) };
    return msg;
}

/* Makes a PENDING: it asks each member of the current round for the number of its next check (a
 * call of hvd_state_check or hvd_state_commit), for the switch to core->next. */
struct msg *msg_of_pending(struct core *core)
{
    struct msg *msg = tell_msg(core, MSG_PENDING, 0, core->current.number);

    msg->u.pending.next = core->next.number;
    return msg;
}

/* Makes a SWITCH_AT for the members of the round before: they change over to the current round at
 * the agreed check (the call of hvd_state_check at which all of them leave the round before). */
struct msg *msg_of_switch(struct core *core)
{
    struct msg *msg = tell_msg(core, MSG_SWITCH_AT, 0, core->current.previous);

    msg->u.switch_at =
        (struct msg_switch_at){ .next = core->current.number, .check = core->current.check };
    return msg;
}

/* Makes an ABANDON for the members of the current round: rounds that were prepared up to the number
 * rounds.told do not begin. */
struct msg *msg_of_abandon(struct core *core, const char *why)
{
    struct msg *msg = tell_msg(core, MSG_ABANDON, 0, core->current.number);

    msg->u.abandon =
        (struct msg_abandon){ .next = core->rounds.told, .reason = tell_text(core, "%s", why) };
    return msg;
}

/* ---- begin ---------------------------------------------------------------------------------- */

/* Gives core->next the next round number. The number counts as told, so no other round gets it,
 * even if this one is abandoned. */
void round_name_next(struct core *core, enum msg_cause cause)
{
    round_move(&core->next, ROUND_NEXT);
    core->next.number = ++core->rounds.told;
    core->next.previous = core->current.number;
    core->next.cause = cause;
}

/* core->next becomes core->current. At a switch the round before becomes core->last, because its
 * members still leave it one after the other; core->last is kept until all have passed the agreed
 * check. In a recovery core->last becomes empty. The memory of the old core->last is used again for
 * core->next. */
static void round_rotate(struct core *core)
{
    struct round before = core->last;

    round_move(&core->next, ROUND_BEGUN);
    core->last = core->current;
    core->current = core->next;
    core->next = before;
    round_clear(&core->next);
    if (core->current.cause == CAUSE_SWITCH)
        round_move(&core->last, ROUND_LEFT);
    else
        round_clear(&core->last);
}

/* Makes the round of a JOURNAL_ROUND record the current round, as round_begin does for a new round,
 * but without actions. The next call replaces it by the next record's round. Returns 0 or
 * HVD_E_NOMEM. */
int round_replay(struct core *core, const struct journal_record *record)
{
    struct round *next = &core->next;

    round_clear(next);
    for (size_t i = 0; i < record->members.count; i++)
        if (!round_add(core, next, record->members.items[i]))
            return HVD_E_NOMEM;
    if (VEC_RESERVE(&next->holders, record->holders.count, LIMIT_WORKERS))
        return HVD_E_NOMEM;
    for (size_t i = 0; i < record->holders.count; i++)
        next->holders.items[next->holders.count++] = record->holders.items[i];
    round_move(next, ROUND_NEXT);
    next->number = record->round;
    next->previous = record->previous;
    next->commit = record->commit;
    next->check = record->check;
    next->cause = (enum msg_cause)record->cause;
    round_rotate(core);
    core->rounds.resets += record->cause != CAUSE_FIRST;
    if (core->rounds.told < record->round)
        core->rounds.told = record->round;
    /* Only a round that began with a checkpoint resumes from a commit that is older than
     * resume_min_commit, which is then lowered to it. The first round of a job resumes from the
     * checkpoint of an earlier job if its commit is older than all that this round can make. Then
     * the job may never go back behind that commit, even if no worker has trained yet. */
    round_fall_back(core, record->commit);
    if (record->cause == CAUSE_FIRST && record->commit < COMMIT_FIRST_OF(record->round))
        core->rounds.resume_min_commit = record->commit;
    return 0;
}

/* Sums up the start of a job: "4 workers on 2 hosts are ready, 1.2s after the first launch". */
static void round_trace_first(struct core *core, const struct round *round)
{
    int64_t launched_us = core->now_us;
    const struct worker *worker;
    size_t hosts = 0, count = round->members.count;
    char text[TIME_TEXT_MAX];

    for (size_t i = 0; (worker = roster_next_member(core, round, &i));)
        if (worker->launched_us < launched_us)
            launched_us = worker->launched_us;
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        const struct core_host *host = core->roster.hosts.items[i];

        for (size_t slot = 0; (worker = roster_next_on(host, &slot));)
            if (round_has(round, worker))
                break;
        hosts += worker != NULL;
    }
    CORE_TRACE(
        core,
        FACTS(.kind = KIND_WORKERS_READY, .size = count, .took_us = core->now_us - launched_us),
        "%zu worker%s on %zu host%s %s ready, %s after the first launch", count,
        count == 1 ? "" : "s", hosts, hosts == 1 ? "" : "s", count == 1 ? "is" : "are",
        time_brief(core->now_us - launched_us, text));
}

/* Logs "round 2 (recovery): size 3, ..." and "round 2: by rank a:1 b:0,1". A line that is too long
 * is cut. */
static void round_trace(struct core *core, const struct round *round)
{
    const struct core_host *host = NULL;
    char text[TRACE_LINE_MAX] = "";
    struct msg_source_list sources = { NULL, 0 };
    const char *from = "kept by agents";
    char holders[32];
    size_t used = 0;

    snprintf(holders, sizeof(holders), "held by %zu", round->holders.count);
    if (!round->holders.count)
        sources = elect_sources(core, round->commit);
    if (sources.count && !sources.items[0].host[0])
        from = "read from its checkpoint";
    if (round->cause == CAUSE_FIRST)
        round_trace_first(core, round);
    core_say(core, round->cause == CAUSE_FIRST ? TRACE_DETAIL : TRACE_INFO,
             FACTS(.kind = KIND_ROUND_BEGUN, .round = round->number, .size = round->members.count,
                   .commit = round->commit, .cause = change_cause_name(round->cause)),
             "round %" PRIu64 " (%s): size %zu, from commit %" PRIu64 ".%" PRIu32 " %s",
             round->number, change_cause_name(round->cause), round->members.count,
             COMMIT_ROUND_OF(round->commit), COMMIT_PLACE_OF(round->commit),
             round->holders.count ? holders : from);
    for (size_t i = 0; i < round->members.count && used < sizeof(text); i++) {
        const struct worker *worker = roster_worker(core, round->members.items[i]);

        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s%s%" PRIu32,
                                 worker->host == host ? "," : " ",
                                 worker->host == host ? "" : worker->host->name,
                                 worker->host == host ? "" : ":", worker->slot);
        host = worker->host;
    }
    CORE_DETAIL(
        core, FACTS(.kind = KIND_ROUND_RANKS, .round = round->number, .size = round->members.count),
        "round %" PRIu64 ": by rank%s", round->number, text);
}

/* core->next becomes core->current: its members get their ranks, the journal gets a record, and the
 * job is RUNNING. The caller then tells the members (round_tell). */
void round_begin(struct core *core)
{
    struct round *round = &core->current;
    struct journal_record *record;

    ASSERT(core->next.number == core->rounds.told && core->next.members.count > 0);
    ASSERT(core->next.members.count <= core->config.max_np);
    round_rotate(core);
    if (round->cause != CAUSE_FIRST)
        core->rounds.resets++;
    if (round->cause == CAUSE_SWITCH)
        backoff_switched(core);
    for (size_t i = 0; i < round->members.count; i++) {
        struct worker *worker = roster_worker(core, round->members.items[i]);

        worker->rank = (uint32_t)i;
        worker->next_rank = RANK_NONE;
        worker->entered = worker->prepared = worker->at_sent = false;
        worker->failed_prepares = 0;
        worker->is_joiner = worker->state == WORKER_READY;
        worker->held_count = 0;
        waits_moved(worker);
        if (worker->state != WORKER_MEMBER)
            roster_move(core, worker, WORKER_MEMBER);
    }
    cost_begin(core);
    core->rounds.ready_since_us = TIME_NEVER;
    core->rounds.first_failure[0] = '\0';
    round_trace(core, round);
    round_wait_enter(core);
    waits_watch(core);

    /* Durable before visible: the ROUND that the caller sends is queued behind this record. */
    record = tell_record(core, JOURNAL_ROUND);
    record->round = round->number;
    record->previous = round->previous;
    record->commit = round->commit;
    record->check = round->check;
    record->cause = round->cause;
    record->members = tell_ids(core, round->members.items, round->members.count);
    record->holders = tell_ids(core, round->holders.items, round->holders.count);
    core_move_job(core, JOB_RUNNING);
}

/* True: the agent of this host keeps the commit of the current round, and no member holds it, so
 * the members fetch it from agents. */
static bool round_is_kept_on(const struct core *core, const struct core_host *host)
{
    const struct round *round = &core->current;

    for (uint32_t slot = 0; !round->holders.count && slot < host->slot_count; slot++)
        if (round->commit && host->slots[slot].commit == round->commit)
            return true;
    return false;
}

/* Sends STATE_KEY, with which agents fetch commits from each other during the round, to the agents
 * of all hosts that fetch or serve. PROTOCOL.md: it is sent before the PREPARE or ROUND. */
void round_tell_state_key(struct core *core, const struct round *round)
{
    /* `other`: the round before, whose agents may have to serve a commit to those of `round` */
    const struct round *other = round == &core->current ? &core->last : &core->current;
    const struct msg *msg = tell_msg(core, MSG_STATE_KEY, 0, round->number);

    tell_rounds(core, round, other, msg);
    /* Also tells agents that have no member on their host, but keep the commit and serve it. A host
     * with the stamp of this message was told above. */
    for (size_t i = 0; round == &core->current && i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (host->stamp != core->out.stamps && round_is_kept_on(core, host))
            tell_host(core, host, msg);
    }
}

/* Sends STATE_KEY again to the agent of this host, which may have missed it, if the host takes part
 * in the current or the next round: a worker there is a member or leaves at the switch, or the
 * agent keeps the commit. */
void round_tell_state_key_again(struct core *core, struct core_host *host)
{
    const struct worker *worker;
    bool takes_part = round_is_kept_on(core, host);

    for (size_t slot = 0; (worker = roster_next_on(host, &slot));)
        takes_part |=
            worker->rank != RANK_NONE || worker->next_rank != RANK_NONE || worker->may_block_switch;
    if (takes_part && core->current.number)
        tell_host(core, host, tell_msg(core, MSG_STATE_KEY, 0, core->current.number));
    if (takes_part && core->next.number)
        tell_host(core, host, tell_msg(core, MSG_STATE_KEY, 0, core->next.number));
}

/* A round begins with a checkpoint: resume_min_commit, the oldest commit from which a round may
 * begin, is lowered to this commit. */
void round_fall_back(struct core *core, uint64_t commit)
{
    if (core->rounds.resume_min_commit > commit)
        core->rounds.resume_min_commit = commit;
}

/* Sends the current round to the agents of its members: first the key with which agents fetch
 * commits, then ROUND. */
void round_tell(struct core *core)
{
    round_tell_state_key(core, &core->current);
    tell_rounds(core, &core->current, NULL, msg_of_round(core));
}

/* Gives all members --stall-shutdown from now on to begin to train; then stall_expire_enter is
 * called. */
void round_wait_enter(struct core *core)
{
    core->rounds.enter_deadline_us = time_add(core->now_us, core->config.stall_us);
    core_want_timer(core, core->rounds.enter_deadline_us);
}

/* Removes the deadline for members to begin to train: all of them train, or the round is over. */
void round_stop_waiting(struct core *core)
{
    core->rounds.enter_deadline_us = TIME_NEVER;
}

/* Empties core->last, the round before the current one: all its members have passed the agreed
 * check, or the round is revoked. From now on the death of a worker that is leaving harms no
 * other worker. */
static void round_forget_leavers(struct core *core)
{
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next_member(core, &core->last, &i));)
        worker->may_block_switch = false;
    round_clear(&core->last);
}

/* True: members on two different hosts show that the commit of this round exists. A member shows
 * that when it holds the commit, or trains from it. An agent may lie about its own workers, so one
 * host is not enough, unless all members are there. In a switch the holders are named before they
 * have made the commit, so they do not count before they train. */
static bool round_is_confirmed(const struct core *core, const struct round *round)
{
    const struct core_host *home = NULL, *said = NULL;
    const struct worker *worker;
    bool elsewhere = false, confirmed = false;

    for (size_t i = 0; round->cause != CAUSE_SWITCH && i < round->holders.count; i++) {
        worker = roster_worker(core, round->holders.items[i]);
        if (!worker)
            continue;
        confirmed |= said && worker->host != said;
        said = worker->host;
    }
    for (size_t i = 0; (worker = roster_next_member(core, round, &i));) {
        elsewhere |= home && worker->host != home;
        home = worker->host;
        if (!worker->entered)
            continue;
        confirmed |= said && worker->host != said;
        said = worker->host;
    }
    return confirmed || !elsewhere;
}

/* Handles ENTERED: the worker trains in the round. When all members have said it, the change of the
 * membership is complete: no deadline runs, and the round before is forgotten. */
void round_on_entered(struct core *core, struct worker *worker, const struct msg *msg)
{
    struct round *round = &core->current;
    struct facts facts;
    const char *cost;

    /* PROTOCOL.md, K2 and K4: the message is of an older round, or a repetition. */
    if (msg->round != round->number || !round_has(round, worker) || worker->entered)
        return;
    worker->entered = true;
    worker->gave_up = 0;
    worker->host->slots[worker->slot].trained_round = round->number;
    worker->host->slots[worker->slot].trained_rank = worker->rank;
    waits_moved(worker);
    slot_note_commit(&worker->host->slots[worker->slot], round->commit);
    round->entered++;
    cost_entered(core, worker, &msg->u.entered);
    /* The training goes on from this commit, so from now on no round resumes from an older one. */
    if (core->rounds.resume_min_commit < round->commit && round_is_confirmed(core, round)) {
        core->rounds.resume_min_commit = round->commit;
        tell_record(core, JOURNAL_ENTERED)->round = round->number;
    }
    if (!round_all_entered(round) || round->state == ROUND_REVOKED)
        return;
    round_stop_waiting(core);
    round->trains_us = core->now_us;
    round_move(round, ROUND_TRAINING);
    core->rounds.trained = round->number;
    round_forget_leavers(core);
    core_want_round(core);
    core_want_slots(core);
    cost_end(core);
    facts = (struct facts){ .kind = KIND_ROUND_TRAINS, .size = round->members.count };
    cost = cost_text(core, &facts);
    CORE_TRACE(core, &facts, "round %" PRIu64 ": all %zu train%s", round->number,
               round->members.count, cost);
}

/* ---- end ------------------------------------------------------------------------------------ */

/* Gives up the change to core->next, for the reason `why`: the members of both rounds are told
 * ABANDON, all marks of the change are removed, and the current round goes on. */
void round_abandon(struct core *core, const char *why)
{
    struct round *current = &core->current, *next = &core->next;
    struct worker *worker;

    ASSERT(next->number && (core->job == JOB_PREPARING || core->job == JOB_PENDING));
    CORE_TRACE(core, FACTS(.kind = KIND_ROUND_ABANDONED, .round = next->number, .cause = why),
               "round %" PRIu64 " is abandoned: %s", next->number, why);
    tell_rounds(core, current, next, msg_of_abandon(core, why));
    for (size_t i = 0; (worker = roster_next_member(core, next, &i));) {
        worker->next_rank = RANK_NONE;
        worker->prepared = false;
    }
    for (size_t i = 0; (worker = roster_next_member(core, current, &i));)
        worker->at_sent = false;
    current->at_sent = 0;
    current->max_check = 0;
    round_clear(next);
    core_want_round(core);
    core_move_job(core, JOB_RUNNING);
}

/* Revokes core->current: its members are told to leave their training loop and to say RECOVERING.
 * `lost`: the worker whose death is the reason; NULL: another reason. The caller has abandoned a
 * change that was under way. */
void round_revoke(struct core *core, const struct worker *lost, const char *why)
{
    struct round *round = &core->current;
    struct worker *worker;
    char name[WORKER_NAME_MAX];

    ASSERT(round->number && core->job == JOB_RUNNING);
    round_move(round, ROUND_REVOKED);
    cost_lost(core, waits_stood_since(core, lost));
    round_stop_waiting(core);
    /* loss.c has logged just before why the member was lost, so this line does not repeat it. */
    if (lost)
        CORE_WARN(core,
                  FACTS(.kind = KIND_ROUND_REVOKED, .round = round->number, OF_WORKER(lost),
                        .cause = why),
                  "round %" PRIu64 " is revoked: %s is lost", round->number,
                  worker_name(lost, name));
    else
        CORE_WARN(core, FACTS(.kind = KIND_ROUND_REVOKED, .round = round->number, .cause = why),
                  "round %" PRIu64 " is revoked: %s", round->number, why);
    /* PROTOCOL.md, REVOKE: this round and every earlier round are dead. */
    tell_rounds(core, round, &core->last, msg_of_revoke(core, lost, why));
    round_forget_leavers(core);
    for (size_t i = 0; (worker = roster_next_member(core, round, &i));) {
        if (worker->state != WORKER_MEMBER)
            continue;
        roster_move(core, worker, WORKER_REVOKED);
        worker_limit(core, worker, core->config.stall_us,
                     "the worker did not stop for the recovery");
    }
    backoff_round_ended(core, lost != NULL);
    waits_watch(core);
    core_move_job(core, JOB_RECOVERING);
}

/* A worker that was in the state `was` is lost: abandons the change of which the worker was a part,
 * and revokes its round. `may_block_switch`: the worker was leaving, and other members may need it
 * to come to the agreed check, the call of hvd_state_check at which all members switch. */
void round_lost(struct core *core, const struct worker *worker, enum worker_state was,
                const char *why)
{
    bool member = worker->rank != RANK_NONE && was != WORKER_LEAVING && was != WORKER_FINISHED;
    char name[WORKER_NAME_MAX];

    /* A member that is lost after the revoke counts too: backoff_weigh needs all losses. */
    core->current.lost += member;
    /* the lost worker was in the next round, or was needed to come to the check of the switch */
    if (worker->next_rank != RANK_NONE || (member && core->next.number))
        round_abandon(core, tell_text(core, "%s: %s", worker_name(worker, name), why));
    if ((member || worker->may_block_switch) && core->job == JOB_RUNNING)
        round_revoke(core, worker, tell_text(core, "%s: %s", worker_name(worker, name), why));
}

/* ---- questions ------------------------------------------------------------------------------ */

/* True: `need` workers are READY, and the wait for workers that are still starting (--gather) is
 * over. */
bool round_gathered(struct core *core, size_t need)
{
    const size_t *count = core->roster.count;
    size_t booting = count[WORKER_LAUNCHING] + count[WORKER_BOOTING];
    int64_t until_us;

    if (count[WORKER_READY] < need || !count[WORKER_READY]) {
        core->rounds.ready_since_us = TIME_NEVER;
        return false;
    }
    if (core->rounds.ready_since_us == TIME_NEVER)
        core->rounds.ready_since_us = core->now_us;
    until_us = time_add(core->rounds.ready_since_us, core->config.gather_us);
    /* Nothing is to be waited for if no worker is starting, or if a round could not take it. */
    if (!booting || core->now_us >= until_us ||
        core->roster.staying - booting >= core->config.max_np)
        return true;
    core_want_timer(core, until_us);
    return false;
}

/* True: the round runs and has members on the host `with`. Some members have a connected agent, and
 * all of these train. */
bool round_is_trained(const struct core *core, const struct core_host *with)
{
    bool any_there = false, any_trains = false;

    if (core->job != JOB_RUNNING)
        return false;
    for (size_t i = 0; i < core->current.members.count; i++) {
        const struct worker *worker = roster_worker(core, core->current.members.items[i]);

        if (!worker) /* this member has ended */
            return false;
        any_there |= worker->host == with;
        if (worker->host->agent == AGENT_THERE && !worker->entered)
            return false;
        any_trains |= worker->host->agent == AGENT_THERE;
    }
    return any_there && any_trains;
}
