/*
 * restarts.h: when the next driver of a job may be started, after one has ended. No clock is read
 * here.
 */
#ifndef DRIVER_FRONT_RESTARTS_H
#define DRIVER_FRONT_RESTARTS_H

#include "base/limits.h"
#include "base/time.h"

#define RESTARTS_WINDOW_US  TIME_MIN
#define RESTARTS_LONGEST_US (8 * TIME_S)

/* all zero: nothing was started yet */
struct restarts {
    int64_t at_us[LIMIT_DRIVER_RESTARTS]; /* a ring of the latest starts */
    uint32_t count;                       /* starts so far */
    uint32_t in_vain;                     /* drivers in a row that have not come to run */
};

/*
 * Returns when the next driver may be started, now_us at the earliest, and counts it as started
 * then. `ran`: the driver that has ended came to run. The driver after one that ran, and after the
 * first that did not, comes at once. Further ones wait for a second, and for twice as long each
 * time, up to RESTARTS_LONGEST_US. No more than LIMIT_DRIVER_RESTARTS start within
 * RESTARTS_WINDOW_US.
 */
int64_t restarts_next(struct restarts *restarts, bool ran, int64_t now_us);

#endif
