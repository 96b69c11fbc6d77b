/*
 * restarts.h: when the next driver of a job may be started, after a driver has ended. The caller
 * passes the time, and no clock is read.
 */
#ifndef DRIVER_FRONT_RESTARTS_H
#define DRIVER_FRONT_RESTARTS_H

#include "base/limits.h"
#include "base/time.h"

#define RESTARTS_WINDOW_US  TIME_MIN
#define RESTARTS_LONGEST_US (8 * TIME_S)

/* The starts of drivers so far. A struct of zeros: no driver was started yet. */
struct restarts {
    int64_t at_us[LIMIT_DRIVER_RESTARTS]; /* a ring of the latest starts */
    uint32_t count;                       /* starts so far */
    uint32_t failed_in_a_row;             /* how many drivers in a row have ended before they ran */
};

/*
 * Returns when the next driver may be started, now_us at the earliest, and counts it as started at
 * that time. `ran`: the driver that has ended came to run (FRONT_RUNS). The next driver starts at
 * once if the last one ran, or was the first that did not. After that it waits for a second, and
 * for twice as long after each further driver that did not run, up to RESTARTS_LONGEST_US. No more
 * than LIMIT_DRIVER_RESTARTS drivers start within RESTARTS_WINDOW_US.
 */
int64_t restarts_next(struct restarts *restarts, bool ran, int64_t now_us);

#endif
