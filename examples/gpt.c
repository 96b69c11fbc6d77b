/*
 * gpt.c: a small transformer learns to write like examples/text.txt, character by character, while
 * workers are killed, leave and join.
 *
 *     cc -O3 gpt.c $(pkg-config --cflags --libs hvd) -lm -o gpt
 *     hvd-elastic -np 4 --min-np 1 --max-np 8 ./gpt --text text.txt
 *
 * From top to bottom: the parts of a transformer, each with its derivative; the model, forward and
 * backward; the data; and training, which uses hvd. There is no checkpoint: weights, moments and
 * the progress in the data are in the commits.
 *
 * One seed gives one loss curve, bit for bit, as long as the number of workers stays the same. With
 * another number sums are made in another order; all sums are in double, so two curves stay within
 * 1e-6 of each other for some thousand steps. (With float, which is enough to train, 1e-2.)
 */
#include <hvd/hvd.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT    32 /* characters that the model sees at a time */
#define HEADS      4
#define LAYERS_MAX 16
#define TEXT_MAX   (1024 * 1024)

/* ---- the parts of a transformer: y from x; dx, which is added to, from dy -------------------- */

/* y (rows x m) = x (rows x n) times w (n x m). By rows of w, so that memory is read in order. */
static void matmul(double *restrict y, const double *restrict x, const double *restrict w,
                   size_t rows, size_t n, size_t m)
{
    memset(y, 0, rows * m * sizeof(double));
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < m; k++)
                y[r * m + k] += x[r * n + i] * w[i * m + k];
}

static void matmul_back(double *restrict dx, double *restrict dw, const double *restrict dy,
                        const double *restrict x, const double *restrict w, size_t rows, size_t n,
                        size_t m)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < n; i++) {
            double sum = 0.0;

            for (size_t k = 0; k < m; k++) {
                sum += dy[r * m + k] * w[i * m + k];
                dw[i * m + k] += dy[r * m + k] * x[r * n + i];
            }
            dx[r * n + i] += sum;
        }
    }
}

/* y: each row of x (rows x n), scaled to a mean square of one. */
static void norm(double *y, double *scale, const double *x, size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r++) {
        double sum = 0.0;

        for (size_t i = 0; i < n; i++)
            sum += x[r * n + i] * x[r * n + i];
        scale[r] = 1.0 / sqrt(sum / (double)n + 1e-5);
        for (size_t i = 0; i < n; i++)
            y[r * n + i] = x[r * n + i] * scale[r];
    }
}

static void norm_back(double *dx, const double *dy, const double *y, const double *scale,
                      size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r++) {
        double dot = 0.0;

        for (size_t i = 0; i < n; i++)
            dot += dy[r * n + i] * y[r * n + i];
        for (size_t i = 0; i < n; i++)
            dx[r * n + i] += scale[r] * (dy[r * n + i] - y[r * n + i] * dot / (double)n);
    }
}

/* x times its own sigmoid: smooth, so that its derivative can be checked by differences. */
static void silu(double *y, const double *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] / (1.0 + exp(-x[i]));
}

static void silu_back(double *dx, const double *dy, const double *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double s = 1.0 / (1.0 + exp(-x[i]));

        dx[i] += dy[i] * s * (1.0 + x[i] * (1.0 - s));
    }
}

/* In place; of count values. */
static void softmax(double *p, size_t count)
{
    double max = p[0];
    double sum = 0.0;

    for (size_t i = 1; i < count; i++)
        max = fmax(max, p[i]);
    for (size_t i = 0; i < count; i++)
        sum += p[i] = exp(p[i] - max);
    for (size_t i = 0; i < count; i++)
        p[i] /= sum;
}

/* Causal attention: each position attends to itself and to the positions before it. A row of qkv
 * (CONTEXT x 3 width) has q, k and v side by side; p keeps the attention weights of each head and
 * position for the way back. */
static void attend(double *y, double *p, const double *qkv, size_t width)
{
    size_t size = width / HEADS;

    memset(y, 0, CONTEXT * width * sizeof(double));
    for (size_t head = 0; head < HEADS; head++) {
        for (size_t t = 0; t < CONTEXT; t++) {
            const double *q = qkv + t * 3 * width + head * size;
            double *row = p + (head * CONTEXT + t) * CONTEXT;

            for (size_t s = 0; s <= t; s++) {
                const double *k = qkv + s * 3 * width + width + head * size;

                row[s] = 0.0;
                for (size_t i = 0; i < size; i++)
                    row[s] += q[i] * k[i] / sqrt((double)size);
            }
            softmax(row, t + 1);
            for (size_t s = 0; s <= t; s++)
                for (size_t i = 0; i < size; i++)
                    y[t * width + head * size + i] +=
                        row[s] * qkv[s * 3 * width + 2 * width + head * size + i];
        }
    }
}

static void attend_back(double *dqkv, const double *dy, const double *p, const double *qkv,
                        size_t width)
{
    size_t size = width / HEADS;
    double dp[CONTEXT];

    for (size_t head = 0; head < HEADS; head++) {
        for (size_t t = 0; t < CONTEXT; t++) {
            const double *row = p + (head * CONTEXT + t) * CONTEXT;
            const double *d = dy + t * width + head * size;
            size_t q_at = t * 3 * width + head * size;
            double dot = 0.0;

            for (size_t s = 0; s <= t; s++) {
                size_t v_at = s * 3 * width + 2 * width + head * size;

                dp[s] = 0.0;
                for (size_t i = 0; i < size; i++) {
                    dp[s] += d[i] * qkv[v_at + i];
                    dqkv[v_at + i] += row[s] * d[i];
                }
                dot += dp[s] * row[s];
            }
            for (size_t s = 0; s <= t; s++) {
                size_t k_at = s * 3 * width + width + head * size;
                double ds = row[s] * (dp[s] - dot) / sqrt((double)size);

                for (size_t i = 0; i < size; i++) {
                    dqkv[q_at + i] += ds * qkv[k_at + i];
                    dqkv[k_at + i] += ds * qkv[q_at + i];
                }
            }
        }
    }
}

/* ---- the model ------------------------------------------------------------------------------- */

struct layer {
    double *qkv, *out; /* attention: width x 3 width, width x width */
    double *up, *down; /* then each position by itself: width x 4 width, 4 width x width */
};

/* All parameters are one array, and all gradients too: one entry of the state, one allreduce. */
struct params {
    double *all;
    double *characters, *places,
        *head; /* embeddings of characters and positions; the output layer */
    struct layer layers[LAYERS_MAX];
};

/* The values of a layer on the way forward that the way back needs. */
struct trace {
    double *in, *norm1, *scale1, *qkv, *p, *mixed;
    double *mid, *norm2, *scale2, *up, *act;
};

struct model {
    size_t layers, width, vocabulary;
    size_t count; /* number of parameters */
    struct params params;
    struct params
        grads; /* behind them one more number: the loss, which is summed in the same call */
    struct trace traces[LAYERS_MAX];
    double *moments; /* of Adam: all first moments, then all second ones */
    double *stream;  /* the input of each layer, and the output of the last */
    double *last, *norm, *scale, *probs;
    double *d, *d2, *d3; /* CONTEXT x 4 width each, for the way back */
    double *memory;
};

static double *take(double **rest, size_t count)
{
    double *at = *rest;

    *rest += count;
    return at;
}

static struct params params_at(const struct model *m, double *all)
{
    struct params p = { .all = all };
    size_t n = m->width;

    p.characters = take(&all, m->vocabulary * n);
    p.places = take(&all, CONTEXT * n);
    p.head = take(&all, n * m->vocabulary);
    for (size_t l = 0; l < m->layers; l++) {
        p.layers[l].qkv = take(&all, 3 * n * n);
        p.layers[l].out = take(&all, n * n);
        p.layers[l].up = take(&all, 4 * n * n);
        p.layers[l].down = take(&all, 4 * n * n);
    }
    return p;
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

static bool model_init(struct model *m, size_t layers, size_t width, size_t vocabulary,
                       uint64_t seed)
{
    size_t cells = CONTEXT * width;
    size_t per_layer = 16 * cells + 2 * CONTEXT + HEADS * CONTEXT * CONTEXT;
    double *rest;
    double *params;

    *m = (struct model){ .layers = layers, .width = width, .vocabulary = vocabulary };
    m->count = 2 * vocabulary * width + cells + layers * 12 * width * width;
    rest = m->memory =
        calloc(4 * m->count + 1 + layers * per_layer + 14 * cells + CONTEXT + CONTEXT * vocabulary,
               sizeof(double));
    if (!m->memory)
        return false;
    params = take(&rest, m->count);
    for (size_t i = 0; i < m->count; i++)
        params[i] = random_unit(&seed) / sqrt((double)width);
    m->params = params_at(m, params);
    m->grads = params_at(m, take(&rest, m->count + 1));
    m->moments = take(&rest, 2 * m->count);
    m->stream = take(&rest, layers * cells);
    m->last = take(&rest, cells);
    for (size_t l = 0; l < layers; l++) {
        struct trace *t = &m->traces[l];

        t->in = m->stream + l * cells;
        t->norm1 = take(&rest, cells);
        t->scale1 = take(&rest, CONTEXT);
        t->qkv = take(&rest, 3 * cells);
        t->p = take(&rest, HEADS * CONTEXT * CONTEXT);
        t->mixed = take(&rest, cells);
        t->mid = take(&rest, cells);
        t->norm2 = take(&rest, cells);
        t->scale2 = take(&rest, CONTEXT);
        t->up = take(&rest, 4 * cells);
        t->act = take(&rest, 4 * cells);
    }
    m->norm = take(&rest, cells);
    m->scale = take(&rest, CONTEXT);
    m->probs = take(&rest, CONTEXT * vocabulary);
    m->d = take(&rest, 4 * cells);
    m->d2 = take(&rest, 4 * cells);
    m->d3 = take(&rest, 4 * cells);
    return true;
}

static void add(double *y, const double *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        y[i] += x[i];
}

/* From CONTEXT characters to m->probs: the probability of each next character, at each position. */
static void forward(struct model *m, const unsigned char *text)
{
    const struct params *p = &m->params;
    size_t n = m->width;
    size_t cells = CONTEXT * n;
    double *x = m->stream;

    for (size_t t = 0; t < CONTEXT; t++)
        for (size_t i = 0; i < n; i++)
            x[t * n + i] = p->characters[text[t] * n + i] + p->places[t * n + i];
    for (size_t l = 0; l < m->layers; l++) {
        struct trace *t = &m->traces[l];

        norm(t->norm1, t->scale1, t->in, CONTEXT, n);
        matmul(t->qkv, t->norm1, p->layers[l].qkv, CONTEXT, n, 3 * n);
        attend(t->mixed, t->p, t->qkv, n);
        matmul(t->mid, t->mixed, p->layers[l].out, CONTEXT, n, n);
        add(t->mid, t->in, cells);
        norm(t->norm2, t->scale2, t->mid, CONTEXT, n);
        matmul(t->up, t->norm2, p->layers[l].up, CONTEXT, n, 4 * n);
        silu(t->act, t->up, 4 * cells);
        x += cells;
        matmul(x, t->act, p->layers[l].down, CONTEXT, 4 * n, n);
        add(x, t->mid, cells);
    }
    norm(m->norm, m->scale, m->last, CONTEXT, n);
    matmul(m->probs, m->norm, p->head, CONTEXT, n, m->vocabulary);
    for (size_t t = 0; t < CONTEXT; t++)
        softmax(m->probs + t * m->vocabulary, m->vocabulary);
}

static double *zeroed(double *at, size_t count)
{
    return memset(at, 0, count * sizeof(double));
}

/* Backward through one layer: dx is the gradient of its output, and becomes that of its input. */
static void layer_back(struct model *m, size_t l, double *dx)
{
    const struct layer *p = &m->params.layers[l];
    const struct layer *g = &m->grads.layers[l];
    const struct trace *t = &m->traces[l];
    size_t n = m->width;
    size_t cells = CONTEXT * n;
    double *d = m->d2;
    double *inner = m->d3;

    matmul_back(zeroed(d, 4 * cells), g->down, dx, t->act, p->down, CONTEXT, 4 * n, n);
    silu_back(zeroed(inner, 4 * cells), d, t->up, 4 * cells);
    matmul_back(zeroed(d, cells), g->up, inner, t->norm2, p->up, CONTEXT, n, 4 * n);
    norm_back(dx, d, t->norm2, t->scale2, CONTEXT, n);
    matmul_back(zeroed(d, cells), g->out, dx, t->mixed, p->out, CONTEXT, n, n);
    attend_back(zeroed(inner, 3 * cells), d, t->p, t->qkv, n);
    matmul_back(zeroed(d, cells), g->qkv, inner, t->norm1, p->qkv, CONTEXT, n, 3 * n);
    norm_back(dx, d, t->norm1, t->scale1, CONTEXT, n);
}

/* Adds the gradients of one sample (CONTEXT + 1 characters), and its loss behind them. */
static void add_sample(struct model *m, const unsigned char *text)
{
    size_t n = m->width;
    double *dx = m->d;

    forward(m, text);
    for (size_t t = 0; t < CONTEXT; t++) {
        double *probs = m->probs + t * m->vocabulary;

        m->grads.all[m->count] -= log(probs[text[t + 1]] + 1e-300) / CONTEXT;
        probs[text[t + 1]] -= 1.0; /* the derivative by the logits: probability minus target */
        for (size_t c = 0; c < m->vocabulary; c++)
            probs[c] /= CONTEXT;
    }
    matmul_back(zeroed(m->d2, CONTEXT * n), m->grads.head, m->probs, m->norm, m->params.head,
                CONTEXT, n, m->vocabulary);
    norm_back(zeroed(dx, CONTEXT * n), m->d2, m->norm, m->scale, CONTEXT, n);
    for (size_t l = m->layers; l-- > 0;)
        layer_back(m, l, dx);
    add(m->grads.places, dx, CONTEXT * n);
    for (size_t t = 0; t < CONTEXT; t++)
        add(m->grads.characters + text[t] * n, dx + t * n, n);
}

/* ---- options --------------------------------------------------------------------------------- */

struct options {
    long steps, batch, seed, layers, width;
    long commit_every, print_every;
    double want_loss;
    bool check_gradients;
    const char *text, *curve;
};

static int usage(void)
{
    fprintf(stderr,
            "usage: gpt [--text FILE] [--steps N] [--batch N] [--seed N] [--layers N]\n"
            "           [--width N] [--commit-every STEPS] [--print-every STEPS]\n"
            "           [--curve FILE] [--want-loss X] [--check-gradients]\n"
            "--width is a multiple of 4. --curve: rank 0 writes the loss of each step there.\n"
            "--want-loss: if the last 20 steps have more, the exit code is 1.\n");
    return 2;
}

static bool read_number(const char *text, long min, long max, long *ret_value)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < min || value > max)
        return false;
    *ret_value = value;
    return true;
}

/* One option with its value. */
static bool read_option(struct options *o, const char *name, const char *value)
{
    const struct {
        const char *name;
        long min, max;
        long *value;
    } numbers[] = {
        {"--steps",         1,     10000000,   &o->steps       },
        { "--batch",        1,     1000000,    &o->batch       },
        { "--seed",         0,     1000000000, &o->seed        },
        { "--layers",       1,     LAYERS_MAX, &o->layers      },
        { "--width",        HEADS, 4096,       &o->width       },
        { "--commit-every", 1,     1000000,    &o->commit_every},
        { "--print-every",  1,     1000000,    &o->print_every },
    };
    char *end = NULL;

    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
        if (!strcmp(name, numbers[k].name))
            return read_number(value, numbers[k].min, numbers[k].max, numbers[k].value) &&
                   o->width % HEADS == 0;
    if (!strcmp(name, "--want-loss")) {
        o->want_loss = strtod(value, &end);
        return end != value && !*end;
    }
    if (!strcmp(name, "--text"))
        o->text = value;
    else if (!strcmp(name, "--curve"))
        o->curve = value;
    else
        return false;
    return true;
}

static bool read_options(int argc, char **argv, struct options *ret_options)
{
    struct options o = { .steps = 400, .batch = 16, .seed = 1, .layers = 2, .width = 32 };

    o.commit_every = 1;
    o.print_every = 20;
    o.want_loss = HUGE_VAL;
    o.text = "examples/text.txt";
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--check-gradients"))
            o.check_gradients = true;
        else if (i + 1 == argc || !read_option(&o, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
    *ret_options = o;
    return true;
}

/* ---- the data -------------------------------------------------------------------------------- */

/* Characters as the model knows them: 0 to vocabulary - 1, in the order of their codes. */
struct data {
    unsigned char *text;
    size_t length;
    size_t vocabulary;
    unsigned char shown[256];
};

static bool read_text(const char *path, struct data *data)
{
    FILE *file = fopen(path, "rb");
    unsigned char known[256] = { 0 };

    data->text = malloc(TEXT_MAX);
    if (!file || !data->text) {
        perror(path);
        if (file)
            fclose(file);
        return false;
    }
    data->length = fread(data->text, 1, TEXT_MAX, file);
    fclose(file);
    if (data->length <= CONTEXT) {
        fprintf(stderr, "gpt: %s: no more than %d characters\n", path, CONTEXT);
        return false;
    }
    for (size_t i = 0; i < data->length; i++)
        known[data->text[i]] = 1;
    for (size_t c = 0; c < 256; c++) {
        if (known[c]) {
            data->shown[data->vocabulary] = (unsigned char)c;
            known[c] = (unsigned char)data->vocabulary++;
        }
    }
    for (size_t i = 0; i < data->length; i++)
        data->text[i] = known[data->text[i]];
    return true;
}

/* ---- training -------------------------------------------------------------------------------- */

struct training {
    struct options options;
    struct data data;
    struct model model;
    double *curve; /* the loss of each step; as part of the state it has each step once */
    int64_t steps; /* steps so far */
    hvd_sampler *sampler;
};

/* A sample is CONTEXT + 1 characters, and its number is its place in the text. Shard by shard: the
 * activations of one shard need memory, not those of the whole part of the rank. */
static void add_share(struct training *training, const hvd_batch *batch)
{
    struct model *m = &training->model;

    memset(m->grads.all, 0, (m->count + 1) * sizeof(double));
    for (size_t shard = 0; shard < batch->shards; shard++)
        for (size_t i = batch->shard_at[shard]; i < batch->shard_at[shard + 1]; i++)
            add_sample(m, training->data.text + batch->samples[i]);
}

/* Adam. Every rank computes the same from the same numbers, so all ranks keep equal weights. */
static void update(struct training *training, double samples)
{
    struct model *m = &training->model;
    double t = (double)(training->steps + 1);
    double rate = 0.004 * sqrt(1.0 - pow(0.99, t)) / (1.0 - pow(0.9, t));

    for (size_t i = 0; i < m->count; i++) {
        double *first = &m->moments[i];
        double *second = &m->moments[m->count + i];
        double g = m->grads.all[i] / samples;

        *first += 0.1 * (g - *first);
        *second += 0.01 * (g * g - *second);
        m->params.all[i] -= rate * *first / (sqrt(*second) + 1e-8);
    }
}

/* Returns 0, or the code that train is to return. */
static int step(hvd_state *state, struct training *training)
{
    const struct options *options = &training->options;
    double *grads = training->model.grads.all;
    size_t count = training->model.count;
    hvd_batch batch;
    int code = hvd_sampler_next(training->sampler, &batch);

    if (code == HVD_EPOCH_END)
        return 0;
    if (code)
        return code;
    add_share(training, &batch);
    code = hvd_allreduce(grads, grads, count + 1, HVD_FLOAT64, HVD_SUM);
    if (code)
        return code;
    update(training, (double)batch.total);
    training->curve[training->steps++] = grads[count] / (double)batch.total;
    if (hvd_rank() == 0 && training->steps % options->print_every == 0)
        printf("step %" PRId64 ", size %d: loss %.4f\n", training->steps, hvd_size(),
               training->curve[training->steps - 1]);
    /* Decided by a number that is equal on all ranks: all commit, or all check. */
    if (training->steps % options->commit_every == 0)
        return hvd_state_commit(state);
    return hvd_state_check(state);
}

/* Called again in each round. On all ranks the state is that of the same step. */
static int train(hvd_state *state, void *arg)
{
    struct training *training = arg;
    int code = 0;

    while (!code && training->steps < training->options.steps)
        code = step(state, training);
    return code;
}

/* The training state is all data that step changes, but for the gradients, which it computes anew.
 * The text is not part of it; a worker with another text has another vocabulary, so its state
 * differs and it is rejected. */
static int register_state(hvd_state *state, struct training *training)
{
    const struct options *options = &training->options;
    const struct model *m = &training->model;
    int code = hvd_state_add_array(state, "params", m->params.all, m->count, HVD_FLOAT64);

    if (!code)
        code = hvd_state_add_array(state, "moments", m->moments, 2 * m->count, HVD_FLOAT64);
    if (!code)
        code = hvd_state_add_array(state, "curve", training->curve, (size_t)options->steps,
                                   HVD_FLOAT64);
    if (!code)
        code = hvd_state_add_scalar(state, "steps", &training->steps, HVD_INT64);
    if (!code)
        code = hvd_sampler_create(state, "text", training->data.length - CONTEXT,
                                  (size_t)options->batch, HVD_BATCH_GLOBAL, (uint64_t)options->seed,
                                  &training->sampler);
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

    for (int64_t i = 0; good && i < training->steps; i++)
        good = fprintf(file, "%" PRId64 " %.17g\n", i + 1, training->curve[i]) > 0;
    if (file && fclose(file) != 0)
        good = false;
    if (!good)
        perror(training->options.curve);
    return good;
}

/* Prints text that the model writes, after the beginning of the training text. */
static void show_writing(struct training *training)
{
    struct model *m = &training->model;
    unsigned char seen[CONTEXT];
    uint64_t seed = (uint64_t)training->options.seed;

    memcpy(seen, training->data.text, CONTEXT);
    for (size_t i = 0; i < 160; i++) {
        double *probs = m->probs + (CONTEXT - 1) * m->vocabulary;
        double dice = (random_unit(&seed) + 1.0) / 2.0;
        size_t next = 0;

        forward(m, seen);
        while (next + 1 < m->vocabulary && (dice -= probs[next]) > 0.0)
            next++;
        memmove(seen, seen + 1, CONTEXT - 1);
        seen[CONTEXT - 1] = (unsigned char)next;
        putchar(training->data.shown[next]);
    }
    putchar('\n');
}

/* After the training: prints the result. Returns 0, or 1 when the result is not good enough. */
static int conclude(struct training *training)
{
    int64_t last = training->steps < 20 ? training->steps : 20;
    double loss = 0.0;

    printf("final params %016" PRIx64 "\n",
           digest_of(training->model.params.all, training->model.count));
    if (hvd_rank() != 0)
        return 0;
    for (int64_t i = training->steps - last; i < training->steps; i++)
        loss += training->curve[i] / (double)last;
    show_writing(training);
    printf("%" PRId64 " steps: loss %.4f\n", training->steps, loss);
    if (training->options.curve && !write_curve(training))
        return 1;
    if (!(loss <= training->options.want_loss)) {
        fprintf(stderr, "gpt: that is more than --want-loss %g\n", training->options.want_loss);
        return 1;
    }
    return 0;
}

/* Compares gradients of some parameters with the change of the loss when the parameter changes. */
static int check_gradients(struct training *training)
{
    struct model *m = &training->model;
    uint64_t numbers[] = { 0, training->data.length - CONTEXT - 1 };
    size_t at[] = { 0, 2 };
    hvd_batch batch = { .count = 2, .samples = numbers, .shards = 1, .shard_at = at };
    double worst = 0.0;
    size_t checked = 0;

    for (size_t i = 0; i < m->count; i += 1 + m->count / 500, checked++) {
        double kept = m->params.all[i];
        double there, back;

        m->params.all[i] = kept + 1e-5;
        add_share(training, &batch);
        there = m->grads.all[m->count];
        m->params.all[i] = kept - 1e-5;
        add_share(training, &batch);
        back = m->grads.all[m->count];
        m->params.all[i] = kept;
        add_share(training, &batch);
        worst = fmax(worst, fabs((there - back) / 2e-5 - m->grads.all[i]));
    }
    printf("%zu of %zu gradients, off by %.1e at most\n", checked, m->count, worst);
    return worst < 1e-7 ? 0 : 1;
}

static int take_part(struct training *training)
{
    hvd_state *state = NULL;
    int code = hvd_init();

    if (!code && !(state = hvd_state_create()))
        code = HVD_E_NOMEM;
    if (!code)
        code = register_state(state, training);
    if (!code)
        code = hvd_elastic_run(state, train, training);
    if (code < 0)
        fprintf(stderr, "gpt: %s: %s\n", hvd_strerror(code), hvd_last_error());
    /* HVD_LEFT, HVD_DONE: successes too, but this worker does not hold the result. */
    code = code ? code < 0 : conclude(training);
    hvd_state_free(state);
    hvd_shutdown();
    return code;
}

static bool prepare(struct training *training)
{
    const struct options *options = &training->options;

    if (!read_text(options->text, &training->data))
        return false;
    training->curve = calloc((size_t)options->steps, sizeof(double));
    if (!training->curve ||
        !model_init(&training->model, (size_t)options->layers, (size_t)options->width,
                    training->data.vocabulary, (uint64_t)options->seed)) {
        fprintf(stderr, "gpt: out of memory\n");
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct training training = { .steps = 0 };
    int status = 1;

    setvbuf(stdout, NULL, _IOLBF,
            0); /* a printed line is visible even if the process is killed next */
    if (!read_options(argc, argv, &training.options))
        return usage();
    if (prepare(&training))
        status =
            training.options.check_gradients ? check_gradients(&training) : take_part(&training);
    free(training.data.text);
    free(training.model.memory);
    free(training.curve);
    return status;
}
