/*
 * test_log.c: base/log: whole lines, levels for each subsystem, foreign text that cannot steer a
 * terminal, and writers in several threads.
 */
#include "base/log.h"
#include "base/time.h"
#include "tests/lib/fixture.h"

#include <limits.h>
#include <string.h>

/* 2026-11-21T09:30:01.250Z */
#define NOW (INT64_C(1795253401) * TIME_S + 250999)

/* The lines that a sink was given since it was opened. */
static struct {
    char text[4096];
    size_t length;
    unsigned lines;
    int64_t wall_us;
} seen;

static void write_seen(void *arg, const char *line, size_t length)
{
    (void)arg;
    if (seen.length + length < sizeof(seen.text)) {
        memcpy(seen.text + seen.length, line, length);
        seen.length += length;
        seen.text[seen.length] = '\0';
    }
    seen.lines++;
}

static int64_t wall_of_seen(void)
{
    return seen.wall_us;
}

static void open_seen(void)
{
    static const struct log_sink sink = { write_seen, wall_of_seen, NULL };

    memset(&seen, 0, sizeof(seen));
    seen.wall_us = NOW;
    log_open(&sink);
}

static void end_case(struct test *t)
{
    (void)t;
    log_open(NULL);
    log_set_levels("info", NULL);
}
FIXTURE(NULL, end_case)

TEST(writes_whole_lines)
{
    open_seen();
    log_warning(HOSTS, "script failed with exit %d, keeping %d hosts", 2, 3);
    CHECK_TEXT(t, seen.text,
               "2026-11-21T09:30:01.250Z warning hosts: "
               "script failed with exit 2, keeping 3 hosts\n");
    log_error(COLL, "%s", "");
    CHECK_TEXT(t, strchr(seen.text, '\n'), "\n2026-11-21T09:30:01.250Z error coll: \n");
}

TEST(nothing_is_written_when_closed)
{
    open_seen();
    log_open(NULL);
    CHECK(t, !log_wants(LOG_JOB, LOG_ERROR));
    log_error(JOB, "unheard");
    CHECK_INT(t, seen.lines, ==, 0);
}

TEST(levels_decide_per_subsystem)
{
    open_seen();
    CHECK(t, log_wants(LOG_NET, LOG_INFO) && !log_wants(LOG_NET, LOG_DEBUG));
    CHECK_OK(t, log_set_levels("net:debug", NULL));
    CHECK(t, log_wants(LOG_NET, LOG_DEBUG) && !log_wants(LOG_JOB, LOG_DEBUG));
    CHECK_OK(t, log_set_levels("error,net:debug,coll:warning", NULL));
    CHECK(t, log_wants(LOG_NET, LOG_DEBUG));
    CHECK(t, log_wants(LOG_COLL, LOG_WARNING) && !log_wants(LOG_COLL, LOG_INFO));
    CHECK(t, log_wants(LOG_JOB, LOG_ERROR) && !log_wants(LOG_JOB, LOG_WARNING));
    CHECK_OK(t, log_set_levels("coll:debug", NULL));
    CHECK(t, log_wants(LOG_COLL, LOG_DEBUG) && !log_wants(LOG_JOB, LOG_WARNING));
    CHECK_OK(t, log_set_levels("job:warning", NULL));
    CHECK(t, log_wants(LOG_JOB, LOG_WARNING) && !log_wants(LOG_HOSTS, LOG_WARNING));
    log_info(JOB, "left out");
    log_debug(NET, "shown");
    CHECK_INT(t, seen.lines, ==, 1);
    CHECK_HAS(t, seen.text, "Z debug net: shown\n");
    CHECK_OK(t, log_set_levels("debug", NULL));
    for (int i = 0; i < LOG_SUBSYSTEM_COUNT; i++)
        CHECK(t, log_wants((enum log_subsystem)i, LOG_DEBUG));
}

TEST(a_malformed_spec_changes_nothing)
{
    static const char *const malformed[] = {
        "",       "loud",     "debug,",          ",debug",     "net:",        ":debug",    ":",
        "net",    "net:loud", "nut:debug",       "net:debug:", "debug,net:x", "debug,net", "Debug",
        " debug", "debug ",   "debug, net:info",
    };
    struct hvd_err err = { 0 };

    open_seen();
    CHECK_OK(t, log_set_levels("warning,net:info", NULL));
    for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
        CHECK_CODE(t, log_set_levels(malformed[i], &err), HVD_E_INVAL);
        CHECK_HAS(t, err.text, "unknown log ");
        for (int j = 0; j < LOG_SUBSYSTEM_COUNT; j++) {
            enum log_subsystem subsystem = (enum log_subsystem)j;

            CHECK(t, log_wants(subsystem, LOG_WARNING));
            CHECK_INT(t, log_wants(subsystem, LOG_INFO), ==, subsystem == LOG_NET);
            CHECK(t, !log_wants(subsystem, LOG_DEBUG));
        }
    }
    CHECK_CODE(t, log_set_levels("loud", &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text, "\"loud\": unknown log level; use one of error, warning, info, debug");
    CHECK_CODE(t, log_set_levels("nut:debug", &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "\"nut\": unknown log subsystem; use one of job, hosts, launch, net, store, agent, "
               "worker, state, coll");
    CHECK_CODE(t, log_set_levels("net:debug,error", &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "\"error\": a log level for all subsystems replaces the levels before it; write the "
               "level for all first");
    CHECK(t, !log_wants(LOG_NET, LOG_DEBUG) && log_wants(LOG_JOB, LOG_WARNING));
}

TEST(a_foreign_newline_makes_no_second_line)
{
    open_seen();
    log_info(NET, "peer said '%s'", "ok\n2026-11-21T09:30:01.250Z error job: lost\r\n");
    CHECK_INT(t, seen.lines, ==, 1);
    CHECK_TEXT(t, strchr(seen.text, '\n'), "\n");
    CHECK_TEXT(t, strchr(seen.text, '\''), "'ok 2026-11-21T09:30:01.250Z error job: lost  '\n");
}

TEST(foreign_text_cannot_steer_a_terminal)
{
    open_seen();
    log_info(NET, "peer said '%s'", "\x1b[2J\xc2\x9b?25l\t\x7f");
    CHECK_TEXT(t, strchr(seen.text, '\''), "' [2J  ?25l  '\n");
}

TEST(long_lines_are_cut)
{
    char big[3000];

    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    open_seen();
    log_info(NET, "%s", big);
    CHECK_INT(t, seen.lines, ==, 1);
    CHECK_INT(t, seen.length, ==, LOG_LINE_MAX);
    CHECK_HAS(t, seen.text, "250Z info net: xxx");
    CHECK_TEXT(t, seen.text + LOG_LINE_MAX - 6, "xx...\n");
    open_seen();
    log_info(NET, "%.*s", LOG_LINE_MAX - (int)strlen("2026-11-21T09:30:01.250Z info net: \n"), big);
    CHECK_INT(t, seen.length, ==, LOG_LINE_MAX);
    CHECK_TEXT(t, seen.text + LOG_LINE_MAX - 6, "xxxxx\n");
}

TEST(any_time_has_a_stamp)
{
    static const struct {
        int64_t wall_us;
        const char *stamp;
    } times[] = {
        {0,                            "1970-01-01T00:00:00.000Z info"   },
        { -1,                          "1969-12-31T23:59:59.999Z info"   },
        { -TIME_S,                     "1969-12-31T23:59:59.000Z info"   },
        { INT64_C(951782400) * TIME_S, "2000-02-29T00:00:00.000Z info"   },
        { INT64_MAX,                   "294247-01-10T04:00:54.775Z info" },
        { INT64_MIN,                   "-290308-12-21T19:59:05.224Z info"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        open_seen();
        seen.wall_us = times[i].wall_us;
        log_info(JOB, "now");
        CHECK_HAS(t, seen.text, times[i].stamp);
        CHECK_INT(t, seen.text[0], ==, times[i].stamp[0]);
    }
}

TEST(a_limit_lets_a_burst_through_per_window)
{
    struct log_limit limit = { .window_us = TIME_S, .burst = 2 };
    unsigned held = 77;

    CHECK(t, log_limit_pass(&limit, 100, &held));
    CHECK_INT(t, held, ==, 0);
    CHECK(t, log_limit_pass(&limit, 100, &held));
    held = 77;
    for (int i = 0; i < 5; i++)
        CHECK(t, !log_limit_pass(&limit, TIME_S + 99, &held));
    CHECK_INT(t, held, ==, 77);
    CHECK(t, log_limit_pass(&limit, TIME_S + 100, &held));
    CHECK_INT(t, held, ==, 5);
    CHECK(t, log_limit_pass(&limit, TIME_S + 100, &held));
    CHECK_INT(t, held, ==, 0);
    CHECK(t, !log_limit_pass(&limit, TIME_S + 100, &held));
}

TEST(a_clock_that_goes_back_holds_nothing_for_long)
{
    struct log_limit limit = { .window_us = TIME_S, .burst = 1 };
    unsigned held = 0;

    CHECK(t, log_limit_pass(&limit, TIME_DAY, &held));
    CHECK(t, !log_limit_pass(&limit, TIME_DAY, &held));
    CHECK(t, log_limit_pass(&limit, TIME_HOUR, &held));
    CHECK_INT(t, held, ==, 1);
    CHECK(t, !log_limit_pass(&limit, TIME_HOUR + TIME_S - 1, &held));
    CHECK(t, log_limit_pass(&limit, TIME_HOUR + TIME_S, &held));
}

TEST(counts_no_further_than_it_can)
{
    struct log_limit limit = { .window_us = TIME_S, .burst = 1, .held = UINT_MAX - 1 };
    unsigned held = 0;

    limit.passed = 1;
    CHECK(t, !log_limit_pass(&limit, 0, &held));
    CHECK(t, !log_limit_pass(&limit, 0, &held));
    CHECK(t, log_limit_pass(&limit, TIME_S, &held));
    CHECK(t, held == UINT_MAX);
}

TEST(a_burst_of_none_lets_nothing_through)
{
    struct log_limit limit = { .window_us = TIME_S };
    unsigned held = 77;

    for (int i = 0; i < 3; i++)
        CHECK(t, !log_limit_pass(&limit, i * TIME_DAY, &held));
    CHECK_INT(t, limit.held, ==, 3);
    CHECK_INT(t, held, ==, 77);
}
