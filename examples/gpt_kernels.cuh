/*
 * gpt_kernels.cuh: the parts of a transformer on a GPU, as in gpt.c: y from x, and dx from dy.
 *
 * One thread computes one number, in the simplest way: read this file beside gpt.c. No sum uses
 * atomic additions, so equal numbers give equal sums, bit for bit.
 */
#ifndef EXAMPLES_GPT_KERNELS_CUH
#define EXAMPLES_GPT_KERNELS_CUH

#include <math.h>
#include <stdint.h>

#define CONTEXT 32 /* characters that the model sees at a time */
#define HEADS   4
#define PIECE   32 /* samples that are on the device at a time */

/* A kernel's argument is how many numbers it computes; its k-th thread computes the k-th number.
 * Kernels are queued in the program's stream. (tests/gpu/cuda_on_cpu.h runs them on the processor.)
 */
#ifdef __CUDACC__
#define THREADS 128
#define LAUNCH(kernel, count, ...)                                                         \
    kernel<<<(unsigned)(((count) + THREADS - 1) / THREADS), THREADS, 0, stream>>>((count), \
                                                                                  __VA_ARGS__)
#endif
#define EACH(k, count)                                        \
    size_t k = blockIdx.x * (size_t)blockDim.x + threadIdx.x; \
    if (k >= (count))                                         \
    return

/* y (rows x m) = x (rows x n) times w (n x m). */
__global__ void matmul(size_t count, double *y, const double *x, const double *w, size_t n,
                       size_t m)
{
    EACH(k, count);
    size_t row = k / m;
    size_t column = k % m;
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += x[row * n + i] * w[i * m + column];
    y[k] = sum;
}

__global__ void matmul_back_x(size_t count, double *dx, const double *dy, const double *w, size_t n,
                              size_t m)
{
    EACH(k, count);
    size_t row = k / n;
    size_t i = k % n;
    double sum = 0.0;

    for (size_t column = 0; column < m; column++)
        sum += dy[row * m + column] * w[i * m + column];
    dx[k] = sum;
}

/* Adds to the gradient of the weights, as the part of a rank has several pieces. */
__global__ void matmul_back_w(size_t count, double *dw, const double *dy, const double *x,
                              size_t rows, size_t n, size_t m)
{
    EACH(k, count);
    size_t i = k / m;
    size_t column = k % m;
    double sum = 0.0;

    for (size_t row = 0; row < rows; row++)
        sum += dy[row * m + column] * x[row * n + i];
    dw[k] += sum;
}

/* A thread for each row, which is scaled to a mean square of one. */
__global__ void norm(size_t rows, double *y, double *scale, const double *x, size_t n)
{
    EACH(row, rows);
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += x[row * n + i] * x[row * n + i];
    scale[row] = 1.0 / sqrt(sum / (double)n + 1e-5);
    for (size_t i = 0; i < n; i++)
        y[row * n + i] = x[row * n + i] * scale[row];
}

__global__ void norm_back(size_t rows, double *dx, const double *dy, const double *y,
                          const double *scale, size_t n)
{
    EACH(row, rows);
    double dot = 0.0;

    for (size_t i = 0; i < n; i++)
        dot += dy[row * n + i] * y[row * n + i];
    for (size_t i = 0; i < n; i++)
        dx[row * n + i] += scale[row] * (dy[row * n + i] - y[row * n + i] * dot / (double)n);
}

__global__ void silu(size_t count, double *y, const double *x)
{
    EACH(k, count);
    y[k] = x[k] / (1.0 + exp(-x[k]));
}

/* In place. */
__global__ void silu_back(size_t count, double *d, const double *x)
{
    EACH(k, count);
    double s = 1.0 / (1.0 + exp(-x[k]));

    d[k] *= s * (1.0 + x[k] * (1.0 - s));
}

__device__ static void softmax_of(double *p, size_t count)
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

/* The position of an attention thread: its sample, its position in the sample, and where the
 * numbers of its head begin in a row of so many widths. */
struct spot {
    size_t sample, head, place, size;
};

__device__ static struct spot spot_of(size_t k, size_t width)
{
    struct spot spot;

    spot.sample = k / (HEADS * CONTEXT);
    spot.head = k / CONTEXT % HEADS;
    spot.place = k % CONTEXT;
    spot.size = width / HEADS;
    return spot;
}

/* In a row of qkv: 0 is its q, 1 its k, 2 its v. */
__device__ static size_t at_qkv(const struct spot *spot, size_t place, size_t which, size_t width)
{
    return (spot->sample * CONTEXT + place) * 3 * width + which * width + spot->head * spot->size;
}

__device__ static size_t at_row(const struct spot *spot, size_t place, size_t width)
{
    return (spot->sample * CONTEXT + place) * width + spot->head * spot->size;
}

/* A thread for each sample, head and position, which attends to itself and to those before it. */
__global__ void attend(size_t count, double *y, double *p, const double *qkv, size_t width)
{
    EACH(k, count);
    struct spot spot = spot_of(k, width);
    const double *q = qkv + at_qkv(&spot, spot.place, 0, width);
    double *row = p + k * CONTEXT;
    double *out = y + at_row(&spot, spot.place, width);

    for (size_t s = 0; s <= spot.place; s++) {
        const double *key = qkv + at_qkv(&spot, s, 1, width);

        row[s] = 0.0;
        for (size_t i = 0; i < spot.size; i++)
            row[s] += q[i] * key[i] / sqrt((double)spot.size);
    }
    softmax_of(row, spot.place + 1);
    for (size_t i = 0; i < spot.size; i++) {
        out[i] = 0.0;
        for (size_t s = 0; s <= spot.place; s++)
            out[i] += row[s] * qkv[at_qkv(&spot, s, 2, width) + i];
    }
}

/* The way back in two kernels, so that no two threads add to one number: the gradient of q, ... */
__global__ void attend_back_q(size_t count, double *dqkv, double *ds, const double *dy,
                              const double *p, const double *qkv, size_t width)
{
    EACH(k, count);
    struct spot spot = spot_of(k, width);
    const double *d = dy + at_row(&spot, spot.place, width);
    const double *row = p + k * CONTEXT;
    double *dq = dqkv + at_qkv(&spot, spot.place, 0, width);
    double *errors = ds + k * CONTEXT;
    double dot = 0.0;

    for (size_t s = 0; s <= spot.place; s++) {
        const double *value = qkv + at_qkv(&spot, s, 2, width);

        errors[s] = 0.0;
        for (size_t i = 0; i < spot.size; i++)
            errors[s] += d[i] * value[i];
        dot += errors[s] * row[s];
    }
    for (size_t s = 0; s <= spot.place; s++)
        errors[s] = row[s] * (errors[s] - dot) / sqrt((double)spot.size);
    for (size_t i = 0; i < spot.size; i++) {
        dq[i] = 0.0;
        for (size_t s = 0; s <= spot.place; s++)
            dq[i] += errors[s] * qkv[at_qkv(&spot, s, 1, width) + i];
    }
}

/* ... and the gradients of k and v, from all positions at and behind their own. */
__global__ void attend_back_kv(size_t count, double *dqkv, const double *ds, const double *dy,
                               const double *p, const double *qkv, size_t width)
{
    EACH(k, count);
    struct spot spot = spot_of(k, width);
    size_t first = k - spot.place; /* of the rows of this sample and head */
    double *dk = dqkv + at_qkv(&spot, spot.place, 1, width);
    double *dv = dqkv + at_qkv(&spot, spot.place, 2, width);

    for (size_t i = 0; i < spot.size; i++) {
        dk[i] = 0.0;
        dv[i] = 0.0;
        for (size_t t = spot.place; t < CONTEXT; t++) {
            size_t looked = (first + t) * CONTEXT + spot.place;

            dk[i] += ds[looked] * qkv[at_qkv(&spot, t, 0, width) + i];
            dv[i] += p[looked] * dy[at_row(&spot, t, width) + i];
        }
    }
}

__global__ void add(size_t count, double *y, const double *x)
{
    EACH(k, count);
    y[k] += x[k];
}

/* ---- from characters, and back to them ------------------------------------------------------- */

/* Where the samples of a piece begin in the text: a kernel argument, so no copy is needed. */
struct piece {
    uint64_t at[PIECE];
};

__device__ static size_t character(const unsigned char *text, const struct piece *piece, size_t row,
                                   size_t ahead)
{
    return text[piece->at[row / CONTEXT] + row % CONTEXT + ahead];
}

__global__ void embed(size_t count, double *x, const unsigned char *text, struct piece piece,
                      const double *characters, const double *places, size_t n)
{
    EACH(k, count);
    size_t row = k / n;
    size_t i = k % n;

    x[k] = characters[character(text, &piece, row, 0) * n + i] + places[row % CONTEXT * n + i];
}

__global__ void embed_back_characters(size_t count, double *characters, const double *dx,
                                      const unsigned char *text, struct piece piece, size_t rows,
                                      size_t n)
{
    EACH(k, count);

    for (size_t row = 0; row < rows; row++)
        if (character(text, &piece, row, 0) == k / n)
            characters[k] += dx[row * n + k % n];
}

__global__ void embed_back_places(size_t count, double *places, const double *dx, size_t rows,
                                  size_t n)
{
    EACH(k, count);

    for (size_t row = k / n; row < rows; row += CONTEXT)
        places[k] += dx[row * n + k % n];
}

__global__ void softmax(size_t rows, double *p, size_t m)
{
    EACH(row, rows);
    softmax_of(p + row * m, m);
}

/* The loss of each row; the probabilities become the derivative of the loss by the logits. */
__global__ void error(size_t rows, double *losses, double *p, const unsigned char *text,
                      struct piece piece, size_t m)
{
    EACH(row, rows);
    size_t next = character(text, &piece, row, 1);

    losses[row] = -log(p[row * m + next] + 1e-300) / CONTEXT;
    p[row * m + next] -= 1.0;
    for (size_t c = 0; c < m; c++)
        p[row * m + c] /= CONTEXT;
}

/* One thread, which always adds in the same order. */
__global__ void add_up(size_t count, double *sum, const double *losses, size_t rows)
{
    EACH(k, count);

    for (size_t row = 0; row < rows; row++)
        sum[k] += losses[row];
}

/* Adam; and the loss of the step, which was summed with the gradients, goes into the curve. */
__global__ void adam(size_t count, double *params, double *moments, const double *grads,
                     double samples, double rate, double *loss)
{
    EACH(k, count);
    double *first = moments + k;
    double *second = moments + count + k;
    double g = grads[k] / samples;

    *first += 0.1 * (g - *first);
    *second += 0.01 * (g * g - *second);
    params[k] -= rate * *first / (sqrt(*second) + 1e-8);
    if (k == 0)
        *loss = grads[count] / samples;
}

#endif
