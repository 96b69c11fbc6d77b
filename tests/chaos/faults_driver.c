/*
 * faults_driver.c: faults of the driver: killed, frozen, replaced by another one. The death of a
 * driver alone must cost nothing. Some faults also hit a worker or an agent.
 */
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/strike.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* the time without a driver, or by which it is longer than the lease; far below the arena's
 * --driver-grace */
#define AWAY_FROM_US  (100 * TIME_MS)
#define AWAY_TO_US    (4 * TIME_S)
#define SHORT_FROM_US (50 * TIME_MS)
#define SHORT_TO_US   (300 * TIME_MS)
#define AGAIN_US      (400 * TIME_MS) /* the successor is killed within this time */
#define REPLACED      5               /* the exit code of a driver that has been replaced */

/* ---- the driver is killed, and its parent starts the next one ---- */

FAULT(kill_driver, "driver-kill", .names = "the driver (pid {driver}) died of signal 9",
      .what = "SIGKILL to the driver", .cost = FAULT_COSTS_NOTHING, .weight = 4)
{
    return strike_kill(chaos, PROC_DRIVER, -1);
}

/* Waits until the parent has started the next driver; returns its pid, or an error. A child of the
 * dead driver that has not called exec yet looks like a driver, and has another parent. */
static pid_t next_driver(struct chaos *chaos, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
    struct proc_scan *now = mem_zalloc(sizeof(*now));
    pid_t pid = 0;

    if (!now)
        return err_set(err, HVD_E_NOMEM, "no memory for a scan of processes");
    while (!pid && clock_now_us() < deadline_us && !*chaos->arena.broken_off) {
        proc_scan_take(now, &chaos->arena);
        for (uint32_t i = 0; i < now->count; i++)
            if (now->processes[i].kind == PROC_DRIVER &&
                now->processes[i].parent == chaos->arena.driver &&
                now->processes[i].pid != chaos->victims[0])
                pid = now->processes[i].pid;
    }
    mem_free(now);
    return pid ? pid : err_set(err, HVD_E_TIMEOUT, "no driver follows the one that was killed");
}

/* Kills the driver, and also its successor while it takes over. */
FAULT(kill_driver_again, "driver-kill-again", .names = "the driver (pid {driver}) died of signal 9",
      .what = "SIGKILL to the driver, and to its successor while it takes over",
      .cost = FAULT_COSTS_NOTHING, .weight = 2)
{
    int rc = kill_driver(chaos, err);
    char name[BLAME_NAME];
    pid_t next;

    if (rc)
        return rc;
    next = next_driver(chaos, err);
    if (next < 0)
        return next;
    strike_wait(strike_time(chaos, 0, AGAIN_US));
    snprintf(name, sizeof(name), "%d", (int)next);
    if (!kill(next, SIGKILL))
        fault_blame(chaos, BLAME_DRIVER, name);
    fault_say(chaos, "its successor");
    return 0;
}

FAULT(kill_driver_and_worker, "driver-worker-kill",
      .names = "the driver (pid {driver}) died of signal 9; {worker}: killed by signal 9",
      .what = "SIGKILL to the driver and to a worker, at the same moment", .weight = 3)
{
    int rc = kill_driver(chaos, err);

    if (!rc)
        (void)strike_signal(chaos, proc_scan_pick(&chaos->scan, PROC_WORKER, -1, &chaos->rng),
                            SIGKILL);
    return rc;
}

FAULT(kill_driver_and_agent, "driver-agent-kill",
      .names = "the driver (pid {driver}) died of signal 9; {host}",
      .what = "SIGKILL to the driver and to an agent, at the same moment", .weight = 2,
      .missing = strike_needs_two_hosts)
{
    const struct proc_info *agent = strike_pick(chaos, &chaos->scan, PROC_AGENT);
    int rc = agent ? kill_driver(chaos, err) : HVD_DONE;

    if (!rc)
        (void)strike_signal(chaos, agent, SIGKILL);
    return rc;
}

/* ---- the parent is killed too: the campaign starts another one, later ---- */

FAULT(kill_parent, "parent-kill", .names = "because its driver (pid {driver}) has ended",
      .what = "SIGKILL to the driver and its parent, and the command is started again",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = strike_drive)
{
    chaos->lasts_us = strike_time(chaos, AWAY_FROM_US, AWAY_TO_US);
    if (strike_kill(chaos, PROC_FRONT, -1)) /* first, so it starts no driver */
        return HVD_DONE;
    (void)strike_kill(chaos, PROC_DRIVER, -1);
    return 0;
}

FAULT(kill_parent_and_worker, "parent-worker-kill",
      .names = "because its driver (pid {driver}) has ended; {worker}: killed by signal 9",
      .what = "the same, and a worker is killed while there is no driver", .weight = 2,
      .relent = strike_drive)
{
    int rc = kill_parent(chaos, err);

    if (!rc)
        (void)strike_signal(chaos, proc_scan_pick(&chaos->scan, PROC_WORKER, -1, &chaos->rng),
                            SIGKILL);
    return rc;
}

/* ---- the driver is frozen ---- */

static int freeze(struct chaos *chaos, int64_t low_us, int64_t high_us)
{
    chaos->lasts_us = strike_time(chaos, low_us, high_us);
    return strike_signal(chaos, proc_scan_pick(&chaos->scan, PROC_DRIVER, -1, &chaos->rng), SIGSTOP)
               ? 0
               : HVD_DONE;
}

static int wake(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    fault_wake(chaos);
    return 0;
}

FAULT(freeze_shortly, "driver-freeze-short", .quiet = "it is over before the lease",
      .what = "SIGSTOP to the driver, for less than the lease", .cost = FAULT_COSTS_NOTHING,
      .weight = 2, .relent = wake)
{
    return freeze(chaos, SHORT_FROM_US, SHORT_TO_US);
}

FAULT(freeze_for_long, "driver-freeze-long", .names = "the driver has not run for",
      .what = "SIGSTOP to the driver, for longer than the lease", .cost = FAULT_COSTS_NOTHING,
      .weight = 2, .relent = wake)
{
    const int64_t lease_us = chaos->arena.plan->lease_us;

    return freeze(chaos, lease_us + AWAY_FROM_US, lease_us + AWAY_TO_US);
}

/* ---- the driver is replaced while it is frozen ---- */

static int status_of(pid_t pid, int64_t deadline_us, int *ret_status)
{
    pid_t got;

    while ((got = waitpid(pid, ret_status, WNOHANG)) == 0 && clock_now_us() < deadline_us)
        strike_wait(10 * TIME_MS);
    return got == pid ? 0 : HVD_E_TIMEOUT;
}

/* Wakes the old driver, which has to notice that another driver has taken over. */
static int wake_replaced(struct chaos *chaos, struct hvd_err *err)
{
    pid_t former = chaos->arena.former;
    int status = 0;
    int rc = 0;

    fault_wake(chaos);
    chaos->arena.former = 0;
    if (!former)
        return 0; /* no other driver was started */
    if (status_of(former, clock_now_us() + chaos->arena.plan->patience_us, &status)) {
        rc = err_set(err, HVD_E_TIMEOUT, "a driver that has been replaced (pid %d) does not end",
                     (int)former);
        kill(former, SIGKILL);
        while (waitpid(former, &status, 0) < 0 && errno == EINTR)
            continue;
        return rc;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != REPLACED)
        rc = err_set(err, HVD_E_MISMATCH,
                     "a driver that has been replaced ends with wait status %#x, not with code %d",
                     (unsigned)status, REPLACED);
    return rc;
}

/* Starts a second driver, which is now the arena's. The old driver is the victim; it and its parent
 * end with the same code. */
FAULT(replace_driver, "driver-takeover",
      .names = "the driver of this job lives (pid {driver}), and is replaced",
      .what = "the driver is frozen, another takes over, and the first wakes up",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = wake_replaced)
{
    int rc = freeze(chaos, AWAY_FROM_US, AWAY_TO_US);

    return rc ? rc : arena_take_over(&chaos->arena, err);
}

/* ---- new keys for all hosts ---- */

FAULT(rekey, "rekey", .quiet = "the operator has asked for it",
      .what = "each host gets a new key while the job trains", .cost = FAULT_COSTS_NOTHING,
      .weight = 2)
{
    const char *words[] = { "rekey", NULL };

    return strike_ask(chaos, words, err);
}

/* The driver is killed while the keys are changed; its successor brings the change to its end. */
FAULT(rekey_and_kill_driver, "rekey-driver", .names = "the driver (pid {driver}) died of signal 9",
      .what = "each host gets a new key, and the driver is killed and resumed meanwhile",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = rekey)
{
    const char *words[] = { "rekey", "--no-wait", NULL };
    int rc = strike_ask(chaos, words, err);

    return rc ? rc : kill_driver(chaos, err);
}
