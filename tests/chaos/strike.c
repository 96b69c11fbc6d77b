#include "tests/chaos/strike.h"

#include "base/time.h"
#include "os/clock.h"

#include <signal.h>
#include <sys/wait.h>

#define END_US       (10 * TIME_S)   /* a driver that does not answer comes to its end */
#define MOMENT_US    (300 * TIME_MS) /* one that answers and has nothing more to end for */
#define CODE_STORAGE 4               /* of docs/cli.md */

int64_t strike_between(struct chaos *chaos, int64_t low_us, int64_t high_us)
{
    return low_us + (int64_t)rng_below(&chaos->rng, (uint64_t)(high_us - low_us) + 1);
}

int strike_kill(struct chaos *chaos, enum sight_kind kind, int host)
{
    const struct sight_process *victim = sight_pick(&chaos->sight, kind, host, &chaos->rng);

    if (!victim || kill(victim->pid, SIGKILL))
        return HVD_DONE;
    fault_note(chaos, victim);
    return 0;
}

int strike_host(struct chaos *chaos, int but)
{
    const struct arena *arena = &chaos->arena;
    uint64_t count = 0;
    uint64_t chosen;

    for (uint32_t i = 0; i < arena->host_count; i++)
        count += arena->hosts[i].listed && (int)i != but;
    if (!count)
        return -1;
    chosen = rng_below(&chaos->rng, count);
    for (uint32_t i = 0; i < arena->host_count; i++)
        if (arena->hosts[i].listed && (int)i != but && !chosen--)
            return (int)i;
    return -1;
}

int strike_succeed(struct chaos *chaos, struct hvd_err *err)
{
    int status;

    if (!arena_driver_ended(&chaos->arena))
        return 0;
    status = chaos->arena.driver_status;
    if (WIFSIGNALED(status))
        return err_set(err, HVD_E_MISMATCH, "the driver was ended by signal %d, not with code %d",
                       WTERMSIG(status), CODE_STORAGE);
    if (WEXITSTATUS(status) != CODE_STORAGE)
        return err_set(err, HVD_E_MISMATCH, "the driver has ended with code %d, not with %d",
                       WEXITSTATUS(status), CODE_STORAGE);
    fault_say(chaos, "the driver has ended with code %d", CODE_STORAGE);
    return arena_start(&chaos->arena, err);
}

int strike_settle(struct chaos *chaos, struct hvd_err *err)
{
    static const char *const status[] = { "status", NULL };
    int code = arena_driver_ended(&chaos->arena) ? 0 : arena_ask(&chaos->arena, status, NULL, err);
    int rc;

    rc = arena_await_driver(&chaos->arena, clock_now_us() + (code ? END_US : MOMENT_US), err);
    if (rc == HVD_E_TIMEOUT && code == 0)
        return 0;
    return rc ? rc : strike_succeed(chaos, err);
}
