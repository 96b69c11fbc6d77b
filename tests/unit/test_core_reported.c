/*
 * test_core_reported.c: what the driver keeps of the values that a program reports: the newest one
 * of each name, also if rank 0 changes; values that are old, late, doubled or not believed; the
 * series over time; and what of all this the journal has, also a shorter one.
 */
#include "driver/core/compact.h"
#include "proto/commit.h"
#include "proto/report.h"
#include "tests/lib/core_tape.h"
#include "tests/lib/fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define S               TIME_S
#define C(round, place) (COMMIT_FIRST_OF(round) | (place))

static struct core_tape tape;
static struct core_view view;

/* Of a shorter journal: the cores that read it, their view, and the memory of its texts. */
static struct core *shorter[2];
static struct core_view after;
static struct arena memory;
static struct action_list actions;

static void begin_case(struct test *t)
{
    core_view_init(&view);
    core_view_init(&after);
    arena_init(&memory, COMPACT_BYTES);
    action_list_init(&actions);
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape, TAPE_RUNNING);
}

static void end_case(struct test *t)
{
    (void)t;
    for (size_t i = 0; i < ARRAY_SIZE(shorter); i++) {
        core_free(shorter[i]);
        shorter[i] = NULL;
    }
    action_list_release(&actions);
    arena_release(&memory);
    core_view_release(&after);
    core_view_release(&view);
    tape_release(&tape);
}
FIXTURE(begin_case, end_case)

static int beat(const char *host, const struct msg_reported *reports, size_t count)
{
    struct msg msg = {
        .type = MSG_BEAT, .u.beat.reports = {reports, count}
    };
    int rc = tape_msg(&tape, tape_host(&tape, host), &msg);

    return rc ? rc : core_view(tape.core, &view);
}

/* The agent of this host says a value of a worker. Hosts a and b have two each: 1 and 2, 3 and 4;
 * worker 1 is rank 0 of round 1. */
static int say(const char *host, uint64_t incarnation, const char *name, double value,
               uint64_t said, uint64_t round, int64_t age_us)
{
    const struct msg_reported report = {
        .incarnation = incarnation,
        .name = name,
        .bits = report_bits_of(value),
        .said = said,
        .round = round,
        .commit = C(round, 1),
        .age_us = age_us,
    };

    return beat(host, &report, 1);
}

static const struct view_report *of(const char *name)
{
    static const struct view_report none;

    for (size_t i = 0; i < view.reports.count; i++)
        if (!strcmp(view.reports.items[i].name, name))
            return &view.reports.items[i];
    return &none;
}

TEST(the_newest_value_of_each_name_has_its_commit_and_age)
{
    CHECK_OK(t, tape_wait(&tape, 2 * S));
    CHECK_OK(t, say("a", 1, "loss", 0.5, 1, 1, S / 4));
    CHECK_OK(t, say("a", 1, "acc@1", NAN, 3, 1, 0));
    CHECK_INT(t, view.reports.count, ==, 2);
    CHECK(t, of("loss")->value == 0.5);
    CHECK_INT(t, of("loss")->commit, ==, C(1, 1));
    CHECK_INT(t, of("loss")->round, ==, 1);
    CHECK_INT(t, of("loss")->at_us, ==, tape.now_us - S / 4);
    CHECK(t, isnan(of("acc@1")->value));
    CHECK_OK(t, say("a", 1, "loss", 0.25, 2, 1, TIME_NEVER));
    CHECK(t, of("loss")->value == 0.25);
    CHECK_INT(t, of("loss")->at_us, ==, 0); /* no moment lies before the clock's beginning */
    CHECK_INT(t, of("loss")->point_count, ==, 2);
    CHECK_OK(t, say("a", 1, "loss", 0.125, 2, 1, 0)); /* said again, on a new connection */
    CHECK_OK(t, say("a", 1, "loss", 0.125, 1, 1, 0)); /* an older one comes late */
    CHECK(t, of("loss")->value == 0.25);
    CHECK_INT(t, of("loss")->point_count, ==, 2);
}

TEST(an_agent_speaks_for_rank_0_on_its_host_and_known_rounds)
{
    CHECK_OK(t, say("a", 3, "x", 1, 1, 1, 0));
    CHECK_HAS(t, trace_line(&tape.trace, 0), "BEAT names worker #3, which runs on b");
    CHECK_OK(t, say("a", 99, "x", 1, 1, 1, 0));
    CHECK_HAS(t, trace_line(&tape.trace, 0), "BEAT names worker #99, which was never launched");
    CHECK_OK(t, say("a", 2, "x", 1, 1, 1, 0)); /* rank 1 */
    CHECK_OK(t, say("b", 3, "x", 1, 1, 1, 0)); /* rank 2 */
    CHECK_OK(t, say("a", 1, "x", 1, 1, 2, 0)); /* a round that has not begun */
    CHECK_OK(t, say("a", 1, "x", 1, 1, 0, 0)); /* no round */
    CHECK_INT(t, view.reports.count, ==, 0);
    for (int i = 0; i < 5; i++) {
        static const char *const bad[] = { "<script>", "a\"} 1", "a b", "\\", "" };

        CHECK_OK(t, say("a", 1, bad[i], 1, 1, 1, 0));
    }
    CHECK_INT(t, view.reports.count, ==, 0);
}

TEST(a_value_of_an_older_round_is_not_shown_as_new)
{
    CHECK_OK(t, say("a", 1, "loss", 5, 9, 1, 0));
    CHECK_PLAY(t, &tape, "exited 1 exit1\nrecovering 2-4 held=1.1\nentered 2-4\n");
    CHECK_OK(t, core_view(tape.core, &view));
    CHECK(t, of("loss")->value == 5);              /* the newest one that is known, with its age */
    CHECK_OK(t, say("a", 1, "loss", 6, 10, 1, 0)); /* its worker has ended */
    CHECK(t, of("loss")->value == 5);
    CHECK_OK(t, say("a", 2, "loss", 4, 1, 2, 0)); /* worker 2 is rank 0 of round 2 */
    CHECK(t, of("loss")->value == 4);
    CHECK_INT(t, of("loss")->round, ==, 2);
    CHECK_OK(t, say("b", 3, "loss", 7, 50, 1, 0)); /* worker 3 says something of round 1 */
    CHECK(t, of("loss")->value == 4);
}

/* A driver that takes over hears from each agent the newest values that its workers have said, also
 * those of a worker that is not rank 0 any more: in any order the same value stays. */
TEST(the_next_driver_learns_the_newest_values_with_their_age)
{
    CHECK_OK(t, say("a", 1, "loss", 5, 9, 1, 0));
    CHECK_PLAY(t, &tape, "kill\nstart\nhosts a:2,b:2\nhello a #1:0 #2:1\nhello b #3:0 #4:1\n");
    CHECK_OK(t, core_view(tape.core, &view));
    CHECK_INT(t, view.reports.count, ==, 0);
    CHECK_PLAY(t, &tape, "entered 1-4\n");
    CHECK_OK(t, tape_wait(&tape, 5 * S));
    CHECK_OK(t, say("a", 1, "loss", 5, 9, 1, 5 * S));
    CHECK(t, of("loss")->value == 5);
    CHECK_INT(t, of("loss")->at_us, ==, tape.now_us - 5 * S);
}

/* Returns how many REPORTED records the journal has. */
static size_t recorded(void)
{
    size_t count = 0;

    for (size_t i = 0; i < tape.journal.count; i++)
        count += tape.journal.items[i].kind == JOURNAL_REPORTED;
    return count;
}

/* The driver is killed, and no agent says anything to the next one. */
TEST(the_journal_has_a_value_a_minute_later)
{
    int64_t at_us;

    CHECK_OK(t, say("a", 1, "loss", 0.5, 1, 1, 0));
    CHECK_PLAY(t, &tape, "wait 61s\n");
    CHECK_OK(t, say("a", 1, "loss", 0.25, 2, 1, 2 * S));
    CHECK_OK(t, say("a", 1, "nan", NAN, 1, 1, 0));
    at_us = of("loss")->at_us;
    CHECK_PLAY(t, &tape, "wait 61s\nkill 0 twice\nstart\n");
    CHECK_OK(t, core_view(tape.core, &view));
    CHECK_INT(t, view.reports.count, ==, 2);
    CHECK(t, of("loss")->value == 0.25);
    CHECK(t, isnan(of("nan")->value));
    CHECK_INT(t, of("loss")->commit, ==, C(1, 1));
    CHECK_INT(t, of("loss")->round, ==, 1);
    CHECK_INT(t, of("loss")->at_us, ==, at_us);
    CHECK_INT(t, of("loss")->point_count, ==, 2);
    CHECK(t, of("loss")->points[0].value == 0.5);
    CHECK_INT(t, of("loss")->points[0].commit, ==, C(1, 1));
}

/* The value before the end is in the journal with the end, however short the job was. */
TEST(the_journal_has_the_last_value_of_a_job_that_ends)
{
    CHECK_PLAY(t, &tape, "drain b:1 never\n");
    CHECK_OK(t, say("a", 1, "loss", 0.5, 1, 1, 0));
    CHECK_PLAY(t, &tape, "finished 1-4\n");
    CHECK_INT(t, recorded(), ==, 1);
    CHECK_OK(t, say("a", 1, "loss", 0.125, 2, 1, 0));
    CHECK_PLAY(t, &tape, "exited 1-4 exit0\n");
    CHECK_INT(t, recorded(), ==, 2);
    CHECK_PLAY(t, &tape, "kill\nstart\n");
    CHECK_OK(t, core_view(tape.core, &view));
    CHECK(t, of("loss")->value == 0.125);
}

/* A step that writes no other record writes no value; other steps write values each 10 s. */
TEST(the_journal_gets_values_with_other_records_and_not_too_often)
{
    size_t before;

    CHECK_OK(t, tape_wait(&tape, 20 * S));
    CHECK_OK(t, say("a", 1, "loss", 8, 1, 1, 0));
    before = tape.journal.count;
    CHECK_OK(t, say("a", 1, "loss", 7, 2, 1, 0));
    CHECK_INT(t, tape.journal.count, ==, before);
    for (uint64_t i = 3; i < 23; i++) {
        CHECK_OK(t, say("a", 1, "loss", (double)i, i, 1, 0));
        CHECK_PLAY(t, &tape, i % 2 ? "drain b:1 never\nwait 1s\n" : "undrain b:1\nwait 1s\n");
    }
    CHECK_INT(t, recorded(), >=, 2);
    CHECK_INT(t, recorded(), <=, 3);
}

/* Called for each record of a shorter journal: gives it to the core that reads that journal. */
static int put(void *arg, const struct journal_record *record)
{
    return core_replay(arg, record, NULL);
}

/* The journal is made shorter twice; each time a driver that reads it shows the same. Not tortured:
 * there are thousands of allocations. */
TEST_FLAGS(a_shorter_journal_has_the_whole_series, TEST_NO_TORTURE)
{
    struct event start = { .kind = EVENT_START };

    for (int i = 1; i <= 2 * LIMIT_REPORT_POINTS + 7; i++) {
        CHECK_OK(t, say("a", 1, "loss", 1.0 / i, (uint64_t)i, 1, 0));
        CHECK_OK(t, say("a", 1, "acc@1", -i, (uint64_t)i, 1, 0));
        CHECK_OK(t, tape_wait(&tape, 61 * S));
    }
    CHECK_PLAY(t, &tape, "kill\n");
    for (size_t i = 0; i < ARRAY_SIZE(shorter); i++)
        CHECK(t, shorter[i] = core_create(&tape.config, NULL));
    CHECK_OK(t, core_compact(tape.core, &memory, put, shorter[0]));
    CHECK_OK(t, core_compact(shorter[0], &memory, put, shorter[1]));
    CHECK_PLAY(t, &tape, "start\n");
    CHECK_OK(t, core_view(tape.core, &view));
    start.now_us = tape.now_us;
    start.wall_us = tape.now_us + TAPE_WALL;
    CHECK_OK(t, core_step(shorter[1], &start, &actions));
    CHECK_OK(t, core_view(shorter[1], &after));
    CHECK_INT(t, view.reports.count, ==, 2);
    CHECK_INT(t, after.reports.count, ==, 2);
    CHECK_INT(t, of("loss")->point_count, >, LIMIT_REPORT_POINTS / 2);
    for (size_t i = 0; i < 2; i++) {
        const struct view_report *one = &view.reports.items[i], *other = &after.reports.items[i];

        CHECK_TEXT(t, one->name, other->name);
        CHECK_INT(t, one->at_us, ==, other->at_us);
        CHECK_INT(t, one->commit, ==, other->commit);
        CHECK_INT(t, one->point_count, ==, other->point_count);
        for (size_t k = 0; k < one->point_count; k++) {
            CHECK(t, one->points[k].value == other->points[k].value);
            CHECK_INT(t, one->points[k].at_us, ==, other->points[k].at_us);
            CHECK_INT(t, one->points[k].commit, ==, other->points[k].commit);
        }
    }
}

TEST(records_that_no_job_can_have)
{
    static const char *const texts[] = { "1 2 3 ", "5 2", "x y z ", "9 2 3 8 2 3 " };
    struct journal_record record = { .kind = JOURNAL_REPORTED,
                                     .host = "",
                                     .text = "ok",
                                     .incarnation = 1,
                                     .round = 1,
                                     .wall_us = S };
    struct journal_record bad[4] = { record, record, record, record };

    bad[0].text = "<b>";
    bad[1].incarnation = 0;
    bad[2].round = 0;
    bad[3].wall_us = INT64_MAX;
    CHECK_PLAY(t, &tape, "kill\n");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_CODE(t, core_replay(tape.core, &bad[i], NULL), HVD_E_CORRUPT);
    for (size_t i = 1; i < ARRAY_SIZE(texts); i++) {
        record.addresses = (struct msg_texts){ &texts[i], 1 };
        CHECK_CODE(t, core_replay(tape.core, &record, NULL), HVD_E_CORRUPT);
    }
    record.addresses.items = &texts[0];
    CHECK_OK(t, core_replay(tape.core, &record, NULL));
    CHECK_PLAY(t, &tape, "start\n");
    CHECK_OK(t, core_view(tape.core, &view));
    CHECK_INT(t, view.reports.count, ==, 1);
}

TEST(a_job_has_so_many_names_and_no_more)
{
    char name[16];

    for (int i = 0; i < LIMIT_REPORTS + 3; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        CHECK_OK(t, say("a", 1, name, i, 1, 1, 0));
    }
    CHECK_INT(t, view.reports.count, ==, LIMIT_REPORTS);
    CHECK_OK(t, say("a", 1, "n3", 77, 2, 1, 0));
    CHECK(t, of("n3")->value == 77);
}

/* Not tortured: each of the thousands of allocations would repeat all reports. */
TEST_FLAGS(a_series_spans_the_life_of_the_driver, TEST_NO_TORTURE)
{
    const struct view_report *report;

    for (int i = 1; i <= 10 * LIMIT_REPORT_POINTS; i++) {
        CHECK_OK(t, tape_wait(&tape, S));
        CHECK_OK(t, say("a", 1, "loss", i, (uint64_t)i, 1, 0));
        report = of("loss");
        CHECK(t, report->point_count <= LIMIT_REPORT_POINTS);
        CHECK(t, report->points[report->point_count - 1].value == i);
    }
    report = of("loss");
    CHECK(t, report->points[0].value == 1);
    CHECK(t, report->point_count >= LIMIT_REPORT_POINTS / 3);
    for (size_t i = 1; i < report->point_count; i++)
        CHECK(t, report->points[i].at_us > report->points[i - 1].at_us);
}
