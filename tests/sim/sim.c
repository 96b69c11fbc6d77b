/*
 * sim.c: runs random worlds, one for each seed, in several processes. The first violation ends the
 * run: the same seed runs again with the driver's trace, whose last lines are printed.
 */
#include "base/panic.h"
#include "tests/sim/options.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRACE_SHOWN 60
#define WRONG_MAX   1024
#define WORLD_S     120 /* a world that takes longer means that the simulator itself hangs */
#define PROGRESS_S  2

/* only uint64_t fields: the structs are added up as arrays */
#define STATS_COUNT (sizeof(struct world_stats) / sizeof(uint64_t))
_Static_assert(sizeof(struct world_stats) == (COMMAND_COUNT + 11) * sizeof(uint64_t),
               "every member of struct world_stats is a uint64_t that can be added; count it here");

/* The progress of one process that runs worlds, in memory that the parent reads. */
struct progress {
    uint64_t next; /* number of the world after the present one */
    uint64_t seed; /* seed of the present world */
    uint64_t worlds;
    uint64_t violations;
    uint64_t failed; /* worlds that ended with an exit code other than 0, with a valid reason */
    int64_t virtual_us;
    struct world_stats stats;
    char wrong[WRONG_MAX];
};

/* The state of the parent. */
struct sim {
    const struct sim_options *options;
    struct progress *all; /* one entry for each process */
    pid_t pids[SIM_JOBS_MAX];
    unsigned running;
    sigset_t waited;    /* signals that are blocked, and waited for with sigtimedwait */
    sigset_t unblocked; /* the signal mask from before */
    bool terminal;
    double began_s;
};

static struct world *make_world(const struct sim_options *options, uint64_t seed, bool told)
{
    struct world_shape shape;
    struct world *world;

    world_shape_random(&shape, seed, options->faults);
    if (options->etcd || options->bug >= BUG_ETCD_UNFENCED)
        world_shape_etcd(&shape);
    shape.bug = options->bug;
    shape.shadow = options->replay;
    shape.oom = options->oom;
    shape.trace = told;
    shape.tell = told;
    world = world_create(&shape);
    world_populate(world);
    return world;
}

static void add_stats(struct world_stats *sum, const struct world_stats *stats)
{
    const uint64_t *from = (const uint64_t *)(const void *)stats;
    uint64_t *to = (uint64_t *)(void *)sum;

    for (size_t i = 0; i < STATS_COUNT; i++)
        to[i] += from[i];
}

/* ---- one process ---------------------------------------------------------------------------- */

/* Runs one world; false: it has violated an invariant. */
static bool run_one(const struct sim_options *options, uint64_t seed, struct progress *progress)
{
    struct world *world = make_world(options, seed, false);
    uint64_t digest;

    progress->seed = seed;
    alarm(WORLD_S);
    world_run(world);
    add_stats(&progress->stats, world_stats(world));
    progress->worlds++;
    progress->virtual_us += world_now(world);
    if (!world_wrong(world) && world_exit_code(world) != 0)
        progress->failed++;
    digest = world_digest(world);
    if (world_wrong(world))
        snprintf(progress->wrong, sizeof(progress->wrong), "%s", world_wrong(world));
    else if (options->verbose && world_exit_code(world) != 0)
        printf("seed %" PRIu64 ": exit %d: %s\n", seed, world_exit_code(world),
               world_exit_text(world));
    world_free(world);
    if (options->replay && !progress->wrong[0]) {
        world = make_world(options, seed, true /* told: that changes nothing */);
        world_run(world);
        if (world_digest(world) != digest)
            snprintf(progress->wrong, sizeof(progress->wrong),
                     "seed %" PRIu64 ": the second run was another one", seed);
        world_free(world);
    }
    alarm(0);
    return !progress->wrong[0];
}

NORETURN static void child(const struct sim_options *options, struct progress *progress)
{
    /* Each line is written at once, because the process may be killed at any moment */
    setlinebuf(stdout);
    for (uint64_t i = progress->next; i < options->worlds; i = progress->next) {
        progress->next = i + options->jobs;
        if (run_one(options, options->seed + i, progress))
            continue;
        progress->violations++;
        if (!options->keep)
            _exit(1);
        printf("%s\n", progress->wrong);
        progress->wrong[0] = '\0';
    }
    fflush(NULL);
    _exit(0);
}

/* Forks a process that dies with its parent. Processes that run worlds ignore the terminal's
 * signals, because the parent ends them. */
static pid_t spawn(const struct sim *sim, bool runs_worlds)
{
    pid_t parent = getpid();
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid < 0)
        PANIC("fork: %s", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        if (!runs_worlds)
            sigprocmask(SIG_SETMASK, &sim->unblocked, NULL);
    }
    return pid;
}

static void start(struct sim *sim, unsigned job)
{
    sim->pids[job] = spawn(sim, true);
    if (sim->pids[job] == 0)
        child(sim->options, &sim->all[job]);
    sim->running++;
}

/* ---- the story of one world ------------------------------------------------------------------ */

/* Prints the story of this seed, from a process of its own, because the world may crash again. */
static void tell(const struct sim *sim, uint64_t seed, bool wrong)
{
    pid_t pid = spawn(sim, false);

    if (pid == 0) {
        struct world *world = make_world(sim->options, seed, true);

        alarm(WORLD_S);
        world_run(world);
        if (wrong && !sim->options->verbose) {
            const char *text = world_story(world);
            const char *at = text + strlen(text);
            int lines = 0;

            while (at > text && lines <= TRACE_SHOWN) {
                at--;
                if (*at == '\n')
                    lines++;
            }
            fputs(*at == '\n' ? at + 1 : at, stderr);
        } else {
            fputs(world_story(world), wrong ? stderr : stdout);
        }
        fflush(NULL);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct progress sum_of(const struct sim *sim)
{
    struct progress sum = { .seed = 0 };

    for (unsigned i = 0; i < sim->options->jobs; i++) {
        add_stats(&sum.stats, &sim->all[i].stats);
        sum.worlds += sim->all[i].worlds;
        sum.violations += sim->all[i].violations;
        sum.failed += sim->all[i].failed;
        sum.virtual_us += sim->all[i].virtual_us;
    }
    return sum;
}

/* Prints the number of faults of each kind, and what all worlds together did. */
static void summary(const struct sim *sim)
{
    struct progress sum = sum_of(sim);
    double took_s = seconds() - sim->began_s;

    if (sim->terminal)
        fprintf(stderr, "\r\033[K");
    for (int i = 0; i < COMMAND_COUNT; i++)
        printf("%-18s %10" PRIu64 "%s", command_name((enum world_command_kind)i),
               sum.stats.faults[i], i % 3 == 2 ? "\n" : "  ");
    printf("\n%" PRIu64 " worlds (%" PRIu64 " ended with a reason, %" PRIu64
           " with a violation), %" PRIu64 " drivers, %" PRIu64 " launches, %" PRIu64
           " rounds, %" PRIu64 " recoveries, %" PRIu64 " steps, %" PRIu64 " checkpoints (%" PRIu64
           " wanted by a worker), %" PRIu64 " times back to one\n",
           sum.worlds, sum.failed, sum.violations, sum.stats.drivers, sum.stats.launches,
           sum.stats.rounds, sum.stats.recoveries, sum.stats.steps, sum.stats.checkpoints,
           sum.stats.persists, sum.stats.fallbacks);
    printf("%.1f virtual hours in %.1f s, %.1f worlds per second\n",
           (double)sum.virtual_us / (double)TIME_HOUR, took_s, (double)sum.worlds / took_s);
}

/* ---- all worlds ------------------------------------------------------------------------------ */

static void end_all(struct sim *sim)
{
    for (unsigned i = 0; i < sim->options->jobs; i++) {
        if (!sim->pids[i])
            continue;
        kill(sim->pids[i], SIGKILL);
        waitpid(sim->pids[i], NULL, 0);
        sim->pids[i] = 0;
    }
    sim->running = 0;
}

/* Called when a process has ended. A process that crashed has counted neither its world nor the
 * violation; with --keep-going another process continues with the next world. */
static void on_end(struct sim *sim, unsigned job, int status)
{
    struct progress *progress = &sim->all[job];
    char again[200];

    sim->pids[job] = 0;
    sim->running--;
    if (!status)
        return;
    if (!progress->wrong[0]) {
        progress->worlds++;
        progress->violations++;
    }
    if (!sim->options->keep)
        end_all(sim);
    fprintf(stderr, "\n%s\n",
            progress->wrong[0] ? progress->wrong : "the simulator has crashed, or hangs");
    tell(sim, progress->seed, true);
    sim_options_again(sim->options, progress->seed, again, sizeof(again));
    fprintf(stderr, "again: %s\n", again);
    progress->wrong[0] = '\0';
    if (sim->options->keep)
        start(sim, job);
}

/* Runs all worlds. Returns the signal that ended the run, or 0. */
static int run_all(struct sim *sim)
{
    const struct timespec patience = { .tv_sec = PROGRESS_S };
    double shown_s = seconds();

    for (unsigned i = 0; i < sim->options->jobs; i++) {
        sim->all[i].next = i;
        start(sim, i);
    }
    while (sim->running) {
        int number = sigtimedwait(&sim->waited, NULL, &patience);

        if (number == SIGINT || number == SIGTERM) {
            end_all(sim);
            return number;
        }
        for (unsigned i = 0; i < sim->options->jobs; i++) {
            int status;

            if (sim->pids[i] && waitpid(sim->pids[i], &status, WNOHANG) == sim->pids[i])
                on_end(sim, i, status);
        }
        if (sim->running && seconds() - shown_s >= PROGRESS_S) {
            struct progress sum = sum_of(sim);

            if (sim->terminal)
                fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " worlds, %.1f per second\033[K",
                        sum.worlds, sim->options->worlds,
                        (double)sum.worlds / (seconds() - sim->began_s));
            shown_s = seconds();
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct sim_options options;
    struct sim sim = { .options = &options,
                       .began_s = seconds(),
                       .terminal = isatty(STDERR_FILENO) };
    int code = sim_options_read(argc, argv, &options);
    size_t bytes;
    int number;

    if (code >= 0)
        return code;
    bytes = options.jobs * sizeof(struct progress);
    sim.all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sim.all == MAP_FAILED)
        PANIC("mmap: %s", strerror(errno));
    sigemptyset(&sim.waited);
    sigaddset(&sim.waited, SIGINT);
    sigaddset(&sim.waited, SIGTERM);
    sigaddset(&sim.waited, SIGCHLD);
    sigprocmask(SIG_BLOCK, &sim.waited, &sim.unblocked);
    number = run_all(&sim);
    code = number ? 128 + number : sum_of(&sim).violations ? 1 : 0;
    if (options.verbose && options.worlds == 1 && code == 0)
        tell(&sim, options.seed, false);
    summary(&sim);
    if (number)
        printf("stopped by signal %d after %" PRIu64 " of %" PRIu64 " worlds\n", number,
               sum_of(&sim).worlds, options.worlds);
    munmap(sim.all, bytes);
    return code;
}
