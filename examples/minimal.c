/*
 * minimal.c: all that an elastic training loop needs. Three weights learn a parabola; workers may
 * be killed, and new workers may join, at any moment.
 *
 *     cc minimal.c $(pkg-config --cflags --libs hvd) -o minimal
 *     hvd-elastic -np 4 --min-np 1 ./minimal
 */
#include <hvd/hvd.h>
#include <stdio.h>

#define SAMPLES 10000
#define BATCH   100
#define EPOCHS  10
#define RATE    0.1

/* The training state: all data that would be lost with the process. main registers it. */
struct training {
    double weights[3];
    double loss; /* sum over the epoch so far */
    hvd_sampler *sampler;
};

/* Makes a sample from its number; another program would read the sample from a file. */
static void sample(uint64_t number, double features[3], double *ret_y)
{
    double x = 2.0 * (double)number / SAMPLES - 1.0;

    features[0] = 1.0;
    features[1] = x;
    features[2] = x * x;
    *ret_y = 0.5 - 2.0 * x + 3.0 * x * x;
}

/* Sums the gradient over this rank's part of the batch, and in sum[3] the loss. */
static void add_gradients(const double *weights, const hvd_batch *batch, double sum[4])
{
    for (size_t i = 0; i < batch->count; i++) {
        double x[3], y, error;

        sample(batch->samples[i], x, &y);
        error = weights[0] * x[0] + weights[1] * x[1] + weights[2] * x[2] - y;
        for (int k = 0; k < 3; k++)
            sum[k] += error * x[k];
        sum[3] += error * error / 2.0;
    }
}

/* Every rank makes the same calls. Returns 0, or the code that train is to return. */
static int step(hvd_state *state, struct training *training)
{
    double sum[4] = { 0.0 };
    hvd_batch batch;
    int code = hvd_sampler_next(training->sampler, &batch);

    if (code == HVD_EPOCH_END) {
        if (hvd_rank() == 0)
            printf("epoch %d: loss %.6f\n", (int)hvd_sampler_epoch(training->sampler),
                   training->loss / SAMPLES);
        training->loss = 0.0;
        return 0;
    }
    if (code)
        return code;
    add_gradients(training->weights, &batch, sum);
    code = hvd_allreduce(sum, sum, 4, HVD_FLOAT64, HVD_SUM);
    if (code)
        return code;
    /* divided by the samples of all ranks: the same with 1 rank and with 12 */
    for (int k = 0; k < 3; k++)
        training->weights[k] -= RATE * sum[k] / (double)batch.total;
    training->loss += sum[3];
    return hvd_state_commit(state); /* the step is safe now; the membership changes here */
}

/* Called again in each round, with the state of the last commit: training continues from there. */
static int train(hvd_state *state, void *arg)
{
    struct training *training = arg;
    int code = 0;

    while (!code && hvd_sampler_epoch(training->sampler) < EPOCHS)
        code = step(state, training);
    return code;
}

static int run(hvd_state *state, struct training *training)
{
    int code = hvd_state_add_array(state, "weights", training->weights, 3, HVD_FLOAT64);

    if (!code)
        code = hvd_state_add_scalar(state, "loss", &training->loss, HVD_FLOAT64);
    if (!code)
        code = hvd_sampler_create(state, "samples", SAMPLES, BATCH, HVD_BATCH_GLOBAL, 1,
                                  &training->sampler);
    return code ? code : hvd_elastic_run(state, train, training);
}

int main(void)
{
    struct training training = { .loss = 0.0 };
    hvd_state *state = NULL;
    int code = hvd_init();

    setvbuf(stdout, NULL, _IOLBF, 0); /* a line that was printed is seen if a kill comes next */
    if (!code && !(state = hvd_state_create()))
        code = HVD_E_NOMEM;
    if (!code)
        code = run(state, &training);
    if (code < 0) /* HVD_LEFT and HVD_DONE are successes too */
        fprintf(stderr, "minimal: %s: %s\n", hvd_strerror(code), hvd_last_error());
    if (code == 0 && hvd_rank() == 0)
        printf("y = %.3f %+.3f x %+.3f x^2\n", training.weights[0], training.weights[1],
               training.weights[2]);
    hvd_state_free(state);
    hvd_shutdown();
    return code < 0 ? 1 : 0;
}
