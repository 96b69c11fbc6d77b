/*
 * scholar: the training program of the conformance scenarios, as a user would write it: epochs of
 * batches, a commit after each batch and at the end of each epoch. Rank 0 writes down who has come
 * to that end. Each batch adds the average of a one over all ranks, so what is learned by when is
 * known: who finds anything else ends with 9.
 *
 * Between two epochs it waits, all ranks together, for what the scenario says: that the driver has
 * looked for hosts, that the membership has changed, that a gate is opened. So a scenario is about
 * what happens, not about how fast. All ranks look for news equally often meanwhile.
 */
#include "base/base.h"
#include "base/text.h"
#include "tests/conformance/schedule.h"
#include "tests/conformance/scholar_options.h"

#include <errno.h>
#include <fcntl.h>
#include <hvd/hvd.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WRONG_SUM  9
#define OWN_CODE   (-77) /* what train returns when it is to fail by itself */
#define IDLE_MS    1     /* between two looks at what is waited for */
#define PATH_ROOM  4096
#define LINE_ROOM  512
#define SURE_LOOKS 2 /* when the second look begins, the driver has dealt with the first */

enum verdict { WAIT, GO_ON, GIVE_UP };

struct scholar {
    struct scholar_options options;
    int64_t epoch, batch;
    int64_t commits;
    int64_t rounds;   /* that have begun with this state */
    int64_t ended_in; /* the number of the round in which the last epoch ended */
    double learned;
    uint64_t start_rank; /* in the first round that it was in */
    bool started;
    uint64_t waited_ms; /* as rank 0 */
};

NORETURN static void give_up(int status, const char *what)
{
    fprintf(stderr, "scholar: %s: %s\n", what, hvd_last_error());
    exit(status);
}

static void pass(uint64_t ms)
{
    struct timespec left = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

    while (ms && nanosleep(&left, &left) && errno == EINTR)
        continue;
}

/* One write, so that lines of several processes stay whole. */
static void append(const char *path, const char *line)
{
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

    if (path && (fd < 0 || write(fd, line, strlen(line)) != (ssize_t)strlen(line)))
        give_up(1, path);
    if (fd >= 0)
        close(fd);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* How many lines of a file begin with this number, or a greater one. */
static uint64_t count_lines(const char *path, uint64_t least)
{
    FILE *file = fopen(path, "re");
    char line[LINE_ROOM];
    uint64_t count = 0;

    while (file && fgets(line, sizeof(line), file))
        count += strtoull(line, NULL, 10) >= least;
    if (file)
        fclose(file);
    return count;
}

/* ---- failing --------------------------------------------------------------------------------- */

/* Only the first that asks for this epoch, batch and start rank is to do it. */
static bool is_first(const struct scholar *scholar)
{
    char path[PATH_ROOM];
    int fd;

    snprintf(path, sizeof(path), "%s/%" PRId64 ".%" PRId64 ".%" PRIu64, scholar->options.once,
             scholar->epoch, scholar->batch, scholar->start_rank);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        give_up(1, path);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Who are to fail meet first: so they fail in one round, whoever is faster. */
static int fail_if_due(const struct scholar *scholar)
{
    const struct schedule_who who = { scholar->start_rank, scholar->options.host };
    enum schedule_how how = SCHEDULE_RAISE;
    bool me;
    int rc;

    if (!schedule_exits(scholar->options.exits, (uint64_t)scholar->epoch, (uint64_t)scholar->batch,
                        &who, &me, &how))
        return 0;
    rc = hvd_barrier();
    if (!me)
        return rc;
    if ((how == SCHEDULE_RAISE_ONCE || how == SCHEDULE_KILL_ONCE) && !is_first(scholar))
        return rc;
    if (how == SCHEDULE_KILL || how == SCHEDULE_KILL_ONCE)
        kill(getpid(), SIGKILL);
    return OWN_CODE;
}

/* ---- between two epochs ---------------------------------------------------------------------- */

static bool has_looked(const struct scholar *scholar)
{
    return !scholar->options.looks ||
           count_lines(scholar->options.looks, (uint64_t)scholar->epoch) >= SURE_LOOKS;
}

static bool has_changed(const struct scholar *scholar)
{
    return !schedule_changes(scholar->options.changes, (uint64_t)scholar->epoch - 1) ||
           (int64_t)hvd_round() != scholar->ended_in;
}

static bool is_open(const struct scholar *scholar)
{
    char shut[PATH_ROOM], opened[PATH_ROOM];

    if (!scholar->options.gates)
        return true;
    snprintf(shut, sizeof(shut), "%s/%" PRId64 ".shut", scholar->options.gates, scholar->epoch - 1);
    snprintf(opened, sizeof(opened), "%s/%" PRId64 ".open", scholar->options.gates,
             scholar->epoch - 1);
    return !is_there(shut) || is_there(opened);
}

static void move_door(const struct scholar *scholar, bool opens)
{
    int fd;

    if (!scholar->options.door)
        return;
    if (!opens) {
        unlink(scholar->options.door);
        return;
    }
    fd = open(scholar->options.door, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up(1, scholar->options.door);
    close(fd);
}

/* As rank 0 sees it. */
static int32_t look_around(const struct scholar *scholar)
{
    bool changed = has_changed(scholar);

    move_door(scholar, !changed);
    if (has_looked(scholar) && changed && is_open(scholar))
        return GO_ON;
    if (scholar->waited_ms < scholar->options.patience_s * 1000)
        return WAIT;
    fprintf(stderr, "scholar: after epoch %" PRId64 ", in round %" PRIu64 ": %s did not come\n",
            scholar->epoch - 1, hvd_round(),
            !changed           ? "a change of the membership"
            : is_open(scholar) ? "a look for hosts"
                               : "the opening of the gate");
    return GIVE_UP;
}

static int wait_for_events(hvd_state *state, struct scholar *scholar)
{
    int32_t verdict = WAIT;
    int rc = 0;

    while (!rc && verdict == WAIT) {
        if (hvd_rank() == 0)
            verdict = look_around(scholar);
        rc = hvd_broadcast(&verdict, 1, HVD_INT32, 0);
        if (!rc && verdict == GIVE_UP)
            return OWN_CODE;
        if (!rc)
            rc = hvd_state_check(state);
        if (!rc && verdict == WAIT) {
            pass(IDLE_MS);
            scholar->waited_ms += IDLE_MS;
        }
    }
    scholar->waited_ms = 0;
    return rc;
}

/* ---- training -------------------------------------------------------------------------------- */

static void verify(const struct scholar *scholar)
{
    double right =
        (double)scholar->epoch * (double)scholar->options.batches + (double)scholar->batch;

    if (scholar->learned == right)
        return;
    fprintf(stderr, "scholar: epoch %" PRId64 ", batch %" PRId64 ": learned %.17g, not %.17g\n",
            scholar->epoch, scholar->batch, scholar->learned, right);
    exit(WRONG_SUM);
}

static int commit(hvd_state *state, struct scholar *scholar)
{
    scholar->commits++;
    return hvd_state_commit(state);
}

static int train_batch(hvd_state *state, struct scholar *scholar)
{
    double one = 1.0;
    int rc = fail_if_due(scholar);

    if (rc)
        return rc;
    pass(scholar->options.batch_ms);
    rc = hvd_allreduce(&one, &one, 1, HVD_FLOAT64, HVD_AVERAGE);
    if (rc)
        return rc;
    scholar->learned += one;
    scholar->batch++;
    verify(scholar);
    return commit(state, scholar);
}

static void write_down(const struct scholar *scholar)
{
    char line[LINE_ROOM];

    snprintf(line, sizeof(line),
             "%" PRId64 " %" PRId64 " %" PRId64 " %s %" PRIu64 " %d %d %" PRId64 " %" PRIu64 "\n",
             scholar->epoch, scholar->batch, scholar->commits, scholar->options.host,
             scholar->start_rank, hvd_rank(), hvd_size(), scholar->rounds, hvd_round());
    append(scholar->options.log, line);
}

static int end_epoch(hvd_state *state, struct scholar *scholar)
{
    if (hvd_rank() == 0)
        write_down(scholar);
    scholar->ended_in = (int64_t)hvd_round();
    scholar->epoch++;
    scholar->batch = 0;
    return commit(state, scholar);
}

static int train(hvd_state *state, void *arg)
{
    struct scholar *scholar = arg;
    const struct scholar_options *options = &scholar->options;
    int rc = 0;

    scholar->rounds++;
    verify(scholar);
    while (!rc && (uint64_t)scholar->epoch < options->epochs) {
        if (scholar->epoch > 0 && scholar->batch == 0)
            rc = wait_for_events(state, scholar);
        while (!rc && (uint64_t)scholar->batch < options->batches)
            rc = train_batch(state, scholar);
        if (!rc)
            rc = end_epoch(state, scholar);
    }
    return rc;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* The rank in the environment is what the driver expected; this is what it has come to. */
static int on_reset(hvd_state *state, void *arg)
{
    struct scholar *scholar = arg;
    char line[LINE_ROOM];

    (void)state;
    if (!scholar->started)
        scholar->start_rank = (uint64_t)hvd_rank();
    scholar->started = true;
    snprintf(line, sizeof(line), "%s %" PRIu64 " %d %d\n", scholar->options.incarnation,
             hvd_round(), hvd_rank(), hvd_size());
    append(scholar->options.say, line);
    return 0;
}

/* A newcomer boots for as long as the others do not wait for one. */
static void boot(struct scholar *scholar)
{
    const struct scholar_options *options = &scholar->options;

    if (!options->door || !options->log || !count_lines(options->log, 0))
        return;
    for (uint64_t ms = 0; !is_there(options->door); ms += IDLE_MS) {
        if (ms >= options->patience_s * 1000)
            give_up(1, "nobody has opened the door");
        pass(IDLE_MS);
    }
}

static void build(struct scholar *scholar, hvd_state *state)
{
    if (!state || hvd_state_add_scalar(state, "epoch", &scholar->epoch, HVD_INT64) ||
        hvd_state_add_scalar(state, "batch", &scholar->batch, HVD_INT64) ||
        hvd_state_add_scalar(state, "commits", &scholar->commits, HVD_INT64) ||
        hvd_state_add_scalar(state, "rounds", &scholar->rounds, HVD_INT64) ||
        hvd_state_add_scalar(state, "ended in", &scholar->ended_in, HVD_INT64) ||
        hvd_state_add_scalar(state, "learned", &scholar->learned, HVD_FLOAT64) ||
        hvd_state_on_reset(state, on_reset, scholar))
        give_up(1, "the state");
}

static int live(struct scholar *scholar)
{
    hvd_state *state;
    int rc;

    boot(scholar);
    if (hvd_init())
        give_up(1, "hvd_init");
    state = hvd_state_create();
    build(scholar, state);
    rc = hvd_elastic_run(state, train, scholar);
    if (rc < 0)
        fprintf(stderr, "scholar: %s: %s\n", hvd_strerror(rc), hvd_last_error());
    hvd_state_free(state);
    hvd_shutdown();
    return rc < 0;
}

int main(int argc, char **argv)
{
    static struct scholar scholar;
    int status;

    if (scholar_options_read(&scholar.options, argc, argv, &status))
        status = live(&scholar);
    scholar_options_release(&scholar.options);
    return status;
}
