/*
 * test_vec.c: base/vec: growth within a cap, sizes that overflow, and the place of a key in a
 * sorted one.
 */
#include "base/rng.h"
#include "base/vec.h"
#include "tests/lib/fixture.h"

#include <string.h>

struct pair {
    uint64_t key;
    char text[24];
};

struct pairs VEC(struct pair);
struct bytes VEC(unsigned char);

static struct bytes bytes;
static struct pairs pairs;

static void end(struct test *t)
{
    (void)t;
    VEC_RELEASE(&bytes);
    VEC_RELEASE(&pairs);
}
FIXTURE(NULL, end)

TEST(grows_and_keeps_its_items)
{
    struct pair *it;
    uint64_t sum = 0;

    for (uint64_t i = 0; i < 1000; i++) {
        CHECK_OK(t, VEC_RESERVE(&pairs, 1, 1000));
        CHECK_INT(t, pairs.count, <, pairs.capacity);
        pairs.items[pairs.count++] = (struct pair){ .key = i, .text = "twenty-three characters" };
    }
    VEC_EACH (it, &pairs) {
        CHECK_TEXT(t, it->text, "twenty-three characters");
        sum += it->key;
    }
    CHECK_INT(t, sum, ==, 499500);
    CHECK_INT(t, pairs.capacity, ==, 1000);
}

TEST(stops_at_its_cap)
{
    struct bytes before;

    CHECK_CODE(t, VEC_RESERVE(&bytes, 4, 3), HVD_E_LIMIT);
    CHECK(t, !bytes.items && !bytes.capacity);
    CHECK_OK(t, VEC_RESERVE(&bytes, 3, 3));
    CHECK_INT(t, bytes.capacity, ==, 3);
    memcpy(bytes.items, "abc", 3);
    bytes.count = 3;
    before = bytes;
    CHECK_CODE(t, VEC_RESERVE(&bytes, 1, 3), HVD_E_LIMIT);
    CHECK_CODE(t, VEC_RESERVE(&bytes, SIZE_MAX, 3), HVD_E_LIMIT);
    CHECK_CODE(t, VEC_RESERVE(&bytes, SIZE_MAX, SIZE_MAX), HVD_E_LIMIT);
    CHECK_CODE(t, VEC_RESERVE(&bytes, 0, 2), HVD_E_LIMIT);
    CHECK_OK(t, VEC_RESERVE(&bytes, 0, 3));
    CHECK(t, !memcmp(&bytes, &before, sizeof(bytes)));
    CHECK(t, !memcmp(bytes.items, "abc", 3));
}

TEST(a_size_that_overflows_is_no_memory)
{
    CHECK_CODE(t, VEC_RESERVE(&pairs, SIZE_MAX / sizeof(struct pair) + 2, SIZE_MAX), HVD_E_NOMEM);
    CHECK_CODE(t, VEC_RESERVE(&pairs, SIZE_MAX, SIZE_MAX), HVD_E_NOMEM);
    CHECK(t, !pairs.items && !pairs.capacity);
    CHECK_OK(t, VEC_RESERVE(&pairs, 1, SIZE_MAX));
}

TEST(released_is_empty_and_usable)
{
    VEC_RELEASE(&bytes);
    CHECK_OK(t, VEC_RESERVE(&bytes, 5, 10));
    bytes.count = 5;
    VEC_RELEASE(&bytes);
    CHECK(t, !bytes.items && !bytes.count && !bytes.capacity);
    CHECK_OK(t, VEC_RESERVE(&bytes, 1, 10));
}

TEST(any_steps_reach_the_cap_and_not_past_it)
{
    struct rng rng;

    rng_seed(&rng, 11);
    for (int round = 0; round < 100; round++) {
        size_t max = (size_t)rng_below(&rng, 300);
        size_t more;

        while (more = (size_t)rng_below(&rng, 40), bytes.count + more <= max) {
            CHECK_OK(t, VEC_RESERVE(&bytes, more, max));
            CHECK_INT(t, bytes.capacity, <=, max);
            if (more)
                memset(bytes.items + bytes.count, 'x', more);
            bytes.count += more;
        }
        CHECK_CODE(t, VEC_RESERVE(&bytes, more, max), HVD_E_LIMIT);
        VEC_RELEASE(&bytes);
    }
}

static uint64_t byte_of(const void *item)
{
    return *(const unsigned char *)item;
}

TEST(finds_the_place_of_a_key)
{
    static const unsigned char items[] = { 3, 5, 5, 9 };
    const struct {
        const unsigned char *items;
        size_t count;
    } vec = { items, sizeof(items) };

    CHECK_INT(t, VEC_PLACE(&vec, byte_of, 0), ==, 0);
    CHECK_INT(t, VEC_PLACE(&vec, byte_of, 3), ==, 0);
    CHECK_INT(t, VEC_PLACE(&vec, byte_of, 5), ==, 1);
    CHECK_INT(t, VEC_PLACE(&vec, byte_of, 6), ==, 3);
    CHECK_INT(t, VEC_PLACE(&vec, byte_of, 10), ==, 4);
    CHECK_INT(t, vec_place(NULL, 0, 1, byte_of, 7), ==, 0);
}
