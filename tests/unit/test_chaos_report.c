#include "base/buf.h"
#include "base/time.h"
#include "tests/chaos/page.h"
#include "tests/chaos/plot.h"
#include "tests/chaos/report.h"
#include "tests/chaos/tally.h"
#include "tests/lib/files.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

static struct file_bytes read_back;

static int add(struct record *record, const char *name, int64_t pause_us, const char *violation)
{
    struct record_fault fault = { .at_us = record->began_us + 10 * TIME_S,
                                  .pause_us = pause_us,
                                  .whole_us = 2 * pause_us,
                                  .rounds = 2,
                                  .repeated = 1 };

    snprintf(fault.name, sizeof(fault.name), "%s", name);
    snprintf(fault.deed, sizeof(fault.deed), "\"127.0.0.2\":1\t<b>#17</b> & \xff\n");
    snprintf(fault.violation, sizeof(fault.violation), "%s", violation);
    return record_fault(record, &fault);
}

static int fill(struct record *record, struct steps *steps)
{
    static const char text[] = "1000000 1 1 4\n1010000 1 2 4\n1500000 2 2 3\n1510000 2 3 3\n";
    int rc;

    record_init(record);
    *steps = (struct steps){ .fd = -1 };
    record->began_us = 1000000;
    record->ended_us = 30 * TIME_S;
    record->usual_us = 10000;
    record->seed = 7;
    snprintf(record->title, sizeof(record->title), "a \"title\" \\ <i>");
    rc = steps_take(steps, text, strlen(text), NULL);
    if (!rc)
        rc = record_skipped(record, "link-down: only root can");
    for (int64_t i = 1; !rc && i <= 100; i++)
        rc = add(record, i % 2 ? "worker-kill" : "agent-kill", i * TIME_MS,
                 i == 50 ? "a </script> & \"sum\" that is wrong" : "");
    return rc;
}

static void adds_up_each_kind(struct test *t)
{
    struct tally tally = { .count = 0 };
    struct record record;
    struct steps steps;

    CHECK_OK(t, fill(&record, &steps));
    CHECK_OK(t, tally_take(&tally, &record));
    CHECK_INT(t, tally.count, ==, 2);
    CHECK_TEXT(t, tally.kinds[0].name, "agent-kill");
    CHECK_INT(t, tally_find(&tally, "worker-kill"), ==, 1);
    CHECK_INT(t, tally.kinds[0].violations, ==, 1);
    CHECK_INT(t, tally.kinds[1].count, ==, 50);
    CHECK_INT(t, tally.kinds[1].repeated, ==, 50);
    CHECK_INT(t, tally.all.rounds, ==, 200);
    CHECK_INT(t, tally.all.pause.median_us, ==, 50 * TIME_MS);
    CHECK_INT(t, tally.all.pause.p90_us, ==, 90 * TIME_MS);
    CHECK_INT(t, tally.all.pause.p99_us, ==, 99 * TIME_MS);
    CHECK_INT(t, tally.all.pause.most_us, ==, 100 * TIME_MS);
    CHECK_INT(t, tally.all.pause.sum_us, ==, 5050 * TIME_MS);
    CHECK_INT(t, tally.kinds[1].pause.median_us, ==, 49 * TIME_MS);
    CHECK_INT(t, tally.all.whole.most_us, ==, 200 * TIME_MS);
out:
    tally_release(&tally);
    tally_release(NULL);
    record_release(&record);
    record_release(NULL);
    steps_close(&steps);
}

static void of_few_the_most_is_every_rank(struct test *t)
{
    int64_t three[] = { 30, 10, 20 };
    struct tally_times of = tally_times(three, 3);

    CHECK_INT(t, of.median_us, ==, 20);
    CHECK_INT(t, of.p90_us, ==, 30);
    CHECK_INT(t, of.p99_us, ==, 30);
    of = tally_times(three, 1);
    CHECK_INT(t, of.median_us, ==, 10);
    CHECK_INT(t, of.most_us, ==, 10);
    of = tally_times(three, 0);
    CHECK_INT(t, of.most_us, ==, 0);
out:
    return;
}

/* Each bracket ends, and each text is closed: what foreign text cannot break. */
static bool is_whole_json(const char *text, size_t length)
{
    char open[64];
    size_t depth = 0;
    bool quoted = false;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        if (quoted) {
            if ((unsigned char)c < ' ')
                return false;
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            if (depth == sizeof(open))
                return false;
            open[depth++] = c;
        } else if (c == '}' || c == ']') {
            if (depth == 0 || open[--depth] != (c == '}' ? '{' : '['))
                return false;
        }
    }
    return depth == 0 && !quoted;
}

static void json_holds_foreign_text(struct test *t)
{
    struct record record;
    struct steps steps;
    char path[512];

    CHECK_OK(t, fill(&record, &steps));
    snprintf(path, sizeof(path), "%s/report.json", test_dir(t));
    CHECK_OK(t, report_json(&record, &steps, path, NULL));
    files_read(path, &read_back);
    CHECK(t, is_whole_json(read_back.bytes, read_back.length));
    read_back.bytes[read_back.length] = '\0';
    CHECK_HAS(t, read_back.bytes, "\"title\":\"a \\\"title\\\" \\\\ <i>\"");
    CHECK_HAS(t, read_back.bytes,
              "\"deed\":\"\\\"127.0.0.2\\\":1\\u0009<b>#17</b> & \\ufffd\\u000a\"");
    CHECK_HAS(t, read_back.bytes, "\"violations\":1,\"hangs\":0");
    CHECK_HAS(t, read_back.bytes, "\"list\":[[0,1,1,4],[10000,1,2,4],[500000,2,2,3]");
    CHECK_HAS(t, read_back.bytes, "\"skipped\":[\"link-down: only root can\"]");
out:
    record_release(&record);
    steps_close(&steps);
}

static void the_page_holds_foreign_text(struct test *t)
{
    struct record record;
    struct steps steps;
    char path[512];

    CHECK_OK(t, fill(&record, &steps));
    snprintf(path, sizeof(path), "%s/report.html", test_dir(t));
    CHECK_OK(t, report_page(&record, &steps, path, NULL));
    files_read(path, &read_back);
    read_back.bytes[read_back.length] = '\0';
    CHECK_HAS(t, read_back.bytes, "a &quot;title&quot; \\ &lt;i&gt;");
    CHECK_HAS(t, read_back.bytes, "&lt;b&gt;#17&lt;/b&gt; &amp; ? ");
    CHECK_HAS(t, read_back.bytes, "a &lt;/script&gt; &amp; &quot;sum&quot; that is wrong");
    CHECK_HAS(t, read_back.bytes, "Not everything held.");
    CHECK(t, !strstr(read_back.bytes, "<b>#17"));
    CHECK(t, !strstr(read_back.bytes, "http")); /* nothing from elsewhere */
out:
    record_release(&record);
    steps_close(&steps);
}

static void a_page_that_cannot_be_written_is_an_error(struct test *t)
{
    struct hvd_err err = { .text = "" };
    struct record record;
    struct steps steps;
    char path[512];

    CHECK_OK(t, fill(&record, &steps));
    snprintf(path, sizeof(path), "%s/nowhere/report.html", test_dir(t));
    CHECK_CODE(t, report_page(&record, &steps, path, &err), HVD_E_IO);
    CHECK_HAS(t, err.text, "nowhere/report.html: cannot write it");
    CHECK_CODE(t, report_json(&record, &steps, path, &err), HVD_E_IO);
out:
    record_release(&record);
    steps_close(&steps);
}

/* For people: what there is no room for is left out, and so survives. */
static void the_lines_say_what_it_cost(struct test *t)
{
    struct record record;
    struct steps steps;
    struct buf out;

    buf_init(&out, 1024 * 1024);
    CHECK_OK(t, fill(&record, &steps));
    report_line(&record, 49, &out);
    CHECK_OK(t, report_summary(&record, &steps, &out));
    CHECK_HAS(t, buf_text(&out),
              "   50  agent-kill             stood still    50ms  whole after   "
              "100ms  2 rounds, 1 step again  ");
    CHECK_HAS(t, buf_text(&out), "VIOLATION: a </script>");
    CHECK_HAS(t, buf_text(&out), "not done: link-down: only root can\n");
    CHECK_HAS(t, buf_text(&out), "100 faults, 1 violation, 0 hangs\n");
out:
    buf_release(&out);
    record_release(&record);
    steps_close(&steps);
}

static void scales_are_those_people_count_in(struct test *t)
{
    struct plot plot = { .from_us = 0, .until_us = 100 };

    CHECK_INT(t, plot_decades(0), ==, 3);
    CHECK_INT(t, plot_decades(TIME_S), ==, 3);
    CHECK_INT(t, plot_decades(TIME_S + 1), ==, 4);
    CHECK(t, plot_log(0, 3) <= 0 && plot_log(TIME_S, 3) >= 1);
    CHECK_INT(t, plot_x(&plot, -5), ==, PLOT_LEFT);
    CHECK_INT(t, plot_x(&plot, 50), ==, (PLOT_LEFT + PLOT_RIGHT) / 2);
    CHECK_INT(t, plot_x(&plot, 500), ==, PLOT_RIGHT);
    CHECK_TEXT(t, plot_decade(2), "100 ms");
out:
    return;
}

TESTS(CASE(adds_up_each_kind), CASE(of_few_the_most_is_every_rank), CASE(json_holds_foreign_text),
      CASE(the_page_holds_foreign_text), CASE(a_page_that_cannot_be_written_is_an_error),
      CASE_FLAGS(the_lines_say_what_it_cost, TEST_SURVIVES_ALLOC),
      CASE(scales_are_those_people_count_in))
