/*
 * test_numbers.c: the blacklist's list of incarnations that were counted: it rises, has a limit,
 * and goes to text and back.
 */
#include "blacklist/numbers.h"
#include "tests/lib/fixture.h"

#include <string.h>

static struct numbers with(int64_t first, int64_t last)
{
    struct numbers numbers = { .count = 0 };

    for (int64_t number = first; number <= last; number++)
        numbers_add(&numbers, number);
    return numbers;
}

static int parse(const char *text, struct numbers *ret_numbers, struct hvd_err *err)
{
    return numbers_parse((struct span){ text, strlen(text) }, "restarts", ret_numbers, err);
}

TEST(keeps_the_numbers_rising)
{
    static const int64_t added[] = { 5, 1, 9, 5, 0, 7 };
    struct numbers numbers = { .count = 0 };
    char text[NUMBERS_TEXT_MAX];

    CHECK_TEXT(t, numbers_format(&numbers, text), "");
    for (size_t i = 0; i < ARRAY_SIZE(added); i++)
        numbers_add(&numbers, added[i]);
    CHECK_TEXT(t, numbers_format(&numbers, text), "0,1,5,5,7,9");
    CHECK_INT(t, numbers_count_from(&numbers, 0), ==, 6);
    CHECK_INT(t, numbers_count_from(&numbers, 5), ==, 4);
    CHECK_INT(t, numbers_count_from(&numbers, 10), ==, 0);
    CHECK(t, numbers_had(&numbers, 7));
    CHECK(t, !numbers_had(&numbers, 6));
}

TEST(the_lowest_gives_way)
{
    struct numbers numbers = with(100, 131);

    CHECK_INT(t, numbers.count, ==, LIMIT_BLACKLIST_REMEMBERED);
    numbers_add(&numbers, 99);
    CHECK_INT(t, numbers.item[0], ==, 100);
    numbers_add(&numbers, 105);
    CHECK_INT(t, numbers.item[0], ==, 101);
    CHECK_INT(t, numbers_count_from(&numbers, 105), ==, 28);
    numbers_add(&numbers, 200);
    CHECK_INT(t, numbers.item[0], ==, 102);
    CHECK_INT(t, numbers.item[31], ==, 200);
    CHECK(t, numbers_are_valid(&numbers));
}

/* A full list takes everything below it for known; one that is not full knows what it holds. */
TEST(a_full_list_knows_all_that_is_below)
{
    struct numbers full = with(100, 131);
    struct numbers most = with(100, 130);

    CHECK(t, numbers_had(&full, 3));
    CHECK(t, !numbers_had(&most, 3));
    CHECK(t, !numbers_had(&full, 132));
    numbers_add(&full, 150);
    numbers_add(&most, 50);
    CHECK(t, !numbers_had(&full, 140)); /* in a gap, not below */
    CHECK(t, !numbers_had(&most, 60));
}

TEST(text_goes_there_and_back)
{
    struct numbers numbers = with(INT64_MAX - 31, INT64_MAX - 1);
    struct numbers back;
    char text[NUMBERS_TEXT_MAX];
    char again[NUMBERS_TEXT_MAX];

    numbers_add(&numbers, INT64_MAX);
    CHECK_INT(t, strlen(numbers_format(&numbers, text)), ==, NUMBERS_TEXT_MAX - 2);
    CHECK_OK(t, parse(text, &back, NULL));
    CHECK_TEXT(t, numbers_format(&back, again), text);
    CHECK_OK(t, parse("", &back, NULL));
    CHECK_INT(t, back.count, ==, 0);
    CHECK_OK(t, parse("4,4", &back, NULL));
    CHECK_INT(t, back.count, ==, 2);
}

TEST(refuses_other_text)
{
    static const char *const wrong[] = { ",",    "1,",  ",1",
                                         "1,,2", "-1",  "1, 2",
                                         "x",    "2,1", "9223372036854775808" };
    struct numbers numbers = with(1, 2);
    struct hvd_err err;
    char text[3 * LIMIT_BLACKLIST_REMEMBERED];

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CHECK(t, parse(wrong[i], &numbers, &err) < 0);
        CHECK_HAS(t, err.text, "restarts");
    }
    memset(text, 0, sizeof(text));
    for (size_t i = 0; i <= 2 * LIMIT_BLACKLIST_REMEMBERED; i++)
        text[i] = i % 2 ? ',' : '7';
    CHECK_CODE(t, parse(text, &numbers, &err), HVD_E_LIMIT);
    CHECK_TEXT(t, err.text, "restarts: there are more than 32 numbers");
    CHECK_INT(t, numbers.count, ==, 2);
}

TEST(validity_is_count_sign_and_order)
{
    struct numbers numbers = with(1, 3);

    CHECK(t, numbers_are_valid(&numbers));
    numbers.item[1] = 9;
    CHECK(t, !numbers_are_valid(&numbers));
    numbers = with(-1, 3);
    CHECK(t, !numbers_are_valid(&numbers));
    numbers.count = LIMIT_BLACKLIST_REMEMBERED + 1;
    CHECK(t, !numbers_are_valid(&numbers));
}
