/*
 * test_fingerprint.c: the fingerprint that all ranks compare before an operation: every part of it
 * counts, and a difference is said in words.
 */
#include "collectives/fingerprint.h"
#include "tests/lib/fixture.h"

static const struct fingerprint some = { .number = 7,
                                         .group = 3,
                                         .kind = COLL_ALLREDUCE,
                                         .type = HVD_FLOAT32,
                                         .op = HVD_SUM,
                                         .count = 10,
                                         .prescale = 1,
                                         .postscale = 1,
                                         .rank = 2 };

TEST(every_part_but_the_author_counts)
{
    struct fingerprint other = some;

    other.rank = 3;
    other.last = 4;
    CHECK(t,
          fingerprint_same(&some, &other) && fingerprint_hash(&some) == fingerprint_hash(&other));
    for (size_t i = 0; i < sizeof(some); i++) {
        if (i == offsetof(struct fingerprint, rank))
            i = offsetof(struct fingerprint, tag);
        other = some;
        ((uint8_t *)&other)[i] ^= 1;
        CHECK(t, !fingerprint_same(&some, &other) &&
                     fingerprint_hash(&some) != fingerprint_hash(&other));
    }
}

/* A difference in joined ranks is none. */
TEST(two_joins_are_the_same)
{
    struct fingerprint one = some, other = some;

    one.kind = other.kind = COLL_JOIN;
    other.last_number = 5;
    CHECK(t, fingerprint_same(&one, &other) && fingerprint_hash(&one) == fingerprint_hash(&other));
}

TEST(a_fingerprint_is_shown_as_a_sentence)
{
    struct fingerprint fingerprint = some;
    char text[FINGERPRINT_TEXT_MAX];

    fingerprint_describe(&fingerprint, text);
    CHECK_TEXT(t, text, "operation 7 is allreduce (sum) of 10 float32");
    fingerprint.prescale = 0.5;
    fingerprint_describe(&fingerprint, text);
    CHECK_TEXT(t, text,
               "operation 7 is allreduce (sum) of 10 float32, scaled by 0.5 before and 1 after");
    fingerprint.kind = COLL_REDUCESCATTER;
    fingerprint.prescale = 1;
    fingerprint_describe(&fingerprint, text);
    CHECK_TEXT(t, text,
               "operation 7 is reducescatter (sum) of float32, with counts whose checksum is a");
    fingerprint.kind = COLL_BROADCAST;
    fingerprint.root = 5;
    fingerprint_describe(&fingerprint, text);
    CHECK_TEXT(t, text, "operation 7 is broadcast of 10 float32 from rank 5");
    fingerprint.kind = COLL_ALLTOALL;
    fingerprint_describe(&fingerprint, text);
    CHECK_TEXT(t, text, "operation 7 is alltoall of float32, with counts whose checksum is a");
    fingerprint.kind = COLL_GATHER;
    fingerprint.tag = 99;
    fingerprint_describe(&fingerprint, text);
    CHECK_TEXT(
        t, text,
        "operation 7 is gather of float32 to rank 5, with counts whose checksum is a, tag 99");
    fingerprint.kind = COLL_SCATTER;
    fingerprint_describe(&fingerprint, text);
    CHECK_HAS(t, text, "scatter of float32 from rank 5, with counts whose checksum is a, tag 99");
    fingerprint.kind = COLL_REDUCE;
    fingerprint.op = HVD_MAX | 3 << FINGERPRINT_ROOT_SHIFT;
    fingerprint_describe(&fingerprint, text);
    CHECK_HAS(t, text, "reduce (max) of 10 float32 to rank 3, tag 99");
    fingerprint.kind = COLL_JOIN;
    fingerprint_describe(&fingerprint, text);
    CHECK_TEXT(t, text, "operation 7 is join");
    CHECK_TEXT(t, coll_kind_name(COLL_CLOSE + 1), "?");
}

/* A fingerprint of a peer of another version is described too. */
TEST(an_unknown_field_is_shown_as_unknown)
{
    struct fingerprint fingerprint = { .kind = 99 };
    char text[FINGERPRINT_TEXT_MAX];

    fingerprint_describe(&fingerprint, text);
    CHECK_TEXT(t, text, "operation 0 is ?");
    fingerprint = (struct fingerprint){ .number = UINT64_MAX,
                                        .kind = COLL_ALLREDUCE,
                                        .type = UINT16_MAX,
                                        .op = UINT16_MAX,
                                        .count = UINT64_MAX,
                                        .prescale = -1.23456789e-300,
                                        .postscale = -1.23456789e-300 };
    fingerprint_describe(&fingerprint, text);
    CHECK_HAS(t, text, "allreduce (?) of 18446744073709551615 ?, scaled by -1.23456789e-300");
}
