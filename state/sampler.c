#include "state/sampler.h"

#include "base/limits.h"
#include "base/panic.h"

#include <inttypes.h>

/*
 * The order of an epoch: a Feistel network over the fewest bits that can hold every number below
 * samples. It is a permutation of a power of two, less than twice as many; what falls outside is
 * sent through again until it falls inside, which it does after less than two goes on average. So
 * what is left is a permutation of the samples.
 */
#define FEISTEL_ROUNDS 10
#define GOLDEN         UINT64_C(0x9e3779b97f4a7c15)

/* The finaliser of splitmix64: each bit of x reaches each bit of the result. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

struct feistel {
    uint64_t key;
    unsigned low_bits;
    unsigned high_bits; /* as many, or one more */
};

static struct feistel feistel_of(uint64_t samples, uint64_t seed, uint64_t epoch)
{
    unsigned bits = 0;

    while (bits < 64 && (samples - 1) >> bits)
        bits++;
    /* Twice, so that neither seed + 1 nor epoch + 1 is an order that has been used before. */
    return (struct feistel){
        .key = mix(mix(seed + GOLDEN) + epoch),
        .low_bits = bits / 2,
        .high_bits = bits - bits / 2,
    };
}

static uint64_t feistel_once(const struct feistel *feistel, uint64_t x)
{
    uint64_t low_mask = (UINT64_C(1) << feistel->low_bits) - 1;
    uint64_t high_mask = (UINT64_C(1) << feistel->high_bits) - 1;
    uint64_t low = x & low_mask;
    uint64_t high = x >> feistel->low_bits;
    uint64_t key = feistel->key;

    for (int round = 0; round < FEISTEL_ROUNDS; round += 2) {
        high ^= mix(low + (key += GOLDEN)) & high_mask;
        low ^= mix(high + (key += GOLDEN)) & low_mask;
    }
    return high << feistel->low_bits | low;
}

static uint64_t shuffled(const struct feistel *feistel, uint64_t samples, uint64_t place)
{
    do
        place = feistel_once(feistel, place);
    while (place >= samples);
    return place;
}

int sampler_init(struct sampler *sampler, uint64_t samples, size_t batch, hvd_batch_mode mode,
                 uint64_t seed, struct hvd_err *err)
{
    if (samples == 0)
        return err_set(err, HVD_E_INVAL, "samples is 0; a sampler deals out one at least");
    if (batch == 0)
        return err_set(err, HVD_E_INVAL, "batch is 0; a step needs one sample at least");
    if (mode != HVD_BATCH_GLOBAL && mode != HVD_BATCH_LOCAL)
        return err_set(err, HVD_E_INVAL, "mode is %d; it is HVD_BATCH_GLOBAL or HVD_BATCH_LOCAL",
                       (int)mode);
    if (samples > LIMIT_SAMPLES)
        return err_set(err, HVD_E_LIMIT, "samples is %" PRIu64 ", more than LIMIT_SAMPLES (2^48)",
                       samples);
    if (batch > LIMIT_BATCH_SAMPLES)
        return err_set(err, HVD_E_LIMIT, "batch is %zu, more than LIMIT_BATCH_SAMPLES (2^32)",
                       batch);
    *sampler = (struct sampler){ .samples = samples, .batch = batch, .mode = mode, .seed = seed };
    return 0;
}

void sampler_release(struct sampler *sampler)
{
    if (!sampler)
        return;
    VEC_RELEASE(sampler);
    VEC_RELEASE(&sampler->shard_at);
}

uint64_t sampler_at(const struct sampler *sampler, uint64_t epoch, uint64_t place)
{
    struct feistel feistel = feistel_of(sampler->samples, sampler->seed, epoch);

    ASSERT(place < sampler->samples);
    return shuffled(&feistel, sampler->samples, place);
}

/* Where part `index` of whole begins when it is cut into equal parts: whole * index / parts,
 * rounded down, without the product, which may not fit. */
static uint64_t part_at(uint64_t whole, uint64_t index, uint64_t parts)
{
    ASSERT(parts > 0);
    return whole / parts * index + whole % parts * index / parts;
}

/* A share of a batch: its shards are [first, end) of `cuts`, which together are the batch. */
struct share {
    uint64_t total;
    uint64_t cuts;
    uint64_t first, end;
};

/*
 * With HVD_BATCH_GLOBAL the cuts depend on the batch alone and not on the size, so each shard is
 * the same samples whoever adds them up. A batch that is smaller than max_np has only as many
 * shards as samples: an empty one would be no work, and a loop over many of them is.
 */
static struct share share_of(const struct sampler *sampler, const struct sampler_place *place)
{
    uint64_t left = sampler->samples - sampler->progress.used;
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

/* Room for both lists before either is written: they are changed together or not at all. */
static int make_room(struct sampler *sampler, uint64_t samples, uint64_t shards)
{
    int rc = 0;

    if (samples > sampler->capacity)
        rc = VEC_RESERVE(sampler, (size_t)samples - sampler->count, LIMIT_BATCH_SAMPLES);
    if (!rc && shards + 1 > sampler->shard_at.capacity)
        rc = VEC_RESERVE(&sampler->shard_at, (size_t)shards + 1 - sampler->shard_at.count,
                         LIMIT_WORKERS + 1);
    return rc;
}

static void deal(struct sampler *sampler, const struct share *share)
{
    struct feistel feistel = feistel_of(sampler->samples, sampler->seed, sampler->progress.epoch);
    uint64_t first = part_at(share->total, share->first, share->cuts);
    uint64_t end = part_at(share->total, share->end, share->cuts);

    for (uint64_t i = share->first; i <= share->end; i++)
        sampler->shard_at.items[i - share->first] =
            (size_t)(part_at(share->total, i, share->cuts) - first);
    sampler->shard_at.count = (size_t)(share->end - share->first) + 1;
    for (uint64_t i = first; i < end; i++)
        sampler->items[i - first] =
            shuffled(&feistel, sampler->samples, sampler->progress.used + i);
    sampler->count = (size_t)(end - first);
}

int sampler_next(struct sampler *sampler, const struct sampler_place *place, hvd_batch *ret_batch)
{
    struct sampler_progress *progress = &sampler->progress;
    struct share share;
    int rc;

    ASSERT(place->size <= LIMIT_WORKERS && place->rank < place->size);
    ASSERT(place->max_np <= LIMIT_WORKERS);
    if (progress->used > sampler->samples)
        return HVD_E_CORRUPT;
    if (progress->used == sampler->samples) {
        *progress = (struct sampler_progress){ .epoch = progress->epoch + 1 };
        return HVD_EPOCH_END;
    }
    share = share_of(sampler, place);
    rc = make_room(sampler,
                   part_at(share.total, share.end, share.cuts) -
                       part_at(share.total, share.first, share.cuts),
                   share.end - share.first);
    if (rc)
        return rc;
    deal(sampler, &share);
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
