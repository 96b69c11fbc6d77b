/*
 * fault.h: what can be done to a job. A fault is struck, lasts for a while that it chooses, and
 * relents; then the job has to become whole again (judge.h).
 */
#ifndef TESTS_CHAOS_FAULT_H
#define TESTS_CHAOS_FAULT_H

#include "base/rng.h"
#include "tests/chaos/arena.h"
#include "tests/chaos/sight.h"
#include "tests/chaos/steps.h"

#define FAULT_VICTIMS 8
#define FAULT_TEXT    160

/* Why it may cost a round, and what it may not do. */
enum fault_cost {
    FAULT_COSTS_A_ROUND, /* one or more: somebody dies, or comes and goes */
    FAULT_COSTS_NOTHING  /* no new round, no worker started anew: the training does not notice */
};

struct chaos {
    struct arena arena;
    struct steps steps;
    struct sight sight; /* as it was before the fault */
    struct rng rng;

    /* of the fault that is at work; cleared before each */
    char deed[FAULT_TEXT];        /* to whom it was done: "127.0.0.2:1#17, 127.0.0.3:0#9" */
    int64_t lasts_us;             /* from its strike until it relents; strike sets it */
    pid_t victims[FAULT_VICTIMS]; /* frozen, or starved: those that relent has to look after */
    uint32_t victim_count;
    int hosts[FAULT_VICTIMS]; /* hosts that are cut off, or not listed */
    uint32_t cut_count;
    void *own; /* of the fault; freed by its relent */
};

struct fault {
    const char *name; /* "worker-kill" */
    const char *what; /* half a line for --list and docs/chaos.md */
    enum fault_cost cost;
    uint32_t weight; /* how often beside the others */

    /* NULL: it can be done here. Else the reason why not: "only root can ..." */
    const char *(*missing)(const struct chaos *chaos);

    /* HVD_DONE: there is nobody it could be done to just now; another one is picked. */
    int (*strike)(struct chaos *chaos, struct hvd_err *err);

    /* Takes it back. NULL: there is nothing to take back. Called also when the campaign is
     * broken off. */
    int (*relent)(struct chaos *chaos, struct hvd_err *err);
};

/* Each file of faults has a table; the catalog is all of them. */
extern const struct fault process_faults[], driver_faults[], phase_faults[], discovery_faults[],
    weather_faults[], machine_faults[], network_faults[];
extern const size_t process_fault_count, driver_fault_count, phase_fault_count,
    discovery_fault_count, weather_fault_count, machine_fault_count, network_fault_count;

size_t fault_count(void);
const struct fault *fault_at(size_t index);
const struct fault *fault_named(const char *name, size_t length);

/* For strikes: adds to the deed ("127.0.0.2:1#17"), and remembers the process as a victim. */
void fault_note(struct chaos *chaos, const struct sight_process *process);
PRINTF_LIKE(2, 3) void fault_say(struct chaos *chaos, const char *format, ...);

/* The victims go on (SIGCONT), those that still live. */
void fault_wake(struct chaos *chaos);

#endif
