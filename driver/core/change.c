/*
 * change.c: prepares the next round while the current one runs, and switches at an agreed check
 * (PROTOCOL.md, Rounds: PREPARE, PENDING, NEXT_CHECK, SWITCH_AT). core.c begins a change, agents.c
 * brings the answers of workers. A change that fails is abandoned (round_abandon): the members
 * train on and lose nothing.
 */
#include "driver/core/change.h"

#include "driver/core/assign.h"
#include "driver/core/backoff.h"
#include "driver/core/cost.h"
#include "driver/core/join.h"
#include "driver/core/loss.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/stall.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"
#include "driver/core/waits.h"

#include <inttypes.h>

/* a joiner (a worker that is new in the round) is ended after this many changes that failed because
 * of it */
#define TRIES_MAX 3

/* Fills core->next with the members of the next round. `with_joiners`: READY workers join. False:
 * the members are those of the current round, so nothing changes; or no memory is left. */
static bool change_choose(struct core *core, bool with_joiners)
{
    const struct round *current = &core->current;
    struct round *next = &core->next;
    const struct worker *worker;
    size_t stay = 0, keep, kept;
    bool too_few;

    round_clear(next);
    for (size_t i = 0; (worker = roster_next_member(core, current, &i));)
        stay += !worker->has_to_go;
    /* The joiners are only counted here. They are added again below, behind the old members. */
    if (with_joiners)
        join_add_joiners(core);
    /* docs/stories.md, `news_below_min`: members that have to go stay as long as fewer than
     * --min-np members would be left. */
    keep = assign_kept(stay, next->members.count, core->config.min_np);
    too_few = keep > 0;
    /* docs/stories.md, `moves_from_one_host_to_the_next`: if no old member would stay, one member
     * is kept to hand the state over, and leaves with the next change. With --max-np 1 the round
     * has no room for this member, and the member's agent hands the state over. */
    if (!stay && !keep && core->config.max_np > 1)
        keep = 1;
    if (keep > current->members.count - stay)
        keep = current->members.count - stay;
    if (keep && keep != core->change.kept_told && too_few)
        CORE_TRACE(
            core, FACTS(.kind = KIND_MEMBERS_KEPT, .size = keep),
            "%zu members that are to leave stay for now, because fewer than --min-np %" PRIu32
            " would be left",
            keep, core->config.min_np);
    else if (keep && keep != core->change.kept_told)
        CORE_TRACE(core, FACTS(.kind = KIND_MEMBERS_KEPT, .size = keep),
                   "%zu members that are to leave stay for now, to hand the state over", keep);
    core->change.kept_few = too_few;
    core->change.kept_told = keep; /* the number is logged again only when it changes */
    next->members.count = 0;
    for (size_t i = 0; (worker = roster_next_member(core, current, &i));) {
        if (worker->has_to_go && !keep)
            continue;
        keep -= worker->has_to_go;
        round_add(core, next, worker->incarnation);
    }
    kept = next->members.count;
    if (with_joiners)
        join_add_joiners(core);
    return !core->step.failed && (kept < current->members.count || next->members.count > kept);
}

/* Sets the deadline of the change's present phase (PREPARING or PENDING) to in_us from now;
 * change_expire is called then. */
static void change_by(struct core *core, int64_t in_us)
{
    core->change.deadline_us = time_add(core->now_us, in_us);
    core_want_timer(core, core->change.deadline_us);
}

/* Begins a change if all members train, no wait of backoff.c runs, and workers join or members have
 * to go. Called while a round runs and no change is under way. */
void change_look(struct core *core)
{
    struct round *next = &core->next;
    bool joiners;

    ASSERT(core->job == JOB_RUNNING && !next->number);
    if (!round_all_entered(&core->current))
        return;
    joiners = round_gathered(core, 1 /* any READY worker */);
    if ((!joiners && !core->roster.going) || !backoff_is_over(core))
        return;
    /* join_allowed may end the job, so it is asked last. */
    if (!change_choose(core, joiners) || !join_allowed(core)) {
        round_clear(next);
        return;
    }
    round_name_next(core, CAUSE_SWITCH);
    /* PROTOCOL.md, Rounds: the commit of a switch gets its number before it exists. */
    next->commit = COMMIT_FIRST_OF(next->number);
    cost_prepare(core);
    for (size_t i = 0; i < next->members.count; i++) {
        struct worker *worker = roster_worker(core, next->members.items[i]);

        worker->next_rank = (uint32_t)i;
        worker->prepared = worker->at_sent = false;
    }
    CORE_DETAIL(core,
                FACTS(.kind = KIND_ROUND_PREPARED, .round = next->number,
                      .size = next->members.count, .cause = change_cause_name(next->cause)),
                "round %" PRIu64 " is prepared beside round %" PRIu64 ": size %zu -> %zu",
                next->number, next->previous, core->current.members.count, next->members.count);
    tell_record(core, JOURNAL_NUMBER)->round = next->number;
    /* PREPARE also goes to members that are not in the next round: they leave at the switch. */
    round_tell_state_key(core, next);
    tell_rounds(core, next, &core->current, msg_of_prepare(core, next));
    change_by(core, core->config.prepare_us);
    core_move_job(core, JOB_PREPARING);
}

/* True: the worker is a joiner of the change: it is in core->next and is not a member now. */
static bool change_is_joiner(const struct worker *worker)
{
    return worker->next_rank != RANK_NONE && worker->state == WORKER_READY;
}

/* Abandons the change, and counts a failure against the joiners that may be the cause: against the
 * culprit if it is a joiner; against all joiners if the culprit is a member; without a culprit
 * against each late joiner whose agent was connected all the time. A joiner that has failed
 * TRIES_MAX times is ended to make room for another joiner. The joiner may not be at fault, so its
 * slot is not charged. */
static void change_give_up(struct core *core, const struct worker *culprit, const char *why)
{
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        bool late = !worker->prepared && worker_is_heard(core, worker, core->config.prepare_us);

        if (change_is_joiner(worker) &&
            (worker == culprit || (!culprit && late) || (culprit && !change_is_joiner(culprit))))
            worker->failed_prepares++;
    }
    round_abandon(core, why);
    backoff_change_failed(core);
    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (worker->state == WORKER_READY && worker->failed_prepares >= TRIES_MAX)
            loss_kill(core, worker, "the worker could not be connected to the other members",
                      true /* excused: the worker is not to blame */, core->config.kill_grace_us);
}

/* Called by core.c when the deadline of change_by has passed: gives the change up. A member that
 * has not come to a check (a call of hvd_state_check) in time may itself wait for another member in
 * a collective. So a member is to blame only if other members wait at a check. Without a member to
 * blame the change is abandoned, and the waiting members go on. */
void change_expire(struct core *core)
{
    core->change.deadline_us = TIME_NEVER;
    if (core->job == JOB_PREPARING) {
        change_give_up(core, NULL, "not all members were connected in time");
    } else if (core->job == JOB_PENDING && !stall_end_unchecked(core)) {
        round_abandon(core, "not all members came to a check in time");
        backoff_change_failed(core);
    }
}

/* Handles PREPARED of a worker of core->next: the worker is connected for the next round, or cannot
 * connect (a code other than 0), and then the change is given up. When all are connected, the
 * members are asked for the number of their next check, a call of hvd_state_check (PENDING). */
void change_on_prepared(struct core *core, struct worker *worker, const struct msg *msg)
{
    char name[WORKER_NAME_MAX];

    if (core->job != JOB_PREPARING || msg->round != core->next.number ||
        worker->next_rank == RANK_NONE || worker->prepared)
        return;
    if (msg->u.prepared.code) {
        change_give_up(core, worker,
                       tell_text(core, "%s cannot connect: %s", worker_name(worker, name),
                                 msg->u.prepared.text));
        return;
    }
    worker->prepared = true;
    if (++core->next.prepared < core->next.members.count)
        return;
    /* All members are connected. PENDING asks each member for the number of its next check.
     * PROTOCOL.md, PENDING: a worker answers at once. */
    change_by(core, core->config.stall_us);
    waits_watch(core);
    core_move_job(core, JOB_PENDING);
    tell_rounds(core, &core->current, NULL, msg_of_pending(core));
}

/* Handles NEXT_CHECK: a member answers PENDING with the number of the check (a call of
 * hvd_state_check or hvd_state_commit) to which it comes next. When all members have answered, the
 * next round begins: all leave the current round at the first check that no member has reached. */
void change_on_next_check(struct core *core, struct worker *worker, const struct msg *msg)
{
    struct round *round = &core->current, *next = &core->next;
    struct worker *leaver;

    if (msg->u.next_check.check == UINT64_MAX)
        /* UINT64_MAX: this member comes to no further check, so it cannot take part in the
         * switch */
        return;
    if (core->job != JOB_PENDING || msg->round != round->number ||
        msg->u.next_check.next != next->number || worker->state != WORKER_MEMBER || worker->at_sent)
        return;
    worker->at_sent = true;
    waits_moved(worker);
    if (round->at_sent == 0 || round->max_check < msg->u.next_check.check)
        round->max_check = msg->u.next_check.check;
    if (round->at_sent == 0 || round->min_check > msg->u.next_check.check)
        round->min_check = msg->u.next_check.check;
    if (++round->at_sent < round->members.count)
        return;
    /* A member may name a check that the other members do not reach in time. A switch at such a
     * check would break the round. */
    if (round->max_check - round->min_check > LIMIT_CHECKS_APART) {
        round_abandon(core, tell_text(core,
                                      "the members are at checks %" PRIu64 " to %" PRIu64
                                      ", more than LIMIT_CHECKS_APART (%d) apart",
                                      round->min_check, round->max_check, LIMIT_CHECKS_APART));
        backoff_change_failed(core);
        return;
    }

    /* All members have said NEXT_CHECK: they leave the training loop at the first check that no
     * member has reached. */
    /* + 1: a member goes on to the check that it has named, and waits at the one after it */
    next->check = round->max_check + 1;
    /* Members that stay commit the state at the agreed check, so they will hold that commit. */
    next->holders.count = 0;
    if (VEC_RESERVE(&next->holders, next->members.count, LIMIT_WORKERS)) {
        core_fail(core);
        return;
    }
    for (size_t i = 0; i < next->members.count; i++)
        if (roster_worker(core, next->members.items[i])->state == WORKER_MEMBER)
            next->holders.items[next->holders.count++] = next->members.items[i];
    round_begin(core);

    /* PROTOCOL.md, PENDING: a worker that is not in the next round leaves at the agreed check. If
     * this worker dies before all members have passed the check, the new round is revoked. */
    for (size_t i = 0; (leaver = roster_next_member(core, &core->last, &i));) {
        if (round_has(&core->current, leaver))
            continue;
        leaver->rank = RANK_NONE;
        leaver->entered = leaver->at_sent = false;
        roster_move(core, leaver, WORKER_LEAVING);
        leaver->may_block_switch = true;
        worker_limit(core, leaver, core->config.stall_us,
                     "the worker was told to leave, but did not");
    }
    tell_rounds(core, &core->last, NULL, msg_of_switch(core));
    round_tell(core);
}
