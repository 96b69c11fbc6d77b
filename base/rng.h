/*
 * rng.h: random numbers with explicit state (xoshiro256**), so that the same seed gives the same
 * run. Not for keys.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include "base/base.h"

struct rng {
    uint64_t word[4];
};

void rng_seed(struct rng *rng, uint64_t seed); /* any seed will do, 0 too */
uint64_t rng_next(struct rng *rng);

/* Uniform in [0, bound); bound 0 gives 0. */
uint64_t rng_below(struct rng *rng, uint64_t bound);

#endif
