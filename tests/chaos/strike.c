#include "tests/chaos/strike.h"

#include "base/time.h"
#include "os/clock.h"

#include <signal.h>
#include <sys/wait.h>

#define END_US       (15 * TIME_S)   /* a driver answers by then, or has come to its end */
#define MOMENT_US    (300 * TIME_MS) /* one that answers and has nothing more to end for */
#define ASK_US       (10 * TIME_S)
#define AGAIN_US     (50 * TIME_MS)
#define CODE_STORAGE 4 /* of docs/cli.md */

static const char *const status[] = { "status", NULL };

int strike_kill(struct chaos *chaos, enum sight_kind kind, int host)
{
    const struct sight_process *victim = sight_pick(&chaos->sight, kind, host, &chaos->rng);

    if (!victim || (kind == SIGHT_AGENT && !blow_spares(chaos, &chaos->sight, victim->host)))
        return HVD_DONE;
    return blow(chaos, victim, SIGKILL) ? 0 : HVD_DONE;
}

int strike_whole(struct chaos *chaos, int rc, int (*relent)(struct chaos *, struct hvd_err *),
                 struct hvd_err *err)
{
    int undone = rc == HVD_DONE ? relent(chaos, err) : 0;

    return undone ? undone : rc;
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

bool strike_driver_runs(struct chaos *chaos)
{
    return !arena_driver_ended(&chaos->arena) && arena_ask(&chaos->arena, status, NULL, NULL) == 0;
}

int strike_ask(struct chaos *chaos, const char *const *words, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + ASK_US;
    int code;

    while ((code = arena_ask(&chaos->arena, words, NULL, err)) > 0 && clock_now_us() < deadline_us)
        blow_wait(AGAIN_US);
    if (code > 0)
        return err_set(err, HVD_E_MISMATCH, "hvd-elastic %s %s: exit code %d; see ask.log",
                       words[0], words[1] ? words[1] : "", code);
    return code;
}

int strike_succeed(struct chaos *chaos, struct hvd_err *err)
{
    int how;

    if (!arena_driver_ended(&chaos->arena))
        return 0;
    how = chaos->arena.driver_status;
    if (WIFSIGNALED(how))
        return err_set(err, HVD_E_MISMATCH, "the driver was ended by signal %d, not with code %d",
                       WTERMSIG(how), CODE_STORAGE);
    if (WEXITSTATUS(how) != CODE_STORAGE)
        return err_set(err, HVD_E_MISMATCH, "the driver has ended with code %d, not with %d",
                       WEXITSTATUS(how), CODE_STORAGE);
    fault_say(chaos, "the driver has ended with code %d", CODE_STORAGE);
    return arena_start(&chaos->arena, err);
}

int strike_settle(struct chaos *chaos, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + END_US;
    int rc;

    while (!arena_driver_ended(&chaos->arena) && !strike_driver_runs(chaos) &&
           clock_now_us() < deadline_us)
        blow_wait(AGAIN_US);
    rc = arena_await_driver(&chaos->arena, clock_now_us() + MOMENT_US, err);
    if (rc == HVD_E_TIMEOUT)
        return 0; /* it lives; whether it does what it should is the judge's question */
    return rc ? rc : strike_succeed(chaos, err);
}
