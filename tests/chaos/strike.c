/*
 * strike.c: what the faults have in common: signals, the choice of a victim without loss of the
 * newest commit, lists of hosts, questions to the driver, successors. A strike is the function that
 * causes a fault; strike.h explains the functions.
 */
#include "tests/chaos/strike.h"

#include "base/time.h"
#include "os/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define AGAIN_US (50 * TIME_MS)
#define LOOK_US  (50 * TIME_MS)

static const char *const status[] = { "status", NULL };

static int64_t strike_deadline_us(const struct chaos *chaos)
{
    return clock_now_us() + chaos->arena.plan->patience_us;
}

bool strike_signal(struct chaos *chaos, const struct proc_info *process, int number)
{
    if (!process || kill(process->pid, number))
        return false;
    fault_note(chaos, process);
    return true;
}

int strike_kill(struct chaos *chaos, enum proc_kind kind, int host)
{
    const struct proc_info *victim = proc_scan_pick(&chaos->scan, kind, host, &chaos->rng);

    if (!victim || (kind == PROC_AGENT && !strike_spares(chaos, &chaos->scan, victim->host)))
        return HVD_DONE;
    return strike_signal(chaos, victim, SIGKILL) ? 0 : HVD_DONE;
}

static bool has_trained(const struct chaos *chaos, const struct proc_info *worker)
{
    for (uint32_t i = 0; i < chaos->scan.count; i++)
        if (chaos->scan.processes[i].pid == worker->pid &&
            chaos->scan.processes[i].kind == PROC_WORKER)
            return true;
    return false;
}

bool strike_spares(const struct chaos *chaos, const struct proc_scan *now, int host)
{
    for (uint32_t i = 0; i < now->count; i++) {
        const struct proc_info *it = &now->processes[i];

        if (it->kind == PROC_WORKER && it->host >= 0 && it->host != host &&
            chaos->arena.hosts[it->host].listed && has_trained(chaos, it))
            return true;
    }
    return false;
}

const struct proc_info *strike_pick(struct chaos *chaos, const struct proc_scan *now,
                                    enum proc_kind kind)
{
    const struct proc_info *process = proc_scan_pick(now, kind, -1, &chaos->rng);

    return process && process->host >= 0 && strike_spares(chaos, now, process->host) ? process
                                                                                     : NULL;
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

int64_t strike_time(struct chaos *chaos, int64_t low_us, int64_t high_us)
{
    return low_us + (int64_t)rng_below(&chaos->rng, (uint64_t)(high_us - low_us));
}

void strike_wait(int64_t time_us)
{
    int64_t until_us = clock_now_us() + time_us;

    for (int64_t left_us = time_us; left_us > 0; left_us = until_us - clock_now_us()) {
        struct timespec left = { (time_t)(left_us / TIME_S), (long)(left_us % TIME_S) * 1000 };

        (void)ppoll(NULL, 0, &left, NULL);
    }
}

int strike_whole(struct chaos *chaos, int rc, int (*relent)(struct chaos *, struct hvd_err *),
                 struct hvd_err *err)
{
    int undone = rc == HVD_DONE ? relent(chaos, err) : 0;

    return undone ? undone : rc;
}

int strike_unlist(struct chaos *chaos, struct hvd_err *err)
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
        fault_allow(chaos, BLAME_HOST, arena->hosts[i].name);
        break;
    }
    return arena_list(arena, err);
}

int strike_list(struct chaos *chaos, struct hvd_err *err)
{
    for (uint32_t i = 0; i < chaos->cut_count; i++)
        chaos->arena.hosts[chaos->hosts[i]].listed = true;
    chaos->cut_count = 0;
    return arena_list(&chaos->arena, err);
}

int strike_drive(struct chaos *chaos, struct hvd_err *err)
{
    struct arena *arena = &chaos->arena;
    bool hit = arena->driver == 0;
    int rc = 0;

    for (uint32_t i = 0; !hit && i < chaos->victim_count; i++)
        hit = chaos->victims[i] == arena->driver;
    if (!hit)
        return 0;
    if (arena->driver)
        rc = arena_await_driver(arena, strike_deadline_us(chaos), err);
    if (!rc && (!WIFSIGNALED(arena->driver_status) || WTERMSIG(arena->driver_status) != SIGKILL))
        rc = err_set(err, HVD_E_MISMATCH,
                     "the driver's parent has ended by itself, with wait status %#x",
                     (unsigned)arena->driver_status);
    return rc ? rc : arena_start(arena, err);
}

bool strike_driver_runs(struct chaos *chaos)
{
    return !arena_driver_ended(&chaos->arena) && arena_ask(&chaos->arena, status, NULL, NULL) == 0;
}

int strike_ask(struct chaos *chaos, const char *const *words, struct hvd_err *err)
{
    int64_t deadline_us = strike_deadline_us(chaos);
    int code;

    while (((code = arena_ask(&chaos->arena, words, NULL, err)) > 0 || code == HVD_E_TIMEOUT) &&
           clock_now_us() < deadline_us && !*chaos->arena.broken_off)
        strike_wait(AGAIN_US);
    if (code > 0)
        return err_set(err, HVD_E_MISMATCH, "hvd-elastic %s %s: exit code %d; see ask.log",
                       words[0], words[1] ? words[1] : "", code);
    return code;
}

int strike_await_whole(struct chaos *chaos, const char *when, struct hvd_err *err)
{
    const struct steps *steps = &chaos->steps;
    const int64_t limit_us = chaos->arena.plan->patience_us;
    int64_t begun_us = clock_now_us();
    uint32_t whole = arena_whole(&chaos->arena), trainers = 0;

    while (clock_now_us() < begun_us + limit_us && !*chaos->arena.broken_off) {
        const struct step *last;
        int rc = steps_read(&chaos->steps, err);

        if (rc)
            return rc;
        last = steps->count ? &steps->list[steps->count - 1] : NULL;
        trainers = 0;
        if (last && last->at_us > begun_us && last->size == whole)
            trainers = arena_trainers(&chaos->arena);
        if (trainers == whole)
            return 0;
        strike_wait(LOOK_US);
    }
    return err_set(err, HVD_E_TIMEOUT,
                   "%s the job is not whole within %d s: %" PRIu32 " of %" PRIu32 " train", when,
                   (int)(limit_us / TIME_S), trainers, whole);
}

const char *strike_needs_two_hosts(const struct chaos *chaos)
{
    return chaos->arena.host_count < 2 ? "it needs two hosts: --hosts 2" : NULL;
}
