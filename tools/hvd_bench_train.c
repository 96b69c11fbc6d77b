/*
 * hvd_bench_train.c: `hvd-bench train`: a synthetic training, and what it costs to make it with
 * several workers. The model is linear: its arithmetic is real, and its gradients travel as those
 * of a larger model would. In each round one worker alone is measured first, then all workers
 * without communication, then all together. Every rank ends with the same weights, and that is
 * checked.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/time.h"
#include "tools/hvd_bench.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* The number of values in a sample. Each block of this many parameters is multiplied with the
 * values. LIMIT_BENCH_LAYERS blocks fill 1 MiB. */
#define BLOCK 256

struct training {
    struct bench *bench;
    size_t layers, batch;
    size_t per_layer;       /* number of parameters in a layer, a multiple of BLOCK */
    float *weights;         /* the parameters of the model; an entry of the state */
    float *gradients;       /* of this rank; after the allreduce, the average over all ranks */
    float *samples;         /* the samples of one batch, each of BLOCK numbers */
    float *errors;          /* the error of each sample */
    hvd_request **requests; /* the started allreduces, one for each layer */
    hvd_piece *pieces;      /* the gradients of each layer, for one call */
    double computed; /* with --compute-ms: the time when the present part of the step's computation
                        ends */
    double commit_s; /* time of the slowest commit since the last row */
};

/* ---- the computation ---- */

/* Waits until this time, in seconds of the monotonic clock. The factor is below 10^9, so that
 * rounding never makes the nanoseconds reach 10^9. */
static void wait_until(double when)
{
    struct timespec until = { (time_t)when, (long)((when - floor(when)) * 999999999) };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* Computes the error of each sample: the sum over all layers, minus the number to be learned, which
 * is the sample's first number. This takes a third of the time of a step. With --compute-ms the
 * function waits instead. */
static void train_forward(struct training *training)
{
    size_t count = training->layers * training->per_layer;
    uint64_t wait_ms = training->bench->options->compute_ms;

    if (wait_ms) {
        training->computed = bench_now() + (double)wait_ms / 3e3;
        wait_until(training->computed);
        return;
    }
    for (size_t b = 0; b < training->batch; b++) {
        const float *restrict sample = training->samples + b * BLOCK;
        float sums[8] = { 0 };
        float out = 0;

        for (size_t at = 0; at < count; at += BLOCK) {
            const float *restrict weights = training->weights + at;

            for (size_t i = 0; i < BLOCK; i += 8)
                for (size_t k = 0; k < 8; k++)
                    sums[k] += weights[i + k] * sample[i + k];
        }
        for (size_t k = 0; k < 8; k++)
            out += sums[k];
        training->errors[b] = out - sample[0];
    }
}

/* Computes the gradients of one layer, over this rank's batch. With --compute-ms the function waits
 * instead: all layers together take two thirds of that time. */
static void train_backward(struct training *training, size_t layer)
{
    float *restrict gradients = training->gradients + layer * training->per_layer;
    uint64_t wait_ms = training->bench->options->compute_ms;

    if (wait_ms) {
        training->computed += (double)wait_ms / 1.5e3 / (double)training->layers;
        wait_until(training->computed);
        return;
    }
    for (size_t at = 0; at < training->per_layer; at += BLOCK) {
        float *restrict block = gradients + at;

        memset(block, 0, BLOCK * sizeof(float));
        for (size_t b = 0; b < training->batch; b++) {
            const float *restrict sample = training->samples + b * BLOCK;
            float share = training->errors[b] / (float)training->batch;

            for (size_t i = 0; i < BLOCK; i++)
                block[i] += share * sample[i];
        }
    }
}

/* Makes one step: computes the gradients from the last layer to the first, and starts the allreduce
 * of each layer at once, or with --one-call makes one for all layers in the end. Without
 * communication the learning rate is 0: the arithmetic is the same, but the weights do not change,
 * because they must stay equal on all ranks. */
static int train_step(struct training *training, bool communicates)
{
    size_t count = training->layers * training->per_layer;
    /* The rate is below the bound up to which the descent is stable: the mean of a sample's squares
     * is 1/3. */
    float rate = communicates ? 1.0F / (float)count : 0.0F;
    bool overlap = communicates && !training->bench->options->one_call;
    size_t started = 0;
    int code = 0;

    train_forward(training);
    for (size_t i = 0; i < training->layers && !code; i++) {
        size_t layer = training->layers - 1 - i;
        hvd_call call = { .kind = HVD_ALLREDUCE,
                          .type = HVD_FLOAT32,
                          .op = HVD_AVERAGE,
                          .in = training->pieces[layer].in,
                          .out = training->pieces[layer].out,
                          .count = training->pieces[layer].count };

        train_backward(training, layer);
        if (overlap && !(code = hvd_start(&call, &training->requests[layer])))
            started++;
    }
    /* The program must wait for every request that was started, even after an error. */
    for (size_t i = 0; i < started; i++) {
        int result = hvd_wait(training->requests[training->layers - 1 - i]);

        if (!code)
            code = result;
    }
    if (communicates && !overlap) {
        hvd_call call = { .kind = HVD_ALLREDUCE,
                          .type = HVD_FLOAT32,
                          .op = HVD_AVERAGE,
                          .pieces = training->pieces,
                          .piece_count = training->layers };

        code = hvd_run(&call);
    }
    if (code)
        return code;
    for (size_t i = 0; i < count; i++)
        training->weights[i] -= rate * training->gradients[i];
    return 0;
}

/* ---- measuring ---- */

/* Commits, and keeps the time of the slowest commit for the next row. */
static int train_commit(struct training *training)
{
    double began = bench_now();
    int code;

    code = hvd_state_commit(training->bench->state);
    training->commit_s = fmax(training->commit_s, bench_now() - began);
    return code;
}

/* Measures --steps steps without communication, on rank 0 alone or on all ranks at the same time.
 * *ret_rate is the number of samples per second of all measured ranks together. */
static int train_apart(struct training *training, bool all, double *ret_rate)
{
    uint64_t steps = training->bench->options->steps;
    double seconds = 0;
    int code = hvd_barrier();

    if (!code && (all || hvd_rank() == 0)) {
        double began = bench_now();

        for (uint64_t i = 0; i < steps && !code; i++)
            code = train_step(training, false /* without communication */);
        seconds = bench_now() - began;
    }
    /* The ranks that measure nothing wait in this allreduce. */
    if (!code)
        code = hvd_allreduce(&seconds, &seconds, 1, HVD_FLOAT64, HVD_MAX);
    if (!code)
        *ret_rate = (double)(steps * training->batch) * (all ? hvd_size() : 1) / seconds;
    return code;
}

/* Makes the first steps of a round, which are not measured, and then measures one worker alone and
 * all workers without communication. */
static int train_open_round(struct training *training)
{
    struct bench *bench = training->bench;
    struct bench_round *round;
    int code = train_step(training, true /* communicates */);

    if (!code)
        code = rounds_begin(bench);
    for (uint64_t i = 1; i < bench->options->warmup && !code; i++) {
        code = train_step(training, true /* communicates */);
        if (!code)
            rounds_step(bench);
    }
    if (code)
        return code;
    round = rounds_now(bench);
    code = train_apart(training, false /* rank 0 alone */, &round->one_rate);
    round->apart_rate = round->one_rate;
    if (!code && round->size > 1)
        code = train_apart(training, true /* all ranks */, &round->apart_rate);
    return code;
}

/* Makes one iteration, with commits and checks as a training makes them. *ret_seconds is its time
 * without the commits, which have a column of their own. */
static int train_iterate(struct training *training, double *ret_seconds)
{
    struct bench *bench = training->bench;
    const struct bench_options *options = bench->options;
    double seconds = 0;
    int code = 0;

    for (uint64_t i = 0; i < options->steps && !code; i++) {
        double began = bench_now();

        code = train_step(training, true /* communicates */);
        if (code)
            break;
        rounds_step(bench);
        /* After the last step the caller commits, together with the new row. */
        if (i + 1 < options->steps && bench->steps_made % options->commit_every != 0)
            code = hvd_state_check(bench->state);
        seconds += bench_now() - began;
        if (!code && i + 1 < options->steps && bench->steps_made % options->commit_every == 0)
            code = train_commit(training);
    }
    *ret_seconds = seconds;
    return code;
}

/* Adds an iteration to the row of its round: the samples per second of all workers, and the slowest
 * commit. The slowest rank decides. Rank 0 prints the iteration, and all ranks wait for that. */
static int train_add_row(struct training *training, double seconds)
{
    struct bench *bench = training->bench;
    struct bench_round *round = rounds_now(bench);
    double slowest[2] = { seconds, training->commit_s };
    double rate;
    int code = hvd_allreduce(slowest, slowest, 2, HVD_FLOAT64, HVD_MAX);

    if (code)
        return code;
    rate = (double)(bench->options->steps * training->batch * round->size) / slowest[0];
    round->commit = fmax(round->commit, slowest[1]);
    round->least = round->iterations ? fmin(round->least, rate) : rate;
    round->most = fmax(round->most, rate);
    round->sum += rate;
    round->squares += rate * rate;
    round->iterations++;
    bench->progress->done++;
    training->commit_s = 0;
    if (rounds_talks(bench)) {
        if (!bench->head_printed)
            printf("  %9s  %5s  %7s  %20s  %12s\n", "iteration", "round", "workers",
                   "samples/s a worker", "of all");
        bench->head_printed = true;
        printf("  %9" PRIu64 "  %5" PRIu64 "  %7" PRIu64 "  %20.1f  %12.1f\n",
               bench->progress->done, round->number, round->size, rate / (double)round->size, rate);
    }
    /* No rank commits a row that is not printed yet: if rank 0 dies before it prints the row, the
     * iteration is made again. */
    return hvd_barrier();
}

/* ---- the end ---- */

/* Returns 1.96 standard deviations of the samples per second in a round, around their mean. */
static double spread(const struct bench_round *round, double mean)
{
    double variance = round->squares / (double)round->iterations - mean * mean;

    return 1.96 * sqrt(fmax(variance, 0));
}

/* Prints one line for each round, and the costs of the changes. */
static void train_show(const struct training *training)
{
    const struct bench_progress *progress = training->bench->progress;

    printf("\nsamples/s: mean over the iterations of a round, and 1.96 standard deviations (+-)\n"
           "  %5s  %7s  %10s  %8s  %8s  %10s  %9s  %10s  %10s  %10s  %10s  %9s\n",
           "round", "workers", "iterations", "a worker", "+-", "of all", "+-", "one alone",
           "all apart", "efficiency", "of apart", "commit ms");
    for (size_t i = 0; i < progress->round_count; i++) {
        const struct bench_round *round = &progress->rounds[i];
        double size = (double)round->size;
        double mean, deviation;

        if (!round->iterations) {
            printf("  %5" PRIu64 "  %7" PRIu64
                   "  %10d  the round ended before its first iteration did\n",
                   round->number, round->size, 0);
            continue;
        }
        mean = round->sum / (double)round->iterations;
        deviation = spread(round, mean);
        printf("  %5" PRIu64 "  %7" PRIu64 "  %10" PRIu64 "  %8.1f  %8.1f  %10.1f  %9.1f"
               "  %10.1f  %10.1f  %8.1f %%  %8.1f %%  %9.2f\n",
               round->number, round->size, round->iterations, mean / size, deviation / size, mean,
               deviation, round->one_rate, round->apart_rate, 100 * mean / (round->one_rate * size),
               100 * mean / round->apart_rate, round->commit * 1e3);
    }
    printf("  one alone: rank 0, while the others wait; all apart: all at the same time, without "
           "communication\n"
           "  efficiency: of all, divided by one alone times workers; of apart: of all, divided by "
           "all apart\n"
           "  commit ms: the slowest commit of the round\n");
    rounds_show(training->bench);
}

/* Prints the rounds, and the costs of the changes, as one JSON object. */
static void train_show_json(const struct training *training)
{
    const struct bench_options *options = training->bench->options;
    const struct bench_progress *progress = training->bench->progress;

    printf("{\"benchmark\":\"train\",\"model_bytes\":%zu,\"layers\":%zu,\"batch\":%zu"
           ",\"compute_ms\":%" PRIu64 ",\"one_call\":%s,\"steps\":%" PRIu64 ",\"rounds\":[",
           training->layers * training->per_layer * sizeof(float), training->layers,
           training->batch, options->compute_ms, options->one_call ? "true" : "false",
           options->steps);
    for (size_t i = 0; i < progress->round_count; i++) {
        const struct bench_round *round = &progress->rounds[i];

        printf("%s{\"round\":%" PRIu64 ",\"workers\":%" PRIu64 ",\"hosts\":%" PRIu64
               ",\"iterations\":%" PRIu64,
               i ? "," : "", round->number, round->size, round->hosts, round->iterations);
        if (round->iterations) {
            double mean = round->sum / (double)round->iterations;

            printf(",\"samples_per_s\":%.3f,\"spread\":%.3f,\"least\":%.3f,\"most\":%.3f"
                   ",\"one_alone\":%.3f,\"all_apart\":%.3f,\"efficiency\":%.4f,\"commit_us\":%.0f",
                   mean, spread(round, mean), round->least, round->most, round->one_rate,
                   round->apart_rate, mean / (round->one_rate * (double)round->size),
                   round->commit * 1e6);
        }
        printf("}");
    }
    printf("]");
    rounds_show_json(training->bench);
    printf("}\n");
}

/* The training function of hvd_elastic_run: makes the iterations that are left, commits after each
 * of them, and in the end compares the weights of all ranks. */
static int train_run(hvd_state *state, void *arg)
{
    struct training *training = arg;
    struct bench *bench = training->bench;
    size_t count = training->layers * training->per_layer;
    uint32_t digest = 2166136261U;
    int64_t ends[2];
    int code = 0;

    (void)state;
    rounds_enter(bench);
    training->commit_s = 0;
    if (bench->progress->done < bench->options->iterations)
        code = train_open_round(training);
    while (!code && bench->progress->done < bench->options->iterations) {
        double seconds;

        code = train_iterate(training, &seconds);
        if (!code)
            code = train_add_row(training, seconds);
        if (!code)
            code = train_commit(training);
    }
    /* Every rank has computed its weights from the same sums, so the weights are equal, bit for
     * bit. Then the greatest digest (FNV-1a, over words of 32 bits) of all ranks is also the least:
     * the maximum of the negative digests shows the least one. */
    for (size_t i = 0; i < count && !code; i++) {
        uint32_t bits;

        memcpy(&bits, &training->weights[i], sizeof(bits));
        digest = (digest ^ bits) * 16777619U;
    }
    ends[0] = digest;
    ends[1] = -(int64_t)digest;
    if (!code)
        code = hvd_allreduce(ends, ends, 2, HVD_INT64, HVD_MAX);
    if (!code && ends[0] != -ends[1])
        code = err_set(bench->err, HVD_E_CORRUPT,
                       "the weights differ between ranks after %" PRIu64
                       " steps; please report it with the output of hvd-elastic --check-build",
                       bench->steps_made);
    /* The report comes before the barrier: if rank 0 dies here, the next rank 0 reports. */
    if (!code && rounds_talks(bench))
        train_show(training);
    else if (!code && hvd_rank() == 0)
        train_show_json(training);
    if (!code)
        code = hvd_barrier();
    rounds_leave(bench, code);
    return code;
}

/* A reset callback, called when the rank may have changed: fills this rank's own samples with
 * numbers in [-1, 1). */
static int train_fill(hvd_state *state, void *arg)
{
    struct training *training = arg;
    struct rng rng;

    (void)state;
    rng_seed(&rng, (uint64_t)hvd_rank());
    for (size_t i = 0; i < training->batch * BLOCK; i++)
        training->samples[i] = (float)(rng_next(&rng) >> 40) / 8388608.0F - 1.0F;
    return 0;
}

/* Runs the benchmark: makes the model and the samples, and trains with train_run. The weights are
 * an entry of the state. Returns the result of hvd_elastic_run. */
int bench_train(struct bench *bench)
{
    const struct bench_options *options = bench->options;
    struct training training = { .bench = bench,
                                 .layers = options->layers,
                                 .batch = options->batch };
    size_t count;
    int code;

    training.per_layer =
        (options->model_mb << 20) / sizeof(float) / options->layers / BLOCK * BLOCK;
    count = training.per_layer * training.layers;
    training.weights = mem_zalloc_array(count, sizeof(float));
    training.gradients = mem_zalloc_array(count, sizeof(float));
    training.samples = mem_zalloc_array(training.batch, BLOCK * sizeof(float));
    training.errors = mem_zalloc_array(training.batch, sizeof(float));
    training.requests = mem_zalloc_array(training.layers, sizeof(hvd_request *));
    training.pieces = mem_zalloc_array(training.layers, sizeof(hvd_piece));
    if (training.weights && training.gradients && training.samples && training.errors &&
        training.requests && training.pieces) {
        for (size_t i = 0; i < training.layers; i++) {
            float *at = training.gradients + i * training.per_layer;

            training.pieces[i] = (hvd_piece){ .in = at, .out = at, .count = training.per_layer };
        }
        code = hvd_state_add(bench->state, "weights", training.weights, count * sizeof(float));
        if (!code)
            code = hvd_state_on_reset(bench->state, train_fill, &training);
        if (!code)
            code = hvd_elastic_run(bench->state, train_run, &training);
    } else {
        code = err_set(bench->err, HVD_E_NOMEM,
                       "--model-mb %" PRIu64 ", --batch %" PRIu64
                       ": no memory for two models and the samples; give less",
                       options->model_mb, options->batch);
    }
    rounds_close(bench, code);
    mem_free(training.weights);
    mem_free(training.gradients);
    mem_free(training.samples);
    mem_free(training.errors);
    mem_free(training.requests);
    mem_free(training.pieces);
    return code;
}
