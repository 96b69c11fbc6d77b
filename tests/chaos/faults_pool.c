/*
 * faults_pool.c: the whole pool goes at one moment, as when a cloud takes all its machines back,
 * and the disk of the checkpoints fails. After a lost pool the training goes on from the newest
 * complete checkpoint, which the strike looks up while all processes are dead, and which the judge
 * compares. While checkpoints cannot be written, the training must not notice.
 */
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/disk_faults.h"
#include "tests/chaos/log_follow.h"
#include "tests/chaos/strike.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* the time until the command is started again */
#define AWAY_LOW  (50 * TIME_MS)
#define AWAY_HIGH (2 * TIME_S)
/* some intervals between checkpoints (arena.c) */
#define DISK_LOW  TIME_S
#define DISK_HIGH (3 * TIME_S)
/* of each write and of each sync */
#define SLOW_LOW  (100 * TIME_MS)
#define SLOW_HIGH TIME_S
#define SLICE_US  (200 * TIME_MS)

/* ---- the pool is lost ---- */

static bool is_hit(const struct proc_info *process, bool driver_too)
{
    switch (process->kind) {
    case PROC_FRONT:
    case PROC_DRIVER: return driver_too;
    case PROC_KEEPER:
    case PROC_AGENT:
    case PROC_WORKER: return true;
    case PROC_OTHER: break;
    }
    return false;
}

/* Kills these processes of the scan, in this order: a parent before the processes that it could
 * start again. Returns how many were killed. */
static uint32_t kill_kinds(const struct proc_scan *scan, bool driver_too)
{
    uint32_t killed = 0;

    for (int kind = PROC_FRONT; kind <= PROC_WORKER; kind++)
        for (uint32_t i = 0; i < scan->count; i++) {
            const struct proc_info *it = &scan->processes[i];

            if ((int)it->kind != kind || !is_hit(it, driver_too))
                continue;
            (void)kill(it->pid, SIGKILL); /* a worker may have died with its agent */
            killed++;
        }
    return killed;
}

/* Kills all processes with commits, of the machines that are here now, and looks up the newest
 * complete checkpoint. */
static int lose_pool(struct chaos *chaos, bool driver_too, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
    struct proc_scan *now;
    char path[ARENA_PATH];
    bool left = true;
    int rc;

    arena_path(&chaos->arena, "checkpoints", path);
    if (chaos->lost_us)
        return HVD_DONE; /* once in a fault: the judge compares one checkpoint */
    rc = checkpoints_newest(path, &chaos->kept, err);
    if (rc)
        return rc;
    now = mem_alloc(sizeof(*now));
    if (!now)
        return err_set(err, HVD_E_NOMEM, "no memory for a scan of processes");
    if (driver_too)
        (void)strike_signal(chaos, proc_scan_pick(&chaos->scan, PROC_FRONT, -1, &chaos->rng),
                            SIGKILL);
    fault_say(chaos, "%" PRIu32 " processes", kill_kinds(&chaos->scan, driver_too));
    chaos->lost_us = clock_now_us();
    /* A process that was started meanwhile, before its parent died, has no commits, and goes too.
     */
    while (driver_too && left && clock_now_us() < deadline_us) {
        proc_scan_take(now, &chaos->arena);
        left = kill_kinds(now, true) > 0;
        strike_wait(left ? TIME_MS : 0);
    }
    mem_free(now);
    rc = checkpoints_newest(path, &chaos->kept, err);
    if (!rc)
        fault_say(chaos, "kept: step %" PRId64, chaos->kept.step);
    return rc;
}

/* The command is started again. The time that passes is up to the strike. */
FAULT(reclaim_pool, "pool-reclaimed",
      .what = "SIGKILL to driver, agents and workers at once, and the command is started again",
      .weight = 3, .relent = strike_drive)
{
    chaos->lasts_us = strike_time(chaos, AWAY_LOW, AWAY_HIGH);
    return lose_pool(chaos, true, err);
}

/* The driver lives, and other machines come. Machines of the loopback have other addresses then; a
 * machine in a network comes again, with nothing on it. */
FAULT(reclaim_hosts, "agents-and-workers-reclaimed",
      .what = "SIGKILL to all agents and workers at once, and other hosts are listed", .weight = 1)
{
    struct arena *arena = &chaos->arena;
    int rc;

    for (uint32_t i = 0; i < arena->host_count; i++)
        if (!arena->hosts[i].listed)
            return HVD_DONE;
    rc = lose_pool(chaos, false, err);
    for (uint32_t i = 0; !rc && !arena->networks && i < arena->host_count; i++) {
        struct arena_host *host = &arena->hosts[i];

        snprintf(host->name, sizeof(host->name), "127.0.%d.%" PRIu32,
                 host->name[sizeof("127.0.") - 1] == '0' ? 1 : 0, i + 1);
    }
    return rc ? rc : arena_list(arena, err);
}

/* ---- the disk of the checkpoints ---- */

static int store_begin(struct chaos *chaos, struct hvd_err *err)
{
    struct log_follow *follow = mem_alloc(sizeof(*follow));
    char path[ARENA_PATH];
    int rc;

    if (!follow)
        return err_set(err, HVD_E_NOMEM, "no memory to follow a log");
    rc = log_follow_open(follow, arena_path(&chaos->arena, "job/events.log", path), err);
    if (rc) {
        mem_free(follow);
        return rc;
    }
    chaos->own = follow;
    chaos->lasts_us = strike_time(chaos, DISK_LOW, DISK_HIGH);
    return 0;
}

/* Waits for a line with this text, for --patience. */
static int store_await(struct chaos *chaos, const char *text, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;

    while (clock_now_us() < deadline_us && !*chaos->arena.broken_off)
        if (log_follow_await(chaos->own, text, clock_now_us() + SLICE_US))
            return 0;
    return *chaos->arena.broken_off
               ? 0
               : err_set(err, HVD_E_MISMATCH, "the log has no line \"%s\" within --patience", text);
}

/* The failure must be told, with the directory and this remedy, and a later checkpoint must be
 * complete. remedy NULL: nothing has to fail. */
static int store_end(struct chaos *chaos, const char *remedy, int (*calm)(struct chaos *),
                     struct hvd_err *err)
{
    struct log_follow *follow = chaos->own;
    char path[ARENA_PATH];
    size_t steps = chaos->steps.count;
    int rc = 0, calmed;

    if (follow && remedy) {
        rc = store_await(chaos, "no checkpoint could be made", err);
        arena_path(&chaos->arena, "checkpoints", path);
        if (!rc && !*chaos->arena.broken_off &&
            (!strstr(follow->line, path) || !strstr(follow->line, remedy)))
            rc = err_set(err, HVD_E_MISMATCH, "\"%s\" does not name %s, or the remedy \"%s\"",
                         follow->line, path, remedy);
    }
    if (!rc)
        rc = steps_read(&chaos->steps, err);
    if (!rc && follow && remedy && chaos->steps.count == steps && !*chaos->arena.broken_off)
        rc =
            steps_await(&chaos->steps, steps, clock_now_us() + chaos->arena.plan->patience_us, err);
    calmed = calm(chaos);
    if (calmed && !rc)
        rc = err_set(err, HVD_E_IO, "the directory of the checkpoints: %s", strerror(calmed));
    if (!rc && follow)
        rc = store_await(chaos, "is complete", err);
    if (follow)
        log_follow_close(follow);
    mem_free(follow);
    chaos->own = NULL;
    return rc;
}

static int calm_folder(struct chaos *chaos)
{
    disk_faults_calm(chaos->arena.folder_faults);
    return 0;
}

static int end_full(struct chaos *chaos, struct hvd_err *err)
{
    return store_end(chaos, "free some space", calm_folder, err);
}

FAULT(store_full, "checkpoint-disk-full", .what = "no space in the directory of the checkpoints",
      .cost = FAULT_COSTS_NOTHING, .weight = 1, .relent = end_full)
{
    int rc = store_begin(chaos, err);

    if (!rc)
        atomic_store(&chaos->arena.folder_faults->disk_full, 1);
    return rc;
}

static int end_readonly(struct chaos *chaos, struct hvd_err *err)
{
    return store_end(chaos, "writable", calm_folder, err);
}

FAULT(store_readonly, "checkpoint-disk-readonly",
      .what = "the directory of the checkpoints is read-only", .cost = FAULT_COSTS_NOTHING,
      .weight = 1, .relent = end_readonly)
{
    int rc = store_begin(chaos, err);

    if (!rc)
        atomic_store(&chaos->arena.folder_faults->disk_readonly, 1);
    return rc;
}

static int end_slow(struct chaos *chaos, struct hvd_err *err)
{
    return store_end(chaos, NULL, calm_folder, err);
}

FAULT(store_slow, "checkpoint-disk-slow",
      .what = "each write and sync of a checkpoint takes up to a second",
      .cost = FAULT_COSTS_NOTHING, .weight = 1, .relent = end_slow)
{
    struct disk_faults *faults = chaos->arena.folder_faults;
    int rc = store_begin(chaos, err);

    if (!rc) {
        atomic_store(&faults->write_delay_us, strike_time(chaos, SLOW_LOW, SLOW_HIGH));
        atomic_store(&faults->sync_delay_us, strike_time(chaos, SLOW_LOW, SLOW_HIGH));
    }
    return rc;
}

/* Renames the directory, and back: agents open it by its name. */
static int move_folder(struct chaos *chaos, bool away)
{
    char path[ARENA_PATH], other[ARENA_PATH];

    arena_path(&chaos->arena, "checkpoints", path);
    arena_path(&chaos->arena, "checkpoints-away", other);
    return rename(away ? path : other, away ? other : path) ? errno : 0;
}

static int calm_gone(struct chaos *chaos)
{
    return chaos->own ? move_folder(chaos, false) : 0;
}

static int end_gone(struct chaos *chaos, struct hvd_err *err)
{
    return store_end(chaos, "create the directory", calm_gone, err);
}

FAULT(store_gone, "checkpoint-disk-gone",
      .what = "the directory of the checkpoints is not there for a while",
      .cost = FAULT_COSTS_NOTHING, .weight = 1, .relent = end_gone)
{
    int rc = store_begin(chaos, err);
    int number = rc ? 0 : move_folder(chaos, true);

    return number ? err_set(err, HVD_E_IO, "the directory of the checkpoints: %s", strerror(number))
                  : rc;
}
