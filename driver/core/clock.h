/*
 * clock.h: what happens because time has passed. The core keeps no timers: it knows a moment before
 * which nothing is due, and when that has come it looks at everything that has a deadline.
 */
#ifndef DRIVER_CORE_CLOCK_H
#define DRIVER_CORE_CLOCK_H

#include "driver/core/state.h"

/* Something is due then. */
void clock_want(struct core *core, int64_t at_us);

/* The worker is killed in so long, because it is late; until it moves to another state. */
void clock_limit(struct core *core, struct worker *worker, int64_t in_us, const char *late);

/* Everything that is due. */
void clock_expire(struct core *core);

/* The time since the last step was the driver's own silence, not that of its agents. */
void clock_forgive(struct core *core, int64_t since_us);

/* Is the job short of workers, and for how long? At the end of each step. */
void clock_judge_shortage(struct core *core);

#endif
