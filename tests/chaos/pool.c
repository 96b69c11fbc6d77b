/*
 * pool.c: kills all processes that have commits, and follows the log while the place of the
 * checkpoints fails. Called by faults_pool.c and faults_s3.c. Invariant: the newest complete
 * checkpoint is looked up while no process lives that could complete a newer one.
 */
#include "tests/chaos/pool.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/arena_checkpoints.h"
#include "tests/chaos/log_follow.h"
#include "tests/chaos/strike.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* some intervals between checkpoints (arena.c) */
#define POOL_STORE_LOW  TIME_S
#define POOL_STORE_HIGH (3 * TIME_S)
#define POOL_SLICE_US   (200 * TIME_MS)

/* ---- the pool is lost ---- */

static bool pool_hits(const struct proc_info *process, bool driver_too)
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
static uint32_t pool_kill(const struct proc_scan *scan, bool driver_too)
{
    uint32_t killed = 0;

    for (int kind = PROC_FRONT; kind <= PROC_WORKER; kind++)
        for (uint32_t i = 0; i < scan->count; i++) {
            const struct proc_info *it = &scan->processes[i];

            if ((int)it->kind != kind || !pool_hits(it, driver_too))
                continue;
            (void)kill(it->pid, SIGKILL); /* a worker may have died with its agent */
            killed++;
        }
    return killed;
}

/* Kills all processes with commits, of the machines that are here now, and looks up the newest
 * complete checkpoint. */
int pool_lose(struct chaos *chaos, bool driver_too, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
    struct proc_scan *now;
    char path[ARENA_PATH];
    bool left = true;
    int rc;

    if (chaos->lost_us)
        return HVD_DONE; /* once in a fault: the judge compares one checkpoint */
    rc = arena_checkpoints(&chaos->arena, false, &chaos->kept, err);
    if (rc)
        return rc;
    now = mem_alloc(sizeof(*now));
    if (!now)
        return err_set(err, HVD_E_NOMEM, "no memory for a scan of processes");
    if (driver_too)
        (void)strike_signal(chaos, proc_scan_pick(&chaos->scan, PROC_FRONT, -1, &chaos->rng),
                            SIGKILL);
    fault_say(chaos, "%" PRIu32 " processes", pool_kill(&chaos->scan, driver_too));
    for (uint32_t i = 0; i < chaos->arena.host_count; i++)
        fault_blame(chaos, BLAME_HOST, chaos->arena.hosts[i].name);
    fault_blame(chaos, BLAME_THING, arena_checkpoint_dir(&chaos->arena, path));
    chaos->lost_us = clock_now_us();
    /* A process that was started meanwhile, before its parent died, has no commits, and goes too.
     */
    while (driver_too && left && clock_now_us() < deadline_us) {
        proc_scan_take(now, &chaos->arena);
        left = pool_kill(now, true) > 0;
        strike_wait(left ? TIME_MS : 0);
    }
    mem_free(now);
    rc = arena_checkpoints(&chaos->arena, driver_too, &chaos->kept, err);
    if (!rc)
        fault_say(chaos, "kept: step %" PRId64, chaos->kept.step);
    return rc;
}

/* ---- the place of the checkpoints fails ---- */

int pool_store_begin(struct chaos *chaos, struct hvd_err *err)
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
    fault_blame(chaos, BLAME_THING, arena_checkpoint_dir(&chaos->arena, path));
    chaos->lasts_us = strike_time(chaos, POOL_STORE_LOW, POOL_STORE_HIGH);
    return 0;
}

/* Waits for a line with this text, for --patience. */
static int pool_store_await(struct chaos *chaos, const char *text, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;

    while (clock_now_us() < deadline_us && !*chaos->arena.broken_off)
        if (log_follow_await(chaos->own, text, clock_now_us() + POOL_SLICE_US))
            return 0;
    return *chaos->arena.broken_off
               ? 0
               : err_set(err, HVD_E_MISMATCH, "the log has no line \"%s\" within --patience", text);
}

/* The failure must be told, with the directory and this remedy, and a later checkpoint must be
 * complete. remedy NULL: nothing has to fail. */
int pool_store_end(struct chaos *chaos, const char *remedy, int (*calm)(struct chaos *),
                   struct hvd_err *err)
{
    struct log_follow *follow = chaos->own;
    char path[ARENA_PATH];
    const char *where = arena_checkpoint_dir(&chaos->arena, path);
    size_t steps = chaos->steps.count;
    int rc = 0, calmed;

    if (follow && remedy) {
        rc = pool_store_await(chaos, "no checkpoint could be made", err);
        if (!rc && !*chaos->arena.broken_off &&
            (!strstr(follow->line, where) || !strstr(follow->line, remedy)))
            rc = err_set(err, HVD_E_MISMATCH, "\"%s\" does not name %s, or the remedy \"%s\"",
                         follow->line, where, remedy);
    }
    if (!rc)
        rc = steps_read(&chaos->steps, err);
    if (!rc && follow && remedy && chaos->steps.count == steps && !*chaos->arena.broken_off)
        rc =
            steps_await(&chaos->steps, steps, clock_now_us() + chaos->arena.plan->patience_us, err);
    calmed = calm(chaos);
    if (calmed && !rc)
        rc = err_set(err, HVD_E_IO, "%s: %s", where, strerror(calmed));
    if (!rc && follow)
        rc = pool_store_await(chaos, "is complete", err);
    if (follow)
        log_follow_close(follow);
    mem_free(follow);
    chaos->own = NULL;
    return rc;
}
