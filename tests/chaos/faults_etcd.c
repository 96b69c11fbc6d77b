/*
 * faults_etcd.c: faults of a job that is kept in etcd (--store etcd): the machine of the driver is
 * lost and a standby takes over; servers of etcd are killed, silent, slow and full. Training needs
 * no store, so what changes no membership must cost nothing.
 */
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/arena_store.h"
#include "tests/chaos/log_follow.h"
#include "tests/chaos/strike.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* Less than SCRIBE_PATIENCE, for which a driver tries to write. */
#define AWAY_FROM_US (200 * TIME_MS)
#define AWAY_TO_US   (4 * TIME_S)
/* Longer than --stall-shutdown of most arenas; until there is space it takes about a second more.
 */
#define FULL_TO_US   (10 * TIME_S)
#define SLOW_FROM_US (100 * TIME_MS)
#define SLOW_TO_US   (400 * TIME_MS)
#define SLOW_TIMES   8
#define AWAKE_US     (30 * TIME_MS)
#define TREE_FILES   16
#define LOOK_US      (10 * TIME_MS)
#define LOG_LINE     1024

static const char *needs_etcd(const struct chaos *chaos)
{
    return chaos->arena.plan->store == PLAN_ETCD ? NULL : "the job is in a file: --store etcd";
}

/* ---- the machine of the driver ---- */

static const char *needs_etcd_and_hosts(const struct chaos *chaos)
{
    const char *missing = needs_etcd(chaos);

    return missing ? missing : strike_needs_two_hosts(chaos);
}

/* Removes what a lost disk takes with it. events.log stays, for the judge. */
static int lose_file(const char *path, const struct stat *stat, int kind, struct FTW *ftw)
{
    (void)stat;
    if (kind != FTW_DP && !strstr(path, "/events.log"))
        (void)remove(path);
    (void)ftw;
    return 0;
}

/* How often a standby of this arena has begun to wait. */
static unsigned count_standbys(const struct arena *arena)
{
    char path[ARENA_PATH], line[LOG_LINE];
    FILE *file = fopen(arena_path(arena, "driver.log", path), "re");
    unsigned count = 0;

    while (file && fgets(line, sizeof(line), file))
        count += strstr(line, "waiting until it has no driver") != NULL;
    if (file)
        (void)fclose(file);
    return count;
}

/* Starts a standby, and waits until it waits for the end of the driver. */
static int await_standby(struct chaos *chaos, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
    const unsigned before = count_standbys(&chaos->arena);
    int rc = arena_stand_by(&chaos->arena, err);

    while (!rc && count_standbys(&chaos->arena) == before) {
        if (clock_now_us() > deadline_us || *chaos->arena.broken_off)
            rc = err_set(err, HVD_E_TIMEOUT, "the standby does not wait; see driver.log");
        strike_wait(LOOK_US);
    }
    return rc;
}

/* Kills the driver, its parent, and all processes of one host, and removes the driver's folder: a
 * standby that uses this folder's name on another disk goes on. */
FAULT(lose_driver_host, "driver-host-lost", .names = "{host}; the job has no driver",
      .what = "the driver's machine is lost, with an agent and its workers; a standby takes over",
      .weight = 3, .missing = needs_etcd_and_hosts)
{
    const struct proc_info *agent = strike_pick(chaos, &chaos->scan, PROC_AGENT);
    char path[ARENA_PATH];
    int status, rc;

    if (!agent)
        return HVD_DONE;
    rc = await_standby(chaos, err);
    if (rc)
        return rc;
    fault_say(chaos, "driver");
    fault_note_host(chaos, agent->host);
    for (uint32_t i = 0; i < chaos->scan.count; i++)
        if (chaos->scan.processes[i].kind == PROC_FRONT)
            kill(chaos->scan.processes[i].pid, SIGKILL); /* first, so it starts no driver */
    for (uint32_t i = 0; i < chaos->scan.count; i++)
        if (chaos->scan.processes[i].kind == PROC_DRIVER ||
            chaos->scan.processes[i].host == agent->host)
            kill(chaos->scan.processes[i].pid, SIGKILL);
    while (waitpid(chaos->arena.former, &status, 0) < 0 && errno == EINTR)
        continue;
    chaos->arena.former = 0;
    nftw(arena_path(&chaos->arena, "job", path), lose_file, TREE_FILES, FTW_DEPTH | FTW_PHYS);
    return 0;
}

/* ---- servers of etcd ---- */

/* The server that the fault has hit; relent undoes it. */
static unsigned hit;

static int start_again(struct chaos *chaos, struct hvd_err *err)
{
    (void)chaos;
    return arena_store_again(hit, err);
}

FAULT(kill_etcd_leader, "etcd-leader-killed", .quiet = "the other two servers go on",
      .what = "SIGKILL to the server of etcd that leads", .cost = FAULT_COSTS_NOTHING, .weight = 2,
      .missing = needs_etcd, .relent = start_again)
{
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
    int leader;

    while ((leader = arena_store_leader(err)) < 0) { /* there may be an election */
        if (clock_now_us() > deadline_us || *chaos->arena.broken_off)
            return leader;
        strike_wait(AWAKE_US);
    }
    hit = (unsigned)leader;
    chaos->lasts_us = strike_time(chaos, AWAY_FROM_US, AWAY_TO_US);
    fault_say(chaos, "server %u", hit);
    arena_store_signal(hit, SIGKILL);
    return 0;
}

static int wake_servers(struct chaos *chaos, struct hvd_err *err)
{
    (void)chaos;
    (void)err;
    for (unsigned i = 0; i < ARENA_STORE_SERVERS; i++)
        arena_store_signal(i, SIGCONT);
    return 0;
}

FAULT(leave_etcd_minority, "etcd-minority", .quiet = "no change has to be written",
      .what = "two servers of etcd fall silent: the third one alone may write nothing",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .missing = needs_etcd, .relent = wake_servers)
{
    hit = (unsigned)rng_below(&chaos->rng, ARENA_STORE_SERVERS);
    chaos->lasts_us = strike_time(chaos, AWAY_FROM_US, AWAY_TO_US);
    fault_say(chaos, "all servers but %u", hit);
    for (unsigned i = 0; i < ARENA_STORE_SERVERS; i++)
        if (i != hit)
            arena_store_signal(i, SIGSTOP);
    return 0;
}

static int kill_a_worker(struct chaos *chaos)
{
    fault_blame(chaos, BLAME_THING, arena_store_url());
    return strike_kill(chaos, PROC_WORKER, -1);
}

/* The change that a dead worker causes has to be written while the servers stand still again and
 * again. */
FAULT(slow_etcd_down, "etcd-slow",
      .names = "the journal ({thing}) has not been written; {worker}: killed by signal 9",
      .what = "a worker is killed while all servers of etcd answer late, or not in time",
      .weight = 2, .missing = needs_etcd, .relent = wake_servers)
{
    int rc = kill_a_worker(chaos);

    (void)err;
    for (unsigned n = 0; n < SLOW_TIMES && !rc; n++) {
        for (unsigned i = 0; i < ARENA_STORE_SERVERS; i++)
            arena_store_signal(i, SIGSTOP);
        strike_wait(strike_time(chaos, SLOW_FROM_US, SLOW_TO_US));
        (void)wake_servers(chaos, NULL);
        strike_wait(AWAKE_US);
    }
    return rc;
}

static int drain_etcd(struct chaos *chaos, struct hvd_err *err)
{
    (void)chaos;
    return arena_store_drain(err);
}

FAULT(fill_etcd, "etcd-full",
      .names =
          "the journal ({thing}) has not been written; its database is full; {worker}: killed by "
          "signal 9",
      .what = "a worker is killed while the database of etcd is full (NOSPACE)", .weight = 1,
      .missing = needs_etcd, .relent = drain_etcd)
{
    int rc = arena_store_fill(err);

    chaos->lasts_us = strike_time(chaos, AWAY_FROM_US, FULL_TO_US);
    fault_say(chaos, "no space");
    if (!rc && kill_a_worker(chaos))
        rc = strike_whole(chaos, HVD_DONE, drain_etcd, err);
    return rc;
}
