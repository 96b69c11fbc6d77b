/*
 * clock.h: the two clocks. Only programs and loops read them; pure code gets the time as a
 * parameter.
 */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include "base/base.h"

#include <sys/time.h>

int64_t clock_now_us(void); /* the monotonic clock, which is used for every decision */
/* The same clock as of its last tick, some milliseconds ago: cheaper, for what is only shown. */
int64_t clock_tick_us(void);
/* microseconds since 1970, UTC; used for texts and records, never for a decision */
int64_t clock_wall_us(void);

/* Returns a length of time, which is not negative, in the form that timers of libevent take. */
struct timeval clock_timeval(int64_t us);

#endif
