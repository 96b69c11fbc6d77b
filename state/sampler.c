/*
 * sampler.c: which samples which rank uses: a shuffled order for each epoch, cut into batches,
 * shards and parts of ranks.
 *
 * Called by worker/sampler.c. Invariant: for one progress the parts of all ranks are together each
 * sample of the batch exactly once, with any size. The order of an epoch never changes in a later
 * release (tests/unit/test_sampler.c).
 */
#include "state/sampler.h"

#include "base/limits.h"
#include "base/panic.h"

#include <inttypes.h>

/* The order of an epoch is made by a Feistel network over the fewest bits that can hold every
 * number below `samples`. The network permutes a power of two of numbers, which is less than twice
 * the number of samples. A result that is not below `samples` is sent through the network once
 * more, until it is; on average this takes less than two passes. So the samples are permuted among
 * themselves. */
#define FEISTEL_ROUNDS 10
#define GOLDEN         UINT64_C(0x9e3779b97f4a7c15)

/* Mixes the bits of x, as the finaliser of splitmix64 does: each bit of x changes each bit of the
 * result. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A network that shuffles numbers of low_bits + high_bits bits. */
struct feistel {
    uint64_t key;
    unsigned low_bits;
    unsigned high_bits; /* equal to low_bits, or one more */
};

/* Makes the network that shuffles the samples of this epoch, over the fewest bits that hold samples
 * - 1. */
static struct feistel feistel_of(uint64_t samples, uint64_t seed, uint64_t epoch)
{
    unsigned bits = 0;

    while (bits < 64 && (samples - 1) >> bits)
        bits++;
    /* The key is mixed twice: otherwise the orders of the seed `seed` + 1 would be those of `seed`
     * in later epochs. */
    return (struct feistel){
        .key = mix(mix(seed + GOLDEN) + epoch),
        .low_bits = bits / 2,
        .high_bits = bits - bits / 2,
    };
}

/* Returns the sample at index `place` of the epoch's order: sends the index through the network
 * until the result is the number of a sample. */
static uint64_t shuffled(const struct feistel *feistel, uint64_t samples, uint64_t place)
{
    uint64_t low_mask = (UINT64_C(1) << feistel->low_bits) - 1;
    uint64_t high_mask = (UINT64_C(1) << feistel->high_bits) - 1;

    do {
        uint64_t low = place & low_mask;
        uint64_t high = place >> feistel->low_bits;
        uint64_t key = feistel->key;

        for (int round = 0; round < FEISTEL_ROUNDS; round += 2) {
            high ^= mix(low + (key += GOLDEN)) & high_mask;
            low ^= mix(high + (key += GOLDEN)) & low_mask;
        }
        place = high << feistel->low_bits | low;
    } while (place >= samples);
    return place;
}

/* Checks the arguments and makes a sampler whose progress is 0. batch: of all ranks together
 * (HVD_BATCH_GLOBAL), or of each rank (HVD_BATCH_LOCAL). */
int sampler_init(struct sampler *sampler, uint64_t samples, size_t batch, hvd_batch_mode mode,
                 uint64_t seed, struct hvd_err *err)
{
    if (samples == 0)
        return err_set(err, HVD_E_INVAL, "samples is 0; give a data set of at least one sample");
    if (batch == 0)
        return err_set(err, HVD_E_INVAL, "batch is 0; give a batch of at least one sample");
    if (mode != HVD_BATCH_GLOBAL && mode != HVD_BATCH_LOCAL)
        return err_set(err, HVD_E_INVAL, "mode is %d; give HVD_BATCH_GLOBAL or HVD_BATCH_LOCAL",
                       (int)mode);
    if (samples > LIMIT_SAMPLES)
        return err_set(err, HVD_E_LIMIT,
                       "samples is %" PRIu64
                       ", more than LIMIT_SAMPLES (2^48); use a smaller data set",
                       samples);
    if (batch > LIMIT_BATCH_SAMPLES)
        return err_set(err, HVD_E_LIMIT,
                       "batch is %zu, more than LIMIT_BATCH_SAMPLES (2^32); use a smaller batch",
                       batch);
    *sampler = (struct sampler){ .samples = samples, .batch = batch, .mode = mode, .seed = seed };
    return 0;
}

/* Frees the lists of the sampler. */
void sampler_release(struct sampler *sampler)
{
    if (!sampler)
        return;
    VEC_RELEASE(sampler);
    VEC_RELEASE(&sampler->shard_at);
}

/* Returns the sample at index `place` of an epoch's order. */
uint64_t sampler_at(const struct sampler *sampler, uint64_t epoch, uint64_t place)
{
    struct feistel feistel = feistel_of(sampler->samples, sampler->seed, epoch);

    ASSERT(place < sampler->samples);
    return shuffled(&feistel, sampler->samples, place);
}

/* Returns where part `index` begins when `whole` is divided into `parts` equal parts: whole * index
 * / parts, rounded down. The product is not computed, as it may not fit. */
static uint64_t part_at(uint64_t whole, uint64_t index, uint64_t parts)
{
    ASSERT(parts > 0);
    return whole / parts * index + whole % parts * index / parts;
}

/* One rank's part of a batch: the shards [first, end) of the `cuts` shards of the batch. */
struct share {
    uint64_t total;      /* samples of the batch on all ranks */
    uint64_t cuts;       /* shards of the batch on all ranks */
    uint64_t first, end; /* the shards of this rank */
};

/* Computes the shards of the batch after `used` samples that this rank uses. With HVD_BATCH_GLOBAL
 * the batch is always cut into the same shards, with any number of workers: so a shard has the same
 * samples on each rank that may compute it. A batch with fewer samples than max_np has only as many
 * shards as samples, because a loop over empty shards would cost time and do nothing. */
static struct share share_of(const struct sampler *sampler, uint64_t used,
                             const struct sampler_place *place)
{
    uint64_t left = sampler->samples - used;
    struct share share;

    if (sampler->mode == HVD_BATCH_LOCAL) {
        share.total = (uint64_t)sampler->batch * place->size;
        if (share.total > left)
            share.total = left;
        share.cuts = share.total < place->size ? share.total : place->size;
    } else {
        share.total = sampler->batch < left ? sampler->batch : left;
        share.cuts = place->max_np > place->size ? place->max_np : place->size;
        if (share.cuts > share.total)
            share.cuts = share.total;
    }
    share.first = part_at(share.cuts, place->rank, place->size);
    share.end = part_at(share.cuts, place->rank + 1, place->size);
    return share;
}

/* Computes this rank's share of the next batch, and moves the progress behind that batch. Returns
 * 0; HVD_EPOCH_END: there was no sample left, and the next epoch has begun; HVD_E_CORRUPT: the
 * progress is not one of this data set. */
int sampler_next(struct sampler *sampler, const struct sampler_place *place, hvd_batch *ret_batch)
{
    struct sampler_progress *progress = &sampler->progress;
    struct feistel feistel = feistel_of(sampler->samples, sampler->seed, progress->epoch);
    struct share share;
    uint64_t first;
    uint64_t count;
    uint64_t shards;
    int rc = 0;

    ASSERT(place->size <= LIMIT_WORKERS && place->rank < place->size);
    ASSERT(place->max_np <= LIMIT_WORKERS);
    if (progress->used > sampler->samples)
        return HVD_E_CORRUPT;
    if (progress->used == sampler->samples) {
        *progress = (struct sampler_progress){ .epoch = progress->epoch + 1 };
        return HVD_EPOCH_END;
    }
    share = share_of(sampler, progress->used, place);
    first = part_at(share.total, share.first, share.cuts);
    count = part_at(share.total, share.end, share.cuts) - first;
    shards = share.end - share.first;
    /* Both lists get their memory before one of them is written: they change together or not at
     * all. */
    if (count > sampler->capacity)
        rc = VEC_RESERVE(sampler, (size_t)count - sampler->count, LIMIT_BATCH_SAMPLES);
    if (!rc && shards + 1 > sampler->shard_at.capacity)
        rc = VEC_RESERVE(&sampler->shard_at, (size_t)shards + 1 - sampler->shard_at.count,
                         LIMIT_WORKERS + 1);
    if (rc)
        return rc;
    for (uint64_t i = 0; i <= shards; i++)
        sampler->shard_at.items[i] =
            (size_t)(part_at(share.total, share.first + i, share.cuts) - first);
    sampler->shard_at.count = (size_t)shards + 1;
    for (uint64_t i = 0; i < count; i++)
        sampler->items[i] = shuffled(&feistel, sampler->samples, progress->used + first + i);
    sampler->count = (size_t)count;
    *ret_batch = (hvd_batch){
        .epoch = progress->epoch,
        .first = progress->used,
        .total = (size_t)share.total,
        .count = sampler->count,
        .samples = sampler->items,
        .shards = sampler->shard_at.count - 1,
        .shard_at = sampler->shard_at.items,
    };
    progress->used += share.total;
    return 0;
}

/* Computes this rank's share of a later batch, without moving the progress: `ahead` 0 is the batch
 * that sampler_next would give. Used to load samples before they are needed. */
int sampler_look(const struct sampler *sampler, const struct sampler_progress *progress,
                 const struct sampler_place *place, uint64_t ahead, uint64_t *samples, size_t room,
                 hvd_batch *ret_batch)
{
    struct feistel feistel = feistel_of(sampler->samples, sampler->seed, progress->epoch);
    /* samples of a batch that is not the last one of its epoch */
    uint64_t each = (uint64_t)sampler->batch * (sampler->mode == HVD_BATCH_LOCAL ? place->size : 1);
    uint64_t used = progress->used; /* samples of the epoch before the batch that is looked at */
    struct share share;
    uint64_t first;
    uint64_t count;

    ASSERT(place->size <= LIMIT_WORKERS && place->rank < place->size);
    if (used > sampler->samples)
        return HVD_E_CORRUPT;
    /* All batches before the last one of an epoch have `each` samples. */
    if (used == sampler->samples || ahead > (sampler->samples - used - 1) / each)
        return HVD_EPOCH_END;
    used += ahead * each;
    share = share_of(sampler, used, place);
    first = part_at(share.total, share.first, share.cuts);
    count = part_at(share.total, share.end, share.cuts) - first;
    *ret_batch = (hvd_batch){ .epoch = progress->epoch,
                              .first = used,
                              .total = (size_t)share.total,
                              .count = (size_t)count,
                              .samples = samples };
    if (count > room)
        return HVD_E_FULL;
    for (uint64_t i = 0; i < count; i++)
        samples[i] = shuffled(&feistel, sampler->samples, used + first + i);
    return 0;
}
