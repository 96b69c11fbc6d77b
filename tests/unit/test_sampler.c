/*
 * test_sampler.c: state/sampler deals the samples of an epoch to the ranks: permutations, shards
 * (one rank's part of a batch) of any size, epochs that end once, and a state that other ranks
 * continue.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "base/rng.h"
#include "state/sampler.h"
#include "tests/lib/fixture.h"

#include <string.h>

#define CROWD 12 /* the greatest number of ranks in these tests */

static struct sampler sampler;

/* All ranks of a job. Each has its own sampler, and the samplers share nothing. */
static struct {
    struct sampler ranks[CROWD];
    hvd_batch batches[CROWD];
    uint32_t size, max_np;
    unsigned char *seen; /* how often each sample of the epoch was dealt */
} crowd;
static unsigned char *committed; /* the samples that were dealt before the last commit */

static void crowd_release(void)
{
    for (size_t i = 0; i < CROWD; i++)
        sampler_release(&crowd.ranks[i]);
    mem_free(crowd.seen);
}

static int crowd_start(uint64_t samples, size_t batch, hvd_batch_mode mode, uint64_t seed)
{
    int rc = 0;

    crowd.size = 1;
    crowd.max_np = CROWD;
    crowd.seen = mem_zalloc((size_t)samples);
    if (!crowd.seen)
        return HVD_E_NOMEM;
    for (size_t i = 0; !rc && i < CROWD; i++)
        rc = sampler_init(&crowd.ranks[i], samples, batch, mode, seed, NULL);
    return rc;
}

/* One step of all ranks. A rank without memory tries again, and must miss no sample. */
static int crowd_next(void)
{
    int first = 0;

    for (uint32_t i = 0; i < crowd.size; i++) {
        struct sampler_place place = { i, crowd.size, crowd.max_np };
        struct sampler_progress before = crowd.ranks[i].progress;
        int rc = sampler_next(&crowd.ranks[i], &place, &crowd.batches[i]);

        if (rc < 0) {
            if (memcmp(&before, &crowd.ranks[i].progress, sizeof(before)) != 0)
                return HVD_E_INTERNAL;
            return rc;
        }
        if (i == 0)
            first = rc;
        if (rc != first)
            return HVD_E_MISMATCH;
    }
    return first;
}

/* All workers, also new ones, continue from this progress. */
static void crowd_go_to(const struct sampler_progress *progress)
{
    for (size_t i = 0; i < CROWD; i++)
        crowd.ranks[i].progress = *progress;
}

/* Counts the samples that were dealt (by: 1) or takes them back (by: -1), and compares the ranks'
 * batches. */
static void crowd_count(struct test *t, int by)
{
    size_t total = 0;

    for (uint32_t i = 0; i < crowd.size; i++) {
        const hvd_batch *batch = &crowd.batches[i];

        CHECK_INT(t, batch->epoch, ==, crowd.batches[0].epoch);
        CHECK_INT(t, batch->first, ==, crowd.batches[0].first);
        CHECK_INT(t, batch->total, ==, crowd.batches[0].total);
        CHECK_INT(t, batch->shard_at[0], ==, 0);
        CHECK_INT(t, batch->shard_at[batch->shards], ==, batch->count);
        for (size_t j = 0; j < batch->count; j++) {
            CHECK(t, batch->samples[j] < crowd.ranks[i].samples);
            crowd.seen[batch->samples[j]] = (unsigned char)(crowd.seen[batch->samples[j]] + by);
        }
        total += batch->count;
    }
    CHECK_INT(t, total, ==, crowd.batches[0].total);
}

static void crowd_check_epoch(struct test *t)
{
    for (uint64_t i = 0; i < crowd.ranks[0].samples; i++)
        CHECK_INT(t, crowd.seen[i], ==, 1);
    memset(crowd.seen, 0, (size_t)crowd.ranks[0].samples);
}

/* ---- the order ------------------------------------------------------------------------------- */

static void begin(struct test *t)
{
    (void)t;
    sampler = (struct sampler){ .samples = 0 };
    memset(&crowd, 0, sizeof(crowd));
    committed = NULL;
}

static void end(struct test *t)
{
    (void)t;
    sampler_release(&sampler);
    crowd_release();
    mem_free(committed);
}
FIXTURE(begin, end)

TEST_FLAGS(is_a_permutation_for_every_size, TEST_NO_TORTURE)
{
    unsigned char seen[300];

    for (uint64_t samples = 1; samples <= sizeof(seen); samples++) {
        CHECK_OK(t, sampler_init(&sampler, samples, 1, HVD_BATCH_GLOBAL, samples * 7, NULL));
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            memset(seen, 0, sizeof(seen));
            for (uint64_t i = 0; i < samples; i++) {
                uint64_t sample = sampler_at(&sampler, epoch, i);

                CHECK(t, sample < samples);
                CHECK_INT(t, seen[sample], ==, 0);
                seen[sample] = 1;
            }
        }
    }
}

/* A random permutation of n has about one fixed point and n / 2 rises, and each half of the places
 * has about as many small as large numbers. The accepted range is far wider than chance needs. */
TEST_FLAGS(is_well_shuffled, TEST_NO_TORTURE)
{
    enum { SAMPLES = 10000 };

    for (uint64_t seed = 0; seed < 10; seed++) {
        int fixed = 0;
        int rises = 0;
        int neighbours = 0;
        int low_in_low = 0;
        uint64_t last = 0;

        CHECK_OK(t, sampler_init(&sampler, SAMPLES, 1, HVD_BATCH_GLOBAL, seed, NULL));
        for (uint64_t i = 0; i < SAMPLES; i++) {
            uint64_t sample = sampler_at(&sampler, seed % 3, i);

            fixed += sample == i;
            rises += sample > last;
            neighbours += sample == last + 1 || last == sample + 1;
            low_in_low += i < SAMPLES / 2 && sample < SAMPLES / 2;
            last = sample;
        }
        CHECK_INT(t, fixed, <, 12);
        CHECK_INT(t, neighbours, <, 16);
        CHECK_INT(t, rises, >, SAMPLES / 2 - 250);
        CHECK_INT(t, rises, <, SAMPLES / 2 + 250);
        CHECK_INT(t, low_in_low, >, SAMPLES / 4 - 250);
        CHECK_INT(t, low_in_low, <, SAMPLES / 4 + 250);
    }
}

/* Over many epochs each sample comes to each place equally often: chi squared with 35 degrees of
 * freedom is below 90 in all but one of a million cases. */
TEST_FLAGS(every_sample_comes_to_every_place, TEST_NO_TORTURE)
{
    enum { SAMPLES = 6, EPOCHS = 6000 };
    int hits[SAMPLES][SAMPLES] = { { 0 } };
    double chi_squared = 0;

    CHECK_OK(t, sampler_init(&sampler, SAMPLES, 1, HVD_BATCH_GLOBAL, 1, NULL));
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
        for (uint64_t i = 0; i < SAMPLES; i++)
            hits[i][sampler_at(&sampler, epoch, i)]++;
    for (size_t i = 0; i < SAMPLES; i++) {
        for (size_t j = 0; j < SAMPLES; j++) {
            double off = hits[i][j] - (double)EPOCHS / SAMPLES;

            chi_squared += off * off / ((double)EPOCHS / SAMPLES);
        }
    }
    CHECK(t, chi_squared < 90);
}

/* Equal seeds and epochs give equal orders; another seed, another epoch, or an equal sum of both
 * gives another order. */
TEST(seed_and_epoch_make_the_order)
{
    struct sampler one = { .samples = 0 };
    struct sampler same = { .samples = 0 };
    struct sampler other = { .samples = 0 };
    int as_next_epoch = 0;
    int as_other_seed = 0;
    int as_shifted = 0;

    CHECK_OK(t, sampler_init(&one, 1000, 1, HVD_BATCH_GLOBAL, 5, NULL));
    CHECK_OK(t, sampler_init(&same, 1000, 64, HVD_BATCH_LOCAL, 5, NULL));
    CHECK_OK(t, sampler_init(&other, 1000, 1, HVD_BATCH_GLOBAL, 6, NULL));
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t sample = sampler_at(&one, 1, i);

        CHECK_INT(t, sample, ==, sampler_at(&same, 1, i));
        as_next_epoch += sample == sampler_at(&one, 2, i);
        as_other_seed += sample == sampler_at(&other, 1, i);
        /* the sum of seed and epoch does not matter */
        as_shifted += sample == sampler_at(&other, 0, i);
    }
    CHECK_INT(t, as_next_epoch, <, 12);
    CHECK_INT(t, as_other_seed, <, 12);
    CHECK_INT(t, as_shifted, <, 12);
}

/* The order is a promise: a job that a newer library resumes continues in the same order. */
TEST(the_order_never_changes)
{
    static const uint64_t small[] = { 1, 4, 0, 3, 8, 6, 2, 5, 9, 7 };

    CHECK_OK(t, sampler_init(&sampler, ARRAY_SIZE(small), 1, HVD_BATCH_GLOBAL, 42, NULL));
    for (uint64_t i = 0; i < ARRAY_SIZE(small); i++)
        CHECK_INT(t, sampler_at(&sampler, 7, i), ==, small[i]);
    CHECK_OK(t, sampler_init(&sampler, LIMIT_SAMPLES, 1, HVD_BATCH_GLOBAL, 42, NULL));
    CHECK_INT(t, sampler_at(&sampler, 7, LIMIT_SAMPLES - 1), ==, INT64_C(161003619131432));
}

/* ---- shares ---------------------------------------------------------------------------------- */

TEST(cuts_a_global_batch_into_shards)
{
    CHECK_OK(t, crowd_start(100, 30, HVD_BATCH_GLOBAL, 1));
    crowd.max_np = 4;
    crowd.size = 3;
    CHECK_OK(t, crowd_next()); /* shards of 7 8 7 8 samples; the ranks have 1 1 2 shards */
    CHECK_INT(t, crowd.batches[0].shards, ==, 1);
    CHECK_INT(t, crowd.batches[0].count, ==, 7);
    CHECK_INT(t, crowd.batches[1].shards, ==, 1);
    CHECK_INT(t, crowd.batches[1].count, ==, 8);
    CHECK_INT(t, crowd.batches[2].shards, ==, 2);
    CHECK_INT(t, crowd.batches[2].shard_at[1], ==, 7);
    CHECK_INT(t, crowd.batches[2].count, ==, 15);
    CHECK_INT(t, crowd.batches[2].total, ==, 30);
    CHECK_INT(t, crowd.batches[2].first, ==, 0);
    for (uint64_t i = 0; i < 7; i++)
        CHECK_INT(t, crowd.batches[0].samples[i], ==, sampler_at(&crowd.ranks[0], 0, i));
    CHECK_OK(t, crowd_next());
    CHECK_INT(t, crowd.batches[1].first, ==, 30);
}

/* The shards of a batch have the same samples for every number of ranks; only their owners
 * change. */
TEST(shards_do_not_depend_on_the_size)
{
    struct sampler_progress start = { .epoch = 3, .used = 20 };
    hvd_batch whole;

    CHECK_OK(t, sampler_init(&sampler, 200, 50, HVD_BATCH_GLOBAL, 1, NULL));
    sampler.progress = start;
    CHECK_OK(t, sampler_next(&sampler, &(struct sampler_place){ 0, 1, CROWD }, &whole));
    CHECK_INT(t, whole.shards, ==, CROWD);
    CHECK_OK(t, crowd_start(200, 50, HVD_BATCH_GLOBAL, 1));
    for (crowd.size = 1; crowd.size <= CROWD; crowd.size++) {
        size_t shard = 0;

        crowd_go_to(&start);
        CHECK_OK(t, crowd_next());
        for (uint32_t rank = 0; rank < crowd.size; rank++) {
            const hvd_batch *batch = &crowd.batches[rank];

            for (size_t i = 0; i < batch->shards; i++, shard++) {
                size_t count = batch->shard_at[i + 1] - batch->shard_at[i];

                CHECK_INT(t, count, ==, whole.shard_at[shard + 1] - whole.shard_at[shard]);
                CHECK(t,
                      memcmp(batch->samples + batch->shard_at[i],
                             whole.samples + whole.shard_at[shard], count * sizeof(uint64_t)) == 0);
            }
        }
        CHECK_INT(t, shard, ==, CROWD);
    }
}

TEST(gives_each_rank_a_local_batch)
{
    CHECK_OK(t, crowd_start(100, 30, HVD_BATCH_LOCAL, 1));
    crowd.size = 3;
    CHECK_OK(t, crowd_next());
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(t, crowd.batches[i].count, ==, 30);
        CHECK_INT(t, crowd.batches[i].total, ==, 90);
        CHECK_INT(t, crowd.batches[i].shards, ==, 1);
    }
    CHECK_OK(t, crowd_next()); /* the last ten samples */
    CHECK_INT(t, crowd.batches[0].count, ==, 3);
    CHECK_INT(t, crowd.batches[1].count, ==, 3);
    CHECK_INT(t, crowd.batches[2].count, ==, 4);
    CHECK_INT(t, crowd.batches[2].total, ==, 10);
}

TEST(some_ranks_have_nothing_when_samples_are_few)
{
    static const hvd_batch_mode modes[] = { HVD_BATCH_GLOBAL, HVD_BATCH_LOCAL };

    for (size_t mode = 0; mode < ARRAY_SIZE(modes); mode++) {
        size_t idle = 0;

        crowd_release();
        CHECK_OK(t, crowd_start(5, 64, modes[mode], 1));
        crowd.size = CROWD;
        CHECK_OK(t, crowd_next());
        for (size_t i = 0; i < CROWD; i++) {
            CHECK_INT(t, crowd.batches[i].shards, ==, crowd.batches[i].count);
            idle += crowd.batches[i].count == 0;
        }
        CHECK_INT(t, idle, ==, CROWD - 5);
        crowd_count(t, 1);
        crowd_check_epoch(t);
    }
}

/* The driver never has more than max_np workers. With more workers each sample would still have one
 * owner. */
TEST(more_ranks_than_max_np_is_safe)
{
    CHECK_OK(t, crowd_start(64, 64, HVD_BATCH_GLOBAL, 1));
    crowd.size = CROWD;
    crowd.max_np = 2;
    CHECK_OK(t, crowd_next());
    crowd_count(t, 1);
    crowd_check_epoch(t);
}

TEST(an_epoch_ends_once)
{
    CHECK_OK(t, crowd_start(10, 4, HVD_BATCH_GLOBAL, 1));
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (size_t step = 0; step < 3; step++) {
            CHECK_OK(t, crowd_next());
            CHECK_INT(t, crowd.batches[0].epoch, ==, epoch);
            CHECK_INT(t, crowd.batches[0].first, ==, step * 4);
            CHECK_INT(t, crowd.batches[0].total, ==, step < 2 ? 4 : 2);
            crowd_count(t, 1);
        }
        CHECK_CODE(t, crowd_next(), HVD_EPOCH_END);
        CHECK_INT(t, crowd.ranks[0].progress.epoch, ==, epoch + 1);
        CHECK_INT(t, crowd.ranks[0].progress.used, ==, 0);
        crowd_check_epoch(t);
    }
}

/* ---- any order of events ---- */

/* Plays steps, changes of size, and rollbacks to a commit, until some epochs are over. A
 * rollback takes the samples back with the weights, so at the end of each epoch each sample was
 * used once. */
static void random_job(struct test *t, struct rng *rng)
{
    uint64_t samples = 1 + rng_below(rng, rng_below(rng, 4) ? 300 : 8);
    size_t batch = 1 + (size_t)rng_below(rng, rng_below(rng, 4) ? 40 : 400);
    hvd_batch_mode mode = rng_below(rng, 3) ? HVD_BATCH_GLOBAL : HVD_BATCH_LOCAL;
    struct sampler_progress commit = { .epoch = 0 };

    crowd_release();
    CHECK_OK(t, crowd_start(samples, batch, mode, rng_next(rng)));
    mem_free(committed);
    committed = mem_zalloc((size_t)samples);
    CHECK(t, committed);
    while (crowd.ranks[0].progress.epoch < 3) {
        uint64_t dice = rng_below(rng, 20);
        int rc;

        if (dice == 0) { /* a death: back to the commit, with fewer or more ranks */
            crowd_go_to(&commit);
            memcpy(crowd.seen, committed, (size_t)samples);
        }
        if (dice <= 1) { /* or a switch, which loses no step */
            crowd_go_to(&crowd.ranks[0].progress);
            crowd.size = 1 + (uint32_t)rng_below(rng, CROWD);
        }
        rc = crowd_next();
        CHECK(t, rc == 0 || rc == HVD_EPOCH_END);
        if (rc == 0)
            crowd_count(t, 1);
        else
            crowd_check_epoch(t);
        if (rng_below(rng, 3) == 0) {
            commit = crowd.ranks[0].progress;
            memcpy(committed, crowd.seen, (size_t)samples);
        }
        CHECK(t, !t->failed);
    }
}

TEST_FLAGS(every_sample_is_used_once_whatever_happens, TEST_NO_TORTURE)
{
    struct rng rng;

    for (uint64_t seed = 1; seed <= 300 && !t->failed; seed++) {
        rng_seed(&rng, seed);
        random_job(t, &rng);
    }
}

TEST(a_small_job_survives_want_of_memory)
{
    struct rng rng;

    rng_seed(&rng, 1);
    random_job(t, &rng);
}

/* ---- bad input ------------------------------------------------------------------------------- */

TEST(refuses_senseless_values)
{
    struct hvd_err err;

    sampler.samples = 77;
    CHECK_CODE(t, sampler_init(&sampler, 0, 1, HVD_BATCH_GLOBAL, 0, &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "samples is 0; give a data set of at least one sample");
    CHECK_CODE(t, sampler_init(&sampler, 1, 0, HVD_BATCH_GLOBAL, 0, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "batch is 0");
    CHECK_CODE(t, sampler_init(&sampler, 1, 1, (hvd_batch_mode)2, 0, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "mode is 2; give HVD_BATCH_GLOBAL or HVD_BATCH_LOCAL");
    CHECK_CODE(t, sampler_init(&sampler, LIMIT_SAMPLES + 1, 1, HVD_BATCH_GLOBAL, 0, &err),
               HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "more than LIMIT_SAMPLES (2^48)");
    CHECK_CODE(t, sampler_init(&sampler, 1, LIMIT_BATCH_SAMPLES + 1, HVD_BATCH_GLOBAL, 0, &err),
               HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "more than LIMIT_BATCH_SAMPLES (2^32)");
    CHECK_INT(t, sampler.samples, ==, 77);
}

TEST(a_foreign_progress_is_noticed)
{
    struct sampler_place place = { 0, 1, 1 };
    hvd_batch batch = { .total = 77 };

    CHECK_OK(t, sampler_init(&sampler, 10, 4, HVD_BATCH_GLOBAL, 0, NULL));
    sampler.progress.used = 11;
    CHECK_CODE(t, sampler_next(&sampler, &place, &batch), HVD_E_CORRUPT);
    CHECK_INT(t, sampler.progress.used, ==, 11);
    CHECK_INT(t, batch.total, ==, 77);
}

TEST(the_largest_numbers_are_no_trouble)
{
    uint32_t ranks[] = { 0, 1, LIMIT_WORKERS / 2, LIMIT_WORKERS - 1 };
    hvd_batch batch;

    CHECK_OK(t, sampler_init(&sampler, LIMIT_SAMPLES, LIMIT_BATCH_SAMPLES, HVD_BATCH_GLOBAL,
                             UINT64_MAX, NULL));
    for (size_t i = 0; i < ARRAY_SIZE(ranks); i++) {
        struct sampler_place place = { ranks[i], LIMIT_WORKERS, LIMIT_WORKERS };

        sampler.progress = (struct sampler_progress){ UINT64_MAX - 1, LIMIT_SAMPLES / 2 };
        CHECK_OK(t, sampler_next(&sampler, &place, &batch));
        CHECK_INT(t, batch.count, ==, LIMIT_BATCH_SAMPLES / LIMIT_WORKERS);
        CHECK_INT(t, batch.total, ==, LIMIT_BATCH_SAMPLES);
        CHECK(t, batch.samples[0] < LIMIT_SAMPLES);
    }
}
