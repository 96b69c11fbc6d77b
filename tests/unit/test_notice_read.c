/*
 * test_notice_read.c: the answers of metadata services, the lines of files and commands,
 * and the settings of schedulers: what is read, and what is refused.
 */
#include "agent/notice/notice_grace.h"
#include "agent/notice/notice_read.h"

#include "base/time.h"
#include "tests/lib/test.h"

#include <string.h>

#define S TIME_S

static struct span span_of(const char *text)
{
    return (struct span){ text, strlen(text) };
}

TEST(a_moment_comes_or_is_nonsense)
{
    int64_t left_us = 1;

    CHECK_INT(t, notice_left(1000 * S, 880 * S, &left_us), ==, NOTICE_COMES);
    CHECK_INT(t, left_us, ==, 120 * S);
    CHECK_INT(t, notice_left(1000 * S, 1030 * S, &left_us), ==, NOTICE_COMES);
    CHECK_INT(t, left_us, ==, NOTICE_LEAST_US);
    CHECK_INT(t, notice_left(1000 * S, 1000 * S + TIME_HOUR, &left_us), ==, NOTICE_OLD);
    CHECK_INT(t, notice_left(8 * TIME_DAY, 0, &left_us), ==, NOTICE_FAR);
    CHECK_INT(t, left_us, ==, NOTICE_LEAST_US);
out:;
}

TEST(answers_of_aws_are_read)
{
    static const char *const wrong[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"action\": \"stop\"}",
        "{\"action\": 1, \"time\": 2}",
        "{\"action\": \"stop\", \"time\": \"soon\"}",
        "<html>",
        "{\"action\": \"stop\", \"time\"",
        "{\"action\": \"a\\u0001\", \"time\": \"2017-09-18T08:22:00Z\"}"
    };
    struct notice_action action;
    int64_t noticed_us = 0;

    CHECK_OK(t, notice_read_action(
                    span_of("{\"action\": \"terminate\", \"time\": \"2017-09-18T08:22:00Z\"}"),
                    &action, NULL));
    CHECK_TEXT(t, action.action, "terminate");
    CHECK_INT(t, action.at_us, ==, 1505722920 * S);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK_CODE(t, notice_read_action(span_of(wrong[i]), &action, NULL), HVD_E_PROTO);
    CHECK_OK(t, notice_read_rebalance(span_of("{\"noticeTime\": \"2017-09-18T08:22:00Z\"}"),
                                      &noticed_us, NULL));
    CHECK_INT(t, noticed_us, ==, 1505722920 * S);
    CHECK_CODE(t, notice_read_rebalance(span_of("{}"), &noticed_us, NULL), HVD_E_PROTO);
out:;
}

#define EVENT(id, type, status, names, before)                                          \
    "{\"EventId\": \"" id "\", \"EventType\": \"" type "\", \"EventStatus\": \"" status \
    "\", \"Resources\": [" names "], \"NotBefore\": \"" before "\"}"
#define EVENTS(list) "{\"DocumentIncarnation\": 1, \"Events\": [" list "]}"
#define BEFORE       "Mon, 19 Sep 2016 18:29:47 GMT"

TEST(events_of_azure_are_read)
{
    static const struct {
        const char *text, *id;
    } rows[] = {
        {EVENTS(""),        ""                 },
        { EVENTS(EVENT("a", "Preempt",           "Scheduled", "\"vm\"", BEFORE)), "a" },
        { EVENTS(EVENT("a",         "Preempt",                    "Scheduled", "\"x\", \"vm\"", BEFORE)), "a" },
        { EVENTS(EVENT("a",                "Preempt",                   "Scheduled", "\"VM\"", BEFORE)), "" },
        { EVENTS(EVENT("a",      "Freeze","Scheduled", "\"vm\"", BEFORE)), "" },
        { EVENTS(EVENT("a",              "Reboot",                                "Started", "\"vm\"", "")), "a" },
        { EVENTS(EVENT("a","Reboot","Scheduled", "\"vm\"", "")), "" },
        { EVENTS(EVENT("",         "Reboot",                          "Started", "\"vm\"", "")), "" },
        { EVENTS(EVENT("b", "Terminate",       "Scheduled", "\"vm\"",
         "Mon, 19 Sep 2016 18:30:00 GMT") ", " EVENT("a", "Preempt", "Scheduled",
         "\"vm\"", BEFORE)),
         "a" },
        { EVENTS("7, null, {}"),         ""                   },
    };
    struct notice_event event;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(t, notice_read_events(span_of(rows[i].text), "vm", &event, NULL));
        CHECK_TEXT(t, event.id, rows[i].id);
    }
    CHECK_CODE(t, notice_read_events(span_of("{\"Events\": {}}"), "vm", &event, NULL), HVD_E_PROTO);
    CHECK_CODE(t, notice_read_events(span_of("rubbish"), "vm", &event, NULL), HVD_E_PROTO);
out:;
}

TEST(lines_of_users_are_read)
{
    static const struct {
        const char *text;
        bool empty_gives, given;
        int64_t left_us;
        const char *words;
    } rows[] = {
        {"",                               true,  true,  30 * S,     ""                            },
        { "",                              false, false, 30 * S,     ""                            },
        { "\n \n",                         false, false, 30 * S,     ""                            },
        { "90s because\nmore",             false, true,  90 * S,     "90s because"                 },
        { "now",                           false, true,  30 * S,     "now"                         },
        { "never",                         true,  true,  TIME_NEVER, "never"                       },
        { " 1970-01-01T00:02:00Z it goes", true,  true,  20 * S,     "1970-01-01T00:02:00Z it goes"},
    };
    static const char *const wrong[] = { "soon", "10x", "1970-01-20T00:00:00Z", "5s \xff" };
    struct notice_line line;
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(t, notice_read_line(span_of(rows[i].text), rows[i].empty_gives, 30 * S, 100 * S,
                                     &line, &err));
        CHECK(t, line.given == rows[i].given);
        CHECK_INT(t, line.left_us, ==, rows[i].left_us);
        CHECK_TEXT(t, line.words, rows[i].words);
    }
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK_CODE(t, notice_read_line(span_of(wrong[i]), true, 30 * S, 100 * S, &line, &err),
                   HVD_E_INVAL);
out:;
}

TEST(settings_of_slurm_are_read)
{
    static const struct {
        const char *text;
        int64_t left_us;
    } rows[] = {
        {"",                                                                     30 * S},
        { "KillWait=5\n",                                                        5 * S },
        { "# KillWait=5\nKillWait=60 # KillWait=7",                              60 * S},
        { "killwait=60\nPartitionName=low Nodes=n1 GraceTime=10 State=UP",       10 * S},
        { "KillWait=60\nPartitionName=high GraceTime=10\nPartitionName=low X=1", 60 * S},
        { "KillWait=5\nPartitionName=low GraceTime=10",                          5 * S },
        { "KillWait=x\nKillWait=\n=\nKillWait",                                  30 * S},
        { "KillWait=99999999999",                                                30 * S},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        CHECK_INT(t, notice_slurm_grace(span_of(rows[i].text), "low"), ==, rows[i].left_us);
    CHECK_INT(t, notice_slurm_grace(span_of("KillWait=9\nPartitionName=low GraceTime=1"), NULL), ==,
              9 * S);
    CHECK_INT(t, notice_slurm_signal("B:USR2@90"), ==, 90 * S);
    CHECK_INT(t, notice_slurm_signal("USR2"), ==, 60 * S);
    CHECK_INT(t, notice_slurm_signal("USR2@x"), ==, 60 * S);
    CHECK_INT(t, notice_slurm_signal(NULL), ==, 60 * S);
out:;
}
