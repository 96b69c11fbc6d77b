/*
 * rng.c: xoshiro256**, seeded by splitmix64. Called by the pure cores and by tests. The same seed
 * gives the same numbers on every machine, and replay and simulation rely on that.
 */
#include "base/rng.h"

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

/* Begins a sequence of pseudo-random numbers; the same seed gives the same sequence. */
void rng_seed(struct rng *rng, uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_SIZE(rng->word); i++) {
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

        /* splitmix64 spreads the seed over the four words, so that at least one word is not
         * zero. */
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        rng->word[i] = z ^ (z >> 31);
    }
}

/* Returns the next number of the sequence (xoshiro256**). */
uint64_t rng_next(struct rng *rng)
{
    uint64_t *w = rng->word;
    uint64_t result = rotate_left(w[1] * 5, 7) * 9;
    uint64_t shifted = w[1] << 17;

    w[2] ^= w[0];
    w[3] ^= w[1];
    w[1] ^= w[2];
    w[0] ^= w[3];
    w[2] ^= shifted;
    w[3] = rotate_left(w[3], 45);
    return result;
}

/* Returns a number below `bound`, each one with the same probability; 0 if `bound` is 0. */
uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    uint64_t threshold;
    uint64_t value;

    if (bound == 0)
        return 0;
    /* numbers below the threshold would make small results more likely */
    threshold = (0 - bound) % bound;
    do
        value = rng_next(rng);
    while (value < threshold);
    return value % bound;
}
