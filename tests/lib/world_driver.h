/*
 * world_driver.h: a process with a driver's core in it. There may be two at once.
 */
#ifndef TESTS_LIB_WORLD_DRIVER_H
#define TESTS_LIB_WORLD_DRIVER_H

#include "base/trace.h"
#include "driver/core/core.h"
#include "tests/lib/world_disk.h"
#include "tests/lib/world_queue.h"

struct world_told; /* world_check.h: what this core has been told */

struct world_driver {
    struct world_process process;
    struct world *world;
    uint32_t number; /* the how-manieth of this job */
    uint64_t term;   /* 0: it has not said one */
    struct core *core;
    struct core *shadow;
    struct trace trace;
    struct trace *tracing; /* NULL: silent */
    struct action_list actions;
    struct world_executor queue;
    struct VEC(struct world_link *) peers; /* by number; NULL: free */
    struct world_told *told;
    uint64_t steps;
    bool stepping;
    bool begun;            /* its first record, the term, is durable */
    unsigned last_actions; /* it dies after so many more; 0: it does not */
};

void driver_start(struct world *world);
void driver_step(struct world *world, struct world_driver *driver, struct event *event);
/* Its successor starts after shape.restart, if it was the newest. */
void driver_die(struct world *world, struct world_driver *driver, const char *why);
void driver_release(struct world_driver *driver);

/* An action whose turn has come. The frame is borrowed. */
void driver_perform(struct world *world, struct world_driver *driver,
                    const struct world_queued *action);
uint32_t driver_accept(struct world_driver *driver, struct world_link *link);
bool driver_newest(const struct world_driver *driver);

#endif
