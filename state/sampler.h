/*
 * sampler.h: which samples each rank uses in each step. Only arithmetic: no clock, no random
 * source, no file. All ranks with the same progress and size compute shares; together the shares
 * contain each sample of the epoch exactly once.
 *
 * The order of an epoch is a permutation that can be computed for any index without a table: a data
 * set of 10^12 samples takes no memory. The order depends only on the seed and the epoch.
 */
#ifndef STATE_SAMPLER_H
#define STATE_SAMPLER_H

#include "base/err.h"
#include "base/vec.h"

/* The part of a sampler that a commit holds: plain numbers, equal on all ranks. */
struct sampler_progress {
    uint64_t epoch;
    uint64_t used; /* number of samples of this epoch that were used so far */
};

struct sampler {
    uint64_t samples; /* samples of the data set */
    size_t batch; /* samples of a batch: of all ranks together or of each rank, as `mode` says */
    hvd_batch_mode mode;
    uint64_t seed;
    struct sampler_progress progress;
    struct VEC(uint64_t);        /* the share that the last sampler_next computed */
    struct VEC(size_t) shard_at; /* where each shard of that share begins */
};

/* The worker's place in the round. */
struct sampler_place {
    uint32_t rank, size, max_np; /* max_np: hvd_max_np(), the most workers that the job may have */
};

/* Makes a sampler. HVD_E_INVAL, HVD_E_LIMIT: the err names the argument. */
int sampler_init(struct sampler *sampler, uint64_t samples, size_t batch, hvd_batch_mode mode,
                 uint64_t seed, struct hvd_err *err) MUST_CHECK;
void sampler_release(struct sampler *sampler);

/* Computes this rank's share of the next batch. Returns 0; HVD_EPOCH_END: all samples are used, and
 * the next epoch has begun; HVD_E_NOMEM: nothing has changed; HVD_E_CORRUPT: the progress was
 * restored from the state of another data set and is larger than the epoch. */
int sampler_next(struct sampler *sampler, const struct sampler_place *place,
                 hvd_batch *ret_batch) MUST_CHECK;

/* Computes this rank's share of the batch that is `ahead` batches behind the next one, from this
 * progress, without moving it; any thread may call it, as nothing of the sampler is written. The
 * sample numbers go to `samples`, which has room for `room` of them; ret_batch->shards is 0.
 * HVD_EPOCH_END: the epoch has no such batch. HVD_E_FULL: the room is too small, and *ret_batch has
 * the count. HVD_E_CORRUPT: see sampler_next. */
int sampler_look(const struct sampler *sampler, const struct sampler_progress *progress,
                 const struct sampler_place *place, uint64_t ahead, uint64_t *samples, size_t room,
                 hvd_batch *ret_batch) MUST_CHECK;

/* Returns the sample at index `place` of an epoch's order; place < samples. */
uint64_t sampler_at(const struct sampler *sampler, uint64_t epoch, uint64_t place);

#endif
