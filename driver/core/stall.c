/*
 * stall.c: warnings about workers that wait for long, and the decision which worker is ended for
 * it. waits.c knows which worker waits for which. A worker is guilty if other workers wait for it
 * and it does not wait itself. agents.c brings the workers' reports (STALLED), core.c calls this
 * file at deadlines. A worker is ended only if other workers have reported that they wait, or the
 * worker itself that it stands still; and only if its agent was connected all the time, because
 * otherwise the worker could not report that it waits too.
 */
#include "driver/core/stall.h"

#include "driver/core/loss.h"
#include "driver/core/pace.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"
#include "driver/core/waits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CHECK_OPERATION "check"
/* The longest time from the first report of a wait until all reports are judged together. */
#define GATHER_US_MAX  (2 * TIME_S)

#define NAMES_MAX      5 /* the most workers that one log line names */
#define NAMES_TEXT_MAX 1024

struct name_list {
    char text[NAMES_TEXT_MAX];
    size_t used, count;
};

/* Appends the worker's name to the list; names beyond NAMES_MAX are only counted. */
static void name_worker(struct name_list *names, const struct worker *worker)
{
    size_t room = sizeof(names->text) - names->used;
    const char *comma = names->count ? ", " : "";
    char name[WORKER_NAME_MAX], rank[32] = "";
    int length;

    if (names->count++ >= NAMES_MAX)
        return;
    if (worker->rank != RANK_NONE)
        snprintf(rank, sizeof(rank), "rank %" PRIu32 " (", worker->rank);
    length = snprintf(names->text + names->used, room, "%s%s%s%s", comma, rank,
                      worker_name(worker, name), *rank ? ")" : "");
    names->used += (size_t)length < room ? (size_t)length : room - 1;
}

/* Returns "rank 0 (a:0#1), rank 1 (a:1#2)"; if there are too many names, the first ones and the
 * number of the rest. */
static const char *names_text(struct core *core, const struct name_list *names)
{
    if (names->count <= NAMES_MAX)
        return tell_text(core, "%s", names->text);
    return tell_text(core, "%s and %zu more", names->text, names->count - NAMES_MAX);
}

/* Writes a duration for the log: in whole seconds, unless it is shorter than one second. */
static const char *stall_seconds(int64_t us, char text[TIME_TEXT_MAX])
{
    return time_format(us < TIME_S ? us : us - us % TIME_S, text);
}

/* Returns the names of the guilty workers, which an earlier call of waits_mark_missing has marked.
 * If none is guilty, returns what the log says instead of names. */
static const char *stall_culprits(struct core *core)
{
    struct name_list names = { .count = 0 };
    struct worker *worker;
    bool any = false;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        any |= worker->missing;
        if (waits_is_guilty(core, worker))
            name_worker(&names, worker);
    }
    if (names.count)
        return names_text(core, &names);
    return any ? "each other" : "workers that the reports do not name";
}

/* True: a warning may be logged now; the moment is noted, so the next warning waits. Workers report
 * once in each --stall-warning interval, but not all at the same moment: the first report of the
 * next interval may come a little earlier than an interval after this one. So a warning waits for
 * only three quarters of the interval. */
static bool stall_may_warn(struct core *core)
{
    int64_t warning_us = core->config.stall_warning_us;

    if (core->now_us < time_add(core->stalls.said_us, warning_us - warning_us / 4))
        return false;
    core->stalls.said_us = core->now_us;
    return true;
}

/* Asks the agents of these workers what all workers of their hosts are doing: a warning has named
 * the first of them. The answers are kept in files, and decide nothing. */
static void stall_examine(struct core *core, worker_is_fn *is_named)
{
    const struct core_host *last = NULL;
    const struct worker *worker;
    size_t hosts = 0;

    for (size_t i = 0; hosts < NAMES_MAX && (worker = roster_next(core, &i));) {
        if (!is_named(core, worker) || worker->host == last)
            continue;
        last = worker->host;
        hosts++;
        tell_host(core, worker->host, tell_msg(core, MSG_EXAMINE, 0, 0));
    }
}

/* Logs, if a warning is due, how many workers wait for others, for which, and for how long. If no
 * worker waits for another one, logs how many have reported that they themselves do not move. */
static void stall_warn(struct core *core)
{
    size_t count;
    const struct worker *one = waits_longest(core, waits_is_waiting, &count), *missing = NULL;
    const char *what = "wait for", *example = "", *of, *difference = "";
    char text[TIME_TEXT_MAX], name[WORKER_NAME_MAX], other[WORKER_NAME_MAX];

    if (!one) {
        one = waits_longest(core, waits_is_reported, &count);
        what = "do not move:";
    }
    if (!one || !stall_may_warn(core))
        return;
    /* waits_mark_missing marks the workers that others wait for, for the names in the log line. It
     * returns how many of these do not wait themselves. If there are none, workers wait for each
     * other in a circle, and the line gives two of them as an example. */
    if (!waits_mark_missing(core, 0 /* waits of any length */, core->now_us) && one->wait.count)
        missing = roster_worker(core, one->wait.missing[0]);
    if (missing && missing != one && waits_is_waiting(core, missing))
        example =
            tell_text(core, ": %s for %s", worker_name(one, name), worker_name(missing, other));
    if (*example)
        difference = pace_difference(core);
    of = tell_text(core, "%s, for %s in %s%s%s", stall_culprits(core),
                   stall_seconds(one->wait.waited_us, text), one->wait.operation, example,
                   difference);
    snprintf(core->stalls.said, sizeof(core->stalls.said), "%s", of);
    CORE_WARN(core, FACTS(.kind = KIND_STALL, .size = count, .cause = of),
              "round %" PRIu64 ": %zu of %zu %s %s", core->current.number, count,
              core->current.members.count, what, of);
    stall_examine(core, waits_is_guilty);
}

/* Kills the guilty workers: those that are marked as `missing` (other workers wait for them) and
 * have not reported that they wait themselves. A guilty worker is spared if its agent is away, or
 * has come back less than heard_us ago: the worker may wait too, and could not report it. If its
 * agent does not come back, lease.c ends the worker. */
static void stall_end_guilty(struct core *core, int64_t heard_us, const char *why)
{
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (waits_is_guilty(core, worker) && worker_is_alive(worker) &&
            worker_is_heard(core, worker, heard_us))
            /* 0: SIGKILL at once */
            loss_kill(core, worker, why, false /* not excused: the worker is to blame */, 0);
}

/* Returns how long the driver waits for more reports after the first one, before it judges all of
 * them together. */
static int64_t stall_gather_us(const struct core *core)
{
    int64_t gather_us = core->config.stall_warning_us / 4;

    return gather_us < GATHER_US_MAX ? gather_us : GATHER_US_MAX;
}

/* True: the worker has reported a wait that has lasted for --stall-shutdown. */
static bool stall_is_over_long(const struct core *core, const struct worker *worker)
{
    return waits_is_reported(core, worker) && worker->wait.waited_us >= core->config.stall_us;
}

/* True: the worker's wait has lasted for --stall-shutdown, and the first report that said so is
 * older than stall_gather_us. Members report such waits one shortly after the other, and a member
 * whose report is still on its way would seem not to wait. */
static bool stall_is_ripe(const struct core *core, const struct worker *worker)
{
    return stall_is_over_long(core, worker) &&
           time_add(worker->wait.long_us, stall_gather_us(core)) <= core->now_us;
}

/* Sets the time at which all reports of waits are judged together, shortly after the first one. */
static void stall_look_later(struct core *core)
{
    core->stalls.look_us = time_add(core->now_us, stall_gather_us(core));
    core_want_timer(core, core->stalls.look_us);
}

/* Ends the guilty workers when a wait has lasted for --stall-shutdown. If there is no guilty
 * worker, all workers wait for each other, and the round is revoked. The round is also revoked if
 * only workers of one host wait: a worker that really does not move is ended when it does not stop
 * for the recovery. A wait at a check (a call of hvd_state_check) is left to change.c, which
 * abandons the change. */
static void stall_judge(struct core *core)
{
    char text[TIME_TEXT_MAX];
    size_t count;
    const struct worker *one = waits_longest(core, stall_is_ripe, &count);
    const char *took, *why, *alone = NULL;
    const struct core_host *home;
    const struct worker *worker;
    size_t guilty;

    /* A wait is long enough, but the reports of other members may still be on their way. */
    if (!one && waits_longest(core, stall_is_over_long, &count))
        stall_look_later(core);
    if (!one)
        return;
    took =
        tell_text(core, "%s in %s", stall_seconds(one->wait.waited_us, text), one->wait.operation);
    guilty = waits_mark_missing(core, core->config.stall_us, core->now_us - stall_gather_us(core));
    /* `alone`: only workers of this host say that they wait, and a guilty worker is on another
     * host. The agent of `alone` may lie, so these reports are not enough to end a worker of
     * another host. A guilty worker that has itself reported for --stall-shutdown that it stands
     * still is left out of this question: its own report is enough to end it. */
    home = guilty ? waits_of_one_host(core) : NULL;
    for (size_t i = 0; home && !alone && (worker = roster_next(core, &i));)
        if (waits_is_guilty(core, worker) && worker->host != home &&
            !stall_is_over_long(core, worker))
            alone = home->name;
    if (guilty && !alone) {
        stall_end_guilty(core, waits_repeat_us(core),
                         tell_text(core, "%s for %s",
                                   one->wait.itself
                                       ? "the worker has not moved"
                                       : "the other members have waited for the worker",
                                   took));
    } else if (!one->wait.at_check) {
        why = tell_text(core, "%s wait for %s, for %s",
                        alone ? tell_text(core, "workers of %s, and of no other host,", alone)
                              : "the members",
                        stall_culprits(core), took);
        if (core->next.number) /* a round can be revoked only when no change is under way */
            round_abandon(core, why);
        round_revoke(core, NULL /* no worker has died */, why);
    }
}

/* True: a round runs, with or without a change under way. */
static bool stall_is_running(const struct core *core)
{
    return core->job >= JOB_RUNNING && core->job <= JOB_PENDING;
}

/* Handles REMARK, a text for the operator about the current round. Many workers may send the same
 * text, so a text that is equal to the last one is not logged again. */
void stall_on_remark(struct core *core, const struct worker *worker, const struct msg *msg)
{
    const char *text = msg->u.remark.text;
    char name[WORKER_NAME_MAX];

    if (msg->round != core->current.number || !strcmp(core->stalls.remark, text))
        return;
    snprintf(core->stalls.remark, sizeof(core->stalls.remark), "%s", text);
    CORE_WARN(core, FACTS(.kind = KIND_WORKER_REMARK, OF_WORKER(worker), .cause = text),
              "round %" PRIu64 ": %s: %s", msg->round, worker_name(worker, name), text);
}

/* Handles STALLED: the worker reports a wait, and the workers that it waits for, or itself if its
 * own training loop does not move. Nothing is judged here: stall_expire judges all reports together
 * a little later. `on_its_way`: the worker still leaves the previous round by a switch. */
void stall_on_stalled(struct core *core, struct worker *worker, const struct msg *msg)
{
    const struct msg_stalled *said = &msg->u.stalled;
    const struct round *round = &core->current;
    struct worker_wait *wait = &worker->wait;
    bool on_its_way =
        round->cause == CAUSE_SWITCH && msg->round == round->previous && !worker->entered;
    bool goes_on;

    /* PROTOCOL.md, K2: a report counts only if it is about this round, or about the round that the
     * worker is leaving for this one. */
    if (!stall_is_running(core) || !waits_is_in_round(worker) ||
        (msg->round != round->number && !on_its_way))
        return;
    /* goes_on: the report repeats a wait that was long before, so the time at which the wait became
     * long (long_us) stays. */
    goes_on = stall_is_over_long(core, worker) && said->waited_us >= wait->waited_us &&
              !strcmp(wait->operation, said->operation);
    *wait = (struct worker_wait){ .said_us = core->now_us,
                                  .long_us = goes_on ? wait->long_us : core->now_us,
                                  .waited_us = said->waited_us };
    if (!wait->waited_us)
        wait->waited_us = 1; /* 0 would say that the worker does not wait */
    snprintf(wait->operation, sizeof(wait->operation), "%s", said->operation);
    wait->at_check = !said->missing.count && !strcmp(wait->operation, CHECK_OPERATION);
    /* PROTOCOL.md, STALLED: a worker that names itself waits for no other worker. */
    for (size_t i = 0; i < said->missing.count; i++) {
        if (said->missing.items[i] == worker->incarnation)
            wait->itself = true;
        if (wait->count < ARRAY_SIZE(wait->missing))
            wait->missing[wait->count++] = said->missing.items[i];
    }
    if (wait->at_check && core->job != JOB_PENDING)
        /* The change was abandoned, so the worker no longer waits at the check. */
        waits_moved(worker);
    if (core->stalls.look_us == TIME_NEVER)
        stall_look_later(core);
}

/* True: the worker's round is revoked, and it has not said RECOVERING. The type worker_is_fn
 * requires the core, which is not used. */
static bool has_not_stopped(const struct core *core, const struct worker *worker)
{
    (void)core;
    return worker->state == WORKER_REVOKED;
}

/* True: the member has not begun to train in the current round, and does not say that it waits for
 * others. */
static bool has_not_begun(const struct core *core, const struct worker *worker)
{
    return worker->state == WORKER_MEMBER && !worker->entered && !waits_is_waiting(core, worker);
}

/* True: the member has not answered PENDING with the number of its next check, and does not say
 * that it waits for others. */
static bool has_not_checked(const struct core *core, const struct worker *worker)
{
    return worker->state == WORKER_MEMBER && !worker->at_sent && !waits_is_waiting(core, worker);
}

/* Logs the warnings that are due. There are two kinds: about the waits that workers report, and
 * about workers that the driver itself waits for in the present state of the job (`is_absent`). The
 * first kind also leads to verdicts. */
void stall_expire(struct core *core)
{
    enum job_state job = core->job;
    struct name_list names = { .count = 0 };
    const char *what = "";
    worker_is_fn *is_absent = NULL;
    char text[TIME_TEXT_MAX];
    struct worker *worker;

    if (core->stalls.look_us > core->now_us) {
        core_want_timer(core, core->stalls.look_us);
    } else {
        core->stalls.look_us = TIME_NEVER;
        if (stall_is_running(core)) {
            stall_warn(core);
            stall_judge(core);
        }
        job = core->job; /* stall_judge may have revoked the round */
    }
    if (core->stalls.watch.warn_us > core->now_us) {
        core_want_timer(core, core->stalls.watch.warn_us);
        return;
    }
    waits_watch_again(core, TIME_NEVER);
    if (job == JOB_RECOVERING && core->roster.count[WORKER_REVOKED]) {
        what = "stop for the recovery";
        is_absent = has_not_stopped;
    } else if (job == JOB_RUNNING && !round_all_entered(&core->current)) {
        what = "begin to train";
        is_absent = has_not_begun;
    } else if (job == JOB_PENDING) {
        what = "come to a check";
        is_absent = has_not_checked;
    } else {
        return;
    }
    waits_watch_again(core, time_add(core->now_us, core->config.stall_warning_us));
    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (is_absent(core, worker))
            name_worker(&names, worker);
    if (names.count && stall_may_warn(core)) {
        CORE_WARN(core,
                  FACTS(.kind = KIND_STALL, .size = names.count, .cause = what,
                        .took_us = core->now_us - core->stalls.watch.since_us),
                  "round %" PRIu64 ": after %s %zu of %zu workers have still to %s: %s",
                  core->current.number,
                  stall_seconds(core->now_us - core->stalls.watch.since_us, text), names.count,
                  core->current.members.count, what, names_text(core, &names));
        stall_examine(core, is_absent);
    }
}

/* Kills the workers for which is_absent returns true, if any worker of the round waits
 * (is_awaiting). Both callers pass an is_absent that is false for workers that wait themselves.
 * Workers whose agent was away at some moment of the last --stall-shutdown are spared, because they
 * could not report in time. A worker is killed in two steps: here it is marked as `missing`;
 * stall_end_guilty then kills the marked workers that do not wait. False: there is none to kill. */
static bool stall_end_absent(struct core *core, worker_is_fn *is_absent, worker_is_fn *is_awaiting,
                             const char *why)
{
    bool any_waits = false, any = false;
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        worker->missing = false;
        any_waits |= waits_is_in_round(worker) && is_awaiting(core, worker);
    }
    for (size_t i = 0; (worker = roster_next(core, &i));) {
        worker->missing = is_absent(core, worker) && any_waits &&
                          worker_is_heard(core, worker, core->config.stall_us);
        any |= worker->missing;
    }
    /* 0: worker_is_heard was asked above, with the whole --stall-shutdown */
    if (any)
        stall_end_guilty(core, 0, why);
    return any;
}

/* Called by change.c when members have not answered PENDING in time: ends those that do not wait
 * themselves while others wait at a check (a call of hvd_state_check). False: there is none, and
 * the caller abandons the change. */
bool stall_end_unchecked(struct core *core)
{
    return stall_end_absent(
        core, has_not_checked, waits_is_at_check,
        "the worker did not come to a check in time, and the other members wait at the check");
}

/* The time in which all members must begin to train (ENTERED) is over. Called by core.c when the
 * deadline of round_wait_enter has come. If a worker has reported that it waits, the driver kills
 * the members that have neither begun nor reported a wait: they keep that worker waiting. Otherwise
 * the driver revokes the round. */
void stall_expire_enter(struct core *core)
{
    const struct worker *worker;

    round_stop_waiting(core); /* the deadline has come once, and is set again only below */
    if (core->job != JOB_RUNNING || round_all_entered(&core->current))
        return;
    /* A member whose agent is away may have begun to train, and cannot report it. lease.c judges
     * how long the agent may be away. */
    for (size_t i = 0; (worker = roster_next_member(core, &core->current, &i));)
        if (!worker->entered && worker->host->agent != AGENT_THERE) {
            round_wait_enter(core);
            return;
        }
    if (!stall_end_absent(core, has_not_begun, waits_is_reported,
                          "the worker did not begin to train in time"))
        round_revoke(core, NULL, "not all members began to train in time");
}
