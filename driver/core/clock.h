/*
 * clock.h: what happens because time has passed. The core keeps no timers: it knows a moment before
 * which nothing is due, and when that has come it looks at everything that has a deadline.
 */
#ifndef DRIVER_CORE_CLOCK_H
#define DRIVER_CORE_CLOCK_H

#include "driver/core/state.h"

/* Something is due then. */
void clock_want(struct core *core, int64_t at_us);

/* The worker is killed when it takes longer than that (clock_due), because it is late; until it
 * moves to another state. */
void clock_limit(struct core *core, struct worker *worker, int64_t in_us, const char *late);

/* When what is expected of a worker since then, within so long, is due. While its agent is away
 * nothing is: it may not have been told, and cannot be heard; how long its agent may be away is not
 * judged here. From when that is back it has its time anew. */
int64_t clock_due(const struct worker *worker, int64_t since_us, int64_t in_us);

/* Of a limit that is of several: this one could be told, and was heard, for so long at least. */
bool clock_is_heard(const struct core *core, const struct worker *worker, int64_t for_us);

/* Everything that is due. */
void clock_expire(struct core *core);

/* The time since the last step was the driver's own silence, not that of its agents: what they and
 * their workers have said meanwhile is still to be read. */
void clock_forgive(struct core *core, int64_t since_us);

/* Is the job short of workers, and for how long? At the end of each step. */
void clock_judge_shortage(struct core *core);

#endif
