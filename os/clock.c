#include "os/clock.h"

#include "base/panic.h"
#include "base/time.h"

#include <time.h>

static int64_t read_us(clockid_t clock)
{
    struct timespec now;
    int rc = clock_gettime(clock, &now);

    ASSERT(rc == 0);
    return now.tv_sec * TIME_S + now.tv_nsec / 1000;
}

int64_t clock_now_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

int64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}
