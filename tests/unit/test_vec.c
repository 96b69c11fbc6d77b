#include "base/err.h"
#include "base/rng.h"
#include "base/vec.h"
#include "tests/lib/test.h"

#include <string.h>

struct pair {
    uint64_t key;
    char text[24];
};

struct pairs VEC(struct pair);
struct bytes VEC(unsigned char);

static void grows_and_keeps_its_items(struct test *t)
{
    struct pairs pairs = { 0 };
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
out:
    VEC_RELEASE(&pairs);
}

static void stops_at_its_cap(struct test *t)
{
    struct bytes bytes = { 0 };
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
out:
    VEC_RELEASE(&bytes);
}

static void a_size_that_overflows_is_no_memory(struct test *t)
{
    struct pairs pairs = { 0 };

    CHECK_CODE(t, VEC_RESERVE(&pairs, SIZE_MAX / sizeof(struct pair) + 2, SIZE_MAX), HVD_E_NOMEM);
    CHECK_CODE(t, VEC_RESERVE(&pairs, SIZE_MAX, SIZE_MAX), HVD_E_NOMEM);
    CHECK(t, !pairs.items && !pairs.capacity);
    CHECK_OK(t, VEC_RESERVE(&pairs, 1, SIZE_MAX));
out:
    VEC_RELEASE(&pairs);
}

static void released_is_empty_and_usable(struct test *t)
{
    struct bytes bytes = { 0 };

    VEC_RELEASE(&bytes);
    CHECK_OK(t, VEC_RESERVE(&bytes, 5, 10));
    bytes.count = 5;
    VEC_RELEASE(&bytes);
    CHECK(t, !bytes.items && !bytes.count && !bytes.capacity);
    CHECK_OK(t, VEC_RESERVE(&bytes, 1, 10));
out:
    VEC_RELEASE(&bytes);
    VEC_RELEASE(&bytes);
}

static void any_steps_reach_the_cap_and_not_past_it(struct test *t)
{
    struct bytes bytes = { 0 };
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
out:
    VEC_RELEASE(&bytes);
}

TESTS(CASE(grows_and_keeps_its_items), CASE(stops_at_its_cap),
      CASE(a_size_that_overflows_is_no_memory), CASE(released_is_empty_and_usable),
      CASE(any_steps_reach_the_cap_and_not_past_it))
