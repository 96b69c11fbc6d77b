/*
 * faults_phase.c: a process dies at a known moment of a change. The fault first causes a change,
 * then waits for the driver's log line that reports the moment, then kills a process.
 */
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/log_follow.h"
#include "tests/chaos/strike.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* the longest wait for the log line; a moment that has not come by then will not come */
#define COMES_US  (8 * TIME_S)
#define AFTER_US  (20 * TIME_MS)
#define LASTS_US  (2 * TIME_S)
#define ALL_TRAIN " train ("

enum cause {
    CAUSE_DEATH, /* a worker is killed */
    CAUSE_LEAVE, /* a host leaves the list */
    CAUSE_JOIN   /* the host comes back, after the other hosts have continued without it */
};

enum whom {
    WHOM_ANY,   /* a random worker or agent, or the driver */
    WHOM_NAMED, /* the worker that the line names */
    WHOM_LEAVER /* a worker or the agent of the host that has left the list */
};

struct phase {
    const char *line; /* the text that the log line contains */
    enum cause cause;
    enum whom whom;
    int64_t after_us; /* the kill comes up to this long after the line */
};

/* ---- the choice of the victim ---- */

/* Finds the worker that a line like "TIME 127.0.0.1:0#12 is launched" names. */
static const struct proc_info *named(const struct proc_scan *now, const char *line)
{
    const char *mark = strchr(line, '#');
    uint64_t incarnation = mark ? strtoull(mark + 1, NULL, 10) : 0;

    for (uint32_t i = 0; i < now->count; i++)
        if (now->processes[i].kind == PROC_WORKER && incarnation &&
            now->processes[i].incarnation == incarnation)
            return &now->processes[i];
    return NULL;
}

static const struct proc_info *of_leaver(struct chaos *chaos, const struct proc_scan *now, int host)
{
    if (host < 0)
        return NULL;
    if (rng_below(&chaos->rng, 3) == 0)
        return proc_scan_pick(now, PROC_AGENT, host, &chaos->rng);
    return proc_scan_pick(now, PROC_WORKER, host, &chaos->rng);
}

/* The moment has come: kills the victim that the phase names, or a random process. */
static void kill_in(struct chaos *chaos, const struct phase *phase, const char *line, int left)
{
    struct proc_scan *now = mem_alloc(sizeof(*now));
    const struct proc_info *victim = NULL;

    if (now)
        proc_scan_take(now, &chaos->arena);
    if (now && phase->whom == WHOM_NAMED)
        victim = named(now, line);
    else if (now && phase->whom == WHOM_LEAVER)
        victim = of_leaver(chaos, now, left);
    if (now && !victim) {
        /* A random victim. A fault may take the commits of one host at most, because another fault
         * may follow at once. So when a host has left the list, of all agents only that host's
         * agent may die. */
        const struct proc_info *process = NULL;

        switch (rng_below(&chaos->rng, 6)) {
        case 0:
            process = left < 0 ? strike_pick(chaos, now, PROC_AGENT)
                               : proc_scan_pick(now, PROC_AGENT, left, &chaos->rng);
            break;
        case 1: process = proc_scan_pick(now, PROC_DRIVER, -1, &chaos->rng); break;
        default: break;
        }
        victim = process ? process : proc_scan_pick(now, PROC_WORKER, -1, &chaos->rng);
    }
    if (!strike_signal(chaos, victim, SIGKILL))
        fault_say(chaos, "no worker was left to be killed");
    mem_free(now);
}

/* ---- the change ---- */

static int join_after_leaving(struct chaos *chaos, struct log_follow *follow, struct hvd_err *err)
{
    int rc = strike_unlist(chaos, err);

    if (rc)
        return rc;
    /* whether that is right is for the judge to decide */
    if (!log_follow_await(follow, ALL_TRAIN, clock_now_us() + COMES_US))
        fault_say(chaos, "no worker trains without it");
    fault_say(chaos, "and comes back");
    return strike_list(chaos, err);
}

static int begin(struct chaos *chaos, enum cause cause, struct log_follow *follow,
                 struct hvd_err *err)
{
    switch (cause) {
    case CAUSE_DEATH:
        return strike_signal(chaos, proc_scan_pick(&chaos->scan, PROC_WORKER, -1, &chaos->rng),
                             SIGKILL)
                   ? 0
                   : HVD_DONE;
    case CAUSE_LEAVE: return strike_unlist(chaos, err);
    case CAUSE_JOIN: return join_after_leaving(chaos, follow, err);
    }
    return HVD_E_INVAL;
}

/* Causes the change, waits for the log line of the phase, and kills. HVD_DONE: there was no
 * victim. */
static int strike(struct chaos *chaos, const struct phase *phase, struct hvd_err *err)
{
    char path[ARENA_PATH];
    const int64_t began_us = clock_now_us();
    struct log_follow follow;
    int rc = log_follow_open(&follow, arena_path(&chaos->arena, "job/events.log", path), err);

    if (rc)
        return rc;
    rc = begin(chaos, phase->cause, &follow, err);
    if (!rc && log_follow_await(&follow, phase->line, clock_now_us() + COMES_US)) {
        strike_wait(strike_time(chaos, 0, phase->after_us + 1));
        /* workers of a host that is listed again stay */
        kill_in(chaos, phase, follow.line, phase->cause == CAUSE_DEATH ? -1 : chaos->hosts[0]);
    } else if (!rc) {
        fault_say(chaos, "no '%s' came", phase->line);
    }
    log_follow_close(&follow);
    chaos->lasts_us = clock_now_us() - began_us + strike_time(chaos, 0, LASTS_US);
    return rc;
}

/* ---- the table of moments ---- */

#define LAUNCHED  " is launched"
#define READY     " is ready"
#define PREPARED  " is prepared beside "
#define SWITCHED  " (switch): size "
#define REVOKED   " is revoked: "
#define RECOVERED " (recovery): size "

#define VICTIMS   .names = "{worker}; {host}; the driver (pid {driver}) died of"
#define LEAVERS   .quiet = "a worker that leaves is not missed"

/* A fault at a moment: what the log says of the victims, the text of the driver's line, the cause
 * of the change, the victim, and the delay. */
#define PHASE(function, title, text, log, ...)                                                  \
    FAULT(function, title, .what = (text), log, .weight = 2, .missing = strike_needs_two_hosts, \
          .relent = strike_list)                                                                \
    {                                                                                           \
        static const struct phase phase = { __VA_ARGS__ };                                      \
                                                                                                \
        return strike(chaos, &phase, err);                                                      \
    }

/* A worker starts that replaces a dead one. */
PHASE(boot, "phase-boot", "a worker dies while it boots for one that has died", VICTIMS, LAUNCHED,
      CAUSE_DEATH, WHOM_NAMED, AFTER_US)

/* A worker is ready and waits for its first round. */
PHASE(ready, "phase-ready", "a worker dies while it waits to be taken in", VICTIMS, READY,
      CAUSE_DEATH, WHOM_NAMED, AFTER_US)

/* A round is prepared beside the one that trains, because a host leaves. */
PHASE(prepare, "phase-prepare", "a worker dies while a round without a host is prepared", VICTIMS,
      PREPARED, CAUSE_LEAVE, WHOM_ANY, 5 * TIME_MS)

/* A round is prepared because a host joins. */
PHASE(join, "phase-join", "a worker dies while a round with another host is prepared", VICTIMS,
      PREPARED, CAUSE_JOIN, WHOM_ANY, 5 * TIME_MS)

/* All members were told of the new round, and none is in it yet. */
PHASE(switch_over, "phase-switch", "a worker dies while all go over to a new round", VICTIMS,
      SWITCHED, CAUSE_JOIN, WHOM_ANY, 2 * TIME_MS)

PHASE(leave, "phase-leave", "a leaver dies while it leaves", LEAVERS, SWITCHED, CAUSE_LEAVE,
      WHOM_LEAVER, AFTER_US)

/* Survivors stop, and report their commits. */
PHASE(recover, "phase-recover", "a worker dies while survivors stop", VICTIMS, REVOKED, CAUSE_DEATH,
      WHOM_ANY, 3 * TIME_MS)

/* Members without the newest commit fetch it. */
PHASE(sync_state, "phase-sync", "a worker dies while survivors take the state over", VICTIMS,
      RECOVERED, CAUSE_DEATH, WHOM_ANY, 10 * TIME_MS)

/* Members connect and make their first step. */
PHASE(enter, "phase-enter", "a worker dies while survivors begin to train", VICTIMS, RECOVERED,
      CAUSE_DEATH, WHOM_ANY, 60 * TIME_MS)

/* ---- rounds without progress ---- */

#define FAILURES_IN_A_ROW \
    3 /* the default of --progress-restarts: one more in a slot ends the job */

/* Kills a worker that trained before the fault, because workers that boot are in no round. */
static bool kill_member(struct chaos *chaos)
{
    const struct proc_scan *before = &chaos->scan;
    const uint32_t from = (uint32_t)rng_below(&chaos->rng, before->count + 1);

    for (uint32_t i = 0; i < before->count; i++) {
        const struct proc_info *it = &before->processes[(from + i) % before->count];
        bool hit = it->kind != PROC_WORKER;

        for (uint32_t k = 0; k < chaos->victim_count; k++)
            hit = hit || chaos->victims[k] == it->pid;
        if (!hit && strike_signal(chaos, it, SIGKILL))
            return true;
    }
    return false;
}

/* The next round begins as soon as the survivors have stopped, and the kill comes before its first
 * commit. The driver says how many failures without a newer commit it has counted; the judge sees
 * that the job goes on, and log_check.c that the count keeps its bounds. */
FAULT(no_progress, "no-progress", .names = "{worker}: killed by signal 9",
      .what = "workers die in three rounds in a row, before a newer commit", .weight = 2,
      .missing = strike_needs_two_hosts)
{
    static const char said[] = " ended by failures without a newer commit";
    const int64_t began_us = clock_now_us();
    char path[ARENA_PATH];
    struct log_follow follow;
    uint32_t killed = 0;
    int rc = log_follow_open(&follow, arena_path(&chaos->arena, "job/events.log", path), err);

    if (rc)
        return rc;
    while (killed < FAILURES_IN_A_ROW && kill_member(chaos) && ++killed < FAILURES_IN_A_ROW &&
           log_follow_await(&follow, RECOVERED, clock_now_us() + COMES_US))
        continue;
    if (killed > 1)
        fault_say(chaos, log_follow_await(&follow, said, clock_now_us() + COMES_US)
                             ? "no commit in between"
                             : "with a commit in between");
    log_follow_close(&follow);
    chaos->lasts_us = clock_now_us() - began_us;
    return killed ? 0 : HVD_DONE;
}
