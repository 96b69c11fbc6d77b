/*
 * plain.c: a training loop that is not elastic. It fits a line to some points. docs/embedding.md
 * turns it into elastic.c.
 */
#include <stdint.h>
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

/* A new order in each epoch. */
static void shuffle(uint64_t *order, uint64_t epoch)
{
    for (uint64_t i = 0; i < SAMPLES; i++)
        order[i] = (i * (2 * epoch + 773)) % SAMPLES;
}

int main(void)
{
    float line[2] = { 0.0F, 0.0F };
    float gradient[2];
    uint64_t order[SAMPLES];

    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        shuffle(order, epoch);
        for (size_t first = 0; first < SAMPLES; first += BATCH) {
            gradient_of(line, order + first, BATCH, gradient);
            update(line, gradient, BATCH);
        }
    }
    printf("y = %.2f x + %.2f\n", (double)line[0], (double)line[1]);
    return 0;
}
