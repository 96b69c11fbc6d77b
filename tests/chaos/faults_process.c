#include "base/mem.h"
#include "base/time.h"
#include "tests/chaos/chronicle.h"
#include "tests/chaos/strike.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Against the arena's --lease of 1 s and --stall-shutdown of 5 s. */
#define SHORT_FROM_US (50 * TIME_MS)
#define SHORT_TO_US   (300 * TIME_MS)
#define LONG_FROM_US  (2 * TIME_S)
#define LONG_TO_US    (5 * TIME_S)

static int done(bool struck)
{
    return struck ? 0 : HVD_DONE;
}

/* ---- workers -----------------------------------------------------------------------------------
 */

static const struct sight_process *any_worker(struct chaos *chaos, int host)
{
    return sight_pick(&chaos->sight, SIGHT_WORKER, host, &chaos->rng);
}

static int kill_worker(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return done(strike_signal(chaos, any_worker(chaos, -1), SIGKILL));
}

static int end_worker(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return done(strike_signal(chaos, any_worker(chaos, -1), SIGTERM));
}

static int kill_two_workers(struct chaos *chaos, struct hvd_err *err)
{
    const struct sight_process *first = any_worker(chaos, -1);
    const struct sight_process *second = NULL;
    const uint32_t hosts = chaos->arena.host_count;
    uint32_t from = (uint32_t)rng_below(&chaos->rng, hosts);

    (void)err;
    for (uint32_t i = 0; first && !second && i < hosts; i++)
        if ((int)((from + i) % hosts) != first->host)
            second = any_worker(chaos, (int)((from + i) % hosts));
    if (!first || !second || !strike_signal(chaos, first, SIGKILL))
        return HVD_DONE;
    (void)strike_signal(chaos, second, SIGKILL);
    return 0;
}

/* On that host (-1: on all of them), one right after the other. */
static int kill_workers_of(struct chaos *chaos, int host)
{
    uint32_t killed = 0;

    for (uint32_t i = 0; i < chaos->sight.count; i++) {
        const struct sight_process *it = &chaos->sight.processes[i];

        if (it->kind == SIGHT_WORKER && (host < 0 || it->host == host))
            killed += kill(it->pid, SIGKILL) == 0;
    }
    fault_say(chaos, "all %u of %s", (unsigned)killed,
              host < 0 ? "the job" : chaos->arena.hosts[host].name);
    return done(killed > 0);
}

static int kill_host_workers(struct chaos *chaos, struct hvd_err *err)
{
    const struct sight_process *worker = any_worker(chaos, -1);

    (void)err;
    return worker && worker->host >= 0 ? kill_workers_of(chaos, worker->host) : HVD_DONE;
}

/* Their agents have what they had committed. */
static int kill_all_workers(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return any_worker(chaos, -1) ? kill_workers_of(chaos, -1) : HVD_DONE;
}

/* Its environment does not say it: ranks change from round to round. The driver's line does, "by
 * rank HOST:SLOT,SLOT HOST:SLOT ...", of which the first is meant. */
static int kill_first_rank(struct chaos *chaos, struct hvd_err *err)
{
    static const char text[] = "by rank ";
    char path[ARENA_PATH], line[CHRONICLE_LINE], place[ARENA_NAME + 16];
    size_t length;

    (void)err;
    if (!chronicle_last(arena_path(&chaos->arena, "job/events.log", path), text, line))
        return HVD_DONE;
    length = strcspn(line + strlen(text), ", ");
    for (uint32_t i = 0; i < chaos->sight.count; i++) {
        const struct sight_process *it = &chaos->sight.processes[i];

        if (it->kind != SIGHT_WORKER || it->host < 0)
            continue;
        snprintf(place, sizeof(place), "%s:%u", chaos->arena.hosts[it->host].name,
                 (unsigned)it->slot);
        if (strlen(place) == length && !memcmp(place, line + strlen(text), length))
            return done(strike_signal(chaos, it, SIGKILL));
    }
    return HVD_DONE;
}

/* ---- freezing ----------------------------------------------------------------------------------
 */

static int freeze(struct chaos *chaos, const struct sight_process *process, int64_t low_us,
                  int64_t high_us)
{
    chaos->lasts_us = strike_time(chaos, low_us, high_us);
    return done(strike_signal(chaos, process, SIGSTOP));
}

static int freeze_worker_shortly(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return freeze(chaos, any_worker(chaos, -1), SHORT_FROM_US, SHORT_TO_US);
}

static int freeze_worker(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return freeze(chaos, any_worker(chaos, -1), LONG_FROM_US, LONG_TO_US);
}

static int freeze_agent_shortly(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return freeze(chaos, sight_pick(&chaos->sight, SIGHT_AGENT, -1, &chaos->rng), SHORT_FROM_US,
                  SHORT_TO_US);
}

static int freeze_agent(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return freeze(chaos, strike_pick(chaos, &chaos->sight, SIGHT_AGENT), LONG_FROM_US, LONG_TO_US);
}

/* A keeper only waits: nobody misses it while it is frozen. */
static int freeze_keeper(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return freeze(chaos, sight_pick(&chaos->sight, SIGHT_KEEPER, -1, &chaos->rng), SHORT_FROM_US,
                  LONG_TO_US);
}

static int wake(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    fault_wake(chaos);
    return 0;
}

/* ---- agents ------------------------------------------------------------------------------------
 */

static int kill_agent(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return done(strike_signal(chaos, strike_pick(chaos, &chaos->sight, SIGHT_AGENT), SIGKILL));
}

static int kill_keeper(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return done(strike_signal(chaos, strike_pick(chaos, &chaos->sight, SIGHT_KEEPER), SIGKILL));
}

/* Nobody is left who would end its workers: they have to find out by themselves. */
static int kill_agent_and_keeper(struct chaos *chaos, struct hvd_err *err)
{
    const struct sight_process *agent = strike_pick(chaos, &chaos->sight, SIGHT_AGENT);
    const struct sight_process *keeper =
        agent ? sight_pick(&chaos->sight, SIGHT_KEEPER, agent->host, &chaos->rng) : NULL;

    (void)err;
    if (!keeper || !strike_signal(chaos, keeper, SIGKILL))
        return HVD_DONE;
    (void)strike_signal(chaos, agent, SIGKILL);
    return 0;
}

static int kill_worker_and_agent(struct chaos *chaos, struct hvd_err *err)
{
    const struct sight_process *agent = strike_pick(chaos, &chaos->sight, SIGHT_AGENT);
    const struct sight_process *worker = any_worker(chaos, -1);

    (void)err;
    if (!agent || !worker || !strike_signal(chaos, worker, SIGKILL))
        return HVD_DONE;
    (void)strike_signal(chaos, agent, SIGKILL);
    return 0;
}

/* ---- a machine that is taken away, with notice -------------------------------------------------
 */

/* Its workers leave in order, */
static int announce(struct chaos *chaos, struct hvd_err *err)
{
    const struct sight_process *agent = strike_pick(chaos, &chaos->sight, SIGHT_AGENT);

    (void)err;
    chaos->lasts_us = strike_time(chaos, 0, LONG_FROM_US);
    if (!strike_signal(chaos, agent, SIGTERM))
        return HVD_DONE;
    chaos->hosts[chaos->cut_count++] = agent->host;
    return 0;
}

/* and it goes, with all that is still on it; another one of that name may be used. */
static int come_back(struct chaos *chaos, struct hvd_err *err)
{
    const char *name = chaos->cut_count ? chaos->arena.hosts[chaos->hosts[0]].name : NULL;
    const char *words[] = { "undrain", name, NULL };
    struct sight *now = mem_alloc(sizeof(*now));

    if (now)
        sight_take(now, &chaos->arena);
    for (uint32_t i = 0; now && name && i < now->count; i++)
        if (now->processes[i].host == chaos->hosts[0] || now->processes[i].pid == chaos->victims[0])
            kill(now->processes[i].pid, SIGKILL);
    mem_free(now);
    if (!name)
        return 0;
    chaos->cut_count = 0;
    return strike_ask(chaos, words, err);
}

/* clang-format off */
#define ROW(title, ...) { .name = (title), __VA_ARGS__ }
/* clang-format on */

const struct fault process_faults[] = {
    ROW("worker-kill", .what = "SIGKILL to a worker", .weight = 8, .strike = kill_worker),
    ROW("worker-term", .what = "SIGTERM to a worker", .weight = 2, .strike = end_worker),
    ROW("rank0-kill", .what = "SIGKILL to rank 0", .weight = 4, .strike = kill_first_rank),
    ROW("two-workers-kill", .what = "SIGKILL to two workers on different hosts at once",
        .weight = 4, .missing = strike_needs_two_hosts, .strike = kill_two_workers),
    ROW("host-workers-kill", .what = "SIGKILL to all workers of a host", .weight = 3,
        .strike = kill_host_workers),
    ROW("all-workers-kill", .what = "SIGKILL to all workers of the job", .weight = 1,
        .strike = kill_all_workers),
    ROW("worker-freeze-short", .what = "SIGSTOP to a worker, for less than the lease",
        .cost = FAULT_COSTS_NOTHING, .weight = 3, .strike = freeze_worker_shortly, .relent = wake),
    ROW("worker-freeze-long", .what = "SIGSTOP to a worker, for longer than the lease", .weight = 3,
        .strike = freeze_worker, .relent = wake),
    ROW("agent-kill", .what = "SIGKILL to an agent", .weight = 4, .missing = strike_needs_two_hosts,
        .strike = kill_agent),
    ROW("keeper-kill", .what = "SIGKILL to the keeper of an agent", .weight = 2,
        .missing = strike_needs_two_hosts, .strike = kill_keeper),
    ROW("agent-keeper-kill", .what = "SIGKILL to an agent and its keeper at once", .weight = 2,
        .missing = strike_needs_two_hosts, .strike = kill_agent_and_keeper),
    ROW("worker-agent-kill", .what = "SIGKILL to a worker and to an agent at once", .weight = 3,
        .missing = strike_needs_two_hosts, .strike = kill_worker_and_agent),
    ROW("machine-notice", .what = "SIGTERM to an agent: its machine goes, and does", .weight = 2,
        .missing = strike_needs_two_hosts, .strike = announce, .relent = come_back),
    ROW("agent-freeze-short", .what = "SIGSTOP to an agent, for less than the lease",
        .cost = FAULT_COSTS_NOTHING, .weight = 3, .strike = freeze_agent_shortly, .relent = wake),
    ROW("agent-freeze-long", .what = "SIGSTOP to an agent, for longer than the lease", .weight = 3,
        .missing = strike_needs_two_hosts, .strike = freeze_agent, .relent = wake),
    ROW("keeper-freeze", .what = "SIGSTOP to the keeper of an agent", .cost = FAULT_COSTS_NOTHING,
        .weight = 1, .strike = freeze_keeper, .relent = wake),
};
const size_t process_fault_count = ARRAY_SIZE(process_faults);
