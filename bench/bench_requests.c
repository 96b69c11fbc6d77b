/*
 * bench_requests: a step of 200 small allreduces, started and then waited for, without fusion
 * (--fusion-threshold-mb 0) and with it, beside hvd_allreduce for each and one call with pieces;
 * and a request that is alone. Jobs of two workers, on one host and on two loopback hosts, which
 * take turns, pass after pass. A time is that which one step in four of a job does not exceed, as
 * other programs may use the machine; each line has the median over the passes, 10 % and 90 %.
 *
 *     bench_requests [PASSES]
 */
#include "base/text.h"
#include "base/time.h"
#include "bench/requests_worker.h"
#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef BENCH_ELASTIC /* the build says where they are */
#define BENCH_ELASTIC "hvd-elastic"
#define BENCH_WORKER  "requests_worker"
#endif

#define PASSES_MAX 101
#define SIZES      3

enum { UNFUSED, FUSED, SETTINGS };

/* In nanoseconds, of one layout. */
struct figures {
    size_t bytes[SIZES];
    double ns[SETTINGS][SIZES][REQUESTS_FORMS][PASSES_MAX];
};

static struct figures figures;
static char folder[] = "/tmp/bench-XXXXXX";

static void give_up(const char *what)
{
    fprintf(stderr, "bench_requests: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void path_of(const char *name, char path[64])
{
    snprintf(path, 64, "%s/%s", folder, name);
}

static void read_figures(const char *path, int setting, size_t pass)
{
    FILE *file = fopen(path, "re");
    size_t count = 0;
    char line[64];

    /* each line: bytes, form, nanoseconds */
    while (file && count < (size_t)SIZES * REQUESTS_FORMS && fgets(line, sizeof(line), file)) {
        char *at = line;
        size_t bytes = strtoull(at, &at, 10);
        size_t form = strtoull(at, &at, 10);
        double ns = strtod(at, &at);

        if (form >= REQUESTS_FORMS || *at != '\n')
            break;
        figures.bytes[count / REQUESTS_FORMS] = bytes;
        figures.ns[setting][count++ / REQUESTS_FORMS][form][pass] = ns;
    }
    if (count != (size_t)SIZES * REQUESTS_FORMS)
        give_up("the workers have not told all times");
    fclose(file);
    (void)unlink(path);
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *ftw)
{
    (void)stat;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void run_job(const char *hosts, int setting, size_t pass)
{
    char state[64], out[64], log[64];
    const char *words[] = { BENCH_ELASTIC,
                            "--state-dir",
                            state,
                            "-np",
                            "2",
                            "-H",
                            hosts,
                            "--gather",
                            "5s",
                            "--fusion-threshold-mb",
                            setting == FUSED ? "64" : "0",
                            BENCH_WORKER,
                            out,
                            NULL };
    struct process_spec spec = { .argv = words, .in = -1, .group = true, .dies_with_us = SIGTERM };
    struct hvd_err err;
    int status;
    pid_t pid;

    path_of("job", state);
    path_of("out", out);
    path_of("log", log);
    spec.out = spec.err = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (spec.out < 0 || process_spawn(&spec, &pid, &err))
        give_up("a job cannot be started");
    close(spec.out);
    if (waitpid(pid, &status, 0) != pid || status)
        give_up("a job has failed, see its log");
    read_figures(out, setting, pass);
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static double at(const double *values, size_t count, size_t tenths)
{
    double sorted[PASSES_MAX];

    memcpy(sorted, values, count * sizeof(*values));
    qsort(sorted, count, sizeof(*sorted), by_value);
    return sorted[(count - 1) * tenths / 10];
}

static void show_time(const char *name, const double *ns, size_t passes)
{
    printf("  %-34s %9.1f us (%.1f to %.1f)\n", name, at(ns, passes, 5) / 1e3,
           at(ns, passes, 1) / 1e3, at(ns, passes, 9) / 1e3);
}

static void show_ratio(const char *name, const double *above, const double *below, size_t passes)
{
    double ratios[PASSES_MAX];

    for (size_t i = 0; i < passes; i++)
        ratios[i] = above[i] / below[i];
    printf("  %-34s %9.2f    (%.2f to %.2f)\n", name, at(ratios, passes, 5), at(ratios, passes, 1),
           at(ratios, passes, 9));
}

static void show(const char *hosts, size_t passes)
{
    for (size_t i = 0; i < SIZES; i++) {
        double(*before)[PASSES_MAX] = figures.ns[UNFUSED][i];
        double(*after)[PASSES_MAX] = figures.ns[FUSED][i];

        printf("%s: %d buffers of %zu bytes\n", hosts, REQUESTS, figures.bytes[i]);
        show_time("requests, without fusion", before[REQUESTS_STARTED], passes);
        show_time("requests, fused", after[REQUESTS_STARTED], passes);
        show_time("hvd_allreduce for each", after[REQUESTS_RUN], passes);
        show_time("one call with pieces", after[REQUESTS_PIECES], passes);
        show_ratio("without fusion : fused", before[REQUESTS_STARTED], after[REQUESTS_STARTED],
                   passes);
        show_ratio("fused : pieces", after[REQUESTS_STARTED], after[REQUESTS_PIECES], passes);
        show_time("one request, without fusion", before[REQUESTS_ALONE], passes);
        show_time("one request, with fusion", after[REQUESTS_ALONE], passes);
        show_ratio("one request, with : without", after[REQUESTS_ALONE], before[REQUESTS_ALONE],
                   passes);
    }
}

int main(int argc, char **argv)
{
    static const char *const layouts[] = { "127.0.0.1:2", "127.0.0.1:1,127.0.0.2:1" };
    uint64_t passes = 7;
    struct hvd_err err;

    if (argc > 1 && text_parse_u64((struct span){ argv[1], strlen(argv[1]) }, 1, PASSES_MAX,
                                   "PASSES", &passes, &err)) {
        fprintf(stderr, "bench_requests: %s\n", err.text);
        return 2;
    }
    if (!mkdtemp(folder))
        give_up("/tmp");
    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        for (size_t pass = 0; pass < passes; pass++)
            for (int k = 0; k < SETTINGS; k++) /* neither is always the first */
                run_job(layouts[i], (k + (int)pass) % SETTINGS, pass);
        show(layouts[i], (size_t)passes);
    }
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
