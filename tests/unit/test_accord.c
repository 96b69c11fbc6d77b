#include "collectives/accord.h"
#include "tests/lib/test.h"

static const struct accord some = { .number = 7,
                                    .group = 3,
                                    .kind = COLL_ALLREDUCE,
                                    .type = HVD_FLOAT32,
                                    .op = HVD_SUM,
                                    .count = 10,
                                    .prescale = 1,
                                    .postscale = 1,
                                    .rank = 2 };

static bool differs(const struct accord *other)
{
    return !accord_same(&some, other) && accord_sum(&some) != accord_sum(other);
}

static void every_part_but_the_author_counts(struct test *t)
{
    struct accord other = some;

    other.rank = 3;
    other.last = 4;
    other.last_number = 5;
    CHECK(t, accord_same(&some, &other) && accord_sum(&some) == accord_sum(&other));
    for (size_t i = 0; i < offsetof(struct accord, rank); i++) {
        other = some;
        ((uint8_t *)&other)[i] ^= 1;
        CHECK(t, differs(&other));
    }
out:;
}

static void it_is_said_for_people(struct test *t)
{
    struct accord accord = some;
    char text[ACCORD_TEXT_MAX];

    accord_describe(&accord, text);
    CHECK_TEXT(t, text, "operation 7 is allreduce (sum) of 10 float32");
    accord.prescale = 0.5;
    accord_describe(&accord, text);
    CHECK_TEXT(t, text,
               "operation 7 is allreduce (sum) of 10 float32, scaled by 0.5 before and 1 after");
    accord.kind = COLL_REDUCESCATTER;
    accord.prescale = 1;
    accord_describe(&accord, text);
    CHECK_TEXT(t, text, "operation 7 is reducescatter (sum) of float32 with counts of sum a");
    accord.kind = COLL_BROADCAST;
    accord.root = 5;
    accord_describe(&accord, text);
    CHECK_TEXT(t, text, "operation 7 is broadcast of 10 float32 from rank 5");
    accord.kind = COLL_ALLTOALL;
    accord_describe(&accord, text);
    CHECK_TEXT(t, text, "operation 7 is alltoall of float32 with counts of sum a");
    accord.kind = COLL_JOIN;
    accord_describe(&accord, text);
    CHECK_TEXT(t, text, "operation 7 is join");
out:;
}

/* What comes from a peer of another version is described too. */
static void what_is_not_known_is_said_to_be(struct test *t)
{
    struct accord accord = { .kind = 99 };
    char text[ACCORD_TEXT_MAX];

    accord_describe(&accord, text);
    CHECK_TEXT(t, text, "operation 0 is ?");
    accord = (struct accord){ .number = UINT64_MAX,
                              .kind = COLL_ALLREDUCE,
                              .type = UINT16_MAX,
                              .op = UINT32_MAX,
                              .count = UINT64_MAX,
                              .prescale = -1.23456789e-300,
                              .postscale = -1.23456789e-300 };
    accord_describe(&accord, text);
    CHECK_HAS(t, text, "allreduce (?) of 18446744073709551615 ?, scaled by -1.23456789e-300");
out:;
}

TESTS(CASE(every_part_but_the_author_counts), CASE(it_is_said_for_people),
      CASE(what_is_not_known_is_said_to_be))
