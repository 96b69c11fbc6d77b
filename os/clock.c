/*
 * clock.c: the two clocks, and times for libevent's timers. Decisions use the monotonic clock only;
 * the pure floors get the time as an argument.
 */
#include "os/clock.h"

#include "base/panic.h"
#include "base/time.h"

#include <time.h>

/* Reads a clock, in microseconds. A clock that cannot be read is a bug. */
static int64_t clock_read_us(clockid_t clock)
{
    struct timespec now;
    int rc = clock_gettime(clock, &now);

    ASSERT(rc == 0);
    return now.tv_sec * TIME_S + now.tv_nsec / 1000;
}

/* Returns the time of the monotonic clock, which never goes back. All decisions use this clock. */
int64_t clock_now_us(void)
{
    return clock_read_us(CLOCK_MONOTONIC);
}

int64_t clock_tick_us(void)
{
    return clock_read_us(CLOCK_MONOTONIC_COARSE);
}

/* Returns the microseconds since 1970, UTC. This clock may jump, so no decision uses it. */
int64_t clock_wall_us(void)
{
    return clock_read_us(CLOCK_REALTIME);
}

/* Returns a length of time, which is not negative, as libevent's timers take it. */
struct timeval clock_timeval(int64_t us)
{
    return (struct timeval){ (time_t)(us / TIME_S), (suseconds_t)(us % TIME_S) };
}
