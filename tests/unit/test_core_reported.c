/*
 * test_core_reported.c: what the driver keeps of the values that a program reports: the newest one
 * of each name, also if rank 0 changes; values that are old, late, doubled or not believed; and the
 * series over time.
 */
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

static void begin_case(struct test *t)
{
    core_view_init(&view);
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape, TAPE_RUNNING);
}

static void end_case(struct test *t)
{
    (void)t;
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
