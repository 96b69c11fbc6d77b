/*
 * cadet: a training program for tests, with weights and gradients in the memory of a GPU. Each rank
 * brings the sum of its samples' values, and the sum of all is added to the weights: after so many
 * epochs they are that many times the sum over all samples, exactly, if each was used once in each,
 * whatever died or joined in between. Who finds anything else ends with 9.
 *
 * The GPU is that of its slot, as the job counts them on its host; with the stand-in of the driver
 * each host of the job has its own (HVD_STANDIN_HOST).
 */
#include "hvd/hvd.h"

#include "base/text.h"
#include "tests/standin/standin.h"
#include "tests/train/cadet_options.h"
#include "tests/train/exercise.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAULTS_MAX 256

#define COUNTED    0 /* the place of a gradient that counts samples, */
#define STOPPED    1 /* and of one that counts who has found the file */

struct cadet {
    struct cadet_options options;
    struct card card;
    struct exercise exercise;
    hvd_sampler *sampler;
    int64_t step;
    int64_t own_steps; /* of this slot */

    /* elements of each */
    double *weights, *gradients; /* on the device */
    double *own;                 /* likewise, and of this slot: as many as own_steps */
    double *here;                /* the weights, as they are there */
    double *given, *sums;        /* gradients: of this rank, and of all */
    size_t count;
};

NORETURN static void give_up(int status, const char *what)
{
    fprintf(stderr, "cadet: %s: %s\n", what, hvd_last_error());
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

static const char *variable(const char *name)
{
    const char *text = getenv(name);

    return text ? text : "0";
}

/* ---- what befalls its GPU -------------------------------------------------------------------- */

/* What is in the file, for this process alone: false, if another one has taken it. */
static bool take(const char *path, char *text, size_t room)
{
    char mine[4096];
    ssize_t length;
    int fd;

    if (!path)
        return false;
    snprintf(mine, sizeof(mine), "%s.%ld", path, (long)getpid());
    if (rename(path, mine))
        return false;
    fd = open(mine, O_RDONLY | O_CLOEXEC);
    length = fd < 0 ? -1 : read(fd, text, room - 1);
    if (length < 0)
        give_up(1, mine);
    close(fd);
    unlink(mine);
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}

static void say_befallen(const char *file, const char *text)
{
    char path[4096];
    char line[FAULTS_MAX + 32];

    snprintf(path, sizeof(path), "%s.taken", file);
    snprintf(line, sizeof(line), "%ld %s %s\n", (long)getpid(), variable("HVD_INCARNATION"), text);
    append(path, line);
}

/* What a stand-in offers; NULL: that library is not one, or is not used here. */
static void *ask_standin(const char *library, const char *symbol)
{
    void *handle = dlopen(variable(library), RTLD_NOW | RTLD_NOLOAD);
    void *found = handle ? dlsym(handle, symbol) : NULL;

    if (handle)
        dlclose(handle); /* it stays, whoever uses it */
    return found;
}

static void befall(const char *file)
{
    standin_faults_fn *faults;
    char text[FAULTS_MAX];

    if (!take(file, text, sizeof(text)))
        return;
    say_befallen(file, text);
    *(void **)(&faults) = ask_standin("HVD_CUDA_LIBRARY", STANDIN_FAULTS);
    if (!faults)
        give_up(1, "no stand-in of the driver is here to fail");
    faults(text);
}

/* ---- what it has learnt ---------------------------------------------------------------------- */

static void expect(const struct cadet *cadet, double found, double right, const char *what)
{
    if (found == right)
        return;
    fprintf(stderr, "cadet: wrong: after step %" PRId64 " %s is %.0f, not %.0f\n", cadet->step,
            what, found, right);
    exit(EXERCISE_WRONG);
}

/* What a sample brings to a weight: whole numbers, so that all sums are exact. */
static double value(uint64_t sample, size_t weight)
{
    return (double)((sample + 1) * (weight % 7 + 1));
}

static size_t bytes_of(const struct cadet *cadet)
{
    return cadet->count * sizeof(double);
}

static void get_weights(struct cadet *cadet)
{
    card_get(&cadet->card, cadet->here, cadet->weights, bytes_of(cadet));
}

/* Each sample was used once in each epoch. */
static void verify_epoch(struct cadet *cadet)
{
    const double samples = (double)cadet->options.samples;
    const double epochs = (double)hvd_sampler_epoch(cadet->sampler);

    get_weights(cadet);
    expect(cadet, cadet->here[COUNTED], epochs * samples, "the number of samples");
    for (size_t i = STOPPED + 1; i < cadet->count; i++)
        expect(cadet, cadet->here[i], epochs * samples * (samples + 1) / 2 * (double)(i % 7 + 1),
               "a weight");
}

/* What stays with the slot is as old as what the host remembers of it. */
static void verify_own(struct cadet *cadet)
{
    card_get(&cadet->card, cadet->sums, cadet->own, bytes_of(cadet));
    for (size_t i = 0; i < cadet->count; i++)
        expect(cadet, cadet->sums[i], (double)cadet->own_steps, "what is its own");
}

/* ---- training -------------------------------------------------------------------------------- */

static int on_reset(hvd_state *state, void *arg)
{
    const struct cadet *cadet = arg;
    char line[96];

    (void)state;
    snprintf(line, sizeof(line), "%s %" PRIu64 " %d %d\n", variable("HVD_INCARNATION"), hvd_round(),
             hvd_rank(), hvd_size());
    append(cadet->options.say, line);
    return 0;
}

static void say_made(const struct cadet *cadet)
{
    standin_live_fn *live;
    char line[96];

    *(void **)(&live) = ask_standin("HVD_NCCL_LIBRARY", STANDIN_LIVE);
    snprintf(line, sizeof(line), "%" PRIu64 " %d %" PRId64 " %s %zu\n", hvd_round(), hvd_rank(),
             cadet->step, variable("HVD_INCARNATION"), live ? live("communicators") : 0);
    append(cadet->options.made, line);
}

static void add_samples(struct cadet *cadet, const hvd_batch *batch)
{
    memset(cadet->given, 0, bytes_of(cadet));
    for (size_t i = 0; i < batch->count; i++)
        for (size_t weight = STOPPED + 1; weight < cadet->count; weight++)
            cadet->given[weight] += value(batch->samples[i], weight);
    cadet->given[COUNTED] = (double)batch->count;
    cadet->given[STOPPED] = cadet->options.stop && !access(cadet->options.stop, F_OK);
}

/* The sums of all ranks, here. */
static int add_up(struct cadet *cadet, const hvd_batch *batch)
{
    int rc;

    add_samples(cadet, batch);
    card_put(&cadet->card, cadet->gradients, cadet->given, bytes_of(cadet));
    rc = hvd_allreduce(cadet->gradients, cadet->gradients, cadet->count, HVD_FLOAT64, HVD_SUM);
    if (rc)
        return rc;
    card_get(&cadet->card, cadet->sums, cadet->gradients, bytes_of(cadet));
    rc = exercise_settle(&cadet->card);
    if (!rc)
        expect(cadet, cadet->sums[COUNTED], (double)batch->total, "a batch's number of samples");
    return rc;
}

static void learn(struct cadet *cadet)
{
    get_weights(cadet);
    cadet->sums[STOPPED] = 0;
    for (size_t i = 0; i < cadet->count; i++)
        cadet->here[i] += cadet->sums[i];
    card_put(&cadet->card, cadet->weights, cadet->here, bytes_of(cadet));
    cadet->step++;
    cadet->own_steps++;
    for (size_t i = 0; i < cadet->count; i++)
        cadet->sums[i] = (double)cadet->own_steps;
    card_put(&cadet->card, cadet->own, cadet->sums, bytes_of(cadet));
}

static int make_step(hvd_state *state, struct cadet *cadet, const hvd_batch *batch, bool *ret_stop)
{
    int rc;

    befall(cadet->options.befall);
    pass(cadet->options.step_ms);
    rc = add_up(cadet, batch);
    *ret_stop = !rc && cadet->sums[STOPPED] > 0;
    if (!rc)
        rc = exercise(&cadet->exercise, cadet->step);
    if (!rc)
        rc = hvd_state_fence(state);
    if (rc)
        return rc;
    learn(cadet);
    say_made(cadet);
    return cadet->options.async ? hvd_state_commit_async(state) : hvd_state_commit(state);
}

static bool is_trained(const struct cadet *cadet)
{
    return cadet->options.steps && (uint64_t)cadet->step >= cadet->options.steps;
}

/* What becomes of it nobody asks any more: it has to be done, or train was not. */
static int queue_last(const struct cadet *cadet)
{
    befall(cadet->options.last);
    return hvd_allreduce(cadet->gradients, cadet->gradients, cadet->count, HVD_FLOAT64, HVD_SUM);
}

static int train(hvd_state *state, void *arg)
{
    struct cadet *cadet = arg;
    hvd_batch batch;
    bool stop = false;
    int rc = 0;

    verify_own(cadet);
    get_weights(cadet);
    while (!rc && !stop && !is_trained(cadet)) {
        rc = hvd_sampler_next(cadet->sampler, &batch);
        if (!rc)
            rc = make_step(state, cadet, &batch, &stop);
        if (!rc && cadet->options.async)
            rc = hvd_state_check(state);
        if (rc == HVD_EPOCH_END) {
            verify_epoch(cadet);
            rc = 0;
        }
    }
    return rc || !cadet->options.last ? rc : queue_last(cadet);
}

/* ---- life ------------------------------------------------------------------------------------ */

static double *numbers(size_t count)
{
    double *memory = calloc(count, sizeof(*memory));

    if (!memory)
        give_up(1, "memory");
    return memory;
}

static void open_card(struct cadet *cadet)
{
    const size_t room = EXERCISE_ROOM(cadet->count) * sizeof(double);

    if (setenv("HVD_STANDIN_HOST", variable("HVD_HOST"), 1))
        give_up(1, "the environment");
    card_open(&cadet->card, hvd_slot(), cadet->options.stream);
    if (cadet->options.stream && hvd_set_stream(cadet->card.stream))
        give_up(1, "its stream");
    cadet->weights = card_alloc(&cadet->card, bytes_of(cadet));
    cadet->gradients = card_alloc(&cadet->card, bytes_of(cadet));
    cadet->own = card_alloc(&cadet->card, bytes_of(cadet));
    cadet->here = numbers(cadet->count);
    cadet->given = numbers(cadet->count);
    cadet->sums = numbers(cadet->count);
    cadet->exercise = (struct exercise){ .card = &cadet->card,
                                         .count = cadet->count,
                                         .weights = cadet->here,
                                         .in = card_alloc(&cadet->card, room),
                                         .out = card_alloc(&cadet->card, room),
                                         .host = numbers(EXERCISE_ROOM(cadet->count)) };
}

static hvd_state *build(struct cadet *cadet)
{
    const struct cadet_options *options = &cadet->options;
    hvd_state *state = hvd_state_create();

    if (!state || hvd_state_add_scalar(state, "step", &cadet->step, HVD_INT64) ||
        hvd_state_add(state, "weights", cadet->weights, bytes_of(cadet)) ||
        hvd_state_add_per_rank(state, "own steps", &cadet->own_steps, sizeof(cadet->own_steps)) ||
        hvd_state_add_per_rank(state, "own", cadet->own, bytes_of(cadet)) ||
        hvd_sampler_create(state, "samples", options->samples, (size_t)options->batch,
                           HVD_BATCH_GLOBAL, 7, &cadet->sampler) ||
        hvd_state_on_reset(state, on_reset, cadet) || exercise_make_groups(&cadet->exercise))
        give_up(1, "the state");
    return state;
}

static int finish(struct cadet *cadet, int rc)
{
    char line[128];

    if (rc < 0) {
        fprintf(stderr, "cadet: %s: %s\n", hvd_strerror(rc), hvd_last_error());
        return 1;
    }
    if (rc == 0) {
        double sum = 0;

        get_weights(cadet);
        for (size_t i = 0; i < cadet->count; i++)
            sum += cadet->here[i];
        snprintf(line, sizeof(line), "%s %d %" PRId64 " %.0f\n", variable("HVD_INCARNATION"),
                 hvd_rank(), cadet->step, sum);
        append(cadet->options.final, line);
    }
    return 0;
}

static int live(struct cadet *cadet)
{
    hvd_state *state;
    int status;

    cadet->count = (size_t)cadet->options.elements;
    if (hvd_init())
        give_up(1, "hvd_init");
    open_card(cadet);
    state = build(cadet);
    status = finish(cadet, hvd_elastic_run(state, train, cadet));
    hvd_state_free(state);
    hvd_shutdown();
    free(cadet->here);
    free(cadet->given);
    free(cadet->sums);
    free(cadet->exercise.host);
    return status;
}

int main(int argc, char **argv)
{
    static struct cadet cadet;
    int status;

    if (cadet_options_read(&cadet.options, argc, argv, &status))
        status = live(&cadet);
    cadet_options_release(&cadet.options);
    return status;
}
