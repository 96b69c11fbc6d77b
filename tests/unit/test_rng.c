/*
 * test_rng.c: base/rng: known outputs of the generator, the same run for the same seed, and no
 * favour within a bound.
 */
#include "base/rng.h"
#include "tests/lib/fixture.h"

#include <string.h>

/* The first outputs of the published generator from the state 1, 2, 3, 4. */
TEST(is_xoshiro256_starstar)
{
    static const uint64_t expected[] = { 11520, 0, 1509978240, 1215971899390074240,
                                         1216172134540287360 };
    struct rng rng;

    for (uint64_t i = 0; i < ARRAY_SIZE(rng.word); i++)
        rng.word[i] = i + 1;
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        CHECK(t, rng_next(&rng) == expected[i]);
}

/* The first outputs of the published splitmix64 from the seed 0. */
TEST(seeds_by_splitmix64)
{
    struct rng rng;

    rng_seed(&rng, 0);
    CHECK(t, rng.word[0] == UINT64_C(0xe220a8397b1dcdaf));
    CHECK(t, rng.word[1] == UINT64_C(0x6e789e6aa1b965f4));
    CHECK(t, rng.word[2] == UINT64_C(0x06c45d188009454f));
    CHECK(t, rng.word[3] == UINT64_C(0xf88bb8a8724c81ec));
}

TEST(the_same_seed_gives_the_same_run)
{
    struct rng one;
    struct rng two;
    struct rng other;
    int differ = 0;

    rng_seed(&one, 7);
    rng_seed(&two, 7);
    rng_seed(&other, 8);
    for (int i = 0; i < 1000; i++) {
        uint64_t value = rng_next(&one);

        CHECK(t, value == rng_next(&two));
        differ += value != rng_next(&other);
    }
    CHECK_INT(t, differ, ==, 1000);
}

TEST(stays_below_the_bound)
{
    static const uint64_t bounds[] = {
        1, 2, 3, 10, 1000, UINT64_C(1) << 32, (UINT64_C(1) << 63) + 1, UINT64_MAX,
    };
    struct rng rng;

    rng_seed(&rng, 1);
    for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
        for (int j = 0; j < 1000; j++)
            CHECK(t, rng_below(&rng, bounds[i]) < bounds[i]);
    }
}

TEST(bound_zero_gives_zero_and_draws_nothing)
{
    struct rng rng;
    struct rng before;

    rng_seed(&rng, 3);
    before = rng;
    CHECK_INT(t, rng_below(&rng, 0), ==, 0);
    CHECK(t, !memcmp(&rng, &before, sizeof(rng)));
}

/* 60000 throws of a die: 10000 of each, five standard deviations either way. */
TEST(is_uniform)
{
    int thrown[6] = { 0 };
    struct rng rng;

    rng_seed(&rng, 2);
    for (int i = 0; i < 60000; i++)
        thrown[rng_below(&rng, 6)]++;
    for (int i = 0; i < 6; i++) {
        CHECK_INT(t, thrown[i], >, 10000 - 457);
        CHECK_INT(t, thrown[i], <, 10000 + 457);
    }
}

/* Of three quarters of all numbers, the lower third is not drawn twice as often as the others: that
 * is what a plain remainder would do. */
TEST(does_not_favour_small_results)
{
    const uint64_t bound = UINT64_C(3) << 62;
    int low = 0;
    struct rng rng;

    rng_seed(&rng, 4);
    for (int i = 0; i < 30000; i++)
        low += rng_below(&rng, bound) < bound / 3;
    CHECK_INT(t, low, >, 10000 - 408);
    CHECK_INT(t, low, <, 10000 + 408);
}
