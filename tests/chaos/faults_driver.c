/*
 * faults_driver.c: faults of the driver: killed, frozen, replaced by a successor. The death of a
 * driver alone must cost nothing. Some faults also hit a worker or an agent.
 */
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/strike.h"

#include <errno.h>
#include <signal.h>
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

static const struct proc_info *driver_of(const struct chaos *chaos)
{
    for (uint32_t i = 0; i < chaos->scan.count; i++)
        if (chaos->scan.processes[i].pid == chaos->arena.driver)
            return &chaos->scan.processes[i];
    return NULL;
}

/* ---- the driver is killed, and a successor continues ---- */

FAULT(kill_driver, "driver-kill", .what = "SIGKILL to the driver, which is resumed",
      .cost = FAULT_COSTS_NOTHING, .weight = 5, .relent = strike_drive)
{
    chaos->lasts_us = strike_time(chaos, AWAY_FROM_US, AWAY_TO_US);
    return strike_signal(chaos, driver_of(chaos), SIGKILL) ? 0 : HVD_DONE;
}

/* Kills the driver, and also its successor while it takes over. */
FAULT(kill_driver_again, "driver-kill-again",
      .what = "SIGKILL to the driver, and to its successor while it takes over",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = strike_drive)
{
    struct arena *arena = &chaos->arena;
    int rc = kill_driver(chaos, err);

    if (rc)
        return rc;
    rc = arena_await_driver(arena, clock_now_us() + arena->plan->patience_us, err);
    if (!rc)
        rc = arena_start(arena, err);
    if (rc)
        return rc;
    chaos->lasts_us += AGAIN_US; /* lasts_us counts from the first strike */
    strike_wait(strike_time(chaos, 0, AGAIN_US));
    kill(arena->driver, SIGKILL);
    fault_say(chaos, "its successor");
    return arena_await_driver(arena, clock_now_us() + arena->plan->patience_us, err);
}

FAULT(kill_driver_and_worker, "driver-worker-kill",
      .what = "SIGKILL to the driver, and to a worker while there is none", .weight = 3,
      .relent = strike_drive)
{
    int rc = kill_driver(chaos, err);

    if (!rc)
        (void)strike_signal(chaos, proc_scan_pick(&chaos->scan, PROC_WORKER, -1, &chaos->rng),
                            SIGKILL);
    return rc;
}

FAULT(kill_driver_and_agent, "driver-agent-kill",
      .what = "SIGKILL to the driver, and to an agent while there is none", .weight = 2,
      .missing = strike_needs_two_hosts, .relent = strike_drive)
{
    const struct proc_info *agent = strike_pick(chaos, &chaos->scan, PROC_AGENT);
    int rc = agent ? kill_driver(chaos, err) : HVD_DONE;

    if (!rc)
        (void)strike_signal(chaos, agent, SIGKILL);
    return rc;
}

/* ---- the driver is frozen ---- */

static int freeze(struct chaos *chaos, int64_t low_us, int64_t high_us)
{
    chaos->lasts_us = strike_time(chaos, low_us, high_us);
    return strike_signal(chaos, driver_of(chaos), SIGSTOP) ? 0 : HVD_DONE;
}

static int wake(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    fault_wake(chaos);
    return 0;
}

FAULT(freeze_shortly, "driver-freeze-short",
      .what = "SIGSTOP to the driver, for less than the lease", .cost = FAULT_COSTS_NOTHING,
      .weight = 2, .relent = wake)
{
    return freeze(chaos, SHORT_FROM_US, SHORT_TO_US);
}

FAULT(freeze_for_long, "driver-freeze-long",
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
    pid_t former = chaos->victim_count ? chaos->victims[0] : 0;
    int status = 0;
    int rc = 0;

    if (!former)
        return 0;
    fault_wake(chaos);
    if (former == chaos->arena.driver)
        return 0; /* no successor was started */
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

/* Starts a second driver, which is now the arena's. The old driver is the victim. */
FAULT(replace_driver, "driver-takeover",
      .what = "the driver is frozen, another takes over, and the first wakes up",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = wake_replaced)
{
    int rc = freeze(chaos, AWAY_FROM_US, AWAY_TO_US);

    return rc ? rc : arena_take_over(&chaos->arena, err);
}

/* ---- new keys for all hosts ---- */

FAULT(rekey, "rekey", .what = "each host gets a new key while the job trains",
      .cost = FAULT_COSTS_NOTHING, .weight = 2)
{
    const char *words[] = { "rekey", NULL };

    return strike_ask(chaos, words, err);
}

/* The driver is killed while the keys are changed; its successor brings the change to its end. */
static int rekey_again(struct chaos *chaos, struct hvd_err *err)
{
    int rc = strike_drive(chaos, err);

    return rc ? rc : rekey(chaos, err);
}

FAULT(rekey_and_kill_driver, "rekey-driver",
      .what = "each host gets a new key, and the driver is killed and resumed meanwhile",
      .cost = FAULT_COSTS_NOTHING, .weight = 2, .relent = rekey_again)
{
    const char *words[] = { "rekey", "--no-wait", NULL };
    int rc = strike_ask(chaos, words, err);

    return rc ? rc : kill_driver(chaos, err);
}
