/*
 * bench_check: what hvd_state_check and hvd_report cost in a round that runs, beside an atomic load
 * in the same process: two workers of a real job, many calls of each at a time.
 */
#include "base/time.h"
#include "bench/elastic_job.h"
#include "bench/times.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>

#define SAMPLES     40
#define PATIENCE_US (120 * TIME_S)

struct samples {
    size_t count;
    int64_t ps[SAMPLES];
};

static int by_value(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

static void take(struct samples *samples, int64_t ps)
{
    if (ps && samples->count < SAMPLES)
        samples->ps[samples->count++] = ps;
}

static double at(struct samples *samples, size_t tenths)
{
    size_t place = (samples->count - 1) * tenths / 10;

    qsort(samples->ps, samples->count, sizeof(samples->ps[0]), by_value);
    return (double)samples->ps[place] / 1e3;
}

static int measure(struct elastic_job *job, struct samples *checks, struct samples *loads,
                   struct samples *reports, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + PATIENCE_US;

    while (checks->count < SAMPLES || reports->count < SAMPLES / 2) {
        if (clock_now_us() >= deadline_us)
            return err_set(err, HVD_E_TIMEOUT, "the workers time no checks");
        board_await(job->board, job->board->bell, deadline_us);
        for (size_t i = 0; i < job->count; i++) {
            struct board_slot *seat = board_slot(job->board, job->incarnations[i]);

            take(checks, atomic_exchange(&seat->check_ps, 0));
            take(loads, atomic_exchange(&seat->load_ps, 0));
            take(reports, atomic_exchange(&seat->report_ps, 0));
        }
    }
    return 0;
}

int main(void)
{
    const struct elastic_plan plan = { 2, 1, 1, 0, 0, "time", NULL };
    struct samples checks = { 0 }, loads = { 0 }, reports = { 0 };
    struct elastic_job job;
    struct hvd_err err = { 0 };
    int rc = elastic_job_begin(&job, &plan, &err);

    if (!rc)
        rc = measure(&job, &checks, &loads, &reports, &err);
    elastic_job_end(&job);
    if (rc) {
        fprintf(stderr, "bench_check: %s\n", err.text);
        return 1;
    }
    printf("hvd_state_check in a running round  %6.2f ns (%.2f to %.2f)\n", at(&checks, 5),
           at(&checks, 1), at(&checks, 9));
    printf("hvd_report of a value               %6.2f ns (%.2f to %.2f)\n", at(&reports, 5),
           at(&reports, 1), at(&reports, 9));
    printf("an atomic load                      %6.2f ns (%.2f to %.2f)\n", at(&loads, 5),
           at(&loads, 1), at(&loads, 9));
    return 0;
}
