/*
 * test_trace.c: base/trace: a ring of the last lines, taps, and the dump of a panic.
 */
#include "base/buf.h"
#include "base/time.h"
#include "base/trace.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>

static void collect(void *arg, const char *line, enum trace_level level, const struct facts *facts)
{
    struct buf *lines = arg;

    if (buf_printf(lines, "%s%s%s\n",
                   level == TRACE_WARNING  ? "! "
                   : level == TRACE_ERROR  ? "!! "
                   : level == TRACE_DETAIL ? "- "
                                           : "",
                   line, facts ? facts_kind_name(facts->kind) : ""))
        buf_clear(lines);
}

static struct trace trace;
static struct buf lines;

static void begin(struct test *t)
{
    (void)t;
    trace = (struct trace){ 0 };
    buf_init(&lines, 1000);
}

static void end(struct test *t)
{
    (void)t;
    trace_release(&trace);
    buf_release(&lines);
}
FIXTURE(begin, end)

TEST(keeps_the_last_lines)
{
    CHECK_OK(t, trace_init(&trace, "job", 3));
    CHECK_TEXT(t, trace_line(&trace, 0), NULL);
    trace_add(&trace, 0, "one");
    CHECK_TEXT(t, trace_line(&trace, 0), "[     0.000] one");
    CHECK_TEXT(t, trace_line(&trace, 1), NULL);
    trace_add(&trace, 12345 * TIME_MS + 999, "%s is %d", "two", 2);
    trace_add(&trace, TIME_DAY * 12, "three");
    CHECK_TEXT(t, trace_line(&trace, 2), "[     0.000] one");
    CHECK_TEXT(t, trace_line(&trace, 1), "[    12.345] two is 2");
    CHECK_TEXT(t, trace_line(&trace, 0), "[1036800.000] three");
    trace_add(&trace, 1, "four");
    CHECK_TEXT(t, trace_line(&trace, 2), "[    12.345] two is 2");
    CHECK_TEXT(t, trace_line(&trace, 0), "[     0.000] four");
    CHECK_TEXT(t, trace_line(&trace, 3), NULL);
    CHECK_TEXT(t, trace_line(&trace, SIZE_MAX), NULL);
}

TEST(wraps_around_many_times)
{
    char expected[TRACE_LINE_MAX];

    CHECK_OK(t, trace_init(&trace, "job", 7));
    for (int i = 0; i < 1000; i++) {
        trace_add(&trace, i, "line %d", i);
        for (int back = 0; back < 7 && back <= i; back++) {
            snprintf(expected, sizeof(expected), "[     0.000] line %d", i - back);
            CHECK_TEXT(t, trace_line(&trace, (size_t)back), expected);
        }
    }
    CHECK_INT(t, trace.written, ==, 1000);
}

TEST(long_lines_are_cut)
{
    char big[2 * TRACE_LINE_MAX];
    const char *line;

    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    CHECK_OK(t, trace_init(&trace, "job", 2));
    trace_add(&trace, 0, "before");
    trace_add(&trace, 0, "%s", big);
    line = trace_line(&trace, 0);
    CHECK_INT(t, strlen(line), ==, TRACE_LINE_MAX - 1);
    CHECK_TEXT(t, line + TRACE_LINE_MAX - 6, "xx...");
    trace_add(&trace, 0, "%.386s", big);
    line = trace_line(&trace, 0);
    CHECK_INT(t, strlen(line), ==, TRACE_LINE_MAX - 1);
    CHECK_TEXT(t, line + TRACE_LINE_MAX - 6, "xxxxx");
    CHECK_HAS(t, trace_line(&trace, 1), "xx...");
    trace_add(&trace, 0, "%.387s", big);
    CHECK_TEXT(t, trace_line(&trace, 0) + TRACE_LINE_MAX - 6, "xx...");
}

TEST(foreign_text_makes_no_second_line)
{
    CHECK_OK(t, trace_init(&trace, "job", 1));
    trace_add(&trace, 0, "host '%s'", "a\n[     0.000] job: done\r");
    CHECK_TEXT(t, trace_line(&trace, 0), "[     0.000] host 'a [     0.000] job: done '");
}

TEST(a_tap_sees_each_line)
{
    CHECK_OK(t, trace_init(&trace, "job", 1));
    trace_set_tap(&trace, collect, &lines);
    trace_add(&trace, 0, "one");
    trace_say(&trace, TIME_S, TRACE_WARNING, NULL, "two %d", 2);
    trace_say(&trace, TIME_S, TRACE_ERROR, FACTS(.kind = KIND_JOB_OVER), "three ");
    trace_say(&trace, TIME_S, TRACE_DETAIL, NULL, "four");
    trace_set_tap(&trace, NULL, NULL);
    trace_add(&trace, 0, "unseen");
    CHECK_TEXT(t, buf_text(&lines),
               "[     0.000] one\n! [     1.000] two 2\n!! [     1.000] three job_over\n- [     "
               "1.000] four\n");
    CHECK_TEXT(t, trace_line(&trace, 0), "[     0.000] unseen");
}

TEST(a_missing_trace_is_silent)
{
    trace_add(NULL, -1, "nobody");
    trace_say(NULL, -1, TRACE_WARNING, NULL, "nobody");
    CHECK_OK(t, trace_init(&trace, "job", 1));
    trace_add(&trace, 0, "one");
    trace_release(&trace);
    CHECK_TEXT(t, trace_line(&trace, 0), NULL);
    trace_release(NULL);
}

TEST_FLAGS(a_panic_writes_the_ring_oldest_first, TEST_NO_TORTURE)
{
    struct trace job;
    struct trace slot;

    CHECK_OK(t, trace_init(&job, "job", 3));
    CHECK_OK(t, trace_init(&slot, "slot", 3));
    for (int i = 0; i < 5; i++)
        trace_add(&job, i * TIME_S, "line %d", i);
    trace_add(&slot, 0, "alone");
    CHECK_PANICS(t,
                 ": lost\n"
                 "the last 3 of 5 trace lines of job:\n"
                 "[     2.000] line 2\n[     3.000] line 3\n[     4.000] line 4\n"
                 "the last 1 of 1 trace lines of slot:\n"
                 "[     0.000] alone\n",
                 PANIC("lost"));
    trace_release(&job);
    CHECK_PANICS(t, ": lost\nthe last 1 of 1 trace lines of slot:\n", PANIC("lost"));
    trace_release(&job);
    trace_release(&slot);
}

TEST_FLAGS(refuses_impossible_traces, TEST_NO_TORTURE)
{
    int rc = 0;

    CHECK_OK(t, trace_init(&trace, "job", 1));
    CHECK_PANICS(t, "now_us >= 0", trace_add(&trace, -1, "before the epoch"));
    CHECK_PANICS(t, "lines > 0", rc = trace_init(&trace, "job", 0));
    CHECK_INT(t, rc, ==, 0);
}
