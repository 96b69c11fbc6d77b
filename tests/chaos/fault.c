#include "tests/chaos/fault.h"

#include "base/mem.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- the catalog -------------------------------------------------------------------------------
 */

struct table {
    const struct fault *faults;
    const size_t *count;
};

static const struct table tables[] = {
    {process_faults,    &process_fault_count  },
    { driver_faults,    &driver_fault_count   },
    { phase_faults,     &phase_fault_count    },
    { discovery_faults, &discovery_fault_count},
    { weather_faults,   &weather_fault_count  },
    { machine_faults,   &machine_fault_count  },
    { network_faults,   &network_fault_count  },
};

size_t fault_count(void)
{
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        count += *tables[i].count;
    return count;
}

const struct fault *fault_at(size_t index)
{
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        if (index < *tables[i].count)
            return &tables[i].faults[index];
        index -= *tables[i].count;
    }
    return NULL;
}

const struct fault *fault_named(const char *name, size_t length)
{
    const struct fault *fault;

    for (size_t i = 0; (fault = fault_at(i)) != NULL; i++)
        if (strlen(fault->name) == length && !memcmp(fault->name, name, length))
            return fault;
    return NULL;
}

/* ---- what was done, and to whom ----------------------------------------------------------------
 */

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

void fault_note(struct chaos *chaos, const struct sight_process *process)
{
    const char *host = process->host >= 0 ? chaos->arena.hosts[process->host].name : "?";

    switch (process->kind) {
    case SIGHT_WORKER:
        fault_say(chaos, "%s:%" PRIu32 "#%" PRIu64, host, process->slot, process->incarnation);
        break;
    case SIGHT_AGENT: fault_say(chaos, "agent of %s", host); break;
    case SIGHT_KEEPER: fault_say(chaos, "keeper of %s", host); break;
    case SIGHT_DRIVER: fault_say(chaos, "driver"); break;
    case SIGHT_OTHER: fault_say(chaos, "%s", process->name); break;
    }
    if (chaos->victim_count < FAULT_VICTIMS)
        chaos->victims[chaos->victim_count++] = process->pid;
}

/* Only processes of the arena: another may have the number of one that has ended. */
void fault_wake(struct chaos *chaos)
{
    struct sight *now = mem_alloc(sizeof(*now));

    if (now)
        sight_take(now, &chaos->arena);
    for (uint32_t i = 0; now && i < now->count; i++)
        for (uint32_t k = 0; k < chaos->victim_count; k++)
            if (now->processes[i].pid == chaos->victims[k])
                kill(chaos->victims[k], SIGCONT);
    mem_free(now);
}
