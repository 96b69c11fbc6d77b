/*
 * faults_disk.c: faults of the driver's disk and of its wall clock. The promises are in
 * docs/operations.md: while the disk hangs, or for a while is full, training continues and changes
 * wait. With a broken disk the driver ends with code 4, and a successor takes over when the disk
 * works again. The wall clock decides nothing.
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
#define END_US      (15 * TIME_S) /* for so long a driver with a broken disk is waited for */

static int calm(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    disk_faults_calm(chaos->arena.disk_faults);
    return 0;
}

static int kill_worker(struct chaos *chaos, struct hvd_err *err)
{
    return strike_whole(chaos, strike_kill(chaos, PROC_WORKER, -1), calm, err);
}

/* Kills the driver and waits for its death, so that its successor finds the disk unchanged. */
static int kill_driver(struct chaos *chaos, struct hvd_err *err)
{
    int rc = strike_kill(chaos, PROC_DRIVER, -1);

    return rc ? rc
              : arena_await_driver(&chaos->arena, clock_now_us() + chaos->arena.plan->patience_us,
                                   err);
}

/* ---- faults of the disk ---- */

/* Ends the fault; a driver that waits for room continues by itself. */
static int disk_has_room(struct chaos *chaos, struct hvd_err *err)
{
    disk_faults_calm(chaos->arena.disk_faults);
    return strike_settle(chaos, err);
}

/* The disk is full and a worker dies. The death must be recorded, which waits until there is room.
 */
FAULT(disk_full, "disk-full", .what = "no space on the driver's disk while a worker is killed",
      .weight = 2, .relent = disk_has_room)
{
    chaos->lasts_us = strike_time(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.disk_faults->disk_full, 1);
    return kill_worker(chaos, err);
}

/* The disk is full, and nothing changes, so nothing has to be written. */
FAULT(disk_full_in_peace, "disk-full-peace",
      .what = "no space on the driver's disk while nothing happens", .cost = FAULT_COSTS_NOTHING,
      .weight = 1, .relent = disk_has_room)
{
    chaos->lasts_us = strike_time(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.disk_faults->disk_full, 1);
    return 0;
}

/* The disk is full and the driver dies. A successor that cannot write does not start; a later
 * successor can. */
FAULT(disk_full_and_driver, "disk-full-driver",
      .what = "no space on the disk, and the driver is killed; its successor too",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = disk_has_room)
{
    int rc = kill_driver(chaos, err);

    if (rc)
        return rc;
    atomic_store(&chaos->arena.disk_faults->disk_full, 1);
    chaos->lasts_us = strike_time(chaos, FULL_LOW, FULL_HIGH);
    return arena_start(&chaos->arena, err);
}

/* Ends a broken disk. The death could not be recorded, so the driver has ended or ends now; unless
 * another fault was struck before, and nothing was left to record. */
static int disk_replaced(struct chaos *chaos, struct hvd_err *err)
{
    int rc = arena_await_driver(&chaos->arena, clock_now_us() + END_US, err);

    disk_faults_calm(chaos->arena.disk_faults);
    return rc == HVD_E_TIMEOUT ? strike_settle(chaos, err) : rc ? rc : strike_succeed(chaos, err);
}

FAULT(disk_broken, "disk-broken", .what = "the driver's disk says EIO while a worker is killed",
      .weight = 2, .relent = disk_replaced)
{
    chaos->lasts_us = strike_time(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.disk_faults->disk_broken, 1);
    return kill_worker(chaos, err);
}

static void slow(struct chaos *chaos)
{
    atomic_store(&chaos->arena.disk_faults->sync_delay_us, strike_time(chaos, SLOW_LOW, SLOW_HIGH));
    chaos->lasts_us = strike_time(chaos, A_WHILE_LOW, A_WHILE);
}

FAULT(disk_slow, "disk-slow", .what = "each sync of the driver takes up to a second",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = calm)
{
    slow(chaos);
    return 0;
}

FAULT(disk_slow_and_kill, "disk-slow-kill", .what = "the same, and a worker is killed", .weight = 2,
      .relent = calm)
{
    slow(chaos);
    return kill_worker(chaos, err);
}

/* The driver dies in the middle of a change, which is long because the disk is slow. */
FAULT(disk_slow_and_driver, "disk-slow-driver",
      .what = "the same, and the driver is killed too, amid what it writes down", .weight = 2,
      .relent = disk_has_room)
{
    int rc;

    slow(chaos);
    rc = kill_worker(chaos, err);
    if (rc)
        return rc;
    strike_wait(strike_time(chaos, 0, SLOW_HIGH));
    rc = kill_driver(chaos, err);
    if (rc == HVD_DONE) /* the driver has ended by itself; relent judges why */
        return 0;
    return rc ? rc : arena_start(&chaos->arena, err);
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

FAULT(clock_forward, "clock-forward",
      .what = "the driver's wall clock jumps by up to a month, and back",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = calm)
{
    jump(chaos, true);
    return 0;
}

FAULT(clock_back, "clock-back",
      .what = "the driver's wall clock jumps back by up to a month, and forward again",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = calm)
{
    jump(chaos, false);
    return 0;
}

/* The clock jumps and a worker dies: the failure is recorded with the wrong time. */
FAULT(clock_and_kill, "clock-kill", .what = "the driver's wall clock jumps as a worker is killed",
      .weight = 2, .relent = calm)
{
    jump(chaos, rng_below(&chaos->rng, 2));
    return kill_worker(chaos, err);
}

/* The clock jumps and the driver dies: the successor's time differs from that in the journal. */
FAULT(clock_and_driver, "clock-driver",
      .what = "the driver is killed, and its successor's wall clock is another",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = calm)
{
    int rc = kill_driver(chaos, err);

    if (rc)
        return rc;
    jump(chaos, rng_below(&chaos->rng, 2));
    return arena_start(&chaos->arena, err);
}
