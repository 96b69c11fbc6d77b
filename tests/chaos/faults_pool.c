/*
 * faults_pool.c: the whole pool goes at one moment, as when a cloud takes all its machines back,
 * and the disk of the checkpoints fails. After a lost pool the training goes on from the newest
 * complete checkpoint, which the strike looks up while all processes are dead, and which the judge
 * compares. While checkpoints cannot be written, the training must not notice.
 */
#include "base/time.h"
#include "tests/chaos/disk_faults.h"
#include "tests/chaos/pool.h"
#include "tests/chaos/strike.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* the time until the command is started again */
#define AWAY_LOW  (50 * TIME_MS)
#define AWAY_HIGH (2 * TIME_S)
/* of each write and of each sync */
#define SLOW_LOW  (100 * TIME_MS)
#define SLOW_HIGH TIME_S

/* ---- the pool is lost ---- */

/* The command is started again. The time that passes is up to the strike. */
FAULT(reclaim_pool, "pool-reclaimed", .names = "{thing}",
      .what = "SIGKILL to driver, agents and workers at once, and the command is started again",
      .weight = 3, .relent = strike_drive)
{
    chaos->lasts_us = strike_time(chaos, AWAY_LOW, AWAY_HIGH);
    return pool_lose(chaos, true, err);
}

/* The driver lives, and other machines come. Machines of the loopback have other addresses then; a
 * machine in a network comes again, with nothing on it. */
FAULT(reclaim_hosts, "agents-and-workers-reclaimed", .names = "{host}",
      .what = "SIGKILL to all agents and workers at once, and other hosts are listed", .weight = 1)
{
    struct arena *arena = &chaos->arena;
    int rc;

    for (uint32_t i = 0; i < arena->host_count; i++)
        if (!arena->hosts[i].listed)
            return HVD_DONE;
    rc = pool_lose(chaos, false, err);
    for (uint32_t i = 0; !rc && !arena->networks && i < arena->host_count; i++) {
        struct arena_host *host = &arena->hosts[i];

        snprintf(host->name, sizeof(host->name), "127.0.%d.%" PRIu32,
                 host->name[sizeof("127.0.") - 1] == '0' ? 1 : 0, i + 1);
    }
    return rc ? rc : arena_list(arena, err);
}

/* ---- the disk of the checkpoints ---- */

static const char *needs_directory(const struct chaos *chaos)
{
    return chaos->arena.plan->checkpoints == PLAN_DIRECTORY
               ? NULL
               : "the checkpoints are in a bucket: --checkpoints directory";
}

static int calm_folder(struct chaos *chaos)
{
    disk_faults_calm(chaos->arena.folder_faults);
    return 0;
}

static int end_full(struct chaos *chaos, struct hvd_err *err)
{
    return pool_store_end(chaos, "free some space", calm_folder, err);
}

FAULT(store_full, "checkpoint-disk-full", .names = "{thing}",
      .what = "no space in the directory of the checkpoints", .cost = FAULT_COSTS_NOTHING,
      .weight = 1, .missing = needs_directory, .relent = end_full)
{
    int rc = pool_store_begin(chaos, err);

    if (!rc)
        atomic_store(&chaos->arena.folder_faults->disk_full, 1);
    return rc;
}

static int end_readonly(struct chaos *chaos, struct hvd_err *err)
{
    return pool_store_end(chaos, "writable", calm_folder, err);
}

FAULT(store_readonly, "checkpoint-disk-readonly", .names = "{thing}",
      .what = "the directory of the checkpoints is read-only", .cost = FAULT_COSTS_NOTHING,
      .weight = 1, .missing = needs_directory, .relent = end_readonly)
{
    int rc = pool_store_begin(chaos, err);

    if (!rc)
        atomic_store(&chaos->arena.folder_faults->disk_readonly, 1);
    return rc;
}

static int end_slow(struct chaos *chaos, struct hvd_err *err)
{
    return pool_store_end(chaos, NULL, calm_folder, err);
}

FAULT(store_slow, "checkpoint-disk-slow",
      .quiet = "a checkpoint takes longer, and training does not wait for it",
      .what = "each write and sync of a checkpoint takes up to a second",
      .cost = FAULT_COSTS_NOTHING, .weight = 1, .missing = needs_directory, .relent = end_slow)
{
    struct disk_faults *faults = chaos->arena.folder_faults;
    int rc = pool_store_begin(chaos, err);

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
    return pool_store_end(chaos, "create the directory", calm_gone, err);
}

FAULT(store_gone, "checkpoint-disk-gone", .names = "{thing}",
      .what = "the directory of the checkpoints is not there for a while",
      .cost = FAULT_COSTS_NOTHING, .weight = 1, .missing = needs_directory, .relent = end_gone)
{
    int rc = pool_store_begin(chaos, err);
    int number = rc ? 0 : move_folder(chaos, true);

    return number ? err_set(err, HVD_E_IO, "the directory of the checkpoints: %s", strerror(number))
                  : rc;
}
