#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/strike.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define AWAY_FROM_US  (100 * TIME_MS) /* without a driver, far less than the arena's grace */
#define AWAY_TO_US    (4 * TIME_S)
#define SHORT_FROM_US (50 * TIME_MS)
#define SHORT_TO_US   (300 * TIME_MS)
#define AGAIN_US      (400 * TIME_MS) /* a successor lives for so long at most, */
#define ENDS_US       (20 * TIME_S)   /* and is gone after so long */
#define REPLACED      5               /* the exit code of a driver that has been replaced */

static const struct sight_process *driver_of(const struct chaos *chaos)
{
    for (uint32_t i = 0; i < chaos->sight.count; i++)
        if (chaos->sight.processes[i].pid == chaos->arena.driver)
            return &chaos->sight.processes[i];
    return NULL;
}

/* ---- killed, and resumed -----------------------------------------------------------------------
 */

static int kill_driver(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    chaos->lasts_us = strike_time(chaos, AWAY_FROM_US, AWAY_TO_US);
    return strike_signal(chaos, driver_of(chaos), SIGKILL) ? 0 : HVD_DONE;
}

/* The successor too, while it takes over. */
static int kill_driver_again(struct chaos *chaos, struct hvd_err *err)
{
    struct arena *arena = &chaos->arena;
    int rc = kill_driver(chaos, err);

    if (rc)
        return rc;
    rc = arena_await_driver(arena, clock_now_us() + ENDS_US, err);
    if (!rc)
        rc = arena_start(arena, err);
    if (rc)
        return rc;
    chaos->lasts_us += AGAIN_US; /* it counts from the first strike */
    strike_wait(strike_time(chaos, 0, AGAIN_US));
    kill(arena->driver, SIGKILL);
    fault_say(chaos, "its successor");
    return arena_await_driver(arena, clock_now_us() + ENDS_US, err);
}

static int kill_driver_and_worker(struct chaos *chaos, struct hvd_err *err)
{
    int rc = kill_driver(chaos, err);

    if (!rc)
        (void)strike_signal(chaos, sight_pick(&chaos->sight, SIGHT_WORKER, -1, &chaos->rng),
                            SIGKILL);
    return rc;
}

static int kill_driver_and_agent(struct chaos *chaos, struct hvd_err *err)
{
    const struct sight_process *agent = strike_pick(chaos, &chaos->sight, SIGHT_AGENT);
    int rc = agent ? kill_driver(chaos, err) : HVD_DONE;

    if (!rc)
        (void)strike_signal(chaos, agent, SIGKILL);
    return rc;
}

/* ---- frozen ------------------------------------------------------------------------------------
 */

static int freeze(struct chaos *chaos, int64_t low_us, int64_t high_us)
{
    chaos->lasts_us = strike_time(chaos, low_us, high_us);
    return strike_signal(chaos, driver_of(chaos), SIGSTOP) ? 0 : HVD_DONE;
}

static int freeze_shortly(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return freeze(chaos, SHORT_FROM_US, SHORT_TO_US);
}

static int freeze_for_long(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    return freeze(chaos, 2 * TIME_S, AWAY_TO_US);
}

static int wake(struct chaos *chaos, struct hvd_err *err)
{
    (void)err;
    fault_wake(chaos);
    return 0;
}

/* ---- replaced while it is frozen ---------------------------------------------------------------
 */

/* The former one is a victim: the arena's driver is now the other. */
static int replace_driver(struct chaos *chaos, struct hvd_err *err)
{
    int rc = freeze(chaos, AWAY_FROM_US, AWAY_TO_US);

    return rc ? rc : arena_take_over(&chaos->arena, err);
}

static int status_of(pid_t pid, int64_t deadline_us, int *ret_status)
{
    pid_t got;

    while ((got = waitpid(pid, ret_status, WNOHANG)) == 0 && clock_now_us() < deadline_us)
        strike_wait(10 * TIME_MS);
    return got == pid ? 0 : HVD_E_TIMEOUT;
}

/* It wakes up, and has to see by itself that it is nobody any more. */
static int wake_replaced(struct chaos *chaos, struct hvd_err *err)
{
    pid_t former = chaos->victim_count ? chaos->victims[0] : 0;
    int status = 0;
    int rc = 0;

    if (!former)
        return 0;
    fault_wake(chaos);
    if (former == chaos->arena.driver)
        return 0; /* there was no successor */
    if (status_of(former, clock_now_us() + ENDS_US, &status)) {
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

/* clang-format off */
#define ROW(title, ...) { .name = (title), __VA_ARGS__ }
/* clang-format on */

const struct fault driver_faults[] = {
    ROW("driver-kill", .what = "SIGKILL to the driver, which is resumed",
        .cost = FAULT_COSTS_NOTHING, .weight = 5, .strike = kill_driver, .relent = strike_drive),
    ROW("driver-kill-again",
        .what = "SIGKILL to the driver, and to its successor while it takes over",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = kill_driver_again,
        .relent = strike_drive),
    ROW("driver-worker-kill", .what = "SIGKILL to the driver, and to a worker while there is none",
        .weight = 3, .strike = kill_driver_and_worker, .relent = strike_drive),
    ROW("driver-agent-kill", .what = "SIGKILL to the driver, and to an agent while there is none",
        .weight = 2, .missing = strike_needs_two_hosts, .strike = kill_driver_and_agent,
        .relent = strike_drive),
    ROW("driver-freeze-short", .what = "SIGSTOP to the driver, for less than the lease",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = freeze_shortly, .relent = wake),
    ROW("driver-freeze-long", .what = "SIGSTOP to the driver, for longer than the lease",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = freeze_for_long, .relent = wake),
    ROW("driver-takeover",
        .what = "the driver is frozen, another takes over, and the first wakes up",
        .cost = FAULT_COSTS_NOTHING, .weight = 2, .strike = replace_driver,
        .relent = wake_replaced),
};
const size_t driver_fault_count = ARRAY_SIZE(driver_faults);
