#include "tests/chaos/blow.h"

#include "base/time.h"
#include "os/clock.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define DRIVER_ENDS_US (20 * TIME_S)

bool blow(struct chaos *chaos, const struct sight_process *process, int number)
{
    if (!process || kill(process->pid, number))
        return false;
    fault_note(chaos, process);
    return true;
}

static bool has_trained(const struct chaos *chaos, const struct sight_process *worker)
{
    for (uint32_t i = 0; i < chaos->sight.count; i++)
        if (chaos->sight.processes[i].pid == worker->pid &&
            chaos->sight.processes[i].kind == SIGHT_WORKER)
            return true;
    return false;
}

bool blow_spares(const struct chaos *chaos, const struct sight *now, int host)
{
    for (uint32_t i = 0; i < now->count; i++) {
        const struct sight_process *it = &now->processes[i];

        if (it->kind == SIGHT_WORKER && it->host >= 0 && it->host != host &&
            chaos->arena.hosts[it->host].listed && has_trained(chaos, it))
            return true;
    }
    return false;
}

const struct sight_process *blow_pick(struct chaos *chaos, const struct sight *now,
                                      enum sight_kind kind)
{
    const struct sight_process *process = sight_pick(now, kind, -1, &chaos->rng);

    return process && process->host >= 0 && blow_spares(chaos, now, process->host) ? process : NULL;
}

int64_t blow_time(struct chaos *chaos, int64_t low_us, int64_t high_us)
{
    return low_us + (int64_t)rng_below(&chaos->rng, (uint64_t)(high_us - low_us));
}

void blow_wait(int64_t time_us)
{
    int64_t until_us = clock_now_us() + time_us;

    for (int64_t left_us = time_us; left_us > 0; left_us = until_us - clock_now_us()) {
        struct timespec left = { (time_t)(left_us / TIME_S), (long)(left_us % TIME_S) * 1000 };

        (void)ppoll(NULL, 0, &left, NULL);
    }
}

int blow_unlist(struct chaos *chaos, struct hvd_err *err)
{
    struct arena *arena = &chaos->arena;
    uint32_t listed = 0;
    uint64_t chosen;

    for (uint32_t i = 0; i < arena->host_count; i++)
        listed += arena->hosts[i].listed;
    if (listed < 2 || chaos->cut_count >= FAULT_VICTIMS)
        return HVD_DONE;
    chosen = rng_below(&chaos->rng, listed);
    for (uint32_t i = 0; i < arena->host_count; i++) {
        if (!arena->hosts[i].listed || chosen--)
            continue;
        arena->hosts[i].listed = false;
        chaos->hosts[chaos->cut_count++] = (int)i;
        fault_say(chaos, "%s leaves the list", arena->hosts[i].name);
        break;
    }
    return arena_list(arena, err);
}

int blow_list(struct chaos *chaos, struct hvd_err *err)
{
    for (uint32_t i = 0; i < chaos->cut_count; i++)
        chaos->arena.hosts[chaos->hosts[i]].listed = true;
    chaos->cut_count = 0;
    return arena_list(&chaos->arena, err);
}

int blow_drive(struct chaos *chaos, struct hvd_err *err)
{
    struct arena *arena = &chaos->arena;
    bool hit = arena->driver == 0;
    int rc = 0;

    for (uint32_t i = 0; !hit && i < chaos->victim_count; i++)
        hit = chaos->victims[i] == arena->driver;
    if (!hit)
        return 0;
    if (arena->driver)
        rc = arena_await_driver(arena, clock_now_us() + DRIVER_ENDS_US, err);
    if (!rc && (!WIFSIGNALED(arena->driver_status) || WTERMSIG(arena->driver_status) != SIGKILL))
        rc = err_set(err, HVD_E_MISMATCH, "the driver has ended by itself, with wait status %#x",
                     (unsigned)arena->driver_status);
    return rc ? rc : arena_start(arena, err);
}

const char *blow_needs_two_hosts(const struct chaos *chaos)
{
    return chaos->arena.host_count < 2 ? "it needs two hosts: --hosts 2" : NULL;
}
