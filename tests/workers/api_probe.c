/*
 * api_probe: a worker for conformance scenarios. It does one thing, uses only hvd.h, and prints its
 * observations, one a line. The scenario knows what they should be.
 *
 *     api_probe places N      prints its place in each round, and ends after N steps
 *     api_probe first-ends    rank 0 ends at once, other ranks train for as long as they may
 *     api_probe news          trains without end, and prints all news
 *     api_probe state         prints what a sync, a restore and a commit do to a number
 *     api_probe sampler N     deals out three epochs; waits in the middle of the second one for a
 *                             round of N workers
 */
#include "tests/workers/worker_report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_MS 5
#define SAMPLES 62 /* not a multiple of the batch, so the last batch is smaller */
#define BATCH   6
#define EPOCHS  3
#define LINE    512

struct api_probe {
    const struct probe *probe;
    int64_t wanted; /* N on the command line */
    int64_t step;
    int64_t value; /* different in each process until the first sync */
    int64_t used;  /* batches of this epoch that were used */
    bool tried;    /* true: this process has tried a restore */
    hvd_sampler *sampler;
};

struct probe {
    const char *name;
    hvd_train_fn *train;
    bool samples;
};

static int add_up(struct api_probe *self)
{
    double one = 1;
    int rc = hvd_allreduce(&one, &one, 1, HVD_FLOAT64, HVD_SUM);

    if (!rc && (int)one != hvd_size()) {
        fprintf(stderr, "api_probe: %g ranks have added 1, of %d\n", one, hvd_size());
        return HVD_E_MISMATCH;
    }
    self->step += !rc;
    return rc;
}

static int make_step(hvd_state *state, struct api_probe *self)
{
    int rc;

    worker_pass(STEP_MS);
    rc = add_up(self);
    return rc ? rc : hvd_state_commit(state);
}

static int on_reset(hvd_state *state, void *arg)
{
    (void)state;
    (void)arg;
    printf("place %d %d %d %d %d %d\n", hvd_rank(), hvd_size(), hvd_local_rank(), hvd_local_size(),
           hvd_cross_rank(), hvd_cross_size());
    return 0;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static int train_places(hvd_state *state, void *arg)
{
    struct api_probe *self = arg;
    int rc = 0;

    while (!rc && self->step < self->wanted)
        rc = make_step(state, self);
    return rc;
}

static int train_first_ends(hvd_state *state, void *arg)
{
    int rc = add_up(arg);

    if (rc || hvd_rank() == 0)
        return rc;
    while (!rc)
        rc = make_step(state, arg);
    return rc;
}

static int train_news(hvd_state *state, void *arg)
{
    int rc = 0;

    while (!rc)
        rc = make_step(state, arg);
    printf("told: %s\n", hvd_strerror(rc));
    return rc;
}

static int train_state(hvd_state *state, void *arg)
{
    struct api_probe *self = arg;
    int rc = 0;

    printf("after the sync %" PRId64 "\n", self->value);
    self->value += 1;
    if (hvd_state_restore(state))
        worker_give_up(1, "restore");
    printf("after 1 more and a restore %" PRId64 "\n", self->value);
    self->value += 5;
    rc = hvd_state_commit(state);
    if (rc)
        return rc;
    self->value += 7;
    if (hvd_state_restore(state))
        worker_give_up(1, "restore");
    printf("after 5 more, a commit, 7 more and a restore %" PRId64 "\n", self->value);
    return 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Samples that were dealt out and not committed must be dealt out again after a restore. */
static int try_restore(hvd_state *state, struct api_probe *self, hvd_batch *batch)
{
    uint64_t before[SAMPLES], first = batch->first;
    size_t count = batch->count;
    int rc;

    self->tried = true;
    memcpy(before, batch->samples, count * sizeof(*before));
    if (hvd_state_restore(state))
        worker_give_up(1, "restore");
    rc = hvd_sampler_next(self->sampler, batch);
    if (rc)
        return rc;
    printf("after a restore: %s\n", batch->first == first && batch->count == count &&
                                            !memcmp(before, batch->samples, count * sizeof(*before))
                                        ? "the same batch"
                                        : "another batch");
    return 0;
}

static void say_batch(const hvd_batch *batch)
{
    char line[LINE];
    size_t length =
        (size_t)snprintf(line, sizeof(line), "batch %" PRIu64 " %" PRIu64 " of %d:", batch->epoch,
                         batch->first, hvd_size());

    for (size_t i = 0; i < batch->count && length < sizeof(line); i++)
        length +=
            (size_t)snprintf(line + length, sizeof(line) - length, " %" PRIu64, batch->samples[i]);
    puts(line);
}

/* true: in the middle of the second epoch, until the round has the wanted number of workers. */
static bool waits_for_others(const struct api_probe *self)
{
    return hvd_sampler_epoch(self->sampler) == 1 && self->used == SAMPLES / BATCH / 2 &&
           hvd_size() < self->wanted;
}

static int use_batch(hvd_state *state, struct api_probe *self)
{
    hvd_batch batch;
    int rc = hvd_sampler_next(self->sampler, &batch);

    if (rc == HVD_EPOCH_END) {
        self->used = 0;
        return hvd_state_commit(state);
    }
    if (!rc && !self->tried)
        rc = try_restore(state, self, &batch);
    if (!rc)
        rc = add_up(self);
    if (rc)
        return rc;
    say_batch(&batch);
    self->used++;
    return hvd_state_commit(state);
}

static int train_sampler(hvd_state *state, void *arg)
{
    struct api_probe *self = arg;
    int rc = 0;

    while (!rc && hvd_sampler_epoch(self->sampler) < EPOCHS)
        rc = waits_for_others(self) ? make_step(state, self) : use_batch(state, self);
    return rc;
}

/* ---- the program ----------------------------------------------------------------------------- */

static const struct probe probes[] = {
    {"places",      train_places,     false},
    { "first-ends", train_first_ends, false},
    { "news",       train_news,       false},
    { "state",      train_state,      false},
    { "sampler",    train_sampler,    true },
};

static bool read_words(struct api_probe *self, int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(probes); i++)
        if (!strcmp(argv[1], probes[i].name))
            self->probe = &probes[i];
    self->wanted = argc > 2 ? strtoll(argv[2], NULL, 10) : 0;
    return self->probe;
}

static int run(struct api_probe *self)
{
    hvd_state *state;
    int rc;

    self->value = 100 + strtoll(worker_incarnation(), NULL, 10);
    if (hvd_init())
        worker_give_up(1, "hvd_init");
    state = hvd_state_create();
    if (!state || hvd_state_add_scalar(state, "step", &self->step, HVD_INT64) ||
        hvd_state_add_scalar(state, "value", &self->value, HVD_INT64) ||
        hvd_state_add_scalar(state, "used", &self->used, HVD_INT64) ||
        hvd_state_on_reset(state, on_reset, self) ||
        (self->probe->samples &&
         hvd_sampler_create(state, "samples", SAMPLES, BATCH, HVD_BATCH_GLOBAL, 1, &self->sampler)))
        worker_give_up(1, "the state");
    rc = hvd_elastic_run(state, self->probe->train, self);
    printf("over: %s\n", hvd_strerror(rc));
    if (rc < 0)
        fprintf(stderr, "api_probe: %s\n", hvd_last_error());
    hvd_state_free(state);
    hvd_shutdown();
    return rc < 0;
}

int main(int argc, char **argv)
{
    static struct api_probe self;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (read_words(&self, argc, argv))
        return run(&self);
    fputs("usage: api_probe places N | first-ends | news | state | sampler N\n", stderr);
    return 2;
}
