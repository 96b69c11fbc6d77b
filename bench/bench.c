#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLES_MAX     2000
#define SAMPLE_NS_LEAST 20000.0

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double sample(void (*work)(void *arg), void *arg, unsigned long calls)
{
    double start = now_ns();

    for (unsigned long i = 0; i < calls; i++)
        work(arg);
    return (now_ns() - start) / (double)calls;
}

static int by_time(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;

    return difference < 0 ? -1 : difference > 0;
}

struct bench_result bench_time(void (*work)(void *arg), void *arg, double seconds)
{
    static double samples[SAMPLES_MAX];
    double end = now_ns() + seconds * 1e9;
    unsigned long calls = 1;
    size_t count = 0;

    while (sample(work, arg, calls) * (double)calls < SAMPLE_NS_LEAST)
        calls *= 2;
    do
        samples[count++] = sample(work, arg, calls);
    while (count < SAMPLES_MAX && now_ns() < end);
    qsort(samples, count, sizeof(samples[0]), by_time);
    return (struct bench_result){ samples[count / 2], samples[count / 10],
                                  samples[count * 9 / 10] };
}

static const char *format_ns(double ns, char text[32])
{
    if (ns < 1e3)
        snprintf(text, 32, "%.0f ns", ns);
    else if (ns < 1e6)
        snprintf(text, 32, "%.1f us", ns / 1e3);
    else
        snprintf(text, 32, "%.2f ms", ns / 1e6);
    return text;
}

void bench_line(const char *name, struct bench_result result, const char *reference_name,
                struct bench_result reference)
{
    char median[32];
    char low[32];
    char high[32];

    printf("%-34s %9s (%s to %s)  %6.1f x %s\n", name, format_ns(result.median_ns, median),
           format_ns(result.low_ns, low), format_ns(result.high_ns, high),
           result.median_ns / reference.median_ns, reference_name);
}

void bench_keep(const void *result)
{
    __asm__ volatile("" : : "r"(result) : "memory");
}
