/*
 * gpu_trainer: a training program for tests, with weights and gradients in the memory of a GPU.
 * Each rank contributes the sum of its samples' values, and the sum over all ranks is added to the
 * weights. So after n epochs the weights are exactly n times the sum over all samples, if each
 * sample was used once in each epoch, also if workers have died or joined meanwhile. A worker that
 * finds another value ends with 9.
 *
 * The GPU is that of its slot, as the job counts slots on a host. With the stand-in of the driver
 * each host of the job has GPUs of its own (HVD_STANDIN_HOST).
 */
#include "hvd/hvd.h"

#include "tests/standin/standin.h"
#include "tests/workers/gpu_collectives.h"
#include "tests/workers/gpu_trainer_options.h"
#include "tests/workers/worker_report.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAULTS_MAX 256

#define COUNTED    0 /* index of the gradient that counts samples */
#define STOPPED    1 /* index of the gradient that counts the ranks that have found the file */

struct gpu_trainer {
    struct gpu_trainer_options options;
    struct gpu_memory gpu;
    struct gpu_collectives collectives;
    hvd_sampler *sampler;
    int64_t step;
    int64_t own_steps; /* steps of this slot */
    size_t carried;    /* NCCL has carried so many collectives of the last sum: 0 or 1 */

    /* number of elements of the arrays below */
    double *weights, *gradients; /* on the device */
    /* on the device, belongs to this slot: each element is own_steps */
    double *own;
    double *here; /* the host's copy of the weights */
    /* gradients on the host: of this rank, and summed over all ranks */
    double *given, *sums;
    size_t count;
};

/* ---- faults of its GPU ----------------------------------------------------------------------- */

/* Takes the file away and reads its text; false: another process has taken the file. */
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
        worker_give_up(1, mine);
    close(fd);
    unlink(mine);
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}

/* The address of a symbol in a stand-in; NULL: the library is not a stand-in, or is not loaded. */
static void *ask_standin(const char *library, const char *symbol)
{
    void *handle = dlopen(worker_variable(library, "0"), RTLD_NOW | RTLD_NOLOAD);
    void *found = handle ? dlsym(handle, symbol) : NULL;

    if (handle)
        dlclose(handle); /* the library stays loaded for its other users */
    return found;
}

/* Returns how many of these the stand-in of NCCL counts (standin.h); 0 without a stand-in. */
static size_t count_of_nccl(const char *what)
{
    standin_live_fn *live;

    *(void **)(&live) = ask_standin("HVD_NCCL_LIBRARY", STANDIN_LIVE);
    return live ? live(what) : 0;
}

/* Raises the faults of the file in the stand-in; only the process that takes the file does. */
static void befall(const char *file)
{
    standin_faults_fn *faults;
    char text[FAULTS_MAX];
    char path[4096];

    if (!take(file, text, sizeof(text)))
        return;
    snprintf(path, sizeof(path), "%s.taken", file);
    worker_append(path, "%ld %s %s\n", (long)getpid(), worker_incarnation(), text);
    *(void **)(&faults) = ask_standin("HVD_CUDA_LIBRARY", STANDIN_FAULTS);
    if (!faults)
        worker_give_up(1, "no stand-in of the driver is here to fail");
    faults(text);
}

/* ---- the model ------------------------------------------------------------------------------- */

static void expect(const struct gpu_trainer *self, double found, double right, const char *what)
{
    if (found != right)
        worker_wrong("after step %" PRId64 " %s is %.0f, not %.0f", self->step, what, found, right);
}

/* The value of a sample for a weight: a whole number, so that all sums are exact. */
static double value(uint64_t sample, size_t weight)
{
    return (double)((sample + 1) * (weight % 7 + 1));
}

static size_t bytes_of(const struct gpu_trainer *self)
{
    return self->count * sizeof(double);
}

static void get_weights(struct gpu_trainer *self)
{
    gpu_memory_get(&self->gpu, self->here, self->weights, bytes_of(self));
}

/* Checks that each sample was used once in each epoch. */
static void verify_epoch(struct gpu_trainer *self)
{
    const double samples = (double)self->options.samples;
    const double epochs = (double)hvd_sampler_epoch(self->sampler);

    get_weights(self);
    expect(self, self->here[COUNTED], epochs * samples, "the number of samples");
    for (size_t i = STOPPED + 1; i < self->count; i++)
        expect(self, self->here[i], epochs * samples * (samples + 1) / 2 * (double)(i % 7 + 1),
               "a weight");
}

/* ---- training -------------------------------------------------------------------------------- */

static int on_reset(hvd_state *state, void *arg)
{
    const struct gpu_trainer *self = arg;

    (void)state;
    worker_say_round(self->options.say);
    return 0;
}

/* Adds the gradients of all ranks; the sums are then on the host. */
static int add_up(struct gpu_trainer *self, const hvd_batch *batch)
{
    const size_t carried = count_of_nccl("collectives");
    int rc;

    memset(self->given, 0, bytes_of(self));
    for (size_t i = 0; i < batch->count; i++)
        for (size_t weight = STOPPED + 1; weight < self->count; weight++)
            self->given[weight] += value(batch->samples[i], weight);
    self->given[COUNTED] = (double)batch->count;
    self->given[STOPPED] = self->options.stop && !access(self->options.stop, F_OK);
    gpu_memory_put(&self->gpu, self->gradients, self->given, bytes_of(self));
    rc = hvd_allreduce(self->gradients, self->gradients, self->count, HVD_FLOAT64, HVD_SUM);
    if (rc)
        return rc;
    gpu_memory_get(&self->gpu, self->sums, self->gradients, bytes_of(self));
    self->carried = count_of_nccl("collectives") - carried;
    rc = gpu_settle(&self->gpu);
    if (!rc)
        expect(self, self->sums[COUNTED], (double)batch->total, "a batch's number of samples");
    return rc;
}

/* Makes a step and commits it. *ret_stop: a rank has found the file that stops the job. */
static int make_step(hvd_state *state, struct gpu_trainer *self, const hvd_batch *batch,
                     bool *ret_stop)
{
    int rc;

    befall(self->options.befall);
    worker_pass(self->options.step_ms);
    rc = add_up(self, batch);
    *ret_stop = !rc && self->sums[STOPPED] > 0;
    if (!rc)
        rc = gpu_collective_check(&self->collectives, self->step);
    if (!rc)
        rc = hvd_state_fence(state);
    if (rc)
        return rc;
    get_weights(self);
    self->sums[STOPPED] = 0;
    for (size_t i = 0; i < self->count; i++)
        self->here[i] += self->sums[i];
    gpu_memory_put(&self->gpu, self->weights, self->here, bytes_of(self));
    self->step++;
    self->own_steps++;
    for (size_t i = 0; i < self->count; i++)
        self->sums[i] = (double)self->own_steps;
    gpu_memory_put(&self->gpu, self->own, self->sums, bytes_of(self));
    worker_append(self->options.made, "%" PRIu64 " %d %" PRId64 " %s %zu %zu\n", hvd_round(),
                  hvd_rank(), self->step, worker_incarnation(), count_of_nccl("communicators"),
                  self->carried);
    return self->options.async ? hvd_state_commit_async(state) : hvd_state_commit(state);
}

/* Starts an operation whose result no call asks for: it must be completed, or train has failed. */
static int queue_last(const struct gpu_trainer *self)
{
    befall(self->options.last);
    return hvd_allreduce(self->gradients, self->gradients, self->count, HVD_FLOAT64, HVD_SUM);
}

static int train(hvd_state *state, void *arg)
{
    struct gpu_trainer *self = arg;
    hvd_batch batch;
    bool stop = false;
    int rc = 0;

    /* Checks that the slot's entry on the device is as new as that on the host. */
    gpu_memory_get(&self->gpu, self->sums, self->own, bytes_of(self));
    for (size_t i = 0; i < self->count; i++)
        expect(self, self->sums[i], (double)self->own_steps, "the own entry");
    get_weights(self);
    while (!rc && !stop && !(self->options.steps && (uint64_t)self->step >= self->options.steps)) {
        rc = hvd_sampler_next(self->sampler, &batch);
        if (!rc)
            rc = make_step(state, self, &batch, &stop);
        if (!rc && self->options.async)
            rc = hvd_state_check(state);
        if (rc == HVD_EPOCH_END) {
            verify_epoch(self);
            rc = 0;
        }
    }
    return rc || !self->options.last ? rc : queue_last(self);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static double *numbers(size_t count)
{
    double *memory = calloc(count, sizeof(*memory));

    if (!memory)
        worker_give_up(1, "memory");
    return memory;
}

static void open_card(struct gpu_trainer *self)
{
    const size_t room = GPU_COLLECTIVES_ROOM(self->count) * sizeof(double);

    if (setenv("HVD_STANDIN_HOST", worker_variable("HVD_HOST", "0"), 1))
        worker_give_up(1, "the environment");
    gpu_memory_open(&self->gpu, hvd_slot(), self->options.stream);
    if (self->options.stream && hvd_set_stream(self->gpu.stream))
        worker_give_up(1, "its stream");
    self->weights = gpu_memory_alloc(&self->gpu, bytes_of(self));
    self->gradients = gpu_memory_alloc(&self->gpu, bytes_of(self));
    self->own = gpu_memory_alloc(&self->gpu, bytes_of(self));
    self->here = numbers(self->count);
    self->given = numbers(self->count);
    self->sums = numbers(self->count);
    self->collectives =
        (struct gpu_collectives){ .gpu = &self->gpu,
                                  .count = self->count,
                                  .weights = self->here,
                                  .in = gpu_memory_alloc(&self->gpu, room),
                                  .out = gpu_memory_alloc(&self->gpu, room),
                                  .host = numbers(GPU_COLLECTIVES_ROOM(self->count)) };
}

static hvd_state *build(struct gpu_trainer *self)
{
    const struct gpu_trainer_options *options = &self->options;
    hvd_state *state = hvd_state_create();

    if (!state || hvd_state_add_scalar(state, "step", &self->step, HVD_INT64) ||
        hvd_state_add(state, "weights", self->weights, bytes_of(self)) ||
        hvd_state_add_per_rank(state, "own steps", &self->own_steps, sizeof(self->own_steps)) ||
        hvd_state_add_per_rank(state, "own", self->own, bytes_of(self)) ||
        hvd_sampler_create(state, "samples", options->samples, (size_t)options->batch,
                           HVD_BATCH_GLOBAL, 7, &self->sampler) ||
        hvd_state_on_reset(state, on_reset, self) ||
        gpu_collectives_make_groups(&self->collectives))
        worker_give_up(1, "the state");
    return state;
}

static int finish(struct gpu_trainer *self, int rc)
{

    if (rc == 0) {
        double sum = 0;

        get_weights(self);
        for (size_t i = 0; i < self->count; i++)
            sum += self->here[i];
        worker_append(self->options.final, "%s %d %" PRId64 " %.0f\n", worker_incarnation(),
                      hvd_rank(), self->step, sum);
    }
    return worker_status(rc);
}

static int live(struct gpu_trainer *self)
{
    hvd_state *state;
    int status;

    self->count = (size_t)self->options.elements;
    if (hvd_init())
        worker_give_up(1, "hvd_init");
    open_card(self);
    state = build(self);
    status = finish(self, hvd_elastic_run(state, train, self));
    hvd_state_free(state);
    hvd_shutdown();
    free(self->here);
    free(self->given);
    free(self->sums);
    free(self->collectives.host);
    return status;
}

int main(int argc, char **argv)
{
    static struct gpu_trainer self;
    int status;

    if (gpu_trainer_options_read(&self.options, argc, argv, &status))
        status = live(&self);
    opt_release(&self.options.set);
    return status;
}
