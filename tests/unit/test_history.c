/*
 * test_history.c: what events.log tells of a job: changes as cost.c writes them, also over several
 * drivers and two files; lines that are not of a driver; how much is kept; and the file of
 * the page around it.
 */
#include "driver/control/history.h"

#include "base/limits.h"
#include "base/stamp.h"
#include "base/time.h"
#include "driver/control/page_file.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>

#define T "2026-11-21T07:36:04.743Z "

static struct buf out, log_text;

static void begin_case(struct test *t)
{
    (void)t;
    buf_init(&out, LIMIT_ANSWER_BYTES);
    buf_init(&log_text, LIMIT_ANSWER_BYTES);
}

static void end_case(struct test *t)
{
    (void)t;
    buf_release(&out);
    buf_release(&log_text);
}
FIXTURE(begin_case, end_case)

/* The history of one or two files; NULL: there is no memory. */
static const char *tell(const char *older, const char *newer, const char *since)
{
    const struct span texts[HISTORY_TEXTS] = {
        {older,  strlen(older)},
        { newer, strlen(newer)}
    };

    buf_clear(&out);
    return history_write(texts, since, &out) ? NULL : buf_text(&out);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        count++;
    return count;
}

TEST(no_events)
{
    const char *told = tell("", "", "");

    CHECK(t, told);
    CHECK_TEXT(t, told, "{\"began\":null,\"changes\":[],\"events\":[]}");
    told = tell("", "\n\n \n", "");
    CHECK(t, told);
    CHECK_TEXT(t, told, "{\"began\":null,\"changes\":[],\"events\":[]}");
}

/* The lines are those of tests/stories/golden. The second "round 1" is that of a driver that has
 * taken the job over. */
TEST(changes)
{
    const char *told = tell(
        T "round 1: all 4 train (first 12ms: rebuild 0s, state 1ms, first step 2ms)\n" T
          "debug: a:0#1 is ready\n" T "round 1: all 4 train\n",
        T "round 2: all 3 train (recovery 14.4ms: detect 3.1s, agree 3.08ms, rebuild 1.5s, state "
          "1m30s, first step 7us)\n2026-11-21T07:36:05.000Z round 3: all 5 train (switch 151ms: "
          "agree 16.4ms "
          "beside it, rebuild 200us, state 50ms, first step 151ms)\n" T "round 5: all 2 train\n",
        "");

    CHECK(t, told);
    CHECK_HAS(t, told, "{\"began\":\"2026-11-21T07:36:04.743Z\",\"changes\":[{\"round\":1,");
    CHECK_HAS(
        t, told,
        "[{\"round\":1,\"cause\":\"first\",\"from\":0,\"to\":4,"
        "\"ended\":\"2026-11-21T07:36:04.743Z\",\"pause_us\":12000,\"detect_us\":0,\"agree_us\":0,"
        "\"rebuild_us\":0,\"state_us\":1000,\"first_step_us\":2000},{");
    CHECK_HAS(t, told,
              "{\"round\":2,\"cause\":\"recovery\",\"from\":4,\"to\":3,"
              "\"ended\":\"2026-11-21T07:36:04.743Z\",\"pause_us\":14400,\"detect_us\":3100000,"
              "\"agree_us\":3080,"
              "\"rebuild_us\":1500000,\"state_us\":90000000,\"first_step_us\":7},{");
    CHECK_HAS(t, told,
              "{\"round\":3,\"cause\":\"switch\",\"from\":3,\"to\":5,"
              "\"ended\":\"2026-11-21T07:36:05.000Z\",\"pause_us\":151000,\"detect_us\":0,\"agree_"
              "us\":16400,"
              "\"rebuild_us\":200,\"state_us\":50000,\"first_step_us\":151000},{");
    CHECK_HAS(t, told, "{\"round\":5,\"cause\":\"unknown\",\"from\":5,\"to\":2,");
    CHECK_INT(t, count_of(told, "\"cause\""), ==, 4);
    CHECK_INT(t, count_of(told, "\"severity\""), ==, 6);
    CHECK_HAS(t, told,
              "{\"number\":2,\"time\":\"2026-11-21T07:36:04.743Z\",\"severity\":\"debug\","
              "\"text\":\"a:0#1 is ready\"}");
}

/* No line of another kind is a change; one that is cut in its costs has a size, and no costs. */
/* Changes for the verb: the newest of them, on the clock of the caller. */
TEST(the_newest_changes)
{
    static const char text[] =
        "2026-11-21T07:36:00.000Z round 1: all 4 train (first 12ms: rebuild 0s, state 1ms, first "
        "step 2ms)\n"
        "2026-11-21T07:36:01.500Z round 2: all 3 train\n"
        "2026-11-21T07:36:99.500Z round 3: all 5 train\n"
        "2026-11-21T07:36:03.000Z round 4: all 2 train (recovery 14.4ms: agree 3.08ms, rebuild "
        "1.5s, state 1m30s, first step 7us)\n";
    const struct span texts[HISTORY_TEXTS] = {
        {text, strlen(text)},
        { "",  0           }
    };
    int64_t wall_us; /* of the last line */
    struct view_change changes[4];

    CHECK(t, stamp_read((struct span){ "2026-11-21T07:36:03Z", 20 }, &wall_us));
    CHECK_INT(t, history_changes(texts, "", 10 * TIME_S, wall_us, changes, 4), ==, 3);
    CHECK_INT(t, changes[0].ended_us, ==, 7 * TIME_S);
    CHECK_INT(t, changes[0].cause, ==, CAUSE_FIRST);
    CHECK_INT(t, changes[1].cause, ==, CAUSE_COUNT);
    CHECK_INT(t, changes[1].from, ==, 4);
    CHECK_INT(t, changes[1].to, ==, 3);
    CHECK_INT(t, changes[1].ended_us, ==, 8500 * TIME_MS);
    CHECK_INT(t, changes[2].round, ==, 4);
    CHECK_INT(t, changes[2].from, ==, 5);
    CHECK_INT(t, changes[2].pause_us, ==, 14400);
    CHECK_INT(t, history_changes(texts, "", 10 * TIME_S, wall_us, changes, 1), ==, 1);
    CHECK_INT(t, changes[0].round, ==, 4);
    CHECK_INT(t, history_changes(texts, "2027", 10 * TIME_S, wall_us, changes, 4), ==, 0);
}

TEST(lines_that_are_no_changes)
{
    static const char *const lines[] = {
        "round 1: all 4 training",
        "round 0: all 4 train",
        "round 1: all 0 train",
        "round -1: all 4 train",
        "round 18446744073709551616: all 4 train",
        "round 1: all 4294967296 train",
        "round 1: all four train",
        "round 1",
        "round ",
        "around 1: all 4 train",
        "warning: node: round 1: all 4 train",
    };
    static const char *const cut[] = {
        "round 1: all 4 train",
        "round 1: all 4 train (",
        "round 1: all 4 train (recovery",
        "round 1: all 4 train (recovery 1ms",
        "round 1: all 4 train (recovery 1ms: agree 1ms, rebuild 1ms, state 1ms, first step 1ms",
        "round 1: all 4 train (nothing 1ms: agree 1ms, rebuild 1ms, state 1ms, first step 1ms)",
        "round 1: all 4 train (first never: rebuild 1ms, state 1ms, first step 1ms)",
        "round 1: all 4 train (first -1ms: rebuild 1ms, state 1ms, first step 1ms)",
    };
    char text[256];
    const char *told;

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        snprintf(text, sizeof(text), T "%s", lines[i]);
        told = tell("", text, "");
        CHECK(t, told);
        /* "round 1: all 4 training" begins as a change does, and its rest is not understood */
        CHECK_INT(t, count_of(told, "\"cause\""), ==, i ? 0 : 1);
        CHECK_INT(t, count_of(told, "\"severity\""), ==, 1);
    }
    for (size_t i = 0; i < ARRAY_SIZE(cut); i++) {
        snprintf(text, sizeof(text), T "%s", cut[i]);
        told = tell("", text, "");
        CHECK(t, told);
        CHECK_HAS(t, told, "\"cause\":\"unknown\",\"from\":0,\"to\":4,");
        CHECK_HAS(t, told, "\"pause_us\":0,\"detect_us\":0,\"agree_us\":0,\"rebuild_us\":0,");
    }
}

/* A state directory may have the log of an earlier job. */
TEST(lines_of_an_earlier_job)
{
    const char *told = tell("2026-11-21T07:00:00.000Z round 7: all 9 train\n"
                            "2026-11-21T08:00:00.000Z round 1: all 4 train\n",
                            "", "2026-11-21T07:30:00.000Z");

    CHECK(t, told);
    CHECK_HAS(t, told, "{\"began\":\"2026-11-21T08:00:00.000Z\",");
    CHECK_HAS(t, told, "[{\"round\":1,\"cause\":\"unknown\",\"from\":0,\"to\":4,");
    CHECK_INT(t, count_of(told, "\"severity\""), ==, 1);
}

/* Of a long log the newest events stay, and warnings that are older. */
TEST(how_much_is_kept)
{
    const size_t lines = 3 * HISTORY_EVENTS;
    const char *told;

    for (size_t i = 1; i <= lines; i++)
        CHECK_OK(t, buf_printf(&log_text, T "%sround %zu: all %zu train\n",
                               i % 2 ? "" : "warning: ", i, i));
    told = tell("", buf_text(&log_text), "");
    CHECK(t, told);
    CHECK_INT(t, count_of(told, "\"cause\""), ==, HISTORY_CHANGES);
    CHECK_INT(t, count_of(told, "\"severity\""), ==, HISTORY_EVENTS);
    CHECK_HAS(t, told, "{\"number\":4500,");
    CHECK_HAS(t, told, "{\"number\":3001,");
    CHECK(t, !strstr(told, "{\"number\":3000,"));
    buf_clear(&log_text);
    for (size_t i = 1; i <= lines; i++)
        CHECK_OK(t, buf_printf(&log_text, T "%sline\n", i % 5 ? "" : "error: "));
    told = tell("", buf_text(&log_text), "");
    CHECK(t, told);
    CHECK_INT(t, count_of(told, "\"error\""), ==, HISTORY_GRAVE);
    CHECK_INT(t, count_of(told, "\"severity\""), ==,
              HISTORY_EVENTS + HISTORY_GRAVE - HISTORY_EVENTS / 5);
}

/* An event has its facts, and one that is torn inside a fact has those before it. A change ignores
 * facts. */
TEST(facts)
{
    const char *told =
        tell("",
             T "round 1: all 4 train\tjob=j\tkind=round_trains\tround=1\n" T
               "warning: a:1#2: killed\tjob=j\tkind=worker_failed\tround=1\tcause=<b>\n" T
               "hosts: -b\tkind=hosts_changed\tround=12\t\n",
             "");

    CHECK(t, told);
    CHECK_HAS(t, told, "\"changes\":[{\"round\":1,\"cause\":\"unknown\",\"from\":0,\"to\":4,");
    CHECK_HAS(t, told,
              "\"text\":\"a:1#2: killed\",\"job\":\"j\",\"kind\":\"worker_failed\",\"round\":1,"
              "\"cause\":\"<b>\"}");
    CHECK_HAS(t, told, "\"text\":\"hosts: -b\",\"kind\":\"hosts_changed\"}]}");
}

/* No text of the job ends the element that has the data. */
TEST(the_file_of_a_page)
{
    const char *told = tell(
        "", T "</script><script>alert(1)</script> <!-- \"quotes\" 'too' \\ \x01 \xff &lt;\n", "");

    CHECK(t, told);
    CHECK_OK(t, page_file_write(told, out.length, &log_text));
    told = buf_text(&log_text);
    CHECK_HAS(t, told,
              "\"text\":\"\\u003c/script>\\u003cscript>alert(1)\\u003c/script> \\u003c!-- "
              "\\\"quotes\\\" 'too' \\\\ \\u0001 \\ufffd &lt;\"}]}</script>\n");
    CHECK_INT(t, count_of(told, "</script>"), ==, 2);
    CHECK_INT(t, count_of(told, "<script"), ==, 2);
    CHECK_HAS(t, told,
              "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ");
    CHECK(t, strstr(told, "Content-Security-Policy") < strstr(told, "<style>"));
    CHECK(t, !strstr(told, "connect-src"));
    CHECK_HAS(t, told, "</html>\n");
}
