/*
 * sim.c: random worlds, one for each seed, over several processes. The first violation ends it:
 * the same seed is run again with the driver's trace, whose last lines are shown.
 */
#include "base/panic.h"
#include "tests/lib/world.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX    64
#define FAULTS      200
#define TRACE_SHOWN 60
#define WRONG_MAX   1024
#define WORLD_S     120 /* a world that takes longer hangs the simulator itself */

struct options {
    uint64_t worlds;
    uint64_t seed;
    unsigned jobs;
    unsigned faults;
    enum world_bug bug;
    bool verbose;
    bool replay;
    bool oom;
    bool keep; /* go on after a violation */
};

/* One for each process, where the parent can see it. */
struct progress {
    uint64_t seed; /* being run */
    uint64_t worlds;
    uint64_t failed; /* worlds that ended with another exit than 0, for a reason */
    int64_t virtual_us;
    struct world_stats stats;
    char wrong[WRONG_MAX];
};

static const char *const bug_names[BUG_COUNT] = {
    [BUG_NONE] = "none",
    [BUG_STALE_EXIT] = "stale-exit",
    [BUG_LOST_NOTIFICATION] = "lost-notification",
    [BUG_WRONG_ROOT] = "wrong-root",
    [BUG_LAUNCH_ON_BARRED] = "launch-on-barred",
    [BUG_VISIBLE_BEFORE_DURABLE] = "visible-before-durable",
};

static struct world *make(const struct options *options, uint64_t seed, bool told)
{
    struct world_shape shape;
    struct world *world;

    world_shape_random(&shape, seed, options->faults);
    shape.bug = options->bug;
    shape.shadow = options->replay;
    shape.oom = options->oom;
    shape.trace = told;
    shape.tell = told;
    world = world_create(&shape);
    world_populate(world);
    return world;
}

static void note(struct progress *progress, const struct world *world)
{
    const struct world_stats *stats = world_stats(world);
    const uint64_t *from = (const uint64_t *)(const void *)stats;
    uint64_t *to = (uint64_t *)(void *)&progress->stats;

    for (size_t i = 0; i < sizeof(*stats) / sizeof(*from); i++)
        to[i] += from[i];
    progress->worlds++;
    progress->virtual_us += world_now(world);
    if (world_exit_code(world) != 0)
        progress->failed++;
}

/* False when something was violated. */
static bool run_one(const struct options *options, uint64_t seed, struct progress *progress)
{
    struct world *world = make(options, seed, false);
    uint64_t digest;

    progress->seed = seed;
    alarm(WORLD_S);
    world_run(world);
    note(progress, world);
    digest = world_digest(world);
    if (world_wrong(world))
        snprintf(progress->wrong, sizeof(progress->wrong), "%s", world_wrong(world));
    if (options->verbose && world_exit_code(world) != 0)
        printf("seed %" PRIu64 ": exit %d: %s\n", seed, world_exit_code(world),
               world_exit_text(world));
    world_free(world);
    if (options->replay && !progress->wrong[0]) {
        world = make(options, seed, false);
        world_run(world);
        if (world_digest(world) != digest)
            snprintf(progress->wrong, sizeof(progress->wrong),
                     "seed %" PRIu64 ": the second run was another one", seed);
        world_free(world);
    }
    alarm(0);
    return !progress->wrong[0];
}

NORETURN static void child(const struct options *options, unsigned number,
                           struct progress *progress)
{
    for (uint64_t i = number; i < options->worlds; i += options->jobs) {
        if (!run_one(options, options->seed + i, progress)) {
            if (options->keep) {
                printf("%s\n", progress->wrong);
                progress->wrong[0] = '\0';
                continue;
            }
            fflush(NULL);
            _exit(1);
        }
    }
    fflush(NULL);
    _exit(0);
}

static void show_last_lines(const char *text)
{
    const char *at = text + strlen(text);
    int lines = 0;

    while (at > text && lines <= TRACE_SHOWN) {
        at--;
        if (*at == '\n')
            lines++;
    }
    fputs(*at == '\n' ? at + 1 : at, stderr);
}

/* In a process of its own, as it may crash again. */
static void explain(const struct options *options, const struct progress *progress)
{
    pid_t pid;

    fprintf(stderr, "\n%s\n",
            progress->wrong[0] ? progress->wrong : "the simulator has crashed, or hangs");
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct world *world = make(options, progress->seed, true);

        alarm(WORLD_S);
        world_run(world);
        if (options->verbose)
            fputs(world_story(world), stderr);
        else
            show_last_lines(world_story(world));
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    fprintf(stderr, "again: sim --worlds 1 --seed %" PRIu64 " --faults %u%s%s%s --verbose\n",
            progress->seed, options->faults, options->oom ? " --oom" : "",
            options->bug ? " --bug " : "", options->bug ? bug_names[options->bug] : "");
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void summary(const struct options *options, const struct progress *all, double took_s)
{
    struct progress sum = { .seed = 0 };

    for (unsigned i = 0; i < options->jobs; i++) {
        const uint64_t *from = (const uint64_t *)(const void *)&all[i].stats;
        uint64_t *to = (uint64_t *)(void *)&sum.stats;

        for (size_t k = 0; k < sizeof(sum.stats) / sizeof(*from); k++)
            to[k] += from[k];
        sum.worlds += all[i].worlds;
        sum.failed += all[i].failed;
        sum.virtual_us += all[i].virtual_us;
    }
    for (int i = 0; i < DEED_COUNT; i++)
        printf("%-18s %10" PRIu64 "%s", deed_name((enum world_deed_kind)i), sum.stats.faults[i],
               i % 3 == 2 ? "\n" : "  ");
    printf("\n%" PRIu64 " worlds (%" PRIu64 " ended with a reason), %" PRIu64 " drivers, %" PRIu64
           " launches, %" PRIu64 " rounds, %" PRIu64 " recoveries, %" PRIu64 " steps\n",
           sum.worlds, sum.failed, sum.stats.drivers, sum.stats.launches, sum.stats.rounds,
           sum.stats.recoveries, sum.stats.steps);
    printf("%.1f virtual hours in %.1f s, %.1f worlds per second\n",
           (double)sum.virtual_us / (double)TIME_HOUR, took_s, (double)sum.worlds / took_s);
}

static int run_all(const struct options *options)
{
    size_t bytes = options->jobs * sizeof(struct progress);
    struct progress *all =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double began = seconds();
    pid_t pids[JOBS_MAX] = { 0 };
    int rc = 0;

    if (all == MAP_FAILED)
        return 2;
    for (unsigned i = 0; i < options->jobs; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            child(options, i, &all[i]);
    }
    for (unsigned left = options->jobs; left > 0; left--) {
        int status;
        pid_t pid = wait(&status);

        if (pid < 0)
            break;
        for (unsigned i = 0; i < options->jobs; i++) {
            if (pids[i] == pid)
                pids[i] = 0;
            else if (pids[i] && status && !rc)
                kill(pids[i], SIGKILL);
            if (pids[i] == 0 && status && pid > 0 && !rc &&
                (all[i].wrong[0] || WIFSIGNALED(status))) {
                explain(options, &all[i]);
                rc = 1;
            }
        }
        if (status)
            rc = 1;
    }
    summary(options, all, seconds() - began);
    munmap(all, bytes);
    return rc;
}

static bool read_options(int argc, char **argv, struct options *options)
{
    static const struct option table[] = {
        {"worlds",      required_argument, NULL, 'w'},
        { "seed",       required_argument, NULL, 's'},
        { "jobs",       required_argument, NULL, 'j'},
        { "faults",     required_argument, NULL, 'f'},
        { "bug",        required_argument, NULL, 'b'},
        { "verbose",    no_argument,       NULL, 'v'},
        { "replay",     no_argument,       NULL, 'r'},
        { "oom",        no_argument,       NULL, 'o'},
        { "oom",        no_argument,       NULL, 'o'},
        { "keep-going", no_argument,       NULL, 'k'},
        { NULL,         0,                 NULL, 0  },
    };
    int option;

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (option) {
        case 'w': options->worlds = strtoull(optarg, NULL, 10); break;
        case 's': options->seed = strtoull(optarg, NULL, 10); break;
        case 'j': options->jobs = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'f': options->faults = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'v': options->verbose = true; break;
        case 'o': options->oom = true; break;
        case 'k': options->keep = true; break;
        case 'r': options->replay = true; break;
        case 'b':
            while (options->bug < BUG_COUNT && strcmp(bug_names[options->bug], optarg) != 0)
                options->bug++;
            break;
        default: return false;
        }
    }
    return options->bug < BUG_COUNT && options->jobs > 0 && options->jobs <= JOBS_MAX;
}

int main(int argc, char **argv)
{
    struct options options = { .worlds = 100, .seed = 1, .faults = FAULTS };

    options.jobs = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    if (!read_options(argc, argv, &options)) {
        fprintf(stderr, "usage: sim [--worlds N] [--seed S] [--jobs J] [--faults N] [--replay]\n"
                        "           [--oom] [--keep-going] [--verbose] [--bug KIND]\n");
        return 2;
    }
    if (options.jobs > options.worlds)
        options.jobs = (unsigned)options.worlds;
    return run_all(&options);
}
