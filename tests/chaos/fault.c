/*
 * fault.c: the list of all faults, which the linker puts together from faults_*.c, and the text in
 * which a strike names its victims.
 */
#include "tests/chaos/fault.h"

#include "base/mem.h"
#include "base/time.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The longest wall that TCP gets over before --stall-shutdown is half the lease and this. */
#define OVER_STALL_US (2500 * TIME_MS)

/* The names that the linker gives to both ends of the section with the catalog. */
extern const struct fault *const first_fault[] __asm__("__start_chaos_faults");
extern const struct fault *const end_of_faults[] __asm__("__stop_chaos_faults");

size_t fault_count(void)
{
    return (size_t)(end_of_faults - first_fault);
}

const struct fault *fault_at(size_t index)
{
    return index < fault_count() ? first_fault[index] : NULL;
}

const struct fault *fault_named(const char *name, size_t length)
{
    const struct fault *fault;

    for (size_t i = 0; (fault = fault_at(i)) != NULL; i++)
        if (strlen(fault->name) == length && !memcmp(fault->name, name, length))
            return fault;
    return NULL;
}

/* ---- the text of a strike ---- */

void fault_say(struct chaos *chaos, const char *format, ...)
{
    size_t length = strlen(chaos->deed);
    va_list args;

    if (length && length + 2 < sizeof(chaos->deed)) {
        memcpy(chaos->deed + length, ", ", 3);
        length += 2;
    }
    va_start(args, format);
    vsnprintf(chaos->deed + length, sizeof(chaos->deed) - length, format, args);
    va_end(args);
}

void fault_blame(struct chaos *chaos, enum blame_kind kind, const char *name)
{
    blame_add(&chaos->blame, kind, name, 0);
}

void fault_allow(struct chaos *chaos, enum blame_kind kind, const char *name)
{
    blame_allow(&chaos->blame, kind, name);
}

/* Notes a victim, in the text of the strike and for the judge. may_live: 0, or its pid. */
static void fault_note_as(struct chaos *chaos, const struct proc_info *process, pid_t may_live)
{
    const char *host = process->host >= 0 ? chaos->arena.hosts[process->host].name : "?";
    char name[BLAME_NAME];

    switch (process->kind) {
    case PROC_WORKER:
        snprintf(name, sizeof(name), "%s:%" PRIu32 "#%" PRIu64, host, process->slot,
                 process->incarnation);
        fault_say(chaos, "%s", name);
        blame_add(&chaos->blame, BLAME_WORKER, name, may_live);
        break;
    case PROC_AGENT:
    case PROC_KEEPER:
        fault_say(chaos, "%s of %s", process->kind == PROC_AGENT ? "agent" : "keeper", host);
        blame_add(&chaos->blame, BLAME_HOST, host, may_live);
        break;
    case PROC_FRONT: fault_say(chaos, "the driver's parent"); break;
    case PROC_DRIVER:
        fault_say(chaos, "driver");
        snprintf(name, sizeof(name), "%d", (int)process->pid);
        blame_add(&chaos->blame, BLAME_DRIVER, name, may_live);
        break;
    case PROC_OTHER: fault_say(chaos, "%s", process->name); break;
    }
    if (chaos->victim_count < FAULT_VICTIMS)
        chaos->victims[chaos->victim_count++] = process->pid;
}

void fault_note(struct chaos *chaos, const struct proc_info *process)
{
    fault_note_as(chaos, process, 0);
}

void fault_note_harmed(struct chaos *chaos, const struct proc_info *process)
{
    fault_note_as(chaos, process, process->pid);
}

void fault_note_host(struct chaos *chaos, int host)
{
    fault_say(chaos, "%s", chaos->arena.hosts[host].name);
    fault_blame(chaos, BLAME_HOST, chaos->arena.hosts[host].name);
}

enum fault_cost fault_cost_of(const struct chaos *chaos, const struct fault *fault,
                              int64_t lasted_us)
{
    int64_t half_lease_us = chaos->arena.plan->lease_us / 2;
    bool late = false;

    switch (fault->over) {
    case FAULT_OVER_ANY_TIME: break;
    case FAULT_OVER_BEFORE_LEASE: late = lasted_us > half_lease_us; break;
    case FAULT_OVER_BEFORE_STALL: late = lasted_us > half_lease_us + OVER_STALL_US; break;
    }
    return late ? FAULT_COSTS_A_ROUND : fault->cost;
}

/* Wakes only processes of the arena: the pid of an ended victim may belong to another process now.
 */
void fault_wake(struct chaos *chaos)
{
    struct proc_scan *now = mem_alloc(sizeof(*now));

    if (now)
        proc_scan_take(now, &chaos->arena);
    for (uint32_t i = 0; now && i < now->count; i++)
        for (uint32_t k = 0; k < chaos->victim_count; k++)
            if (now->processes[i].pid == chaos->victims[k])
                kill(chaos->victims[k], SIGCONT);
    mem_free(now);
}
