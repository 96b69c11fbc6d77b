/* test_value_table.c: what each call does to a value, and the limits of all values together. */
#include "proto/value_table.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>

static struct value_table table;
static struct value_outcome outcome;

static void end_case(struct test *t)
{
    (void)t;
    value_table_release(&table);
}
FIXTURE(NULL, end_case)

static struct msg_bytes bytes_of(const char *text)
{
    return (struct msg_bytes){ (const uint8_t *)text, strlen(text) };
}

static int apply(enum msg_store_op op, uint64_t round, const char *key, const char *value,
                 const char *expected)
{
    struct msg_store call = { .op = op, .key = key, .absent = !expected };

    if (value)
        call.value = bytes_of(value);
    if (expected)
        call.expected = bytes_of(expected);
    return value_table_apply(&table, round, &call, &outcome);
}

static bool is(const char *text)
{
    return outcome.value.length == strlen(text) &&
           !memcmp(outcome.value.at, text, outcome.value.length);
}

TEST(a_value_is_set_got_and_deleted)
{
    CHECK_CODE(t, apply(STORE_GET, 0, "k", NULL, NULL), HVD_E_NOTFOUND);
    CHECK_TEXT(t, outcome.text, "the key has no value");
    CHECK_OK(t, apply(STORE_SET, 0, "k", "one", NULL));
    CHECK_OK(t, apply(STORE_SET, 0, "j", "", NULL));
    CHECK_OK(t, apply(STORE_SET, 0, "k", "three", NULL));
    CHECK_OK(t, apply(STORE_GET, 0, "k", NULL, NULL));
    CHECK(t, is("three"));
    CHECK_OK(t, apply(STORE_WAIT, 0, "j", NULL, NULL));
    CHECK(t, is(""));
    CHECK_OK(t, apply(STORE_DELETE, 0, "k", NULL, NULL));
    CHECK_CODE(t, apply(STORE_DELETE, 0, "k", NULL, NULL), HVD_E_NOTFOUND);
    CHECK_INT(t, table.entries.count, ==, 1);
}

TEST(a_round_has_values_of_its_own)
{
    CHECK_OK(t, apply(STORE_SET, 0, "k", "job", NULL));
    CHECK_OK(t, apply(STORE_SET, 3, "k", "three", NULL));
    CHECK_OK(t, apply(STORE_SET, 4, "k", "four", NULL));
    CHECK_OK(t, apply(STORE_SET, 5, "k", "five", NULL));
    value_table_keep(&table, 5, 4);
    CHECK_CODE(t, apply(STORE_GET, 3, "k", NULL, NULL), HVD_E_NOTFOUND);
    value_table_keep(&table, 5, 0);
    CHECK_CODE(t, apply(STORE_GET, 4, "k", NULL, NULL), HVD_E_NOTFOUND);
    CHECK_OK(t, apply(STORE_GET, 5, "k", NULL, NULL));
    CHECK_OK(t, apply(STORE_GET, 0, "k", NULL, NULL));
    CHECK(t, is("job"));
}

TEST(a_sum_is_a_decimal_number)
{
    CHECK_OK(t, apply(STORE_ADD, 0, "n", "17", NULL));
    CHECK_OK(t, apply(STORE_ADD, 0, "n", "-20", NULL));
    CHECK(t, is("-3"));
    CHECK_OK(t, apply(STORE_GET, 0, "n", NULL, NULL));
    CHECK(t, is("-3"));
    CHECK_CODE(t, apply(STORE_ADD, 0, "n", "1e3", NULL), HVD_E_INVAL);
    CHECK_CODE(t, apply(STORE_ADD, 0, "n", "", NULL), HVD_E_INVAL);
    CHECK_CODE(t, apply(STORE_ADD, 0, "n", "9223372036854775808", NULL), HVD_E_INVAL);
    CHECK_OK(t, apply(STORE_SET, 0, "n", "9223372036854775807", NULL));
    CHECK_CODE(t, apply(STORE_ADD, 0, "n", "1", NULL), HVD_E_LIMIT);
    CHECK_HAS(t, outcome.text, "64 bits");
    CHECK_OK(t, apply(STORE_SET, 0, "n", "-9223372036854775808", NULL));
    CHECK_OK(t, apply(STORE_ADD, 0, "n", "1", NULL));
    CHECK(t, is("-9223372036854775807"));
    CHECK_OK(t, apply(STORE_SET, 0, "n", "text", NULL));
    CHECK_CODE(t, apply(STORE_ADD, 0, "n", "1", NULL), HVD_E_INVAL);
}

TEST(a_value_changes_only_if_it_is_the_expected_one)
{
    CHECK_CODE(t, apply(STORE_COMPARE_SET, 0, "k", "a", "x"), HVD_E_NOTFOUND);
    CHECK_OK(t, apply(STORE_COMPARE_SET, 0, "k", "a", NULL));
    CHECK_CODE(t, apply(STORE_COMPARE_SET, 0, "k", "b", NULL), HVD_E_MISMATCH);
    CHECK(t, is("a"));
    CHECK_CODE(t, apply(STORE_COMPARE_SET, 0, "k", "b", "x"), HVD_E_MISMATCH);
    CHECK_OK(t, apply(STORE_COMPARE_SET, 0, "k", "", "a"));
    CHECK_OK(t, apply(STORE_COMPARE_SET, 0, "k", "c", ""));
    CHECK_OK(t, apply(STORE_GET, 0, "k", NULL, NULL));
    CHECK(t, is("c"));
}

TEST_FLAGS(all_values_together_have_a_limit, TEST_NO_TORTURE)
{
    static const uint8_t much[LIMIT_STORE_VALUE_BYTES];
    const struct msg_bytes value = { much, sizeof(much) };
    char key[16];
    int rc = 0;
    int i;

    for (i = 0; !rc; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        rc = value_table_set(&table, 0, key, value);
    }
    CHECK_CODE(t, rc, HVD_E_LIMIT);
    CHECK_INT(t, table.bytes, <=, LIMIT_STORE_BYTES);
    CHECK_INT(t, i, >, LIMIT_STORE_BYTES / LIMIT_STORE_VALUE_BYTES - 3);
    CHECK_OK(t, value_table_set(&table, 0, "k7", value)); /* replaced, so nothing is added */
    CHECK_CODE(t,
               apply(STORE_ADD, 0,
                     "a long key that has no value and must have its room in the "
                     "table, of which there is none left; this text is longer "
                     "than the rest of the room is",
                     "1", NULL),
               0);
    for (rc = 0, i = 0; !rc; i++) {
        snprintf(key, sizeof(key), "n%d", i);
        rc = apply(STORE_SET, 0, key, "", NULL);
    }
    CHECK_CODE(t, rc, HVD_E_LIMIT);
    CHECK_HAS(t, outcome.text, "LIMIT_STORE_BYTES");
    CHECK_OK(t, value_table_delete(&table, 0, "k7"));
    CHECK_OK(t, apply(STORE_SET, 0, key, "", NULL));
}
