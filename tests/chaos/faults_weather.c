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

static int kill_worker(struct chaos *chaos, struct hvd_err *err)
{
    return strike_whole(chaos, strike_kill(chaos, SIGHT_WORKER, -1), calm, err);
}

/* Dead for certain, so that its successor finds all as it has left it. */
static int kill_driver(struct chaos *chaos, struct hvd_err *err)
{
    int rc = strike_kill(chaos, SIGHT_DRIVER, -1);

    return rc ? rc : arena_await_driver(&chaos->arena, clock_now_us() + END_US, err);
}

/* ---- the disk ----------------------------------------------------------------------------------
 */

/* The death is a change: it has to be written down, which waits until there is room. */
static int disk_full(struct chaos *chaos, struct hvd_err *err)
{
    chaos->lasts_us = strike_time(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.weather->disk_full, 1);
    return kill_worker(chaos, err);
}

/* No change, nothing to write. */
static int disk_full_in_peace(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    chaos->lasts_us = strike_time(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.weather->disk_full, 1);
    return 0;
}

/* A successor that cannot write does not begin; one that can does. */
static int disk_full_and_driver(struct chaos *chaos, struct hvd_err *err)
{
    int rc = kill_driver(chaos, err);

    if (rc)
        return rc;
    atomic_store(&chaos->arena.weather->disk_full, 1);
    chaos->lasts_us = strike_time(chaos, FULL_LOW, FULL_HIGH);
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
    chaos->lasts_us = strike_time(chaos, FULL_LOW, FULL_HIGH);
    atomic_store(&chaos->arena.weather->disk_broken, 1);
    return kill_worker(chaos, err);
}

/* The death cannot be written down, so the driver has ended, or does so now; unless this was one of
 * two faults, and there was no more to write. */
static int disk_replaced(struct chaos *chaos, struct hvd_err *err)
{
    int rc = arena_await_driver(&chaos->arena, clock_now_us() + END_US, err);

    weather_calm(chaos->arena.weather);
    return rc == HVD_E_TIMEOUT ? strike_settle(chaos, err) : rc ? rc : strike_succeed(chaos, err);
}

static void slow(struct chaos *chaos)
{
    atomic_store(&chaos->arena.weather->sync_delay_us, strike_time(chaos, SLOW_LOW, SLOW_HIGH));
    chaos->lasts_us = strike_time(chaos, A_WHILE_LOW, A_WHILE);
}

static int disk_slow(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    slow(chaos);
    return 0;
}

static int disk_slow_and_kill(struct chaos *chaos, struct hvd_err *err)
{
    slow(chaos);
    return kill_worker(chaos, err);
}

/* In the middle of a change, as everything takes so long. */
static int disk_slow_and_driver(struct chaos *chaos, struct hvd_err *err)
{
    int rc;

    slow(chaos);
    rc = kill_worker(chaos, err);
    if (rc)
        return rc;
    strike_wait(strike_time(chaos, 0, SLOW_HIGH));
    rc = kill_driver(chaos, err);
    if (rc == HVD_DONE) /* it has ended by itself: who says why is the relent */
        return 0;
    return rc ? rc : arena_start(&chaos->arena, err);
}

/* ---- the wall clock ----------------------------------------------------------------------------
 */

static void jump(struct chaos *chaos, bool forward)
{
    char by[TIME_TEXT_MAX];
    int64_t by_us = strike_time(chaos, JUMP_LOW, JUMP_HIGH);

    fault_say(chaos, "%s%s", forward ? "+" : "-", time_brief(by_us, by));
    atomic_store(&chaos->arena.weather->wall_offset_us, forward ? by_us : -by_us);
    chaos->lasts_us = strike_time(chaos, A_WHILE_LOW, A_WHILE);
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
    jump(chaos, rng_below(&chaos->rng, 2));
    return kill_worker(chaos, err);
}

/* The successor has another time than the journal. */
static int clock_and_driver(struct chaos *chaos, struct hvd_err *err)
{
    int rc = kill_driver(chaos, err);

    if (rc)
        return rc;
    jump(chaos, rng_below(&chaos->rng, 2));
    return arena_start(&chaos->arena, err);
}

/* ---- the table ---------------------------------------------------------------------------------
 */

/* clang-format off */
#define ROW(title, ...) { .name = (title), __VA_ARGS__ }
/* clang-format on */

const struct fault weather_faults[] = {
    ROW("disk-full", .what = "no space on the driver's disk while a worker is killed", .weight = 2,
        .strike = disk_full, .relent = disk_has_room),
    ROW("disk-full-peace", .what = "no space on the driver's disk while nothing happens",
        .cost = FAULT_COSTS_NOTHING, .weight = 1, .strike = disk_full_in_peace,
        .relent = disk_has_room),
    ROW("disk-full-driver",
        .what = "no space on the disk, and the driver is killed; its successor too",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = disk_full_and_driver,
        .relent = disk_has_room),
    ROW("disk-broken", .what = "the driver's disk says EIO while a worker is killed", .weight = 2,
        .strike = disk_broken, .relent = disk_replaced),
    ROW("disk-slow", .what = "each sync of the driver takes up to a second",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = disk_slow, .relent = calm),
    ROW("disk-slow-kill", .what = "the same, and a worker is killed", .weight = 2,
        .strike = disk_slow_and_kill, .relent = calm),
    ROW("disk-slow-driver",
        .what = "the same, and the driver is killed too, amid what it writes down", .weight = 2,
        .strike = disk_slow_and_driver, .relent = disk_has_room),
    ROW("clock-forward", .what = "the driver's wall clock jumps by up to a month, and back",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = clock_forward, .relent = calm),
    ROW("clock-back",
        .what = "the driver's wall clock jumps back by up to a month, and forward again",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = clock_back, .relent = calm),
    ROW("clock-kill", .what = "the driver's wall clock jumps as a worker is killed", .weight = 2,
        .strike = clock_and_kill, .relent = calm),
    ROW("clock-driver", .what = "the driver is killed, and its successor's wall clock is another",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = clock_and_driver, .relent = calm),
};
const size_t weather_fault_count = ARRAY_SIZE(weather_faults);
