/*
 * times.h: many measured times and what is shown of them.
 */
#ifndef BENCH_TIMES_H
#define BENCH_TIMES_H

#include "base/base.h"

#define TIMES_MAX 16384

struct times {
    size_t count;
    int64_t us[TIMES_MAX];
};

void times_add(struct times *times, int64_t us); /* those that are too many are left out */

/* One line: median, 99th percentile, least, most. Sorts them. */
void times_line(struct times *times, const char *name);

/* So many percent of them are not longer. Sorts them; 0 when there are none. */
double times_ms(struct times *times, size_t percent);

#endif
