/*
 * bench_watch: what it costs that a job is watched. One activity of the flight recorder, and one
 * clock reading for comparison. Steps of jobs with a page that is looked at, metrics that are read
 * once a second and two reported values in each step, beside steps of jobs without, in turns: the
 * real programs, two workers of one host, a commit after each 100 steps. Last, the processor time
 * of the driver, with a number of viewers (hvd_report alone: bench_check).
 *
 *     bench_watch [--blocks N] [--times N] [--seconds N]
 */
#include "base/text.h"
#include "base/time.h"
#include "bench/bench.h"
#include "bench/elastic_job.h"
#include "bench/series.h"
#include "bench/viewers.h"
#include "os/clock.h"
#include "os/thread.h"
#include "proto/recorder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKERS      2
#define STEP_US      10000
#define WARM_BLOCKS  2 /* before the time of a job counts */
#define CALL_SECONDS 1

static const char usage[] =
    "bench_watch [options]: what page, metrics, reported values and the flight recorder cost\n\n"
    "  --blocks N    blocks of 100 steps of about 10 ms and a commit, of each job (default 10)\n"
    "  --times N     pairs of jobs that are watched and that are not (default 5)\n"
    "  --seconds N   for each number of viewers, how long the driver's processor time is measured\n"
    "                (default 20)\n"
    "  --help        print this text\n";

struct wish {
    uint64_t blocks, times, seconds;
};

static const char *const watched[] = { "--page", "0", "--metrics", "0", NULL };

/* ---- one activity ---------------------------------------------------------------------------- */

static void activity_record(void *arg)
{
    const struct activity activity = {
        .name = "allreduce", .round = 1, .number = 2, .bytes = 1024
    };

    recorder_end(arg, recorder_begin(arg, &activity), 0, 0);
}

static void clock_read(void *arg)
{
    *(int64_t *)arg = clock_now_us();
}

static void activity_measure(void)
{
    static struct recorder recorder;
    int64_t now_us;
    struct bench_result clock = bench_time(clock_read, &now_us, CALL_SECONDS);

    bench_line("an activity of the flight recorder",
               bench_time(activity_record, &recorder, CALL_SECONDS), "reading the clock", clock);
}

/* ---- the viewers of a job -------------------------------------------------------------------- */

static int watch_begin(struct viewers *viewers, const struct elastic_job *job, size_t count,
                       struct hvd_err *err)
{
    char page[64], metrics[64];
    int rc = elastic_job_address(job, "the page is at http://", page, sizeof(page), err);

    if (!rc)
        rc = elastic_job_address(job, "the metrics are at http://", metrics, sizeof(metrics), err);
    return rc ? rc : viewers_begin(viewers, page, metrics, count, err);
}

/* ---- the cost of a step ---------------------------------------------------------------------- */

/* Runs one job. *ret_ms: the mean time of a step, with its share of a commit. */
static int cost_run(const struct wish *wish, const char *mode, bool with, double *ret_ms,
                    struct hvd_err *err)
{
    const struct elastic_plan plan = { .hosts = 1,
                                       .slots = WORKERS,
                                       .state_mib = 1,
                                       .step_us = STEP_US,
                                       .mode = mode,
                                       .options = with ? watched : NULL };
    struct viewers viewers;
    struct elastic_job job;
    int64_t us = 0;
    bool looks = false;
    int rc = elastic_job_begin(&job, &plan, err);

    if (!rc && with) {
        rc = watch_begin(&viewers, &job, 1, err);
        looks = !rc;
    }
    if (!rc)
        rc = elastic_job_blocks(&job, WARM_BLOCKS, &us, err);
    if (!rc)
        rc = elastic_job_blocks(&job, wish->blocks, &us, err);
    if (looks) {
        int end = viewers_end(&viewers, rc ? NULL : err);

        rc = rc ? rc : end;
    }
    *ret_ms = (double)us / 1e3 / (double)(wish->blocks * BOARD_BLOCK_STEPS);
    elastic_job_end(&job);
    return rc;
}

/* Runs jobs that are watched and jobs that are not in turns, and reports them. */
static int cost_measure(const struct wish *wish, const char *const modes[2], const char *about,
                        struct hvd_err *err)
{
    static struct series with, without, ratios;

    with.count = without.count = ratios.count = 0;
    for (uint64_t i = 0; i < wish->times; i++) {
        double ms[2];

        for (int k = 0; k < 2; k++) { /* neither is always the first */
            int is_watched = (k + (int)i) % 2;
            int rc = cost_run(wish, modes[is_watched], is_watched, &ms[is_watched], err);

            if (rc)
                return rc;
        }
        series_add(&without, ms[0]);
        series_add(&with, ms[1]);
        series_add(&ratios, ms[1] / ms[0]);
    }
    printf("%s, %d workers\n", about, WORKERS);
    series_line(&without, "a step without them", "ms");
    series_line(&with, "a step with page, metrics and two reports", "ms");
    series_line(&ratios, "with : without", "x ");
    return 0;
}

/* ---- the driver's processor time ------------------------------------------------------------- */

/* Measures the driver of this job for some seconds with so many viewers; without viewers no program
 * reads the metrics either. */
static int driver_measure(const struct wish *wish, const struct elastic_job *job, size_t count,
                          struct hvd_err *err)
{
    struct viewers viewers;
    int64_t began_us, used_us;
    int rc = count ? watch_begin(&viewers, job, count, err) : 0;

    if (rc)
        return rc;
    used_us = elastic_job_driver_us(job);
    began_us = clock_now_us();
    thread_pause((int64_t)wish->seconds * TIME_S);
    used_us = elastic_job_driver_us(job) - used_us;
    began_us = clock_now_us() - began_us;
    rc = count ? viewers_end(&viewers, err) : 0;
    if (rc)
        return rc;
    printf("  %2zu viewers%-33s %6.2f %% of a processor", count,
           count ? ", metrics once a second" : ", no metrics",
           (double)used_us * 100 / (double)began_us);
    if (count)
        printf(", %.1f kB/s for each", (double)viewers.bytes[0] / (double)began_us * 1e3);
    printf("\n");
    (void)fflush(stdout);
    return 0;
}

static int driver_watch(const struct wish *wish, bool with, struct hvd_err *err)
{
    static const size_t counts[] = { 0, 1, 10, VIEWERS_MAX };
    const struct elastic_plan plan = { .hosts = 1,
                                       .slots = WORKERS,
                                       .state_mib = 1,
                                       .step_us = STEP_US,
                                       .mode = with ? "device-report" : "device",
                                       .options = with ? watched : NULL };
    struct elastic_job job;
    int rc = elastic_job_begin(&job, &plan, err);

    printf("the driver of a job %s\n", with ? "with page, metrics and reports" : "without");
    for (size_t i = 0; !rc && i < (with ? ARRAY_SIZE(counts) : 1); i++)
        rc = driver_measure(wish, &job, counts[i], err);
    elastic_job_end(&job);
    return rc;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Reads the options. Returns 0, or an error for the user. */
static int wish_read(int argc, char **argv, struct wish *wish, struct hvd_err *err)
{
    const struct {
        const char *name;
        uint64_t most;
        uint64_t *number;
    } numbers[] = {
        {"--blocks",   100000,     &wish->blocks },
        { "--times",   SERIES_MAX, &wish->times  },
        { "--seconds", 3600,       &wish->seconds},
    };

    for (int i = 1; i < argc; i += 2) {
        const char *value = argv[i + 1];
        size_t k = 0;
        int rc;

        while (k < ARRAY_SIZE(numbers) && strcmp(argv[i], numbers[k].name) != 0)
            k++;
        if (k == ARRAY_SIZE(numbers))
            return err_set(err, HVD_E_INVAL, "%s: there is no such option; see --help", argv[i]);
        if (!value)
            return err_set(err, HVD_E_INVAL, "%s: the value is missing", argv[i]);
        rc = text_parse_u64((struct span){ value, strlen(value) }, 1, numbers[k].most, argv[i],
                            numbers[k].number, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int wish_measure(const struct wish *wish, struct hvd_err *err)
{
    static const char *const rests[] = { "device", "device-report" };
    static const char *const computes[] = { "compute", "compute-report" };
    double load;
    int rc;

    if (getloadavg(&load, 1) == 1)
        printf("load average before the first job: %.1f on %ld processors\n", load,
               sysconf(_SC_NPROCESSORS_ONLN));
    activity_measure();
    rc = cost_measure(wish, rests, "steps in which the processors rest", err);
    if (!rc)
        rc = cost_measure(wish, computes, "steps in which the processors compute", err);
    if (!rc)
        rc = driver_watch(wish, false, err);
    return rc ? rc : driver_watch(wish, true, err);
}

int main(int argc, char **argv)
{
    struct wish wish = { .blocks = 10, .times = 5, .seconds = 20 };
    struct hvd_err err = { 0 };
    int rc;

    if (argc == 2 && !strcmp(argv[1], "--help")) {
        (void)fputs(usage, stdout);
        return 0;
    }
    if (wish_read(argc, argv, &wish, &err)) {
        (void)fprintf(stderr, "bench_watch: %s\n", err.text);
        return 2;
    }
    rc = wish_measure(&wish, &err);
    if (rc)
        (void)fprintf(stderr, "bench_watch: %s\n", err.text);
    return rc ? 1 : 0;
}
