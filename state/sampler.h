/*
 * sampler.h: which samples which rank uses in which step. Nothing but arithmetic: no clock, no
 * random source, no file. Everybody who has the same progress, rank and size comes to the same
 * shares, and together they are each sample of the epoch once.
 *
 * The order of an epoch is a permutation that can be asked for any place (no table: a data set of
 * 10^12 samples costs nothing), a function of seed and epoch alone.
 */
#ifndef STATE_SAMPLER_H
#define STATE_SAMPLER_H

#include "base/err.h"
#include "base/vec.h"

/* This is what is committed, restored and handed on: plain numbers, the same on all ranks. */
struct sampler_progress {
    uint64_t epoch;
    uint64_t used; /* samples of the epoch */
};

struct sampler {
    uint64_t samples;
    size_t batch;
    hvd_batch_mode mode;
    uint64_t seed;
    struct sampler_progress progress;
    struct VEC(uint64_t); /* the share that was dealt last */
    struct VEC(size_t) shard_at;
};

struct sampler_place {
    uint32_t rank, size, max_np;
};

/* HVD_E_INVAL, HVD_E_LIMIT. */
int sampler_init(struct sampler *sampler, uint64_t samples, size_t batch, hvd_batch_mode mode,
                 uint64_t seed, struct hvd_err *err) MUST_CHECK;
void sampler_release(struct sampler *sampler);

/* As hvd_sampler_next: 0, HVD_EPOCH_END, HVD_E_NOMEM (then nothing has moved). A progress that
 * makes no sense (a restored one from a foreign state) is HVD_E_CORRUPT. */
int sampler_next(struct sampler *sampler, const struct sampler_place *place,
                 hvd_batch *ret_batch) MUST_CHECK;

/* The sample at a place of an epoch: place < samples. */
uint64_t sampler_at(const struct sampler *sampler, uint64_t epoch, uint64_t place);

#endif
