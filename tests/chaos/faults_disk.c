/*
 * faults_disk.c: faults of the driver's disk and of its wall clock. The promises are in
 * docs/operations.md: while the disk hangs, or for a while is full, training continues and changes
 * wait. With a broken disk the driver ends with code 4, and its parent starts drivers until the
 * disk works again. The wall clock decides nothing.
 */
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/disk_faults.h"
#include "tests/chaos/strike.h"

#include <signal.h>
#include <stdlib.h>

#define FULL_LOW (300 * TIME_MS)
/* much shorter than the time for which a driver waits for a full disk (SCRIBE_PATIENCE) */
#define FULL_HIGH   (3 * TIME_S)
#define SLOW_LOW    (300 * TIME_MS)
#define SLOW_HIGH   TIME_S
#define JUMP_LOW    TIME_HOUR
#define JUMP_HIGH   (30 * TIME_DAY)
#define A_WHILE_LOW (500 * TIME_MS)
#define A_WHILE     (2 * TIME_S)

static int calm(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    disk_faults_calm(chaos->arena.disk_faults);
    return 0;
}

/* The log names the driver's folder, and may name that of the checkpoints, which is on this disk.
 */
static void blame_disk(struct chaos *chaos)
{
    char path[ARENA_PATH];

    fault_blame(chaos, BLAME_THING, arena_path(&chaos->arena, "job", path));
    fault_allow(chaos, BLAME_THING, arena_path(&chaos->arena, "checkpoints", path));
}

static int kill_worker(struct chaos *chaos, struct hvd_err *err)
{
    return strike_whole(chaos, strike_kill(chaos, PROC_WORKER, -1), calm, err);
}

/* ---- faults of the disk ---- */

/* The disk is full and a worker dies. The death must be recorded, which waits until there is room.
 */
FAULT(disk_full, "disk-full", .names = "{thing}/job.db; {worker}: killed by signal 9",
      .names_etcd = "{worker}: killed by signal 9",
      .what = "no space on the driver's disk while a worker is killed", .weight = 2, .relent = calm)
{
    chaos->lasts_us = strike_time(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.disk_faults->disk_full, 1);
    blame_disk(chaos);
    return kill_worker(chaos, err);
}

/* The disk is full, and nothing changes, so nothing has to be written. */
FAULT(disk_full_in_peace, "disk-full-peace", .quiet = "no change has to be written",
      .what = "no space on the driver's disk while nothing happens", .cost = FAULT_COSTS_NOTHING,
      .weight = 1, .relent = calm)
{
    chaos->lasts_us = strike_time(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.disk_faults->disk_full, 1);
    blame_disk(chaos);
    return 0;
}

/* The disk is full and the driver dies. A successor that cannot write ends with code 4; a later one
 * can. */
FAULT(disk_full_and_driver, "disk-full-driver",
      .names = "{thing}/; the driver (pid {driver}) died of signal 9",
      .names_etcd = "the driver (pid {driver}) died of signal 9",
      .what = "no space on the disk, and the driver is killed; its successors find none either",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = calm)
{
    chaos->lasts_us = strike_time(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.disk_faults->disk_full, 1);
    blame_disk(chaos);
    return strike_whole(chaos, strike_kill(chaos, PROC_DRIVER, -1), calm, err);
}

/* The death cannot be recorded, so the driver ends with code 4, and so do its successors. */
FAULT(disk_broken, "disk-broken",
      .names = "the driver cannot go on: job {thing}/; {worker}: killed by signal 9",
      .names_etcd = "{worker}: killed by signal 9",
      .what = "the driver's disk says EIO while a worker is killed", .weight = 2, .relent = calm)
{
    chaos->lasts_us = strike_time(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.disk_faults->disk_broken, 1);
    blame_disk(chaos);
    return kill_worker(chaos, err);
}

static void slow(struct chaos *chaos)
{
    atomic_store(&chaos->arena.disk_faults->sync_delay_us, strike_time(chaos, SLOW_LOW, SLOW_HIGH));
    chaos->lasts_us = strike_time(chaos, A_WHILE_LOW, A_WHILE);
    blame_disk(chaos);
}

FAULT(disk_slow, "disk-slow", .quiet = "no change waits for the disk",
      .what = "each sync of the driver takes up to a second", .cost = FAULT_COSTS_NOTHING,
      .weight = 2, .relent = calm)
{
    slow(chaos);
    return 0;
}

FAULT(disk_slow_and_kill, "disk-slow-kill", .names = "{thing}/job.db; {worker}: killed by signal 9",
      .names_etcd = "{worker}: killed by signal 9", .what = "the same, and a worker is killed",
      .weight = 2, .relent = calm)
{
    slow(chaos);
    return kill_worker(chaos, err);
}

/* The driver dies in the middle of a change, which is long because the disk is slow. */
FAULT(disk_slow_and_driver, "disk-slow-driver",
      .names = "{worker}: killed by signal 9; the driver (pid {driver}) died of signal 9",
      .what = "the same, and the driver is killed too, amid what it writes down", .weight = 2,
      .relent = calm)
{
    int rc;

    slow(chaos);
    rc = kill_worker(chaos, err);
    if (rc)
        return rc;
    strike_wait(strike_time(chaos, 0, SLOW_HIGH));
    (void)strike_kill(chaos, PROC_DRIVER, -1); /* it may have ended by itself */
    return 0;
}

/* ---- faults of the wall clock ---- */

static void jump(struct chaos *chaos, bool forward)
{
    char by[TIME_TEXT_MAX];
    int64_t by_us = strike_time(chaos, JUMP_LOW, JUMP_HIGH);

    fault_say(chaos, "%s%s", forward ? "+" : "-", time_brief(by_us, by));
    atomic_store(&chaos->arena.disk_faults->wall_offset_us, forward ? by_us : -by_us);
    chaos->lasts_us = strike_time(chaos, A_WHILE_LOW, A_WHILE);
}

FAULT(clock_forward, "clock-forward", .quiet = "the wall clock decides nothing",
      .what = "the driver's wall clock jumps by up to a month, and back",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = calm)
{
    jump(chaos, true);
    return 0;
}

FAULT(clock_back, "clock-back", .quiet = "the wall clock decides nothing",
      .what = "the driver's wall clock jumps back by up to a month, and forward again",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = calm)
{
    jump(chaos, false);
    return 0;
}

/* The clock jumps and a worker dies: the failure is recorded with the wrong time. */
FAULT(clock_and_kill, "clock-kill", .names = "{worker}: killed by signal 9",
      .what = "the driver's wall clock jumps as a worker is killed", .weight = 2, .relent = calm)
{
    jump(chaos, rng_below(&chaos->rng, 2));
    return kill_worker(chaos, err);
}

/* The clock jumps and the driver dies: the successor's time differs from that in the journal. */
FAULT(clock_and_driver, "clock-driver", .names = "the driver (pid {driver}) died of signal 9",
      .what = "the driver is killed, and its successor's wall clock is another",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = calm)
{
    jump(chaos, rng_below(&chaos->rng, 2));
    return strike_whole(chaos, strike_kill(chaos, PROC_DRIVER, -1), calm, err);
}
