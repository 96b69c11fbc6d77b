/*
 * test_report.c: values that a program reports, in the page of its worker: each name has a slot, a
 * slot that is half written or has garbage is not read, and names that could harm a reader are
 * refused.
 */
#include "proto/page.h"
#include "tests/lib/test.h"

#include <stdatomic.h>
#include <string.h>

static struct report_slot slots[LIMIT_REPORTS];

static struct report report_of(const char *name, double value)
{
    struct report report = { .bits = report_bits_of(value), .round = 1, .commit = 2, .said_us = 3 };

    memcpy(report.name, name, strnlen(name, sizeof(report.name)));
    return report;
}

static int put(const char *name, double value)
{
    const struct report report = report_of(name, value);

    return report_put(slots, &report);
}

TEST(each_name_has_its_newest_value)
{
    struct report report;

    memset(slots, 0, sizeof(slots));
    CHECK_INT(t, report_get(&slots[0], &report), ==, 0);
    CHECK_OK(t, put("loss", 1.5));
    CHECK_OK(t, put("accuracy", 0.25));
    CHECK_OK(t, put("loss", -1e-300));
    CHECK_INT(t, report_get(&slots[0], &report), ==, 2);
    CHECK_TEXT(t, report.name, "loss");
    CHECK(t, report_value_of(report.bits) == -1e-300);
    CHECK_INT(t, report.round, ==, 1);
    CHECK_INT(t, report.commit, ==, 2);
    CHECK_INT(t, report.said_us, ==, 3);
    CHECK_INT(t, report_get(&slots[1], &report), ==, 1);
    CHECK_TEXT(t, report.name, "accuracy");
    CHECK_INT(t, report_get(&slots[2], &report), ==, 0);
out:;
}

TEST(there_are_so_many_names_and_no_more)
{
    char name[16] = "n";
    struct report report;

    memset(slots, 0, sizeof(slots));
    for (int i = 0; i < LIMIT_REPORTS; i++) {
        name[1] = (char)('A' + i / 10);
        name[2] = (char)('0' + i % 10);
        CHECK_OK(t, put(name, i));
    }
    CHECK_INT(t, put("late", 1), ==, HVD_E_LIMIT);
    CHECK_OK(t, put("nA3", 7)); /* a known name still finds its slot */
    CHECK_INT(t, report_get(&slots[3], &report), ==, 2);
    CHECK(t, report_value_of(report.bits) == 7);
out:;
}

/* The worker dies while it writes, or another program follows it in the same process (exec). */
TEST(a_half_written_value_is_none)
{
    struct report report;

    memset(slots, 0, sizeof(slots));
    CHECK_OK(t, put("loss", 1));
    CHECK_OK(t, put("accuracy", 1));
    atomic_fetch_add(&slots[0].turn, 1);
    CHECK_INT(t, report_get(&slots[0], &report), ==, 0);
    CHECK_INT(t, report_get(&slots[1], &report), ==, 1);
    CHECK_OK(t, put("accuracy", 2)); /* its own slot, not the one that is free again */
    CHECK_INT(t, report_get(&slots[1], &report), ==, 2);
    CHECK_OK(t, put("loss", 3));
    CHECK_INT(t, report_get(&slots[0], &report), ==, 2);
    CHECK(t, report_value_of(report.bits) == 3);
out:;
}

TEST(names_that_could_harm_a_reader_are_refused)
{
    static const char *const bad[] = {
        "",
        "a b",
        "<b>",
        "a\"",
        "a'",
        "a\\",
        "\x1b[31m",
        "a\nb",
        "a\tb",
        "\xc3\xa9",
        "\xff",
        "a{b}",
        "a,b",
        "a;b",
        "a&b",
        "\xe2\x80\xae",
        "0123456789012345678901234567890123456789012345678901234567890123",
    };
    static const char *const good[] = {
        "l",     "loss/train",
        "top-1", "lr.Adam",
        "acc@5", "gpu:0",
        "a_b",   "100%",
        "x+y",   "012345678901234567890123456789012345678901234567890123456789012",
    };
    struct report report;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        CHECK(t, report_name_is_good(good[i]));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK(t, !report_name_is_good(bad[i]));
        memset(slots, 0, sizeof(slots));
        CHECK_OK(t, put(bad[i], 1)); /* a worker may write anything to its page */
        CHECK_INT(t, report_get(&slots[0], &report), ==, 0);
    }
    memset(slots, 0, sizeof(slots));
    CHECK_OK(t, put("loss", 1));
    for (size_t i = 0; i < REPORT_WORDS; i++) /* a name without an end */
        atomic_store(&slots[0].words[i], UINT64_C(0x6161616161616161));
    CHECK_INT(t, report_get(&slots[0], &report), ==, 0);
out:;
}
