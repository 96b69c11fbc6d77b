/*
 * series.h: measured values of one kind, and the line that shows them: median, least and most.
 */
#ifndef BENCH_SERIES_H
#define BENCH_SERIES_H

#include "base/base.h"

#define SERIES_MAX 100

struct series {
    size_t count;
    double values[SERIES_MAX];
};

void series_add(struct series *series, double value); /* values that are too many are left out */

/* Prints the median, the least and the most of the series, which is sorted. Nothing without
 * values. */
void series_line(struct series *series, const char *name, const char *unit);

#endif
