/*
 * bench_checkpoint: what checkpoints cost a training, and how fast they are written. The real
 * programs: two workers of one host. Jobs with a checkpoint every 2 s and jobs without one take
 * turns; all of them commit after each 100 steps. A second part writes one checkpoint after the
 * other, and with dd as many bytes to the same directory, in turns.
 *
 *     bench_checkpoint [--mib N] [--blocks N] [--times N] [--dir DIR]
 */
#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"
#include "bench/elastic_job.h"
#include "bench/memory.h"
#include "bench/series.h"
#include "os/clock.h"
#include "os/process.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS     2
#define STEP_US     10000
#define WARM_BLOCKS 2 /* before the time of a job counts */
#define TIMES_LIMIT SERIES_MAX
#define WAIT_US     (10 * TIME_MIN)
#define COMPLETE    " is complete: " /* in the driver's line about a checkpoint */

static const char usage[] =
    "bench_checkpoint [options]: the cost of checkpoints for the steps of a training, and the "
    "time\n"
    "of a checkpoint beside dd\n\n"
    "  --mib N      state of each of the two workers in MiB (default 1024); a worker needs memory\n"
    "               for four times as much\n"
    "  --blocks N   blocks of 100 steps of about 10 ms and a commit, of each job (default 8)\n"
    "  --times N    pairs of jobs with and without checkpoints, and of checkpoints and dd\n"
    "               (default 5)\n"
    "  --dir DIR    the checkpoints are written to a new folder in DIR (default /tmp)\n"
    "  --help       print this text\n";

struct wish {
    uint64_t mib, blocks, times;
    const char *dir;
    char folder[LIMIT_PATH_BYTES]; /* of the checkpoints */
};

/* ---- folders --------------------------------------------------------------------------------- */

static int folder_remove_one(const char *path, const struct stat *stat, int kind, struct FTW *ftw)
{
    (void)stat;
    (void)kind;
    (void)ftw;
    return remove(path);
}

/* Removes the folder of checkpoints, so the next job does not begin with them. */
static void folder_remove(const struct wish *wish)
{
    (void)nftw(wish->folder, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- the cost of a step ---------------------------------------------------------------------- */

/* Until the time of a job counts: the memory of all commits is there, of a job with checkpoints
 * that of the third one too, which it asks for beside its first checkpoint. */
static int cost_warm(const struct elastic_job *job, bool with, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + WAIT_US, us;
    int rc = elastic_job_blocks(job, WARM_BLOCKS, &us, err);

    while (!rc && with && !elastic_job_logged(job, COMPLETE)) {
        rc = elastic_job_blocks(job, 1, &us, err);
        if (!rc && clock_now_us() >= deadline_us)
            rc = err_set(err, HVD_E_TIMEOUT,
                         "no checkpoint was completed in 10 minutes; choose a lower --mib");
    }
    return rc ? rc : elastic_job_blocks(job, WARM_BLOCKS, &us, err);
}

/* Runs one job. *ret_ms: the mean time of a step, with its share of a commit. *ret_taken: the
 * checkpoints that were completed meanwhile. */
static int cost_run(const struct wish *wish, const char *mode, bool with, double *ret_ms,
                    double *ret_taken, struct hvd_err *err)
{
    const char *const options[] = { "--checkpoint-dir",
                                    wish->folder,
                                    "--checkpoint-keep",
                                    "2",
                                    "--checkpoint-interval",
                                    "2s",
                                    NULL };
    const struct elastic_plan plan = { .hosts = 1,
                                       .slots = WORKERS,
                                       .state_mib = (uint32_t)wish->mib,
                                       .step_us = STEP_US,
                                       .mode = mode,
                                       .options = with ? options : NULL };
    struct elastic_job job;
    size_t before = 0;
    int64_t us = 0;
    int rc = elastic_job_begin(&job, &plan, err);

    if (!rc)
        rc = cost_warm(&job, with, err);
    if (!rc) {
        before = elastic_job_logged(&job, COMPLETE);
        rc = elastic_job_blocks(&job, wish->blocks, &us, err);
    }
    if (!rc) {
        *ret_ms = (double)us / 1e3 / (double)(wish->blocks * BOARD_BLOCK_STEPS);
        *ret_taken = (double)(elastic_job_logged(&job, COMPLETE) - before);
    }
    elastic_job_end(&job);
    folder_remove(wish);
    return rc;
}

/* Runs jobs with and without checkpoints in turns, and reports them. */
static int cost_measure(const struct wish *wish, const char *mode, const char *about,
                        struct hvd_err *err)
{
    static struct series with, without, ratios, taken, every;

    with.count = without.count = ratios.count = taken.count = every.count = 0;
    for (uint64_t i = 0; i < wish->times; i++) {
        double ms[2], done[2];

        for (int k = 0; k < 2; k++) { /* neither is always the first */
            int checkpoints = (k + (int)i) % 2;
            int rc = cost_run(wish, mode, checkpoints, &ms[checkpoints], &done[checkpoints], err);

            if (rc)
                return rc;
        }
        series_add(&without, ms[0]);
        series_add(&with, ms[1]);
        series_add(&ratios, ms[1] / ms[0]);
        series_add(&taken, done[1]);
        if (done[1] > 0)
            series_add(&every, ms[1] * (double)(wish->blocks * BOARD_BLOCK_STEPS) / 1e3 / done[1]);
    }
    printf("%s, %d workers of %" PRIu64 " MiB, a commit after each %d steps\n", about, WORKERS,
           wish->mib, BOARD_BLOCK_STEPS);
    series_line(&without, "a step without checkpoints", "ms");
    series_line(&with, "a step with a checkpoint every 2 s", "ms");
    series_line(&ratios, "with : without", "x ");
    series_line(&taken, "checkpoints in each job", "  ");
    series_line(&every, "from one checkpoint to the next", "s ");
    if (every.count < taken.count)
        printf("  %zu jobs were over before a checkpoint was: choose more --blocks\n",
               taken.count - every.count);
    return 0;
}

/* ---- bytes in a second ----------------------------------------------------------------------- */

/* Writes zeros to a file beside the checkpoints with dd, and syncs it. */
static int speed_of_dd(const struct wish *wish, double *ret_s, struct hvd_err *err)
{
    char out[LIMIT_PATH_BYTES + 8], path[LIMIT_PATH_BYTES + 4], count[32];
    const char *words[] = { "dd",  "if=/dev/zero", out,           "bs=1M",
                            count, "conv=fsync",   "status=none", NULL };
    struct process_spec spec = { .argv = words, .in = -1, .out = -1, .err = STDERR_FILENO };
    int64_t began_us = clock_now_us();
    int status = -1;
    pid_t pid;
    int rc;

    snprintf(path, sizeof(path), "%s/dd", wish->folder);
    snprintf(out, sizeof(out), "of=%s", path);
    snprintf(count, sizeof(count), "count=%" PRIu64, wish->mib);
    rc = process_spawn(&spec, &pid, err);
    if (!rc && (waitpid(pid, &status, 0) != pid || status))
        rc = err_set(err, HVD_E_IO, "dd %s: has failed; read its line above", out);
    *ret_s = (double)(clock_now_us() - began_us) / 1e6;
    (void)unlink(path);
    return rc;
}

/* Has one checkpoint written after a new commit. */
static int speed_of_checkpoint(const struct elastic_job *job, double *ret_s, struct hvd_err *err)
{
    int64_t ignored_us, began_us;
    int rc = elastic_job_blocks(job, 1, &ignored_us, err);

    began_us = clock_now_us();
    if (!rc)
        rc = elastic_job_ask(job, "checkpoint", err);
    *ret_s = (double)(clock_now_us() - began_us) / 1e6;
    return rc;
}

/* Writes checkpoints and dd's file in turns, while the workers rest in their steps, and reports. */
static int speed_measure(const struct wish *wish, struct hvd_err *err)
{
    const char *const options[] = { "--checkpoint-dir",
                                    wish->folder,
                                    "--checkpoint-keep",
                                    "1",
                                    "--checkpoint-interval",
                                    "10h",
                                    NULL };
    const struct elastic_plan plan = { .hosts = 1,
                                       .slots = WORKERS,
                                       .state_mib = (uint32_t)wish->mib,
                                       .step_us = STEP_US,
                                       .mode = "device",
                                       .options = options };
    static struct series dd, ours, ratios;
    double seconds[2], mb = (double)(wish->mib << 20) / 1e6;
    struct elastic_job job;
    int rc = elastic_job_begin(&job, &plan, err);

    if (!rc) /* the first one asks the system for the memory of the third commit */
        rc = speed_of_checkpoint(&job, &seconds[1], err);
    for (uint64_t i = 0; !rc && i < wish->times; i++) {
        for (int k = 0; !rc && k < 2; k++) {
            int checkpoint = (k + (int)i) % 2;

            rc = checkpoint ? speed_of_checkpoint(&job, &seconds[1], err)
                            : speed_of_dd(wish, &seconds[0], err);
        }
        if (rc)
            break;
        series_add(&dd, mb / seconds[0]);
        series_add(&ours, mb / seconds[1]);
        series_add(&ratios, seconds[0] / seconds[1]);
    }
    elastic_job_end(&job);
    printf("one checkpoint of %" PRIu64 " MiB, and dd conv=fsync of as many bytes\n", wish->mib);
    series_line(&dd, "dd", "MB/s");
    series_line(&ours, "a checkpoint, until hvd-elastic says so", "MB/s");
    series_line(&ratios, "a checkpoint : dd", "x ");
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
        {"--mib",     65536,       &wish->mib   },
        { "--blocks", 100000,      &wish->blocks},
        { "--times",  TIMES_LIMIT, &wish->times },
    };
    int rc = 0;

    for (int i = 1; !rc && i < argc; i += 2) {
        const char *value = argv[i + 1];
        size_t k = 0;

        while (k < ARRAY_SIZE(numbers) && strcmp(argv[i], numbers[k].name) != 0)
            k++;
        if (k == ARRAY_SIZE(numbers) && strcmp(argv[i], "--dir") != 0)
            return err_set(err, HVD_E_INVAL, "%s: there is no such option; see --help", argv[i]);
        if (!value)
            return err_set(err, HVD_E_INVAL, "%s: the value is missing", argv[i]);
        if (k == ARRAY_SIZE(numbers))
            wish->dir = value;
        else
            rc = text_parse_u64((struct span){ value, strlen(value) }, 1, numbers[k].most, argv[i],
                                numbers[k].number, err);
    }
    return rc;
}

static int wish_measure(struct wish *wish, struct hvd_err *err)
{
    double load;
    int rc;

    if (getloadavg(&load, 1) == 1)
        printf("load average before the first job: %.1f on %ld processors\n", load,
               sysconf(_SC_NPROCESSORS_ONLN));
    rc = cost_measure(wish, "device", "steps in which the processors rest", err);
    if (!rc)
        rc = cost_measure(wish, "compute", "steps in which the processors compute", err);
    if (!rc)
        rc = speed_measure(wish, err);
    return rc;
}

int main(int argc, char **argv)
{
    struct wish wish = { .mib = 1024, .blocks = 8, .times = 5, .dir = "/tmp" };
    struct hvd_err err = { 0 };
    int rc;

    if (argc == 2 && !strcmp(argv[1], "--help")) {
        (void)fputs(usage, stdout);
        return 0;
    }
    if (wish_read(argc, argv, &wish, &err)) {
        (void)fprintf(stderr, "bench_checkpoint: %s\n", err.text);
        return 2;
    }
    /* a worker has its state and up to three commits of it */
    if (!memory_suffices(WORKERS, (uint32_t)(wish.mib * 4 / 3)))
        return 0;
    snprintf(wish.folder, sizeof(wish.folder), "%s/bench-checkpoint-XXXXXX", wish.dir);
    if (!mkdtemp(wish.folder)) {
        (void)fprintf(stderr, "bench_checkpoint: %s: %s; choose another --dir\n", wish.dir,
                      strerror(errno));
        return 1;
    }
    rc = wish_measure(&wish, &err);
    folder_remove(&wish);
    if (rc)
        (void)fprintf(stderr, "bench_checkpoint: %s\n", err.text);
    return rc ? 1 : 0;
}
