/*
 * mlp.c: a small network learns to tell two spirals apart. Workers may be killed, leave and join at
 * any moment, and the result is the same up to rounding.
 *
 *     cc mlp.c $(pkg-config --cflags --libs hvd) -lm -o mlp
 *     hvd-elastic -np 4 --min-np 1 --max-np 8 ./mlp --epochs 300
 *
 * Read this file from the bottom up: main registers the state and calls hvd_elastic_run; train
 * repeats step; step is a usual training step with four calls of hvd in it.
 *
 * One seed gives one loss curve, bit for bit, as long as the number of workers stays the same. With
 * another number the samples are summed in another order; all sums are in double, so two curves
 * stay within 1e-6 of each other for some thousand steps.
 */
#include <hvd/hvd.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define INPUTS 2
#define RATE   0.01

/* ---- options --------------------------------------------------------------------------------- */

struct options {
    long epochs, steps, samples, batch, seed, hidden;
    long commit_every, save_every, boot_ms, step_ms, print_every;
    long want_percent;
    bool check_gradients;
    const char *curve, *save;
};

static int usage(void)
{
    fprintf(stderr,
            "usage: mlp [--epochs N] [--steps N] [--samples N] [--batch N] [--seed N]\n"
            "           [--hidden N] [--commit-every STEPS] [--print-every STEPS]\n"
            "           [--save DIR] [--save-every STEPS] [--boot-ms MS] [--step-ms MS]\n"
            "           [--curve FILE] [--want-percent N] [--check-gradients]\n"
            "--save: rank 0 keeps the training in a directory, which all hosts see, and a\n"
            "later run with the same options goes on from there.\n"
            "--steps ends earlier than --epochs. --boot-ms and --step-ms are waits, to have\n"
            "time for a demonstration. --curve: rank 0 writes the loss of each step there.\n"
            "--want-percent: with a lower accuracy the exit code is 1.\n");
    return 2;
}

static bool read_number(const char *text, long min, long *ret_value)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < min || value > 1000000000)
        return false;
    *ret_value = value;
    return true;
}

static bool read_options(int argc, char **argv, struct options *ret_options)
{
    struct options o = { .epochs = 200, .samples = 1000, .batch = 50, .seed = 1, .hidden = 24 };
    const struct {
        const char *name;
        long min;
        long *value;
    } numbers[] = {
        {"--epochs",        1, &o.epochs      },
        { "--steps",        0, &o.steps       },
        { "--samples",      2, &o.samples     },
        { "--batch",        1, &o.batch       },
        { "--seed",         0, &o.seed        },
        { "--hidden",       1, &o.hidden      },
        { "--commit-every", 1, &o.commit_every},
        { "--save-every",   1, &o.save_every  },
        { "--print-every",  1, &o.print_every },
        { "--boot-ms",      0, &o.boot_ms     },
        { "--step-ms",      0, &o.step_ms     },
        { "--want-percent", 0, &o.want_percent},
    };

    o.commit_every = 1;
    o.save_every = 100;
    o.print_every = 200;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool known = false;

        if (!strcmp(argv[i], "--check-gradients")) {
            o.check_gradients = true;
            continue;
        }
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
            if (!strcmp(argv[i], numbers[k].name))
                known = read_number(value, numbers[k].min, numbers[k].value);
        if (!strcmp(argv[i], "--curve") && *value) {
            o.curve = value;
            known = true;
        }
        if (!strcmp(argv[i], "--save") && *value) {
            o.save = value;
            known = true;
        }
        if (!known)
            return false;
        i++;
    }
    *ret_options = o;
    return true;
}

/* ---- the network: 2 inputs, two hidden layers of tanh, the probability of the second spiral ---
 */

/* All parameters in one array: one entry of the state, and one call of hvd_allreduce for the
 * gradients. */
struct views {
    double *w1, *b1, *w2, *b2, *w3, *b3;
};

struct net {
    size_t hidden;
    size_t count; /* number of parameters */
    double *params;
    double *grads; /* count gradients, and behind them the loss, which is summed in the same call */
    double *a1, *a2, *d1, *d2;
};

static struct views views_of(const struct net *net, double *base)
{
    struct views v;

    v.w1 = base;
    v.b1 = v.w1 + net->hidden * INPUTS;
    v.w2 = v.b1 + net->hidden;
    v.b2 = v.w2 + net->hidden * net->hidden;
    v.w3 = v.b2 + net->hidden;
    v.b3 = v.w3 + net->hidden;
    return v;
}

/* A random number in [-1, 1): splitmix64, which is the same on all machines, unlike rand(). */
static double random_unit(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (double)(z >> 11) / 4503599627370496.0 - 1.0;
}

static void fill(double *at, size_t count, size_t inputs, uint64_t *seed)
{
    for (size_t i = 0; i < count; i++)
        at[i] = random_unit(seed) * sqrt(3.0 / (double)inputs);
}

static bool net_init(struct net *net, size_t hidden, uint64_t seed)
{
    struct views v;

    *net = (struct net){ .hidden = hidden };
    net->count = hidden * (INPUTS + 1) + hidden * (hidden + 1) + hidden + 1;
    net->params = calloc(net->count, sizeof(double));
    net->grads = calloc(net->count + 1, sizeof(double));
    net->a1 = calloc(4 * hidden, sizeof(double));
    if (!net->params || !net->grads || !net->a1)
        return false;
    net->a2 = net->a1 + hidden;
    net->d1 = net->a2 + hidden;
    net->d2 = net->d1 + hidden;
    v = views_of(net, net->params);
    fill(v.w1, hidden * INPUTS, INPUTS, &seed);
    fill(v.b1, hidden, 3, &seed);
    fill(v.w2, hidden * hidden, hidden, &seed);
    fill(v.w3, hidden, hidden, &seed);
    return true;
}

static void net_free(struct net *net)
{
    free(net->params);
    free(net->grads);
    free(net->a1);
}

static void layer(const double *w, const double *b, const double *in, size_t inputs, double *out,
                  size_t outputs)
{
    for (size_t i = 0; i < outputs; i++) {
        double sum = b[i];

        for (size_t k = 0; k < inputs; k++)
            sum += w[i * inputs + k] * in[k];
        out[i] = tanh(sum);
    }
}

/* The logit of the probability that x is of the second spiral. */
static double forward(const struct net *net, const double x[INPUTS])
{
    struct views p = views_of(net, net->params);
    double logit = p.b3[0];

    layer(p.w1, p.b1, x, INPUTS, net->a1, net->hidden);
    layer(p.w2, p.b2, net->a1, net->hidden, net->a2, net->hidden);
    for (size_t i = 0; i < net->hidden; i++)
        logit += p.w3[i] * net->a2[i];
    return logit;
}

/* Adds the gradients of one sample to net->grads, and its loss behind them. */
static void add_sample(struct net *net, const double x[INPUTS], double label)
{
    struct views p = views_of(net, net->params);
    struct views g = views_of(net, net->grads);
    double logit = forward(net, x);
    double error = 1.0 / (1.0 + exp(-logit)) - label;

    net->grads[net->count] += fmax(logit, 0.0) - logit * label + log1p(exp(-fabs(logit)));
    g.b3[0] += error;
    for (size_t i = 0; i < net->hidden; i++) {
        g.w3[i] += error * net->a2[i];
        net->d2[i] = error * p.w3[i] * (1.0 - net->a2[i] * net->a2[i]);
        net->d1[i] = 0.0;
    }
    for (size_t i = 0; i < net->hidden; i++) {
        g.b2[i] += net->d2[i];
        for (size_t k = 0; k < net->hidden; k++) {
            g.w2[i * net->hidden + k] += net->d2[i] * net->a1[k];
            net->d1[k] += net->d2[i] * p.w2[i * net->hidden + k];
        }
    }
    for (size_t k = 0; k < net->hidden; k++) {
        double d = net->d1[k] * (1.0 - net->a1[k] * net->a1[k]);

        g.b1[k] += d;
        for (size_t j = 0; j < INPUTS; j++)
            g.w1[k * INPUTS + j] += d * x[j];
    }
}

/* ---- the samples: made from their numbers, so no data file is needed ------------------------- */

static double make_sample(const struct options *options, uint64_t number, double x[INPUTS])
{
    uint64_t seed = (uint64_t)options->seed * 1000003 + number;
    uint64_t pair = number / 2;
    double along = ((double)pair + 0.5) / ((double)options->samples / 2.0);
    double label = (double)(number % 2);
    double angle = 8.0 * along + label * acos(-1.0);

    x[0] = (0.2 + 2.0 * along) * cos(angle) + 0.02 * random_unit(&seed);
    x[1] = (0.2 + 2.0 * along) * sin(angle) + 0.02 * random_unit(&seed);
    return label;
}

static double accuracy_percent(const struct options *options, const struct net *net)
{
    double x[INPUTS];
    long right = 0;

    for (long i = 0; i < options->samples; i++) {
        double label = make_sample(options, (uint64_t)i, x);

        right += (forward(net, x) > 0.0) == (label > 0.5);
    }
    return 100.0 * (double)right / (double)options->samples;
}

/* ---- training -------------------------------------------------------------------------------- */

struct training {
    struct options options;
    struct net net;
    double *moments; /* of Adam: all first moments, then all second ones */
    double *curve;   /* the loss of each step; as part of the state it has each step once */
    size_t curve_steps;
    int64_t steps; /* steps so far */
    hvd_sampler *sampler;
};

static void wait_ms(long ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    while (ms > 0 && nanosleep(&left, &left) != 0)
        ;
}

static bool is_done(const struct training *training)
{
    const struct options *options = &training->options;

    return hvd_sampler_epoch(training->sampler) >= (uint64_t)options->epochs ||
           (options->steps && training->steps >= options->steps);
}

/* Shard by shard: a network that keeps activations needs memory for one shard, not for the whole
 * part of the rank, which is larger the fewer workers there are. */
static void add_share(struct training *training, const hvd_batch *batch)
{
    struct net *net = &training->net;
    double x[INPUTS];

    memset(net->grads, 0, (net->count + 1) * sizeof(double));
    for (size_t shard = 0; shard < batch->shards; shard++) {
        for (size_t i = batch->shard_at[shard]; i < batch->shard_at[shard + 1]; i++) {
            double label = make_sample(&training->options, batch->samples[i], x);

            add_sample(net, x, label);
        }
    }
}

/* Adam. Every rank computes the same from the same numbers, so all ranks keep equal weights. */
static void update(struct training *training, double samples)
{
    struct net *net = &training->net;
    double t = (double)(training->steps + 1);
    double rate = RATE * sqrt(1.0 - pow(0.999, t)) / (1.0 - pow(0.9, t));

    for (size_t i = 0; i < net->count; i++) {
        double *m = &training->moments[i];
        double *v = &training->moments[net->count + i];
        double g = net->grads[i] / samples;

        *m += 0.1 * (g - *m);
        *v += 0.001 * (g * g - *v);
        net->params[i] -= rate * *m / (sqrt(*v) + 1e-8);
    }
}

static void tell(const struct training *training, double loss)
{
    if (hvd_rank() == 0 && training->steps % training->options.print_every == 0)
        printf("step %" PRId64 ", epoch %" PRIu64 ", size %d: loss %.6f\n", training->steps,
               hvd_sampler_epoch(training->sampler), hvd_size(), loss);
}

/* Writes the state to disk, for the day when all hosts are lost. The other ranks wait in their next
 * call of hvd. A training goes on without a disk. */
static void save(hvd_state *state, const struct training *training)
{
    const struct options *options = &training->options;

    if (!options->save || hvd_rank() != 0 || training->steps % options->save_every != 0)
        return;
    if (hvd_state_save(state, options->save) < 0)
        fprintf(stderr, "mlp: step %" PRId64 " is not saved: %s\n", training->steps,
                hvd_last_error());
}

/* Returns 0, or the code that train is to return. */
static int step(hvd_state *state, struct training *training)
{
    struct net *net = &training->net;
    hvd_batch batch;
    double loss;
    int code = hvd_sampler_next(training->sampler, &batch);

    if (code == HVD_EPOCH_END)
        return 0;
    if (code)
        return code;
    add_share(training, &batch);
    wait_ms(training->options.step_ms);
    code = hvd_allreduce(net->grads, net->grads, net->count + 1, HVD_FLOAT64, HVD_SUM);
    if (code)
        return code;
    update(training, (double)batch.total);
    loss = net->grads[net->count] / (double)batch.total;
    if ((size_t)training->steps < training->curve_steps)
        training->curve[training->steps] = loss;
    training->steps++;
    tell(training, loss);
    save(state, training);
    /* Decided by a number that is equal on all ranks: all commit, or all check. */
    if (training->steps % training->options.commit_every == 0)
        return hvd_state_commit(state);
    return hvd_state_check(state);
}

/* Called again in each round. On all ranks the state is that of the same step. */
static int train(hvd_state *state, void *arg)
{
    struct training *training = arg;
    int code = 0;

    while (!code && !is_done(training))
        code = step(state, training);
    return code;
}

static bool prepare(struct training *training)
{
    const struct options *options = &training->options;
    long steps = options->epochs * ((options->samples + options->batch - 1) / options->batch);

    if (!net_init(&training->net, (size_t)options->hidden, (uint64_t)options->seed))
        return false;
    if (options->steps && options->steps < steps)
        steps = options->steps;
    training->curve_steps = (size_t)steps;
    training->curve = calloc(training->curve_steps, sizeof(double));
    training->moments = calloc(2 * training->net.count, sizeof(double));
    return training->curve && training->moments;
}

/* The training state is all data that step changes, but for the gradients, which it computes anew.
 */
static int register_state(hvd_state *state, struct training *training)
{
    const struct options *options = &training->options;
    const struct net *net = &training->net;
    int code = hvd_state_add_array(state, "params", net->params, net->count, HVD_FLOAT64);

    if (!code)
        code =
            hvd_state_add_array(state, "moments", training->moments, 2 * net->count, HVD_FLOAT64);
    if (!code)
        code = hvd_state_add_array(state, "curve", training->curve, training->curve_steps,
                                   HVD_FLOAT64);
    if (!code)
        code = hvd_state_add_scalar(state, "steps", &training->steps, HVD_INT64);
    if (!code)
        code =
            hvd_sampler_create(state, "samples", (uint64_t)options->samples, (size_t)options->batch,
                               HVD_BATCH_GLOBAL, (uint64_t)options->seed, &training->sampler);
    return code;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* FNV-1a over all bits: it must be equal on all ranks. */
static uint64_t digest_of(const double *values, size_t count)
{
    const unsigned char *bytes = (const unsigned char *)values;
    uint64_t digest = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < count * sizeof(double); i++)
        digest = (digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    return digest;
}

static bool write_curve(const struct training *training)
{
    FILE *file = fopen(training->options.curve, "w");
    bool good = file != NULL;

    for (int64_t i = 0; good && i < training->steps && (size_t)i < training->curve_steps; i++)
        good = fprintf(file, "%" PRId64 " %.17g\n", i + 1, training->curve[i]) > 0;
    if (file && fclose(file) != 0)
        good = false;
    if (!good)
        perror(training->options.curve);
    return good;
}

/* After the training: prints the result. Returns 0, or 1 when the result is not good enough. */
static int conclude(const struct training *training)
{
    double percent = accuracy_percent(&training->options, &training->net);

    printf("final params %016" PRIx64 "\n", digest_of(training->net.params, training->net.count));
    if (hvd_rank() != 0)
        return 0;
    printf("%" PRId64 " steps: %.1f %% are told apart\n", training->steps, percent);
    if (training->options.curve && !write_curve(training))
        return 1;
    if (percent < (double)training->options.want_percent) {
        fprintf(stderr, "mlp: that is less than --want-percent %ld\n",
                training->options.want_percent);
        return 1;
    }
    return 0;
}

/* Compares each gradient with the change of the loss when its parameter changes a little. */
static int check_gradients(struct training *training)
{
    struct net *net = &training->net;
    uint64_t numbers[] = { 0, 1, 10, 11 };
    size_t at[] = { 0, 4 };
    hvd_batch batch = { .count = 4, .samples = numbers, .shards = 1, .shard_at = at };
    double worst = 0.0;

    for (size_t i = 0; i < net->count; i++) {
        double kept = net->params[i];
        double there, back;

        net->params[i] = kept + 1e-5;
        add_share(training, &batch);
        there = net->grads[net->count];
        net->params[i] = kept - 1e-5;
        add_share(training, &batch);
        back = net->grads[net->count];
        net->params[i] = kept;
        add_share(training, &batch);
        worst = fmax(worst, fabs((there - back) / 2e-5 - net->grads[i]));
    }
    printf("%zu gradients, off by %.1e at most\n", net->count, worst);
    return worst < 1e-7 ? 0 : 1;
}

static int take_part(struct training *training)
{
    hvd_state *state = NULL;
    int code = hvd_init();

    wait_ms(training->options.boot_ms); /* stands for reading data and building a model: no other
                                           worker waits for it */
    if (!code && !(state = hvd_state_create()))
        code = HVD_E_NOMEM;
    if (!code)
        code = register_state(state, training);
    if (!code && training->options.save) {
        code = hvd_state_load(state, training->options.save);
        if (code == HVD_E_NOTFOUND) /* nothing was saved yet */
            code = 0;
    }
    if (!code)
        code = hvd_elastic_run(state, train, training);
    if (code < 0)
        fprintf(stderr, "mlp: %s: %s\n", hvd_strerror(code), hvd_last_error());
    /* HVD_LEFT, HVD_DONE: successes too, but this worker does not hold the result. */
    code = code ? code < 0 : conclude(training);
    hvd_state_free(state);
    hvd_shutdown();
    return code;
}

int main(int argc, char **argv)
{
    struct training training = { .steps = 0 };
    int status;

    setvbuf(stdout, NULL, _IOLBF,
            0); /* a printed line is visible even if the process is killed next */
    if (!read_options(argc, argv, &training.options))
        return usage();
    if (!prepare(&training)) {
        fprintf(stderr, "mlp: out of memory\n");
        status = 1;
    } else if (training.options.check_gradients) {
        status = check_gradients(&training);
    } else {
        status = take_part(&training);
    }
    net_free(&training.net);
    free(training.moments);
    free(training.curve);
    return status;
}
