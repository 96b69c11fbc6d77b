/*
 * epoch_trainer: the training program of the conformance scenarios, written as a user would: epochs
 * of batches, a commit after each batch and at the end of each epoch. Rank 0 writes which workers
 * have come to the end of an epoch. Each batch adds the average of 1 over all ranks, so the right
 * value is known at every moment; a worker that finds another value ends with 9.
 *
 * Between two epochs all ranks wait for what the scenario says: that the driver has run discovery,
 * that the membership has changed, that a gate is opened. So a scenario does not depend on speed.
 * All ranks check for news equally often meanwhile.
 */
#include "tests/workers/epoch_schedule.h"
#include "tests/workers/epoch_trainer_options.h"
#include "tests/workers/worker_report.h"

#include <errno.h>
#include <fcntl.h>
#include <hvd/hvd.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define IDLE_MS    1 /* ms between two looks at the awaited file */
#define PATH_ROOM  4096
#define LINE_ROOM  512
#define SURE_LOOKS 2 /* when the second look begins, the driver has handled the first */

enum verdict { WAIT, GO_ON, GIVE_UP };

struct epoch_trainer {
    struct epoch_trainer_options options;
    int64_t epoch, batch;
    int64_t commits;
    int64_t rounds;   /* rounds that have begun with this state */
    int64_t ended_in; /* the number of the round in which the last epoch ended */
    double learned;
    uint64_t start_rank; /* the rank in the first round of this process */
    bool started;
    uint64_t waited_ms; /* the time that this process has waited as rank 0 */
};

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The number of lines in a file that begin with this number or a greater one. */
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

/* true: this process is the first that asks for this epoch, batch and start rank. */
static bool is_first(const struct epoch_trainer *self)
{
    char path[PATH_ROOM];
    int fd;

    snprintf(path, sizeof(path), "%s/%" PRId64 ".%" PRId64 ".%" PRIu64, self->options.once,
             self->epoch, self->batch, self->start_rank);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        worker_give_up(1, path);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Fails, if it is this rank's turn. Ranks that fail meet in a collective first, so that they fail
 * in one round. */
static int fail_if_due(const struct epoch_trainer *self)
{
    const struct epoch_schedule_who who = { self->start_rank, self->options.host };
    enum epoch_schedule_how how = EPOCH_RAISE;
    bool me;
    int rc;

    if (!epoch_schedule_exits(self->options.exits, (uint64_t)self->epoch, (uint64_t)self->batch,
                              &who, &me, &how))
        return 0;
    rc = hvd_barrier();
    if (!me)
        return rc;
    if ((how == EPOCH_RAISE_ONCE || how == EPOCH_KILL_ONCE) && !is_first(self))
        return rc;
    if (how == EPOCH_KILL || how == EPOCH_KILL_ONCE)
        kill(getpid(), SIGKILL);
    return WORKER_OWN_CODE;
}

/* ---- between two epochs ---------------------------------------------------------------------- */

static bool is_open(const struct epoch_trainer *self)
{
    char shut[PATH_ROOM], opened[PATH_ROOM];

    if (!self->options.gates)
        return true;
    snprintf(shut, sizeof(shut), "%s/%" PRId64 ".shut", self->options.gates, self->epoch - 1);
    snprintf(opened, sizeof(opened), "%s/%" PRId64 ".open", self->options.gates, self->epoch - 1);
    return !is_there(shut) || is_there(opened);
}

/* Makes the scenario's door file, or removes it. */
static void move_door(const struct epoch_trainer *self, bool opens)
{
    int fd;

    if (!self->options.door)
        return;
    if (!opens) {
        unlink(self->options.door);
        return;
    }
    fd = open(self->options.door, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        worker_give_up(1, self->options.door);
    close(fd);
}

/* Checks what is awaited, as rank 0 sees it. */
static int32_t look_around(const struct epoch_trainer *self)
{
    bool looked = !self->options.looks ||
                  count_lines(self->options.looks, (uint64_t)self->epoch) >= SURE_LOOKS;
    bool changed = !epoch_schedule_changes(self->options.changes, (uint64_t)self->epoch - 1) ||
                   (int64_t)hvd_round() != self->ended_in;

    move_door(self, !changed);
    if (looked && changed && is_open(self))
        return GO_ON;
    if (self->waited_ms < self->options.patience_s * 1000)
        return WAIT;
    fprintf(stderr,
            "epoch_trainer: after epoch %" PRId64 ", in round %" PRIu64 ": %s did not come\n",
            self->epoch - 1, hvd_round(),
            !changed        ? "a change of the membership"
            : is_open(self) ? "a look for hosts"
                            : "the opening of the gate");
    return GIVE_UP;
}

static int wait_for_events(hvd_state *state, struct epoch_trainer *self)
{
    int32_t verdict = WAIT;
    int rc = 0;

    while (!rc && verdict == WAIT) {
        if (hvd_rank() == 0)
            verdict = look_around(self);
        rc = hvd_broadcast(&verdict, 1, HVD_INT32, 0);
        if (!rc && verdict == GIVE_UP)
            return WORKER_OWN_CODE;
        if (!rc)
            rc = hvd_state_check(state);
        if (!rc && verdict == WAIT) {
            worker_pass(IDLE_MS);
            self->waited_ms += IDLE_MS;
        }
    }
    self->waited_ms = 0;
    return rc;
}

/* ---- training -------------------------------------------------------------------------------- */

static void verify(const struct epoch_trainer *self)
{
    double right = (double)self->epoch * (double)self->options.batches + (double)self->batch;

    if (self->learned == right)
        return;
    worker_wrong("epoch %" PRId64 ", batch %" PRId64 ": learned %.17g, not %.17g", self->epoch,
                 self->batch, self->learned, right);
}

static int commit(hvd_state *state, struct epoch_trainer *self)
{
    self->commits++;
    return hvd_state_commit(state);
}

static int train_batch(hvd_state *state, struct epoch_trainer *self)
{
    double one = 1.0;
    int rc = fail_if_due(self);

    if (rc)
        return rc;
    worker_pass(self->options.batch_ms);
    rc = hvd_allreduce(&one, &one, 1, HVD_FLOAT64, HVD_AVERAGE);
    if (rc)
        return rc;
    self->learned += one;
    self->batch++;
    verify(self);
    return commit(state, self);
}

static int end_epoch(hvd_state *state, struct epoch_trainer *self)
{
    if (hvd_rank() == 0) {
        worker_append(self->options.log,
                      "%" PRId64 " %" PRId64 " %" PRId64 " %s %" PRIu64 " %d %d %" PRId64
                      " %" PRIu64 "\n",
                      self->epoch, self->batch, self->commits, self->options.host, self->start_rank,
                      hvd_rank(), hvd_size(), self->rounds, hvd_round());
    }
    self->ended_in = (int64_t)hvd_round();
    self->epoch++;
    self->batch = 0;
    return commit(state, self);
}

static int train(hvd_state *state, void *arg)
{
    struct epoch_trainer *self = arg;
    const struct epoch_trainer_options *options = &self->options;
    int rc = 0;

    self->rounds++;
    verify(self);
    while (!rc && (uint64_t)self->epoch < options->epochs) {
        if (self->epoch > 0 && self->batch == 0)
            rc = wait_for_events(state, self);
        while (!rc && (uint64_t)self->batch < options->batches)
            rc = train_batch(state, self);
        if (!rc)
            rc = end_epoch(state, self);
    }
    return rc;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* Reports the place in each round. The rank in the environment is what the driver expected at the
 * start. */
static int on_reset(hvd_state *state, void *arg)
{
    struct epoch_trainer *self = arg;

    (void)state;
    if (!self->started)
        self->start_rank = (uint64_t)hvd_rank();
    self->started = true;
    worker_say_round(self->options.say);
    return 0;
}

/* A joiner takes time to boot while the other workers do not wait for it. */
static void boot(struct epoch_trainer *self)
{
    const struct epoch_trainer_options *options = &self->options;

    if (!options->door || !options->log || !count_lines(options->log, 0))
        return;
    for (uint64_t ms = 0; !is_there(options->door); ms += IDLE_MS) {
        if (ms >= options->patience_s * 1000)
            worker_give_up(1, "no rank has opened the door");
        worker_pass(IDLE_MS);
    }
}

static int live(struct epoch_trainer *self)
{
    hvd_state *state;
    int rc;

    boot(self);
    if (hvd_init())
        worker_give_up(1, "hvd_init");
    state = hvd_state_create();
    if (!state || hvd_state_add_scalar(state, "epoch", &self->epoch, HVD_INT64) ||
        hvd_state_add_scalar(state, "batch", &self->batch, HVD_INT64) ||
        hvd_state_add_scalar(state, "commits", &self->commits, HVD_INT64) ||
        hvd_state_add_scalar(state, "rounds", &self->rounds, HVD_INT64) ||
        hvd_state_add_scalar(state, "ended in", &self->ended_in, HVD_INT64) ||
        hvd_state_add_scalar(state, "learned", &self->learned, HVD_FLOAT64) ||
        hvd_state_on_reset(state, on_reset, self))
        worker_give_up(1, "the state");
    rc = hvd_elastic_run(state, train, self);
    rc = worker_status(rc);
    hvd_state_free(state);
    hvd_shutdown();
    return rc;
}

int main(int argc, char **argv)
{
    static struct epoch_trainer self;
    int status;

    if (epoch_trainer_options_read(&self.options, argc, argv, &status))
        status = live(&self);
    opt_release(&self.options.set);
    return status;
}
