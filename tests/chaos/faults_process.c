/*
 * faults_process.c: faults of workers, agents and supervisors: killed, ended by SIGTERM, frozen for
 * less or more than the lease, one process or all of a host.
 */
#include "base/mem.h"
#include "base/time.h"
#include "tests/chaos/log_follow.h"
#include "tests/chaos/strike.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* A long time is the lease and one of these; a short one is far below the lease. */
#define SHORT_FROM_US (50 * TIME_MS)
#define SHORT_TO_US   (300 * TIME_MS)
#define LONG_FROM_US  TIME_S
#define LONG_TO_US    (4 * TIME_S)
#define NOTICE_US     (2 * TIME_S) /* from the notice to the end of a machine, at most */
#define KEEPER_US     (5 * TIME_S)

static int done(bool struck)
{
    return struck ? 0 : HVD_DONE;
}

/* ---- workers ---- */

static const struct proc_info *any_worker(struct chaos *chaos, int host)
{
    return proc_scan_pick(&chaos->scan, PROC_WORKER, host, &chaos->rng);
}

FAULT(kill_worker, "worker-kill", .names = "{worker}: killed by signal 9",
      .what = "SIGKILL to a worker", .weight = 8)
{
    return done(strike_signal(chaos, any_worker(chaos, -1), SIGKILL));
}

FAULT(end_worker, "worker-term", .names = "{worker}", .what = "SIGTERM to a worker", .weight = 2)
{
    return done(strike_signal(chaos, any_worker(chaos, -1), SIGTERM));
}

FAULT(kill_two_workers, "two-workers-kill", .names = "{worker}: killed by signal 9",
      .what = "SIGKILL to two workers on different hosts at once", .weight = 4,
      .missing = strike_needs_two_hosts)
{
    const struct proc_info *first = any_worker(chaos, -1);
    const struct proc_info *second = NULL;
    const uint32_t hosts = chaos->arena.host_count;
    uint32_t from = (uint32_t)rng_below(&chaos->rng, hosts);

    for (uint32_t i = 0; first && !second && i < hosts; i++)
        if ((int)((from + i) % hosts) != first->host)
            second = any_worker(chaos, (int)((from + i) % hosts));
    if (!first || !second || !strike_signal(chaos, first, SIGKILL))
        return HVD_DONE;
    (void)strike_signal(chaos, second, SIGKILL);
    return 0;
}

/* Kills the workers of this host (-1: of all hosts), one right after the other. */
static int kill_workers_of(struct chaos *chaos, int host)
{
    uint32_t killed = 0;

    for (uint32_t i = 0; i < chaos->scan.count; i++) {
        const struct proc_info *it = &chaos->scan.processes[i];

        if (it->kind == PROC_WORKER && (host < 0 || it->host == host))
            killed += strike_signal(chaos, it, SIGKILL);
    }
    return done(killed > 0);
}

FAULT(kill_host_workers, "host-workers-kill", .names = "{worker}: killed by signal 9",
      .what = "SIGKILL to all workers of a host", .weight = 3)
{
    const struct proc_info *worker = any_worker(chaos, -1);

    return worker && worker->host >= 0 ? kill_workers_of(chaos, worker->host) : HVD_DONE;
}

/* Kills all workers; their agents have their commits. */
FAULT(kill_all_workers, "all-workers-kill", .names = "{worker}: killed by signal 9",
      .what = "SIGKILL to all workers of the job", .weight = 1)
{
    return any_worker(chaos, -1) ? kill_workers_of(chaos, -1) : HVD_DONE;
}

/* Kills the worker of rank 0. Ranks change from round to round, so the rank is read from the
 * driver's line "by rank HOST:SLOT,SLOT HOST:SLOT ...", whose first slot has rank 0. */
FAULT(kill_first_rank, "rank0-kill", .names = "{worker}: killed by signal 9",
      .what = "SIGKILL to rank 0", .weight = 4)
{
    static const char text[] = "by rank ";
    char path[ARENA_PATH], line[LOG_FOLLOW_LINE], place[ARENA_NAME + 16];
    size_t length;

    if (!log_follow_last(arena_path(&chaos->arena, "job/events.log", path), text, line))
        return HVD_DONE;
    length = strcspn(line + strlen(text), ", ");
    for (uint32_t i = 0; i < chaos->scan.count; i++) {
        const struct proc_info *it = &chaos->scan.processes[i];

        if (it->kind != PROC_WORKER || it->host < 0)
            continue;
        snprintf(place, sizeof(place), "%s:%u", chaos->arena.hosts[it->host].name,
                 (unsigned)it->slot);
        if (strlen(place) == length && !memcmp(place, line + strlen(text), length))
            return done(strike_signal(chaos, it, SIGKILL));
    }
    return HVD_DONE;
}

/* ---- freezing ---- */

static int freeze(struct chaos *chaos, const struct proc_info *process, int64_t low_us,
                  int64_t high_us)
{
    chaos->lasts_us = strike_time(chaos, low_us, high_us);
    return done(strike_signal(chaos, process, SIGSTOP));
}

/* For longer than the lease. */
static int freeze_long(struct chaos *chaos, const struct proc_info *process)
{
    const int64_t lease_us = chaos->arena.plan->lease_us;

    return freeze(chaos, process, lease_us + LONG_FROM_US, lease_us + LONG_TO_US);
}

static int wake(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    fault_wake(chaos);
    return 0;
}

FAULT(freeze_worker_shortly, "worker-freeze-short", .quiet = "it is over before the lease",
      .what = "SIGSTOP to a worker, for less than the lease", .cost = FAULT_COSTS_NOTHING,
      .over = FAULT_OVER_BEFORE_LEASE, .weight = 3, .relent = wake)
{
    return freeze(chaos, any_worker(chaos, -1), SHORT_FROM_US, SHORT_TO_US);
}

FAULT(freeze_worker, "worker-freeze-long", .names = "{worker}",
      .what = "SIGSTOP to a worker, for longer than the lease", .weight = 3, .relent = wake)
{
    return freeze_long(chaos, any_worker(chaos, -1));
}

FAULT(freeze_agent_shortly, "agent-freeze-short", .quiet = "it is over before the lease",
      .what = "SIGSTOP to an agent, for less than the lease", .cost = FAULT_COSTS_NOTHING,
      .over = FAULT_OVER_BEFORE_LEASE, .weight = 3, .relent = wake)
{
    return freeze(chaos, proc_scan_pick(&chaos->scan, PROC_AGENT, -1, &chaos->rng), SHORT_FROM_US,
                  SHORT_TO_US);
}

FAULT(freeze_agent, "agent-freeze-long", .names = "{host}",
      .what = "SIGSTOP to an agent, for longer than the lease", .weight = 3,
      .missing = strike_needs_two_hosts, .relent = wake)
{
    return freeze_long(chaos, strike_pick(chaos, &chaos->scan, PROC_AGENT));
}

/* Freezes a supervisor, which only waits: no process may notice. */
FAULT(freeze_keeper, "keeper-freeze", .quiet = "it only waits for the end of its agent",
      .what = "SIGSTOP to the keeper of an agent", .cost = FAULT_COSTS_NOTHING, .weight = 1,
      .relent = wake)
{
    return freeze(chaos, proc_scan_pick(&chaos->scan, PROC_KEEPER, -1, &chaos->rng), SHORT_FROM_US,
                  KEEPER_US);
}

/* ---- agents ---- */

FAULT(kill_agent, "agent-kill", .names = "{host}", .what = "SIGKILL to an agent", .weight = 4,
      .missing = strike_needs_two_hosts)
{
    return done(strike_signal(chaos, strike_pick(chaos, &chaos->scan, PROC_AGENT), SIGKILL));
}

FAULT(kill_keeper, "keeper-kill", .names = "{host}", .what = "SIGKILL to the keeper of an agent",
      .weight = 2, .missing = strike_needs_two_hosts)
{
    return done(strike_signal(chaos, strike_pick(chaos, &chaos->scan, PROC_KEEPER), SIGKILL));
}

/* Kills an agent and its supervisor: no process is left to end the workers, so they must notice by
 * themselves. */
FAULT(kill_agent_and_keeper, "agent-keeper-kill", .names = "{host}",
      .what = "SIGKILL to an agent and its keeper at once", .weight = 2,
      .missing = strike_needs_two_hosts)
{
    const struct proc_info *agent = strike_pick(chaos, &chaos->scan, PROC_AGENT);
    const struct proc_info *keeper =
        agent ? proc_scan_pick(&chaos->scan, PROC_KEEPER, agent->host, &chaos->rng) : NULL;

    if (!keeper || !strike_signal(chaos, keeper, SIGKILL))
        return HVD_DONE;
    (void)strike_signal(chaos, agent, SIGKILL);
    return 0;
}

FAULT(kill_worker_and_agent, "worker-agent-kill", .names = "{host}; {worker}",
      .what = "SIGKILL to a worker and to an agent at once", .weight = 3,
      .missing = strike_needs_two_hosts)
{
    const struct proc_info *agent = strike_pick(chaos, &chaos->scan, PROC_AGENT);
    const struct proc_info *worker = any_worker(chaos, -1);

    if (!agent || !worker || !strike_signal(chaos, worker, SIGKILL))
        return HVD_DONE;
    (void)strike_signal(chaos, agent, SIGKILL);
    return 0;
}

/* ---- a machine that is taken away, with notice ---- */

/* Takes the host away with all processes that are still on it; a host with the same name may come
 * back. */
static int come_back(struct chaos *chaos, struct hvd_err *err)
{
    const char *name = chaos->cut_count ? chaos->arena.hosts[chaos->hosts[0]].name : NULL;
    const char *words[] = { "undrain", name, NULL };
    struct proc_scan *now = mem_alloc(sizeof(*now));

    if (now)
        proc_scan_take(now, &chaos->arena);
    for (uint32_t i = 0; now && name && i < now->count; i++)
        if (now->processes[i].host == chaos->hosts[0] || now->processes[i].pid == chaos->victims[0])
            kill(now->processes[i].pid, SIGKILL);
    mem_free(now);
    if (!name)
        return 0;
    chaos->cut_count = 0;
    return strike_ask(chaos, words, err);
}

/* Drains the host; its workers leave in order. */
FAULT(announce, "machine-notice", .names = "{host}",
      .what = "SIGTERM to an agent: its machine goes, and does", .weight = 2,
      .missing = strike_needs_two_hosts, .relent = come_back)
{
    const struct proc_info *agent = strike_pick(chaos, &chaos->scan, PROC_AGENT);

    chaos->lasts_us = strike_time(chaos, 0, NOTICE_US);
    if (!strike_signal(chaos, agent, SIGTERM))
        return HVD_DONE;
    chaos->hosts[chaos->cut_count++] = agent->host;
    return 0;
}
