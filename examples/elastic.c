/*
 * elastic.c: plain.c after the five steps of docs/embedding.md.
 *
 *     hvd-elastic -np 4 --min-np 1 ./elastic
 */
#include <hvd/hvd.h>
#include <stdio.h>

#define SAMPLES 4096
#define BATCH   64
#define EPOCHS  20
#define RATE    0.2F

/* Points near y = 3 x + 2. */
static void point(uint64_t sample, float *ret_x, float *ret_y)
{
    float scatter = (float)(sample * 7 % 11) / 10.0F - 0.5F;

    *ret_x = (float)(sample % 101) / 50.0F - 1.0F;
    *ret_y = 3.0F * *ret_x + 2.0F + scatter;
}

/* The gradient of the squared error by slope and offset, summed over the samples. */
static void gradient_of(const float *line, const uint64_t *samples, size_t count, float *gradient)
{
    gradient[0] = gradient[1] = 0.0F;
    for (size_t i = 0; i < count; i++) {
        float x, y, error;

        point(samples[i], &x, &y);
        error = line[0] * x + line[1] - y;
        gradient[0] += error * x;
        gradient[1] += error;
    }
}

static void update(float *line, const float *gradient, size_t count)
{
    line[0] -= RATE * gradient[0] / (float)count;
    line[1] -= RATE * gradient[1] / (float)count;
}

struct training {
    float line[2];
    hvd_sampler *sampler;
};

/* Returns 0, or the code that train is to return. */
static int step(hvd_state *state, struct training *training)
{
    float gradient[2];
    hvd_batch batch;
    int code = hvd_sampler_next(training->sampler, &batch);

    if (code)
        return code == HVD_EPOCH_END ? 0 : code;
    gradient_of(training->line, batch.samples, batch.count, gradient);
    code = hvd_allreduce(gradient, gradient, 2, HVD_FLOAT32, HVD_SUM);
    if (code)
        return code;
    update(training->line, gradient, batch.total);
    return hvd_state_commit(state);
}

static int train(hvd_state *state, void *arg)
{
    struct training *training = arg;
    int code = 0;

    while (!code && hvd_sampler_epoch(training->sampler) < EPOCHS)
        code = step(state, training);
    return code;
}

static int join(struct training *training)
{
    hvd_state *state;
    int code = hvd_init();

    if (code)
        return code;
    state = hvd_state_create();
    if (!state)
        return HVD_E_NOMEM;
    code = hvd_state_add_array(state, "line", training->line, 2, HVD_FLOAT32);
    if (!code)
        code = hvd_sampler_create(state, "points", SAMPLES, BATCH, HVD_BATCH_GLOBAL, 1,
                                  &training->sampler);
    if (!code)
        code = hvd_elastic_run(state, train, training);
    hvd_state_free(state);
    return code;
}

int main(void)
{
    struct training training = {
        {0.0F, 0.0F},
        NULL
    };
    int code = join(&training);

    if (code < 0)
        fprintf(stderr, "elastic: %s: %s\n", hvd_strerror(code), hvd_last_error());
    if (!code && hvd_rank() == 0)
        printf("y = %.2f x + %.2f\n", (double)training.line[0], (double)training.line[1]);
    hvd_shutdown();
    return code < 0 ? 1 : 0;
}
