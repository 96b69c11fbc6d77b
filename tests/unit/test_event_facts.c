/*
 * test_event_facts.c: the facts of an event as a text and as JSON: each field comes through, names
 * from outside break neither, and damage costs one field.
 */
#include "base/time.h"
#include "driver/control/event_facts.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>

static struct buf out;

static void begin(struct test *t)
{
    (void)t;
    buf_init(&out, 1 << 16);
}

static void end(struct test *t)
{
    (void)t;
    buf_release(&out);
}
FIXTURE(begin, end)

/* Returns the JSON of the text; NULL without memory. */
static const char *as_json(const char *text)
{
    struct json json = { .out = &out };

    buf_clear(&out);
    json_open(&json, NULL, '{');
    event_facts_json(text, &json);
    json_close(&json, '}');
    return json.rc ? NULL : buf_text(&out);
}

#define CHECK_JSON(t, text, json)         \
    do {                                  \
        const char *made = as_json(text); \
                                          \
        CHECK(t, made);                   \
        CHECK_TEXT(t, made, json);        \
    } while (0)

TEST(each_fact_is_a_field)
{
    const struct facts all = {
        .kind = KIND_WORKER_FAILED,
        .round = 7,
        .size = 3,
        .commit = (UINT64_C(6) << 32) + 12,
        .host = "a",
        .has_slot = true,
        .slot = 0,
        .incarnation = 9,
        .outcome = "failed",
        .took_us = 1500,
        .left_us = 2 * TIME_S,
        .has_cost = true,
        .cost = {1, 2, 3, 4, 5, 6},
        .cause = "exit code 3"
    };
    char text[EVENT_FACTS_MAX];

    event_facts_write("j", &all, text);
    CHECK_TEXT(
        t, text,
        "job=j\tkind=worker_failed\tround=7\tsize=3\tcommit=6.12\thost="
        "a\tslot=0\t"
        "incarnation=9\toutcome=failed\ttook_us=1500\tleft_us=2000000\tpause_us=1\t"
        "detect_us=2\tagree_us=3\trebuild_us=4\tstate_us=5\tfirst_step_us=6\tcause=exit code 3");
    CHECK_JSON(
        t, text,
        "{\"job\":\"j\",\"kind\":\"worker_failed\",\"round\":7,\"size\":3,"
        "\"commit\":\"6.12\",\"host\":\"a\",\"slot\":0,\"incarnation\":9,\"outcome\":\"failed\","
        "\"took_us\":1500,\"left_us\":2000000,\"pause_us\":1,\"detect_us\":2,"
        "\"agree_us\":3,\"rebuild_us\":4,\"state_us\":5,\"first_step_us\":6,\"cause\":\"exit code "
        "3\"}");
}

TEST(a_fact_that_is_not_known_is_left_out)
{
    char text[EVENT_FACTS_MAX];

    event_facts_write("j", NULL, text);
    CHECK_TEXT(t, text, "job=j");
    event_facts_write("j", FACTS(.kind = KIND_DRAIN_BEGUN, .left_us = TIME_NEVER, .cause = ""),
                      text);
    CHECK_TEXT(t, text, "job=j\tkind=drain_begun");
    CHECK_JSON(t, "", "{}"); /* a line of an earlier release */
}

TEST(a_hostile_name_stays_one_field)
{
    char text[EVENT_FACTS_MAX];

    event_facts_write(
        "j", FACTS(.host = "a\tround=9\n{\"\\", .cause = "x=y\x1b[2J\x7f\xff</script>"), text);
    CHECK_TEXT(t, text, "job=j\thost=a round=9 {\"\\\tcause=x=y [2J \xff</script>");
    CHECK_JSON(t, text,
               "{\"job\":\"j\",\"host\":\"a round=9 {\\\"\\\\\","
               "\"cause\":\"x=y [2J \\ufffd</script>\"}");
}

TEST(a_long_cause_is_cut_and_a_long_name_is_left_out)
{
    char long_text[2 * EVENT_FACTS_MAX];
    char text[EVENT_FACTS_MAX];

    memset(long_text, 'a', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    event_facts_write("j", FACTS(.host = long_text, .round = 2, .cause = long_text), text);
    CHECK_INT(t, strlen(text), ==, sizeof(text) - 1);
    CHECK(t, !strncmp(text, "job=j\tround=2\tcause=aaa", strlen("job=j\tround=2\tcause=aaa")));
    CHECK(t, as_json(text));
}

TEST(damage_costs_one_field)
{
    CHECK_JSON(t, "job=j\tround=12\t", "{\"job\":\"j\"}"); /* cut in "round=123" */
    CHECK_JSON(t, "job=in\t", "{}");
    CHECK_JSON(t, "\t", "{}");
    CHECK_JSON(t,
               "\t\t=\t=x\tround\tslot=\tsize=1x\tsize=2\toutcome\tincarnation=99999999999999999999"
               "\tkind=b\tkind=c\tnew=field",
               "{\"kind\":\"b\"}");
}

TEST(the_document_has_each_kind)
{
    FILE *file = fopen(HVD_SOURCE_DIR "/docs/events.md", "re");
    bool found[KIND_COUNT] = { false };
    char line[1024], row[64];

    CHECK(t, file);
    while (fgets(line, sizeof(line), file))
        for (unsigned kind = 1; kind < KIND_COUNT; kind++) {
            snprintf(row, sizeof(row), "| `%s` | ", facts_kind_name(kind));
            found[kind] = found[kind] || !strncmp(line, row, strlen(row));
        }
    (void)fclose(file);
    for (unsigned kind = 1; kind < KIND_COUNT; kind++)
        CHECK_TEXT(t, found[kind] ? NULL : facts_kind_name(kind), NULL);
}
