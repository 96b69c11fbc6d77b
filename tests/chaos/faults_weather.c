/*
 * What the driver's disk and its wall clock can do to a job. docs/operations.md says what is
 * promised: with a disk that hangs training goes on and changes wait; so they do, for a while, with
 * one that is full; with one that is broken the driver ends with code 4, and a successor takes over
 * when it is whole again. The wall clock decides nothing.
 */
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/strike.h"
#include "tests/chaos/weather.h"

#include <signal.h>
#include <stdlib.h>

#define FULL_LOW    (300 * TIME_MS)
#define FULL_HIGH   (3 * TIME_S) /* a full disk is waited for much longer: SCRIBE_PATIENCE */
#define SLOW_LOW    (300 * TIME_MS)
#define SLOW_HIGH   TIME_S
#define JUMP_LOW    TIME_HOUR
#define JUMP_HIGH   (30 * TIME_DAY)
#define A_WHILE_LOW (500 * TIME_MS)
#define A_WHILE     (2 * TIME_S)
#define END_US      (15 * TIME_S) /* a driver whose disk is broken comes to its end */

static int calm(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    weather_calm(chaos->arena.weather);
    return 0;
}

static int kill_worker(struct chaos *chaos)
{
    return strike_kill(chaos, SIGHT_WORKER, -1);
}

/* ---- the disk ----------------------------------------------------------------------------------
 */

/* The death is a change: it has to be written down, which waits until there is room. */
static int disk_full(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    chaos->lasts_us = strike_between(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.weather->disk_full, 1);
    return kill_worker(chaos);
}

/* No change, nothing to write. */
static int disk_full_in_peace(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    chaos->lasts_us = strike_between(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.weather->disk_full, 1);
    return 0;
}

/* A successor that cannot write does not begin; one that can does. */
static int disk_full_and_driver(struct chaos *chaos, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + END_US;
    int rc = strike_kill(chaos, SIGHT_DRIVER, -1);

    if (!rc)
        rc = arena_await_driver(&chaos->arena, deadline_us, err);
    if (rc)
        return rc;
    atomic_store(&chaos->arena.weather->disk_full, 1);
    chaos->lasts_us = strike_between(chaos, FULL_LOW, FULL_HIGH);
    return arena_start(&chaos->arena, err);
}

/* One that waits for room goes on by itself. */
static int disk_has_room(struct chaos *chaos, struct hvd_err *err)
{
    weather_calm(chaos->arena.weather);
    return strike_settle(chaos, err);
}

static int disk_broken(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    chaos->lasts_us = strike_between(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.weather->disk_broken, 1);
    return kill_worker(chaos);
}

/* The death cannot be written down, so the driver has ended, or does so now. */
static int disk_replaced(struct chaos *chaos, struct hvd_err *err)
{
    int rc = arena_await_driver(&chaos->arena, clock_now_us() + END_US, err);

    weather_calm(chaos->arena.weather);
    return rc ? rc : strike_succeed(chaos, err);
}

static void slow(struct chaos *chaos)
{
    atomic_store(&chaos->arena.weather->sync_delay_us, strike_between(chaos, SLOW_LOW, SLOW_HIGH));
    chaos->lasts_us = strike_between(chaos, A_WHILE_LOW, A_WHILE);
}

static int disk_slow(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    slow(chaos);
    return 0;
}

static int disk_slow_and_kill(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    slow(chaos);
    return kill_worker(chaos);
}

/* In the middle of a change, as everything takes so long. */
static int disk_slow_and_driver(struct chaos *chaos, struct hvd_err *err)
{
    int rc;

    slow(chaos);
    rc = kill_worker(chaos);
    if (!rc) /* the others begin to recover, and the driver to write that down */
        rc = steps_await(&chaos->steps, chaos->steps.count, clock_now_us() + SLOW_LOW, err);
    if (!rc || rc == HVD_E_TIMEOUT)
        rc = strike_kill(chaos, SIGHT_DRIVER, -1);
    if (!rc)
        rc = arena_await_driver(&chaos->arena, clock_now_us() + END_US, err);
    return rc ? rc : arena_start(&chaos->arena, err);
}

/* ---- the wall clock ----------------------------------------------------------------------------
 */

static void jump(struct chaos *chaos, bool forward)
{
    char by[TIME_TEXT_MAX];
    int64_t by_us = strike_between(chaos, JUMP_LOW, JUMP_HIGH);

    fault_say(chaos, "%s%s", forward ? "+" : "-", time_brief(by_us, by));
    atomic_store(&chaos->arena.weather->wall_offset_us, forward ? by_us : -by_us);
    chaos->lasts_us = strike_between(chaos, A_WHILE_LOW, A_WHILE);
}

static int clock_forward(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    jump(chaos, true);
    return 0;
}

static int clock_back(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    jump(chaos, false);
    return 0;
}

/* What is held against a slot is kept with the wall clock's time. */
static int clock_and_kill(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    jump(chaos, rng_below(&chaos->rng, 2));
    return kill_worker(chaos);
}

/* The successor has another time than the journal. */
static int clock_and_driver(struct chaos *chaos, struct hvd_err *err)
{
    int rc = strike_kill(chaos, SIGHT_DRIVER, -1);

    if (!rc)
        rc = arena_await_driver(&chaos->arena, clock_now_us() + END_US, err);
    if (rc)
        return rc;
    jump(chaos, rng_below(&chaos->rng, 2));
    return arena_start(&chaos->arena, err);
}

/* ---- the table ---------------------------------------------------------------------------------
 */

const struct fault weather_faults[] = {
    {"disk-full",         "no space on the driver's disk while a worker is killed",                 FAULT_COSTS_A_ROUND, 2,
     NULL,                                                                                                                        disk_full,            disk_has_room},
    { "disk-full-peace",  "no space on the driver's disk while nothing happens",                    FAULT_COSTS_NOTHING,
     1,                                                                                                                     NULL, disk_full_in_peace,   disk_has_room},
    { "disk-full-driver", "no space on the disk, and the driver is killed; its successor too",
     FAULT_COSTS_NOTHING,                                                                                                2, NULL, disk_full_and_driver, disk_has_room},
    { "disk-broken",      "the driver's disk says EIO while a worker is killed",                    FAULT_COSTS_A_ROUND, 2,
     NULL,                                                                                                                        disk_broken,          disk_replaced},
    { "disk-slow",        "each sync of the driver takes up to a second",                           FAULT_COSTS_NOTHING, 2, NULL,
     disk_slow,                                                                                                                                         calm         },
    { "disk-slow-kill",   "the same, and a worker is killed",                                       FAULT_COSTS_A_ROUND, 2, NULL,
     disk_slow_and_kill,                                                                                                                                calm         },
    { "disk-slow-driver", "the same, and the driver is killed amid what it writes down",
     FAULT_COSTS_A_ROUND,                                                                                                2, NULL, disk_slow_and_driver, calm         },
    { "clock-forward",    "the driver's wall clock jumps by up to a month, and back",
     FAULT_COSTS_NOTHING,                                                                                                2, NULL, clock_forward,        calm         },
    { "clock-back",       "the driver's wall clock jumps back by up to a month, and forward again",
     FAULT_COSTS_NOTHING,                                                                                                2, NULL, clock_back,           calm         },
    { "clock-kill",       "the driver's wall clock jumps as a worker is killed",                    FAULT_COSTS_A_ROUND, 2,
     NULL,                                                                                                                        clock_and_kill,       calm         },
    { "clock-driver",     "the driver is killed, and its successor's wall clock is another",
     FAULT_COSTS_NOTHING,                                                                                                2, NULL, clock_and_driver,     calm         },
};
const size_t weather_fault_count = ARRAY_SIZE(weather_faults);
