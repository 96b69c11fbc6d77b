/*
 * test_names.c: base/names: a hash table with keys of any bytes, while it grows and with equal
 * hashes.
 */
#include "base/names.h"
#include "base/rng.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>

static struct names names;

static void end_case(struct test *t)
{
    (void)t;
    names_release(&names);
}
FIXTURE(NULL, end_case)

TEST(finds_what_was_put)
{
    names_init(&names);
    CHECK_INT(t, names_find(&names, "a", 1), ==, NAMES_NONE);
    CHECK_OK(t, names_put(&names, "node-1", 6, 0));
    CHECK_OK(t, names_put(&names, "node-10", 7, 10));
    CHECK_OK(t, names_put(&names, "", 0, 7));
    CHECK_INT(t, names.count, ==, 3);
    CHECK_INT(t, names_find(&names, "node-1", 6), ==, 0);
    CHECK_INT(t, names_find(&names, "node-10", 7), ==, 10);
    CHECK_INT(t, names_find(&names, "node-1x", 6), ==, 0);
    CHECK_INT(t, names_find(&names, "", 0), ==, 7);
    CHECK_INT(t, names_find(&names, NULL, 0), ==, 7);
    CHECK_INT(t, names_find(&names, "node-", 5), ==, NAMES_NONE);
    CHECK_INT(t, names_find(&names, "Node-1", 6), ==, NAMES_NONE);
}

TEST(keys_may_hold_any_byte)
{
    names_init(&names);
    CHECK_OK(t, names_put(&names, "a\0b", 3, 1));
    CHECK_OK(t, names_put(&names, "a\0c", 3, 2));
    CHECK_OK(t, names_put(&names, "a", 1, 3));
    CHECK_OK(t, names_put(&names, "\xff\xfe", 2, NAMES_NONE - 1));
    CHECK_INT(t, names_find(&names, "a\0b", 3), ==, 1);
    CHECK_INT(t, names_find(&names, "a\0c", 3), ==, 2);
    CHECK_INT(t, names_find(&names, "a\0", 2), ==, NAMES_NONE);
    CHECK_INT(t, names_find(&names, "\xff\xfe", 2), ==, NAMES_NONE - 1);
}

TEST(a_key_is_put_once)
{
    names_init(&names);
    CHECK_OK(t, names_put(&names, "a", 1, 1));
    CHECK_CODE(t, names_put(&names, "a", 1, 2), HVD_E_EXISTS);
    CHECK_INT(t, names_find(&names, "a", 1), ==, 1);
    CHECK_INT(t, names.count, ==, 1);
}

TEST(a_refused_key_changes_nothing)
{
    static const char keys[] = "abcdefgh";
    struct names before;

    names_init(&names);
    for (uint32_t i = 0; keys[i]; i++)
        CHECK_OK(t, names_put(&names, &keys[i], 1, i));
    before = names;
    CHECK_INT(t, names.count * 2, ==, names.capacity);
    CHECK_CODE(t, names_put(&names, "a", 1, 99), HVD_E_EXISTS);
    CHECK(t, names.slots == before.slots && names.capacity == before.capacity);
    CHECK_INT(t, names.count, ==, 8);
}

/* Two texts with equal 64-bit FNV-1a hashes: only their bytes differ. */
TEST(keys_of_the_same_hash_are_told_apart)
{
    static const char one[] = "8yn0iYCKYHlIj4-BwPqk";
    static const char two[] = "GReLUrM4wMqfg9yzV3KQ";

    names_init(&names);
    CHECK_OK(t, names_put(&names, one, strlen(one), 1));
    CHECK_INT(t, names_find(&names, two, strlen(two)), ==, NAMES_NONE);
    CHECK_OK(t, names_put(&names, two, strlen(two), 2));
    CHECK_INT(t, names_find(&names, one, strlen(one)), ==, 1);
    CHECK_INT(t, names_find(&names, two, strlen(two)), ==, 2);
    CHECK_CODE(t, names_put(&names, two, strlen(two), 3), HVD_E_EXISTS);
}

/* After each growth every key is found, and no key that was not put. */
TEST(finds_all_while_growing)
{
    static char keys[2000][12];

    names_init(&names);
    for (uint32_t i = 0; i < ARRAY_SIZE(keys); i++) {
        size_t capacity = names.capacity;

        snprintf(keys[i], sizeof(keys[i]), "host-%u", i);
        CHECK_INT(t, names_find(&names, keys[i], strlen(keys[i])), ==, NAMES_NONE);
        CHECK_OK(t, names_put(&names, keys[i], strlen(keys[i]), i));
        CHECK_INT(t, names.count * 2, <=, names.capacity);
        for (uint32_t j = 0; names.capacity != capacity && j <= i; j++)
            CHECK_INT(t, names_find(&names, keys[j], strlen(keys[j])), ==, j);
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(keys); i++)
        CHECK_INT(t, names_find(&names, keys[i], strlen(keys[i])), ==, i);
    CHECK_INT(t, names_find(&names, "host-2000", 9), ==, NAMES_NONE);
    CHECK_INT(t, names.count, ==, ARRAY_SIZE(keys));
}

/* Random short keys, most of them repeated, compared with a table of all possible keys. */
TEST(agrees_with_a_table)
{
    static char keys[256][2];
    static uint32_t numbers[256];
    struct rng rng;

    memset(numbers, 0xff, sizeof(numbers));
    names_init(&names);
    rng_seed(&rng, 9);
    for (uint32_t step = 0; step < 3000; step++) {
        size_t at = (size_t)rng_below(&rng, 256);
        int expected = numbers[at] == NAMES_NONE ? 0 : HVD_E_EXISTS;

        keys[at][0] = (char)('a' + at / 16);
        keys[at][1] = (char)('a' + at % 16);
        CHECK_INT(t, names_find(&names, keys[at], 2), ==, numbers[at]);
        CHECK_CODE(t, names_put(&names, keys[at], 2, step), expected);
        if (!expected)
            numbers[at] = step;
        CHECK_INT(t, names_find(&names, keys[at], 2), ==, numbers[at]);
    }
}

TEST(released_is_empty_and_usable)
{
    names_release(NULL);
    names_init(&names);
    names_release(&names);
    CHECK_OK(t, names_put(&names, "a", 1, 1));
    names_release(&names);
    CHECK_INT(t, names_find(&names, "a", 1), ==, NAMES_NONE);
    CHECK_OK(t, names_put(&names, "a", 1, 2));
    CHECK_INT(t, names_find(&names, "a", 1), ==, 2);
}

/* names_put panics on the number NAMES_NONE, which means "not found", and on a NULL key that has a
 * length. */
TEST_FLAGS(panics_on_the_number_none_and_on_a_null_key, TEST_NO_TORTURE)
{
    int rc = 0;

    names_init(&names);
    CHECK_PANICS(t, "key && number", rc = names_put(&names, "a", 1, NAMES_NONE));
    CHECK_PANICS(t, "key && number", rc = names_put(&names, NULL, 3, 1));
    CHECK_INT(t, rc, ==, 0);
}
