#include "driver/core/change.h"

#include "driver/core/assign.h"
#include "driver/core/clock.h"
#include "driver/core/loss.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/stall.h"
#include "driver/core/tell.h"
#include "proto/commit.h"

#include <inttypes.h>

#define TRIES_MAX    3 /* joins that fail before the joiner is given up */
#define RETRY_US     (1 * TIME_S)
#define RETRY_US_MAX (64 * TIME_S)

struct msg *change_prepare_msg(struct core *core, const struct round *round)
{
    struct msg *msg = tell_msg(core, MSG_PREPARE, 0, round->number);

    msg->u.prepare =
        (struct msg_prepare){ .previous = round->previous, .members = tell_members(core, round) };
    return msg;
}

struct msg *change_pending_msg(struct core *core)
{
    struct msg *msg = tell_msg(core, MSG_PENDING, 0, core->current.number);

    msg->u.pending.next = core->next.number;
    return msg;
}

struct msg *change_switch_msg(struct core *core)
{
    struct msg *msg = tell_msg(core, MSG_SWITCH_AT, 0, core->current.previous);

    msg->u.switch_at =
        (struct msg_switch_at){ .next = core->current.number, .check = core->current.check };
    return msg;
}

/* Of whatever was prepared up to now, or may have been by an earlier driver. */
struct msg *change_abandon_msg(struct core *core, const char *why)
{
    struct msg *msg = tell_msg(core, MSG_ABANDON, 0, core->current.number);

    msg->u.abandon =
        (struct msg_abandon){ .next = core->rounds, .reason = tell_text(core, "%s", why) };
    return msg;
}

/* Members that have to go and cannot yet: said once, and again when their number changes. */
static void trace_kept(struct core *core, size_t kept, bool too_few)
{
    if (kept && kept != core->kept_told && too_few)
        CORE_TRACE(core,
                   "kept for now: %zu that should go, as fewer than --min-np %" PRIu32
                   " would be left",
                   kept, core->config.min_np);
    else if (kept && kept != core->kept_told)
        CORE_TRACE(core, "kept for now: %zu that should go, to hand the state over", kept);
    core->kept_told = kept;
}

/* Fills core->next with those that the next round would have; false when it would be the same. */
static bool choose(struct core *core, bool with_joiners)
{
    const struct round *current = &core->current;
    struct round *next = &core->next;
    size_t stay = 0, keep, kept;
    bool too_few;

    round_clear(next);
    for (size_t i = 0; i < current->members.count; i++)
        stay += !roster_worker(core, current->members.items[i])->has_to_go;
    if (with_joiners)
        round_add_joiners(core);
    keep = assign_kept(stay, next->members.count, core->config.min_np);
    too_few = keep > 0;
    /* Somebody has to hand the state over; who it is leaves with the next change. If there is no
     * room for that, its agent does. */
    if (!stay && !keep && core->config.max_np > 1)
        keep = 1;
    if (keep > current->members.count - stay)
        keep = current->members.count - stay;
    trace_kept(core, keep, too_few);
    next->members.count = 0;
    for (size_t i = 0; i < current->members.count; i++) {
        const struct worker *worker = roster_worker(core, current->members.items[i]);

        if (worker->has_to_go && !keep)
            continue;
        keep -= worker->has_to_go;
        round_add(core, next, worker->incarnation);
    }
    kept = next->members.count;
    if (with_joiners)
        round_add_joiners(core);
    return !core->broken && (kept < current->members.count || next->members.count > kept);
}

static void begin(struct core *core)
{
    struct round *next = &core->next;
    struct msg *msg;

    next->number = ++core->rounds;
    next->previous = core->current.number;
    next->cause = CAUSE_SWITCH;
    next->commit = COMMIT_FIRST_OF(next->number);
    core->costs.prepare_us = core->now_us;
    for (size_t i = 0; i < next->members.count; i++) {
        struct worker *worker = roster_worker(core, next->members.items[i]);

        worker->next_rank = (uint32_t)i;
        worker->prepared = worker->at = false;
    }
    CORE_TRACE(core, "round %" PRIu64 " is prepared beside round %" PRIu64 ": size %zu -> %zu",
               next->number, next->previous, core->current.members.count, next->members.count);
    tell_record(core, JOURNAL_NUMBER)->round = next->number;
    msg = change_prepare_msg(core, next);
    tell_rounds(core, next, &core->current, msg); /* a leaver learns that it is not in it */
    core->change_deadline_us = time_add(core->now_us, core->config.prepare_us);
    clock_want(core, core->change_deadline_us);
    sm_move(&core->sm, JOB_PREPARING, core->now_us, "");
}

void change_look(struct core *core)
{
    bool joiners;

    ASSERT(job_state(core) == JOB_RUNNING && !core->next.number);
    if (core->current.entered < core->current.members.count)
        return;
    joiners = round_gathered(core, 1);
    if (!joiners && !core->going)
        return;
    if (core->now_us < core->vain.not_before_us) {
        clock_want(core, core->vain.not_before_us);
        return;
    }
    if (!choose(core, joiners) || !round_allowed(core)) {
        round_clear(&core->next);
        return;
    }
    begin(core);
}

static void forget_next(struct core *core)
{
    for (size_t i = 0; i < core->next.members.count; i++) {
        struct worker *worker = roster_worker(core, core->next.members.items[i]);

        if (worker) {
            worker->next_rank = RANK_NONE;
            worker->prepared = false;
        }
    }
    for (size_t i = 0; i < core->current.members.count; i++) {
        struct worker *worker = roster_worker(core, core->current.members.items[i]);

        if (worker)
            worker->at = false;
    }
    core->current.at = 0;
    core->current.max_check = 0;
}

void change_abandon(struct core *core, const char *why)
{
    ASSERT(core->next.number &&
           (job_state(core) == JOB_PREPARING || job_state(core) == JOB_PENDING));
    CORE_TRACE(core, "round %" PRIu64 " is abandoned: %s", core->next.number, why);
    tell_rounds(core, &core->current, &core->next, change_abandon_msg(core, why));
    forget_next(core);
    round_clear(&core->next);
    core->change_deadline_us = TIME_NEVER;
    core->look_at_rounds = true;
    sm_move(&core->sm, JOB_RUNNING, core->now_us, "");
}

/* One more change that came to nothing; the next one waits longer. */
static void retry_later(struct core *core)
{
    int64_t delay_us = RETRY_US;

    for (uint32_t i = 0; i < core->prepare_tries && delay_us < RETRY_US_MAX; i++)
        delay_us *= 2;
    core->prepare_tries++;
    core->vain.not_before_us = core->now_us + delay_us;
    clock_want(core, core->vain.not_before_us);
}

static bool is_joiner(const struct worker *worker)
{
    return worker->next_rank != RANK_NONE && worker_state(worker) == WORKER_READY;
}

/* It has not said that it is connected, and could have. */
static bool is_late(const struct core *core, const struct worker *worker)
{
    return !worker->prepared && clock_is_heard(core, worker, core->config.prepare_us);
}

/* Counts the failure against the joiners it may be due to: the one that said so, or that is late;
 * all of them, when it was a member. Those that have failed too often make room for others; it may
 * not be their fault, so their seats are not charged. */
static void give_up(struct core *core, const struct worker *culprit, const char *why)
{
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (is_joiner(worker) && (worker == culprit || (!culprit && is_late(core, worker)) ||
                                  (culprit && !is_joiner(culprit))))
            worker->failed_prepares++;
    change_abandon(core, why);
    retry_later(core);
    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (worker_state(worker) == WORKER_READY && worker->failed_prepares >= TRIES_MAX)
            loss_kill(core, worker, "it could not be connected to the others", true,
                      core->config.kill_grace_us);
}

/* Whoever has not come to a check in time may only be waiting for somebody else, in a collective:
 * no one is to blame unless others wait at one. Those then go on. */
void change_expire(struct core *core)
{
    core->change_deadline_us = TIME_NEVER;
    if (job_state(core) == JOB_PREPARING) {
        give_up(core, NULL, "not everybody was connected in time");
    } else if (job_state(core) == JOB_PENDING && !stall_end_who_never_checked(core)) {
        change_abandon(core, "not everybody came to a check in time");
        retry_later(core);
    }
}

static void ask_where(struct core *core)
{
    core->change_deadline_us = time_add(core->now_us, core->config.stall_us);
    clock_want(core, core->change_deadline_us);
    stall_watch(core);
    sm_move(&core->sm, JOB_PENDING, core->now_us, "");
    tell_rounds(core, &core->current, NULL, change_pending_msg(core));
}

void change_on_prepared(struct core *core, struct worker *worker, const struct msg *msg)
{
    char name[WORKER_NAME_MAX];

    if (job_state(core) != JOB_PREPARING || msg->round != core->next.number ||
        worker->next_rank == RANK_NONE || worker->prepared)
        return;
    if (msg->u.prepared.code) {
        give_up(core, worker,
                tell_text(core, "%s cannot connect: %s", worker_name(worker, name),
                          msg->u.prepared.text));
        return;
    }
    worker->prepared = true;
    if (++core->next.prepared == core->next.members.count)
        ask_where(core);
}

/* Those that are not in the next round leave at the agreed check. */
static void send_off(struct core *core)
{
    for (size_t i = 0; i < core->last.members.count; i++) {
        struct worker *worker = roster_worker(core, core->last.members.items[i]);

        ASSERT(worker);
        if (round_has(&core->current, worker))
            continue;
        worker->rank = RANK_NONE;
        worker->entered = worker->at = false;
        roster_move(core, worker, WORKER_LEAVING);
        worker->tied = true;
        clock_limit(core, worker, core->config.stall_us, "it was to leave and did not");
    }
}

static void survivors_hold(struct core *core)
{
    struct round *next = &core->next;

    next->holders.count = 0;
    if (VEC_RESERVE(&next->holders, next->members.count, LIMIT_WORKERS)) {
        core->broken = true;
        return;
    }
    for (size_t i = 0; i < next->members.count; i++)
        if (worker_state(roster_worker(core, next->members.items[i])) == WORKER_MEMBER)
            next->holders.items[next->holders.count++] = next->members.items[i];
}

static void switch_over(struct core *core)
{
    core->next.check = core->current.max_check + 1;
    survivors_hold(core);
    if (core->broken)
        return;
    core->prepare_tries = 0;
    core->change_deadline_us = TIME_NEVER;
    round_begin(core);
    send_off(core);
    tell_rounds(core, &core->last, NULL, change_switch_msg(core));
    round_tell(core);
}

void change_on_at(struct core *core, struct worker *worker, const struct msg *msg)
{
    struct round *round = &core->current;

    if (msg->u.at.check == UINT64_MAX)
        return; /* there is none after it */
    if (job_state(core) != JOB_PENDING || msg->round != round->number ||
        msg->u.at.next != core->next.number || worker_state(worker) != WORKER_MEMBER || worker->at)
        return;
    worker->at = true;
    stall_moved(worker);
    if (round->at == 0 || round->max_check < msg->u.at.check)
        round->max_check = msg->u.at.check;
    if (++round->at == round->members.count)
        switch_over(core);
}
