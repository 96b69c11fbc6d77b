/*
 * overlap.c: gradients travel while the next gradients are computed. The product of some factors is
 * trained to become 8; each factor stands for a layer.
 *
 *     hvd-elastic -np 4 --min-np 1 ./overlap
 */
#include <hvd/hvd.h>
#include <stdio.h>

#define LAYERS 3
#define STEPS  200
#define RATE   0.01F

struct layer {
    float *gradient; /* from hvd_alloc: the other workers of the host read it in place */
    hvd_request *request;
};

struct training {
    struct layer layers[LAYERS];
    float factors[LAYERS];
    int64_t step;
    hvd_group *first_of_hosts;
};

/* The first worker of each host: this group makes calls that each host makes once. */
static int is_first(const hvd_place *place, void *arg)
{
    (void)arg;
    return place->local_rank == 0 ? 0 : -1;
}

/* The gradient of the squared error by this factor. */
static float gradient_of(const float *factors, int layer)
{
    float product = 1.0F;
    float others = 1.0F;

    for (int i = 0; i < LAYERS; i++) {
        product *= factors[i];
        others *= i == layer ? 1.0F : factors[i];
    }
    return (product - 8.0F) * others;
}

/* From the last layer to the first, as backward passes compute them. */
static int start_all(struct training *training)
{
    int code = 0;

    for (int i = LAYERS - 1; i >= 0 && !code; i--) {
        struct layer *layer = &training->layers[i];
        hvd_call call = { .kind = HVD_ALLREDUCE,
                          .in = layer->gradient,
                          .out = layer->gradient,
                          .count = 1,
                          .type = HVD_FLOAT32,
                          .op = HVD_AVERAGE };

        layer->gradient[0] = gradient_of(training->factors, i);
        code = hvd_start(&call, &layer->request);
    }
    return code;
}

/* The first layer's request was started last: when it is done, all are. */
static int step(hvd_state *state, struct training *training)
{
    int code = start_all(training);

    for (int i = 0; i < LAYERS && !code; i++)
        code = hvd_wait(training->layers[i].request);
    if (code)
        return code;
    for (int i = 0; i < LAYERS; i++)
        training->factors[i] -= RATE * training->layers[i].gradient[0];
    training->step++;
    return hvd_state_commit(state);
}

/* Sums over the hosts: each host counts its workers once. */
static int count_workers(struct training *training, int32_t *ret_workers)
{
    hvd_call call = { .kind = HVD_ALLREDUCE,
                      .group = training->first_of_hosts,
                      .in = ret_workers,
                      .out = ret_workers,
                      .count = 1,
                      .type = HVD_INT32 };

    *ret_workers = hvd_local_size();
    return hvd_group_rank(training->first_of_hosts) < 0 ? 0 : hvd_run(&call);
}

static int train(hvd_state *state, void *arg)
{
    struct training *training = arg;
    int32_t workers;
    int code = count_workers(training, &workers);

    if (!code && hvd_rank() == 0)
        printf("%d workers, on %d hosts\n", workers, hvd_group_size(training->first_of_hosts));
    while (!code && training->step < STEPS)
        code = step(state, training);
    return code;
}

static int join(struct training *training)
{
    hvd_state *state;
    int code = hvd_init();

    for (int i = 0; i < LAYERS && !code; i++) {
        training->factors[i] = 1.0F + (float)i;
        training->layers[i].gradient = hvd_alloc(sizeof(float));
        code = training->layers[i].gradient ? 0 : HVD_E_NOMEM;
    }
    if (!code)
        code = hvd_group_create(is_first, NULL, &training->first_of_hosts);
    state = code ? NULL : hvd_state_create();
    if (!code && !state)
        code = HVD_E_NOMEM;
    if (!code)
        code = hvd_state_add_array(state, "factors", training->factors, LAYERS, HVD_FLOAT32);
    if (!code)
        code = hvd_state_add_scalar(state, "step", &training->step, HVD_INT64);
    if (!code)
        code = hvd_elastic_run(state, train, training);
    hvd_state_free(state);
    return code;
}

int main(void)
{
    struct training training = { .step = 0 };
    int code = join(&training);
    const float *factors = training.factors;

    if (code < 0)
        fprintf(stderr, "overlap: %s: %s\n", hvd_strerror(code), hvd_last_error());
    if (!code && hvd_rank() == 0)
        printf("%.2f x %.2f x %.2f = %.2f\n", (double)factors[0], (double)factors[1],
               (double)factors[2], (double)(factors[0] * factors[1] * factors[2]));
    hvd_shutdown();
    for (int i = 0; i < LAYERS; i++)
        hvd_free(training.layers[i].gradient);
    return code < 0 ? 1 : 0;
}
