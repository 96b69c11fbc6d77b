/*
 * series.c: the values of bench_checkpoint and bench_watch, which are too few for percentiles.
 */
#include "bench/series.h"

#include <stdio.h>
#include <stdlib.h>

void series_add(struct series *series, double value)
{
    if (series->count < SERIES_MAX)
        series->values[series->count++] = value;
}

static int series_order(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

void series_line(struct series *series, const char *name, const char *unit)
{
    size_t count = series->count;

    if (!count)
        return;
    qsort(series->values, count, sizeof(series->values[0]), series_order);
    printf("  %-44s median %8.3f %s  (%.3f to %.3f)  of %zu\n", name,
           (series->values[count / 2] + series->values[(count - 1) / 2]) / 2, unit,
           series->values[0], series->values[count - 1], count);
    (void)fflush(stdout);
}
