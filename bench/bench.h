/*
 * bench.h: timing a piece of work beside something it can be measured against in the same run: a
 * peer, or what the machine itself can do. Times vary with the machine; the ratio is the figure.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "base/base.h"

struct bench_result {
    double median_ns; /* of one call */
    double low_ns;    /* 10th and 90th percentile: the spread */
    double high_ns;
};

/* Calls work(arg) for about `seconds`, in samples long enough for the clock. */
struct bench_result bench_time(void (*work)(void *arg), void *arg, double seconds);

/* One line: the time of one call, its spread, and how many times the reference's it takes. */
void bench_line(const char *name, struct bench_result result, const char *reference_name,
                struct bench_result reference);

/* Not optimised away. */
void bench_keep(const void *result);

#endif
