/*
 * clerk: a worker for conformance scenarios. It does one thing, on hvd.h alone, and prints what it
 * finds, a line each; what should be there the scenario knows.
 *
 *     clerk places N      says its place in each round, and is done after N steps
 *     clerk first-ends    rank 0 is done at once, the others go on for as long as they may
 *     clerk news          trains without end, and says whatever it is told
 *     clerk state         what a sync, a restore and a commit do to a number
 *     clerk sampler N     deals out three epochs; waits in the middle of the second one for a round
 *                         of N workers
 */
#include "hvd/hvd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEP_MS 5
#define SAMPLES 62 /* not a multiple of the batch: the last one is smaller */
#define BATCH   6
#define EPOCHS  3
#define LINE    512

struct clerk {
    const struct deed *deed;
    int64_t wanted; /* the number on the command line */
    int64_t step;
    int64_t value; /* another one in each process, until the first sync */
    int64_t used;  /* batches of this epoch */
    bool tried;    /* this process has tried a restore */
    hvd_sampler *sampler;
};

struct deed {
    const char *name;
    hvd_train_fn *train;
    bool samples;
};

static void give_up(const char *what)
{
    fprintf(stderr, "clerk: %s: %s\n", what, hvd_last_error());
    exit(1);
}

static void pass_step(void)
{
    struct timespec left = { 0, STEP_MS * 1000000L };

    while (nanosleep(&left, &left) && errno == EINTR)
        continue;
}

static int add_up(struct clerk *clerk)
{
    double one = 1;
    int rc = hvd_allreduce(&one, &one, 1, HVD_FLOAT64, HVD_SUM);

    if (!rc && (int)one != hvd_size()) {
        fprintf(stderr, "clerk: %g ranks have added 1, of %d\n", one, hvd_size());
        return HVD_E_MISMATCH;
    }
    clerk->step += !rc;
    return rc;
}

static int make_step(hvd_state *state, struct clerk *clerk)
{
    int rc;

    pass_step();
    rc = add_up(clerk);
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
    struct clerk *clerk = arg;
    int rc = 0;

    while (!rc && clerk->step < clerk->wanted)
        rc = make_step(state, clerk);
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

/* ---- state ----------------------------------------------------------------------------------- */

static int train_state(hvd_state *state, void *arg)
{
    struct clerk *clerk = arg;
    int rc = 0;

    printf("after the sync %" PRId64 "\n", clerk->value);
    clerk->value += 1;
    if (hvd_state_restore(state))
        give_up("restore");
    printf("after 1 more and a restore %" PRId64 "\n", clerk->value);
    clerk->value += 5;
    rc = hvd_state_commit(state);
    if (rc)
        return rc;
    clerk->value += 7;
    if (hvd_state_restore(state))
        give_up("restore");
    printf("after 5 more, a commit, 7 more and a restore %" PRId64 "\n", clerk->value);
    return 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* What is dealt out and not committed is dealt out again after a restore. */
static int try_restore(hvd_state *state, struct clerk *clerk, hvd_batch *batch)
{
    uint64_t before[SAMPLES], first = batch->first;
    size_t count = batch->count;
    int rc;

    clerk->tried = true;
    memcpy(before, batch->samples, count * sizeof(*before));
    if (hvd_state_restore(state))
        give_up("restore");
    rc = hvd_sampler_next(clerk->sampler, batch);
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

/* In the middle of the second epoch: until all have come. */
static bool waits_for_others(const struct clerk *clerk)
{
    return hvd_sampler_epoch(clerk->sampler) == 1 && clerk->used == SAMPLES / BATCH / 2 &&
           hvd_size() < clerk->wanted;
}

static int use_batch(hvd_state *state, struct clerk *clerk)
{
    hvd_batch batch;
    int rc = hvd_sampler_next(clerk->sampler, &batch);

    if (rc == HVD_EPOCH_END) {
        clerk->used = 0;
        return hvd_state_commit(state);
    }
    if (!rc && !clerk->tried)
        rc = try_restore(state, clerk, &batch);
    if (!rc)
        rc = add_up(clerk);
    if (rc)
        return rc;
    say_batch(&batch);
    clerk->used++;
    return hvd_state_commit(state);
}

static int train_sampler(hvd_state *state, void *arg)
{
    struct clerk *clerk = arg;
    int rc = 0;

    while (!rc && hvd_sampler_epoch(clerk->sampler) < EPOCHS)
        rc = waits_for_others(clerk) ? make_step(state, clerk) : use_batch(state, clerk);
    return rc;
}

/* ---- the program ----------------------------------------------------------------------------- */

static const struct deed deeds[] = {
    {"places",      train_places,     false},
    { "first-ends", train_first_ends, false},
    { "news",       train_news,       false},
    { "state",      train_state,      false},
    { "sampler",    train_sampler,    true },
};

static bool read_words(struct clerk *clerk, int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(deeds) / sizeof(*deeds); i++)
        if (!strcmp(argv[1], deeds[i].name))
            clerk->deed = &deeds[i];
    clerk->wanted = argc > 2 ? strtoll(argv[2], NULL, 10) : 0;
    return clerk->deed;
}

static int run(struct clerk *clerk)
{
    const char *incarnation = getenv("HVD_INCARNATION");
    hvd_state *state;
    int rc;

    clerk->value = 100 + (incarnation ? strtoll(incarnation, NULL, 10) : 0);
    if (hvd_init())
        give_up("hvd_init");
    state = hvd_state_create();
    if (!state || hvd_state_add_scalar(state, "step", &clerk->step, HVD_INT64) ||
        hvd_state_add_scalar(state, "value", &clerk->value, HVD_INT64) ||
        hvd_state_add_scalar(state, "used", &clerk->used, HVD_INT64) ||
        hvd_state_on_reset(state, on_reset, clerk) ||
        (clerk->deed->samples && hvd_sampler_create(state, "samples", SAMPLES, BATCH,
                                                    HVD_BATCH_GLOBAL, 1, &clerk->sampler)))
        give_up("the state");
    rc = hvd_elastic_run(state, clerk->deed->train, clerk);
    printf("over: %s\n", hvd_strerror(rc));
    if (rc < 0)
        fprintf(stderr, "clerk: %s\n", hvd_last_error());
    hvd_state_free(state);
    hvd_shutdown();
    return rc < 0;
}

int main(int argc, char **argv)
{
    static struct clerk clerk;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (read_words(&clerk, argc, argv))
        return run(&clerk);
    fputs("usage: clerk places N | first-ends | news | state | sampler N\n", stderr);
    return 2;
}
