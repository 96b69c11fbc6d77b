/*
 * faults_s3.c: faults of the S3 server to which the job writes its checkpoints (--checkpoints s3).
 * The front (arena_s3.h) stands between the job and the S3 server, and makes the faults. Training
 * must not notice them; a checkpoint is complete when the server is back; and when all processes
 * are lost while the server fails, the same command goes on from the newest complete checkpoint,
 * never from a broken one.
 */
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/arena_s3.h"
#include "tests/chaos/pool.h"
#include "tests/chaos/strike.h"

#include <errno.h>
#include <inttypes.h>

#define S3_LOOK_US (20 * TIME_MS)
/* how long the server still fails when the command was started again */
#define S3_AGAIN_LOW  (100 * TIME_MS)
#define S3_AGAIN_HIGH (2 * TIME_S)
/* how long it fails before all processes are killed */
#define S3_BEFORE_LOW  (100 * TIME_MS)
#define S3_BEFORE_HIGH (1500 * TIME_MS)
#define S3_ALL         100
#define S3_MANY_LOW    30
#define S3_MANY_HIGH   90
/* with more, a restart of the job would wait for most of --patience */
#define S3_SOME_LOW  10
#define S3_SOME_HIGH 40

static const char *needs_s3(const struct chaos *chaos)
{
    return chaos->arena.plan->checkpoints == PLAN_S3
               ? NULL
               : "the checkpoints are in a directory: --checkpoints s3";
}

/* The faults that the front had made before the present one. */
static uint64_t s3_faults_before;

/* Lets the front fail with these kinds for low to high of 100 requests. */
static int s3_begin(struct chaos *chaos, const char *kinds, unsigned low, unsigned high,
                    struct hvd_err *err)
{
    unsigned percent = low + (unsigned)rng_below(&chaos->rng, high - low + 1);
    int rc = arena_s3_faults(&s3_faults_before, err);

    if (!rc)
        rc = arena_s3_fault(kinds, percent, rng_below(&chaos->rng, UINT32_MAX), err);
    fault_say(chaos, "%u %%", percent);
    return rc;
}

/* Waits until a request has failed, so that no fault passes without one. */
static int s3_await_hit(struct chaos *chaos, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
    uint64_t count;
    int rc;

    while (!(rc = arena_s3_faults(&count, err)) && count == s3_faults_before &&
           !*chaos->arena.broken_off) {
        if (clock_now_us() >= deadline_us)
            return err_set(err, HVD_E_MISMATCH,
                           "no request has come to the failing server within --patience");
        strike_wait(S3_LOOK_US);
    }
    if (!rc)
        fault_say(chaos, "%" PRIu64 " requests", count - s3_faults_before);
    return rc;
}

static int s3_calm(struct chaos *chaos)
{
    (void)chaos;
    return arena_s3_fault("", 0, 0, NULL) ? EIO : 0;
}

/* Waits until a request has met the fault, if one was begun; then ends the fault (s3_calm; see
 * pool_store_end). A fault that no request meets is an error. */
static int s3_relent(struct chaos *chaos, const char *remedy, struct hvd_err *err)
{
    int rc = chaos->own ? s3_await_hit(chaos, err) : 0;
    int ended = pool_store_end(chaos, remedy, s3_calm, rc ? NULL : err);

    return rc ? rc : ended;
}

static int s3_end(struct chaos *chaos, struct hvd_err *err)
{
    return s3_relent(chaos, NULL, err);
}

FAULT(s3_errors, "s3-errors", .quiet = "requests are made again",
      .what = "many requests to S3 get 500, 503 (slow down), a reset, or a lost answer",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .missing = needs_s3, .relent = s3_end)
{
    int rc = pool_store_begin(chaos, err);

    return rc ? rc
              : s3_begin(chaos, "500,503,reset,late,late500,html", S3_MANY_LOW, S3_MANY_HIGH, err);
}

static int s3_end_denied(struct chaos *chaos, struct hvd_err *err)
{
    return s3_relent(chaos, "let these credentials list the bucket", err);
}

FAULT(s3_denied, "s3-denied", .names = "{thing}",
      .what = "S3 answers 403 to every request for a while", .cost = FAULT_COSTS_NOTHING,
      .weight = 2, .missing = needs_s3, .relent = s3_end_denied)
{
    int rc = pool_store_begin(chaos, err);

    return rc ? rc : s3_begin(chaos, "403", S3_ALL, S3_ALL, err);
}

FAULT(s3_hangs, "s3-hangs", .quiet = "requests are made again",
      .what = "S3 accepts requests and never answers them", .cost = FAULT_COSTS_NOTHING,
      .weight = 1, .missing = needs_s3, .relent = s3_end)
{
    int rc = pool_store_begin(chaos, err);

    return rc ? rc : s3_begin(chaos, "hang", S3_MANY_LOW, S3_ALL, err);
}

FAULT(s3_truncates, "s3-truncates", .quiet = "requests are made again",
      .what = "S3 breaks off in the middle of many answers", .cost = FAULT_COSTS_NOTHING,
      .weight = 2, .missing = needs_s3, .relent = s3_end)
{
    int rc = pool_store_begin(chaos, err);

    return rc ? rc : s3_begin(chaos, "truncate", S3_MANY_LOW, S3_MANY_HIGH, err);
}

static int s3_come_back(struct chaos *chaos)
{
    return chaos->own && arena_s3_again(NULL) ? EIO : 0;
}

static int s3_end_gone(struct chaos *chaos, struct hvd_err *err)
{
    return pool_store_end(chaos, NULL, s3_come_back, err);
}

FAULT(s3_gone, "s3-gone", .quiet = "requests are made again",
      .what = "SIGKILL to the server of S3, which comes back later", .cost = FAULT_COSTS_NOTHING,
      .weight = 2, .missing = needs_s3, .relent = s3_end_gone)
{
    int rc = pool_store_begin(chaos, err);

    if (!rc)
        arena_s3_kill();
    return rc;
}

/* Starts the command while the server still fails, and lets the server work later. */
static int s3_start_again(struct chaos *chaos, struct hvd_err *err)
{
    int rc = chaos->lost_us ? strike_drive(chaos, err) : 0;

    if (!rc && chaos->lost_us)
        strike_wait(strike_time(chaos, S3_AGAIN_LOW, S3_AGAIN_HIGH));
    if (s3_calm(chaos) && !rc)
        rc = err_set(err, HVD_E_IO, "%s: cannot be asked", arena_s3_url());
    return rc;
}

FAULT(s3_lose_pool, "s3-pool-reclaimed", .names = "{thing}",
      .what = "SIGKILL to driver, agents and workers at once, and the command is started again, "
              "while S3 fails",
      .weight = 4, .missing = needs_s3, .relent = s3_start_again)
{
    int rc;

    if (chaos->lost_us)
        return HVD_DONE;
    rc = s3_begin(chaos, "500,503,reset,late,late500,truncate", S3_SOME_LOW, S3_SOME_HIGH, err);
    if (rc)
        return rc;
    strike_wait(strike_time(chaos, S3_BEFORE_LOW, S3_BEFORE_HIGH));
    return strike_whole(chaos, pool_lose(chaos, true, err), s3_start_again, err);
}
