/*
 * test_sum.c: state/sum: the checksum is XXH3, and every byte counts.
 */
#include "state/sum.h"

#include "tests/lib/fixture.h"

/* Workers and agents of several machines compare them: they are what XXH3 says they are. */
TEST(is_xxh3)
{
    CHECK(t, sum_of("", 0) == UINT64_C(0x2d06800538d394c2));
    CHECK(t, sum_of(NULL, 0) == UINT64_C(0x2d06800538d394c2));
    CHECK(t, sum_of("a", 1) == UINT64_C(0xe6c632b61e964e1f));
    CHECK(t, sum_of("abc", 3) == UINT64_C(0x78af5f94892f3950));
}

TEST(sees_every_byte)
{
    static uint8_t bytes[5000];
    uint64_t sum = sum_of(bytes, sizeof(bytes));

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = 1;
        CHECK(t, sum_of(bytes, sizeof(bytes)) != sum);
        bytes[i] = 0;
    }
    CHECK(t, sum_of(bytes, sizeof(bytes)) == sum);
    CHECK(t, sum_of(bytes, sizeof(bytes) - 1) != sum);
    CHECK(t, sum != SUM_NONE);
}
