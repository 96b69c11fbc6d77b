#include "bench/times.h"

#include <stdio.h>
#include <stdlib.h>

void times_add(struct times *times, int64_t us)
{
    if (times->count < TIMES_MAX)
        times->us[times->count++] = us;
}

static int by_time(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

static double ms(const struct times *times, size_t place)
{
    return (double)times->us[place] / 1e3;
}

double times_ms(struct times *times, size_t percent)
{
    if (!times->count)
        return 0;
    qsort(times->us, times->count, sizeof(times->us[0]), by_time);
    return ms(times, (times->count - 1) * percent / 100);
}

void times_line(struct times *times, const char *name)
{
    size_t count = times->count;

    if (!count)
        return;
    qsort(times->us, count, sizeof(times->us[0]), by_time);
    printf("  %-34s median %8.2f ms  p99 %8.2f ms  least %8.2f ms  most %8.2f ms  of %zu\n", name,
           ms(times, count / 2), ms(times, (count * 99 - 1) / 100), ms(times, 0),
           ms(times, count - 1), count);
}
