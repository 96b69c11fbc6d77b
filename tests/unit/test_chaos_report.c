/*
 * test_chaos_report.c: the reports of chaos: sums for each kind of fault, JSON and page with
 * foreign text in them, the printed lines, and files that cannot be written.
 */
#include "base/buf.h"
#include "base/time.h"
#include "tests/chaos/report.h"
#include "tests/chaos/tally.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>

#define JSON_MAX (16 * 1024 * 1024)

static struct file_bytes read_back;

static struct tally tally;
static struct record record;
static struct steps steps;
static struct buf json, paths;

static void begin(struct test *t)
{
    (void)t;
    tally = (struct tally){ .count = 0 };
    record_init(&record);
    steps = (struct steps){ .fd = -1 };
    buf_init(&json, JSON_MAX);
    buf_init(&paths, JSON_MAX);
}

static void end(struct test *t)
{
    (void)t;
    buf_release(&paths);
    buf_release(&json);
    tally_release(&tally);
    record_release(&record);
    steps_close(&steps);
}
FIXTURE(begin, end)

static int add(const char *name, int64_t pause_us, const char *violation)
{
    struct record_fault fault = { .at_us = record.began_us + 10 * TIME_S,
                                  .pause_us = pause_us,
                                  .whole_us = 2 * pause_us,
                                  .rounds = 2,
                                  .repeated = 1 };

    snprintf(fault.name, sizeof(fault.name), "%s", name);
    snprintf(fault.deed, sizeof(fault.deed), "\"127.0.0.2\":1\t<b>#17</b> & \xff\n");
    snprintf(fault.violation, sizeof(fault.violation), "%s", violation);
    return record_fault(&record, &fault);
}

static int fill(void)
{
    static const char text[] = "1000000 1 1 4\n1010000 1 2 4\n1500000 2 2 3\n1510000 2 3 3\n";
    int rc;

    record.began_us = 1000000;
    record.ended_us = 30 * TIME_S;
    record.usual_us = 10000;
    record.seed = 7;
    snprintf(record.title, sizeof(record.title), "a \"title\" \\ <i>");
    rc = steps_take(&steps, text, strlen(text), NULL);
    if (!rc)
        rc = record_skipped(&record, "link-down: only root can");
    for (int64_t i = 1; !rc && i <= 100; i++)
        rc = add(i % 2 ? "worker-kill" : "agent-kill", i * TIME_MS,
                 i == 50 ? "a </script> & \"sum\" that is wrong" : "");
    return rc;
}

TEST(adds_up_each_kind)
{
    CHECK_OK(t, fill());
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
    tally_release(NULL);
    record_release(NULL);
}

TEST(small_samples_have_the_maximum_as_percentile)
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
}

/* true: each bracket has its end and each text its quote, so foreign text has broken nothing. */
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

TEST(json_holds_foreign_text)
{
    CHECK_OK(t, fill());
    CHECK_OK(t, report_json(&record, &steps, &json));
    CHECK(t, is_whole_json(buf_text(&json), json.length));
    CHECK_HAS(t, buf_text(&json), "\"title\":\"a \\\"title\\\" \\\\ <i>\"");
    CHECK_HAS(t, buf_text(&json),
              "\"deed\":\"\\\"127.0.0.2\\\":1\\u0009<b>#17</b> & \\ufffd\\u000a\"");
    CHECK_HAS(t, buf_text(&json), "\"violations\":1,\"hangs\":0");
    CHECK_HAS(t, buf_text(&json), "\"list\":[[0,1,1,4],[10000,1,2,4],[500000,2,2,3]");
    CHECK_HAS(t, buf_text(&json), "\"skipped\":[\"link-down: only root can\"]");
}

/* Some of many steps are left out, but none beside a change of rounds: its pause stays visible. */
TEST(json_has_both_sides_of_a_change)
{
    char line[64];

    record.usual_us = 1000;
    for (int i = 0; i < 60000; i++) {
        int length = snprintf(line, sizeof(line), "%d %d %d 4\n", i * 1000, 1 + i / 30001, i);

        CHECK_OK(t, steps_take(&steps, line, (size_t)length, NULL));
    }
    CHECK_OK(t, report_json(&record, &steps, &json));
    CHECK_HAS(t, buf_text(&json), "\"count\":60000,\"every\":4,");
    CHECK_HAS(t, buf_text(&json),
              "[29996000,1,29996,4],[30000000,1,30000,4],[30001000,2,30001,4],");
}

TEST(the_page_holds_foreign_text)
{
    char path[512];

    CHECK_OK(t, fill());
    CHECK_OK(t, report_json(&record, &steps, &json));
    snprintf(path, sizeof(path), "%s", test_dir(t));
    CHECK_OK(t, report_write(path, "report", &json, &paths, NULL));
    CHECK_HAS(t, buf_text(&paths), "/report.json\n");
    CHECK_HAS(t, buf_text(&paths), "/report.html\n");
    (void)strncat(path, "/report.html", sizeof(path) - strlen(path) - 1);
    files_read(path, &read_back);
    read_back.bytes[read_back.length] = '\0';
    CHECK_HAS(t, read_back.bytes, "a \\\"title\\\" \\\\ \\u003ci>");
    CHECK_HAS(t, read_back.bytes, "\\u003cb>#17\\u003c/b> & \\ufffd\\u000a");
    CHECK_HAS(t, read_back.bytes, "a \\u003c/script> & \\\"sum\\\" that is wrong");
    CHECK_HAS(t, read_back.bytes, "Not everything held.");
    CHECK(t, !strstr(read_back.bytes, "<b>#17"));
    CHECK(t, !strstr(read_back.bytes, "http")); /* no link to another site */
}

TEST(a_page_that_cannot_be_written_is_an_error)
{
    struct hvd_err err = { .text = "" };
    char path[512];

    CHECK_OK(t, buf_append_text(&json, "{}\n"));
    snprintf(path, sizeof(path), "%s/nowhere", test_dir(t));
    CHECK_CODE(t, report_write(path, "report", &json, NULL, &err), HVD_E_IO);
    CHECK_HAS(t, err.text, "nowhere/report.json: cannot write it");
}

/* A line without room is left out, so the case survives. */
TEST_FLAGS(the_lines_give_the_cost_of_a_fault, TEST_SURVIVES_ALLOC)
{
    CHECK_OK(t, fill());
    report_line(&record, 49, &json);
    CHECK_OK(t, report_summary(&record, &steps, &json));
    CHECK_HAS(t, buf_text(&json),
              "   50  agent-kill             stood still    50ms  whole after   "
              "100ms  2 rounds, 1 step again  ");
    CHECK_HAS(t, buf_text(&json), "VIOLATION: a </script>");
    CHECK_HAS(t, buf_text(&json), "not done: link-down: only root can\n");
    CHECK_HAS(t, buf_text(&json), "100 faults, 1 violation, 0 hangs\n");
}
