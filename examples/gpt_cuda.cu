/*
 * gpt_cuda.cu: the transformer of gpt.c, trained on GPUs: the same model, the same data, the same
 * loss curve, while workers are killed, leave and join.
 *
 *     nvcc -O3 gpt_cuda.cu $(pkg-config --cflags --libs hvd) \
 *         -Xlinker -rpath=$(pkg-config --variable=libdir hvd) -o gpt_cuda
 *     hvd-elastic -np 4 --min-np 1 --max-np 8 ./gpt_cuda --text text.txt
 *
 * Parameters, gradients, moments and the curve are in device memory and never leave it: main
 * registers that memory, and collectives sum gradients in place. All work is queued in one stream,
 * and the program waits for the device only where it prints. The work of hvd is ordered in that
 * stream too (hvd_set_stream), so a call that comes after the failed one returns the failure.
 *
 * One seed gives one curve, bit for bit, as long as the number of workers stays the same; the curve
 * is within 1e-6 of that of gpt.c, which --compare checks. Read this file beside gpt.c; the kernels
 * are in gpt_kernels.cuh.
 */
#include <hvd/hvd.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpt_kernels.cuh"

#define LAYERS_MAX 16
#define TEXT_MAX   (1024 * 1024)
#define APART      1e-6 /* for --compare: sums of double in another order */

/* ---- the device ------------------------------------------------------------------------------ */

static cudaStream_t stream; /* all work of this program on the device, in order */

static bool good(cudaError_t code, const char *what)
{
    if (code != cudaSuccess)
        fprintf(stderr, "gpt_cuda: %s: %s\n", what, cudaGetErrorString(code));
    return code == cudaSuccess;
}

/* ---- the model ------------------------------------------------------------------------------- */

struct layer {
    double *qkv, *out, *up, *down;
};

/* All parameters are one array, and all gradients too: one entry of the state, one allreduce. */
struct params {
    double *all;
    double *characters, *places, *head;
    struct layer layers[LAYERS_MAX];
};

/* The values of a layer on the way forward that the way back needs. */
struct trace {
    double *in, *norm1, *scale1, *qkv, *p, *mixed;
    double *mid, *norm2, *scale2, *up, *act;
};

/* All pointers are into the device's memory. */
struct model {
    size_t layers, width, vocabulary;
    size_t count; /* number of parameters */
    struct params params;
    struct params
        grads; /* behind them one more number: the loss, which is summed in the same call */
    struct trace traces[LAYERS_MAX];
    double *moments; /* of Adam: all first moments, then all second ones */
    double *curve;   /* the loss of each step; as part of the state it has each step once */
    double *last, *norm, *scale, *probs, *losses;
    double *d, *d2, *d3, *ds; /* for the way back */
    double *memory;
    unsigned char *text,
        *seen; /* the training text; the last CONTEXT characters that were written */
};

/* Hands out parts of one allocation; at NULL it only counts how much is needed. */
struct room {
    double *at;
    size_t used;
};

static double *take(struct room *room, size_t count)
{
    double *at = room->at ? room->at + room->used : NULL;

    room->used += count;
    return at;
}

static struct params take_params(const struct model *m, struct room *room)
{
    struct params p = {};
    size_t n = m->width;

    p.all = p.characters = take(room, m->vocabulary * n);
    p.places = take(room, CONTEXT * n);
    p.head = take(room, n * m->vocabulary);
    for (size_t l = 0; l < m->layers; l++) {
        p.layers[l].qkv = take(room, 3 * n * n);
        p.layers[l].out = take(room, n * n);
        p.layers[l].up = take(room, 4 * n * n);
        p.layers[l].down = take(room, 4 * n * n);
    }
    return p;
}

/* Returns how many numbers the model takes. */
static size_t lay_out(struct model *m, size_t steps)
{
    size_t rows = (size_t)PIECE * CONTEXT;
    size_t cells = rows * m->width;
    size_t looks = rows * HEADS * CONTEXT;
    struct room room = { m->memory, 0 };

    m->params = take_params(m, &room);
    m->count = room.used;
    m->grads = take_params(m, &room);
    take(&room, 1);
    m->moments = take(&room, 2 * m->count);
    m->curve = take(&room, steps);
    for (size_t l = 0; l < m->layers; l++) {
        struct trace *t = &m->traces[l];

        t->in = take(&room, cells);
        t->norm1 = take(&room, cells);
        t->scale1 = take(&room, rows);
        t->qkv = take(&room, 3 * cells);
        t->p = take(&room, looks);
        t->mixed = take(&room, cells);
        t->mid = take(&room, cells);
        t->norm2 = take(&room, cells);
        t->scale2 = take(&room, rows);
        t->up = take(&room, 4 * cells);
        t->act = take(&room, 4 * cells);
    }
    m->last = take(&room, cells);
    m->norm = take(&room, cells);
    m->scale = take(&room, rows);
    m->probs = take(&room, rows * m->vocabulary);
    m->losses = take(&room, rows);
    m->d = take(&room, cells);
    m->d2 = take(&room, 4 * cells);
    m->d3 = take(&room, 4 * cells);
    m->ds = take(&room, looks);
    return room.used;
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

/* The parameters begin with the values of gpt.c. */
static bool set_params(struct model *m, uint64_t seed)
{
    double *params = (double *)malloc(m->count * sizeof(double));
    bool done;

    if (!params)
        return false;
    for (size_t i = 0; i < m->count; i++)
        params[i] = random_unit(&seed) / sqrt((double)m->width);
    done = good(cudaMemcpy(m->params.all, params, m->count * sizeof(double), cudaMemcpyDefault),
                "the parameters");
    free(params);
    return done;
}

static bool model_init(struct model *m, size_t layers, size_t width, size_t vocabulary,
                       uint64_t seed, size_t steps)
{
    size_t bytes;

    m->layers = layers;
    m->width = width;
    m->vocabulary = vocabulary;
    bytes = lay_out(m, steps) * sizeof(double);
    if (!good(cudaMalloc((void **)&m->memory, bytes), "device memory") ||
        !good(cudaMemset(m->memory, 0, bytes), "device memory"))
        return false;
    lay_out(m, steps);
    return set_params(m, seed);
}

/* From the characters of some samples to m->probs: the probability of each next character. */
static void forward(const struct model *m, const unsigned char *text, const struct piece *piece,
                    size_t samples)
{
    const struct params *p = &m->params;
    size_t n = m->width;
    size_t rows = samples * CONTEXT;
    size_t cells = rows * n;

    LAUNCH(embed, cells, m->traces[0].in, text, *piece, p->characters, p->places, n);
    for (size_t l = 0; l < m->layers; l++) {
        const struct trace *t = &m->traces[l];
        double *out = l + 1 < m->layers ? m->traces[l + 1].in : m->last;

        LAUNCH(norm, rows, t->norm1, t->scale1, t->in, n);
        LAUNCH(matmul, 3 * cells, t->qkv, t->norm1, p->layers[l].qkv, n, 3 * n);
        LAUNCH(attend, rows * HEADS, t->mixed, t->p, t->qkv, n);
        LAUNCH(matmul, cells, t->mid, t->mixed, p->layers[l].out, n, n);
        LAUNCH(add, cells, t->mid, t->in);
        LAUNCH(norm, rows, t->norm2, t->scale2, t->mid, n);
        LAUNCH(matmul, 4 * cells, t->up, t->norm2, p->layers[l].up, n, 4 * n);
        LAUNCH(silu, 4 * cells, t->act, t->up);
        LAUNCH(matmul, cells, out, t->act, p->layers[l].down, 4 * n, n);
        LAUNCH(add, cells, out, t->mid);
    }
    LAUNCH(norm, rows, m->norm, m->scale, m->last, n);
    LAUNCH(matmul, rows * m->vocabulary, m->probs, m->norm, p->head, n, m->vocabulary);
    LAUNCH(softmax, rows, m->probs, m->vocabulary);
}

/* Backward through a product of x (rows x n) and w (n x m): dx from dy, and the gradient of w. */
static void matmul_back(double *dx, double *dw, const double *dy, const double *x, const double *w,
                        size_t rows, size_t n, size_t m)
{
    LAUNCH(matmul_back_x, rows * n, dx, dy, w, n, m);
    LAUNCH(matmul_back_w, n * m, dw, dy, x, rows, n, m);
}

/* Backward through one layer: dx is the gradient of its output, and becomes that of its input. */
static void layer_back(const struct model *m, size_t l, double *dx, size_t rows)
{
    const struct layer *p = &m->params.layers[l];
    const struct layer *g = &m->grads.layers[l];
    const struct trace *t = &m->traces[l];
    size_t n = m->width;
    double *d = m->d2;
    double *inner = m->d3;

    matmul_back(d, g->down, dx, t->act, p->down, rows, 4 * n, n);
    LAUNCH(silu_back, 4 * rows * n, d, t->up);
    matmul_back(inner, g->up, d, t->norm2, p->up, rows, n, 4 * n);
    LAUNCH(norm_back, rows, dx, inner, t->norm2, t->scale2, n);
    matmul_back(d, g->out, dx, t->mixed, p->out, rows, n, n);
    LAUNCH(attend_back_q, rows * HEADS, inner, m->ds, d, t->p, t->qkv, n);
    LAUNCH(attend_back_kv, rows * HEADS, inner, m->ds, d, t->p, t->qkv, n);
    matmul_back(d, g->qkv, inner, t->norm1, p->qkv, rows, n, 3 * n);
    LAUNCH(norm_back, rows, dx, d, t->norm1, t->scale1, n);
}

/* Adds the gradients of some samples (CONTEXT + 1 characters each), and their loss behind them. */
static void add_piece(const struct model *m, const struct piece *piece, size_t samples)
{
    size_t n = m->width;
    size_t rows = samples * CONTEXT;

    forward(m, m->text, piece, samples);
    LAUNCH(error, rows, m->losses, m->probs, m->text, *piece, m->vocabulary);
    LAUNCH(add_up, (size_t)1, m->grads.all + m->count, m->losses, rows);
    matmul_back(m->d2, m->grads.head, m->probs, m->norm, m->params.head, rows, n, m->vocabulary);
    cudaMemsetAsync(m->d, 0, rows * n * sizeof(double), stream);
    LAUNCH(norm_back, rows, m->d, m->d2, m->norm, m->scale, n);
    for (size_t l = m->layers; l-- > 0;)
        layer_back(m, l, m->d, rows);
    LAUNCH(embed_back_places, CONTEXT * n, m->grads.places, m->d, rows, n);
    LAUNCH(embed_back_characters, m->vocabulary * n, m->grads.characters, m->d, m->text, *piece,
           rows, n);
}

/* ---- options --------------------------------------------------------------------------------- */

struct options {
    long steps, batch, seed, layers, width;
    long commit_every, print_every;
    double want_loss;
    bool check_gradients;
    const char *text, *curve, *compare;
};

static int usage(void)
{
    fprintf(stderr,
            "usage: gpt_cuda [--text FILE] [--steps N] [--batch N] [--seed N] [--layers N]\n"
            "           [--width N] [--commit-every STEPS] [--print-every STEPS]\n"
            "           [--curve FILE] [--compare FILE] [--want-loss X] [--check-gradients]\n"
            "--width is a multiple of 4. --curve: rank 0 writes the loss of each step there.\n"
            "--compare: if a step's loss is not that of FILE, a curve of gpt, within %g, and\n"
            "--want-loss: if the last 20 steps have more, the exit code is 1.\n",
            APART);
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
    else if (!strcmp(name, "--compare"))
        o->compare = value;
    else
        return false;
    return true;
}

static bool read_options(int argc, char **argv, struct options *ret_options)
{
    struct options o = {};

    o.steps = 400;
    o.batch = 16;
    o.seed = 1;
    o.layers = 2;
    o.width = 32;
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

    data->text = (unsigned char *)malloc(TEXT_MAX);
    if (!file || !data->text) {
        perror(path);
        if (file)
            fclose(file);
        return false;
    }
    data->length = fread(data->text, 1, TEXT_MAX, file);
    fclose(file);
    if (data->length <= CONTEXT) {
        fprintf(stderr, "gpt_cuda: %s: no more than %d characters\n", path, CONTEXT);
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

static bool upload_text(struct model *m, const struct data *data)
{
    return good(cudaMalloc((void **)&m->text, data->length), "device memory") &&
           good(cudaMemcpy(m->text, data->text, data->length, cudaMemcpyDefault), "the text") &&
           good(cudaMalloc((void **)&m->seen, CONTEXT), "device memory");
}

/* ---- training -------------------------------------------------------------------------------- */

struct training {
    struct options options;
    struct data data;
    struct model model;
    int64_t steps; /* steps so far */
    hvd_sampler *sampler;
};

/* A sample is CONTEXT + 1 characters, and its number is its place in the text. Piece by piece: the
 * device has memory for the activations of one piece. */
static void add_share(const struct model *m, const uint64_t *samples, size_t count)
{
    cudaMemsetAsync(m->grads.all, 0, (m->count + 1) * sizeof(double), stream);
    for (size_t at = 0; at < count; at += PIECE) {
        size_t left = count - at < PIECE ? count - at : PIECE;
        struct piece piece = {};

        memcpy(piece.at, samples + at, left * sizeof(samples[0]));
        add_piece(m, &piece, left);
    }
}

/* Every rank computes the same from the same numbers, so all ranks keep equal weights. */
static void update(const struct training *training, double samples)
{
    const struct model *m = &training->model;
    double t = (double)(training->steps + 1);
    double rate = 0.004 * sqrt(1.0 - pow(0.99, t)) / (1.0 - pow(0.9, t));

    LAUNCH(adam, m->count, m->params.all, m->moments, m->grads.all, samples, rate,
           m->curve + training->steps);
}

/* Waits for all queued work. */
static bool fetch(void *to, const void *from, size_t bytes)
{
    return good(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "from the device") &&
           good(cudaStreamSynchronize(stream), "the device");
}

/* Returns 0, or the code that train is to return. */
static int step(hvd_state *state, struct training *training)
{
    const struct options *options = &training->options;
    const struct model *m = &training->model;
    hvd_batch batch;
    bool shown = (training->steps + 1) % options->print_every == 0;
    double loss = 0.0;
    int code = hvd_sampler_next(training->sampler, &batch);

    if (code == HVD_EPOCH_END)
        return 0;
    if (code)
        return code;
    add_share(m, batch.samples, batch.count);
    code = hvd_allreduce(m->grads.all, m->grads.all, m->count + 1, HVD_FLOAT64, HVD_SUM);
    if (code)
        return code;
    update(training, (double)batch.total);
    if (!good(cudaGetLastError(), "a kernel") ||
        (shown && !fetch(&loss, m->curve + training->steps, sizeof(loss))))
        return HVD_E_IO;
    training->steps++;
    /* Decided by a number that is equal on all ranks: all commit, or all check. */
    if (training->steps % options->commit_every == 0)
        code = hvd_state_commit(state);
    else
        code = hvd_state_check(state);
    /* The loss is valid only if the allreduce has succeeded, which is known after the wait. */
    if (shown && code >= 0 && hvd_rank() == 0)
        printf("step %" PRId64 ", size %d: loss %.4f\n", training->steps, hvd_size(), loss);
    return code;
}

/* Called again in each round. On all ranks the state is that of the same step. */
static int train(hvd_state *state, void *arg)
{
    struct training *training = (struct training *)arg;
    int code = 0;

    while (!code && training->steps < training->options.steps)
        code = step(state, training);
    return code;
}

/* The training state, registered where it lies: all but two small entries are in device memory. */
static int register_state(hvd_state *state, struct training *training)
{
    const struct options *options = &training->options;
    const struct model *m = &training->model;
    int code = hvd_state_add_array(state, "params", m->params.all, m->count, HVD_FLOAT64);

    if (!code)
        code = hvd_state_add_array(state, "moments", m->moments, 2 * m->count, HVD_FLOAT64);
    if (!code)
        code = hvd_state_add_array(state, "curve", m->curve, (size_t)options->steps, HVD_FLOAT64);
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

static bool write_curve(const char *path, const double *curve, int64_t steps)
{
    FILE *file = fopen(path, "w");
    bool done = file != NULL;

    for (int64_t i = 0; done && i < steps; i++)
        done = fprintf(file, "%" PRId64 " %.17g\n", i + 1, curve[i]) > 0;
    if (file && fclose(file) != 0)
        done = false;
    if (!done)
        perror(path);
    return done;
}

static bool compare_curve(const char *path, const double *curve, int64_t steps)
{
    FILE *file = fopen(path, "r");
    char line[80];
    double most = 0.0;
    int64_t i = 0;

    if (!file)
        perror(path);
    for (; file && i < steps && fgets(line, sizeof(line), file); i++) {
        char *space = strchr(line, ' ');
        double apart = space ? fabs(strtod(space, NULL) - curve[i]) : HUGE_VAL;

        if (!(apart <= most))
            most = apart;
    }
    if (file)
        fclose(file);
    printf("%" PRId64 " of %" PRId64 " steps compared, %.1e apart at most\n", i, steps, most);
    return i == steps && most <= APART;
}

/* Prints text that the model writes, after the beginning of the training text. */
static void show_writing(const struct training *training)
{
    const struct model *m = &training->model;
    struct piece begin = {};
    unsigned char seen[CONTEXT];
    double probs[256];
    uint64_t seed = (uint64_t)training->options.seed;

    memcpy(seen, training->data.text, CONTEXT);
    for (size_t i = 0; i < 160; i++) {
        double dice = (random_unit(&seed) + 1.0) / 2.0;
        size_t next = 0;

        if (!good(cudaMemcpyAsync(m->seen, seen, CONTEXT, cudaMemcpyDefault, stream), "to it"))
            return;
        forward(m, m->seen, &begin, 1);
        if (!fetch(probs, m->probs + (CONTEXT - 1) * m->vocabulary, m->vocabulary * sizeof(double)))
            return;
        while (next + 1 < m->vocabulary && (dice -= probs[next]) > 0.0)
            next++;
        memmove(seen, seen + 1, CONTEXT - 1);
        seen[CONTEXT - 1] = (unsigned char)next;
        putchar(training->data.shown[next]);
    }
    putchar('\n');
}

/* Rank 0 judges the curve: returns 0, or 1 when the curve is not good enough. */
static int judge(const struct training *training, const double *curve)
{
    const struct options *options = &training->options;
    int64_t last = training->steps < 20 ? training->steps : 20;
    double loss = 0.0;

    for (int64_t i = training->steps - last; i < training->steps; i++)
        loss += curve[i] / (double)last;
    printf("%" PRId64 " steps: loss %.4f\n", training->steps, loss);
    if (options->curve && !write_curve(options->curve, curve, training->steps))
        return 1;
    if (options->compare && !compare_curve(options->compare, curve, training->steps)) {
        fprintf(stderr, "gpt_cuda: that is not the curve in %s\n", options->compare);
        return 1;
    }
    if (!(loss <= options->want_loss)) {
        fprintf(stderr, "gpt_cuda: that is more than --want-loss %g\n", options->want_loss);
        return 1;
    }
    return 0;
}

/* After the training: prints the result. Returns the exit code. */
static int conclude(const struct training *training)
{
    const struct model *m = &training->model;
    size_t steps = (size_t)training->steps;
    double *params = (double *)malloc((m->count + steps) * sizeof(double));
    int status = 1;

    if (params && fetch(params, m->params.all, m->count * sizeof(double)) &&
        fetch(params + m->count, m->curve, steps * sizeof(double))) {
        printf("final params %016" PRIx64 "\n", digest_of(params, m->count));
        status = 0;
        if (hvd_rank() == 0) {
            show_writing(training);
            status = judge(training, params + m->count);
        }
    }
    free(params);
    return status;
}

/* The loss of two samples when a parameter is set to this value. */
static double loss_with(const struct training *training, size_t parameter, double value)
{
    const struct model *m = &training->model;
    const uint64_t samples[] = { 0, training->data.length - CONTEXT - 1 };
    double loss = NAN;

    if (good(cudaMemcpyAsync(m->params.all + parameter, &value, sizeof(value), cudaMemcpyDefault,
                             stream),
             "to the device")) {
        add_share(m, samples, 2);
        fetch(&loss, m->grads.all + m->count, sizeof(loss));
    }
    return loss;
}

/* Compares gradients of some parameters with the change of the loss when the parameter changes. */
static int check_gradients(struct training *training)
{
    const struct model *m = &training->model;
    double worst = 0.0;
    size_t checked = 0;

    for (size_t i = 0; i < m->count; i += 1 + m->count / 500, checked++) {
        double kept = 0.0;
        double grad = 0.0;
        double slope, apart;

        fetch(&kept, m->params.all + i, sizeof(kept));
        slope = (loss_with(training, i, kept + 1e-5) - loss_with(training, i, kept - 1e-5)) / 2e-5;
        loss_with(training, i, kept);
        fetch(&grad, m->grads.all + i, sizeof(grad));
        apart = fabs(slope - grad);
        if (!(apart <= worst))
            worst = apart;
    }
    printf("%zu of %zu gradients, off by %.1e at most\n", checked, m->count, worst);
    return worst < 1e-7 ? 0 : 1;
}

/* The slots of a host share its devices by number: the slot of a worker never changes. */
static bool open_device(void)
{
    int count = 0;

    return good(cudaGetDeviceCount(&count), "devices") &&
           good(cudaSetDevice(hvd_slot() % count), "the device") &&
           good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
}

static bool prepare(struct training *training)
{
    const struct options *options = &training->options;

    return read_text(options->text, &training->data) && open_device() &&
           model_init(&training->model, (size_t)options->layers, (size_t)options->width,
                      training->data.vocabulary, (uint64_t)options->seed, (size_t)options->steps) &&
           upload_text(&training->model, &training->data) &&
           good(cudaDeviceSynchronize(), "the device"); /* the work so far was in another stream */
}

static int take_part(struct training *training)
{
    hvd_state *state = hvd_state_create();
    int code = state ? hvd_set_stream(stream) : HVD_E_NOMEM;

    if (!code)
        code = register_state(state, training);
    if (!code)
        code = hvd_elastic_run(state, train, training);
    if (code < 0)
        fprintf(stderr, "gpt_cuda: %s: %s\n", hvd_strerror(code), hvd_last_error());
    /* HVD_LEFT, HVD_DONE: successes too, but this worker does not hold the result. */
    code = code ? code < 0 : conclude(training);
    hvd_state_free(state);
    return code;
}

int main(int argc, char **argv)
{
    static struct training training;
    int status = 1;

    setvbuf(stdout, NULL, _IOLBF,
            0); /* a printed line is visible even if the process is killed next */
    if (!read_options(argc, argv, &training.options))
        return usage();
    if (hvd_init())
        fprintf(stderr, "gpt_cuda: %s\n", hvd_last_error());
    else if (prepare(&training))
        status =
            training.options.check_gradients ? check_gradients(&training) : take_part(&training);
    hvd_shutdown();
    cudaFree(training.model.seen);
    cudaFree(training.model.text);
    cudaFree(training.model.memory);
    free(training.data.text);
    return status;
}
