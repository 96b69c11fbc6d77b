/*
 * rng.h: random numbers with explicit state (xoshiro256**), so that the same seed gives the same
 * sequence. Not fit for keys.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include "base/base.h"

struct rng {
    uint64_t word[4];
};

void rng_seed(struct rng *rng, uint64_t seed); /* every seed is allowed, 0 too */
uint64_t rng_next(struct rng *rng);

/* Returns a number that is uniform in [0, bound); 0 when bound is 0. */
uint64_t rng_below(struct rng *rng, uint64_t bound);

#endif
