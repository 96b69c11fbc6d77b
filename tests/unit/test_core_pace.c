/*
 * test_core_pace.c: what the driver keeps of the pulses in heartbeats: newest commits and their
 * ages, commits in a second, which worker is silent or behind, and what the log says of it; and
 * pulses that are not believed.
 */
#include "proto/commit.h"
#include "tests/lib/core_tape.h"
#include "tests/lib/fixture.h"

#include <string.h>

#define S        TIME_S
#define C(place) (COMMIT_FIRST_OF(1) | (place))
#define OF(id, at, age_us, silent_us) \
    (struct msg_pulse)                \
    {                                 \
        id, at, age_us, silent_us     \
    }
#define BEAT(host, ...)                                            \
    CHECK_OK(t,                                                    \
             beat(host, (const struct msg_pulse[]){ __VA_ARGS__ }, \
                  sizeof((const struct msg_pulse[]){ __VA_ARGS__ }) / sizeof(struct msg_pulse)))

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

/* The agent of this host sends a heartbeat; then the core is looked at. */
static int beat(const char *host, const struct msg_pulse *pulses, size_t count)
{
    struct msg msg = {
        .type = MSG_BEAT, .u.beat.pulses = {pulses, count}
    };
    int rc = tape_msg(&tape, tape_host(&tape, host), &msg);

    return rc ? rc : core_view(tape.core, &view);
}

/* Returns a worker as it was seen last. Hosts a and b have two each: 1 and 2, 3 and 4. */
static const struct view_worker *of(uint64_t incarnation)
{
    static const struct view_worker nobody;

    for (size_t i = 0; i < view.host_count; i++)
        for (size_t k = 0; k < view.hosts[i].worker_count; k++)
            if (view.hosts[i].workers[k].incarnation == incarnation)
                return &view.hosts[i].workers[k];
    return &nobody;
}

TEST(the_newest_commit_and_the_silence_have_ages)
{
    CHECK_OK(t, tape_wait(&tape, 2 * S));
    BEAT("a", OF(1, C(5), S / 2, S / 4), OF(2, 0, 0, 0));
    CHECK_INT(t, view.newest, ==, C(5));
    CHECK_INT(t, view.newest_us, ==, tape.now_us - S / 2);
    CHECK_INT(t, of(1)->commit, ==, C(5));
    CHECK_INT(t, of(1)->heard_us, ==, tape.now_us - S / 4);
    CHECK_INT(t, of(2)->commit, ==, 0);
    CHECK_INT(t, of(2)->commit_us, ==, TIME_NEVER);
    CHECK_INT(t, of(3)->heard_us, ==, TIME_NEVER); /* its agent has said nothing, as an old one */
    BEAT("b", OF(3, C(4), TIME_NEVER, TIME_NEVER));
    CHECK_INT(t, view.newest, ==, C(5));
    CHECK_INT(t, of(3)->heard_us, ==, 0); /* no moment lies before the clock's beginning */
}

TEST(a_frozen_worker_is_silent_and_no_other_one)
{
    for (int i = 0; i <= 6; i++) {
        BEAT("a", OF(1, C(5), i * S, 0), OF(2, C(5), i * S, i * S));
        BEAT("b", OF(3, C(5), i * S, 0), OF(4, C(5), i * S, 0));
        CHECK_INT(t, of(2)->silent, ==, i > 4);
        CHECK(t, !of(1)->silent && !of(3)->silent && !of(4)->silent);
        CHECK(t, !of(1)->behind && !of(2)->behind && !of(3)->behind && !of(4)->behind);
        CHECK_OK(t, tape_wait(&tape, S));
    }
    BEAT("a", OF(1, C(6), 0, 0), OF(2, C(6), 0, 0));
    CHECK(t, !of(2)->silent);
}

/* A driver that takes over knows no pulse of before; the first heartbeats tell it all of them. */
TEST(the_next_driver_learns_the_same_moments)
{
    int64_t frozen_us;

    BEAT("a", OF(1, C(5), 0, 0), OF(2, C(5), 0, 0));
    frozen_us = of(2)->heard_us;
    CHECK_PLAY(t, &tape, "kill\nstart\nhosts a:2,b:2\nhello a #1:0 #2:1\nhello b #3:0 #4:1\n");
    CHECK_OK(t, core_view(tape.core, &view));
    CHECK_INT(t, view.newest, ==, 0);
    CHECK_INT(t, of(2)->heard_us, ==, TIME_NEVER);
    CHECK_PLAY(t, &tape, "entered 1-4\n");
    CHECK_OK(t, tape_wait(&tape, 5 * S));
    BEAT("a", OF(1, C(9), S, 0), OF(2, C(5), tape.now_us - frozen_us, tape.now_us - frozen_us));
    CHECK_INT(t, of(2)->heard_us, ==, frozen_us);
    CHECK_INT(t, of(2)->commit, ==, C(5));
    CHECK(t, of(2)->silent && !of(1)->silent);
    CHECK_INT(t, view.newest, ==, C(9));
    CHECK_INT(t, of(1)->commit_us, ==, tape.now_us - S);
}

/* An agent that says nothing any more makes its workers silent, too. */
TEST(the_silence_of_an_agent_is_that_of_its_workers)
{
    BEAT("a", OF(1, C(5), 0, 0));
    CHECK_OK(t, tape_wait(&tape, 5 * S));
    BEAT("b", OF(3, C(5), 0, 0));
    CHECK(t, of(1)->silent && !of(3)->silent);
}

TEST(a_worker_that_others_have_passed_is_behind)
{
    for (int i = 0; i <= 6; i++) {
        BEAT("a", OF(1, C(7), i * S, 0), OF(2, C(5), i * S, 0));
        BEAT("b", OF(3, C(6), i * S, 0)); /* waits in a collective for one that is behind */
        CHECK_INT(t, of(2)->behind, ==, i > 5);
        CHECK(t, !of(1)->behind && !of(3)->behind);
        CHECK_OK(t, tape_wait(&tape, S));
    }
    /* it is slower than the others, but it moves: the agents were only asked one after the other */
    BEAT("a", OF(1, C(107), 0, 0), OF(2, C(100), 0, 0));
    CHECK(t, !of(2)->behind);
    CHECK_OK(t, tape_wait(&tape, 6 * S));
    BEAT("a", OF(1, C(107), 0, 0), OF(2, C(107), 0, 0));
    CHECK(t, !of(2)->behind);
}

/* Returns how many of the last lines of the core have this text. */
static int lines_with(const char *text)
{
    int count = 0;

    for (size_t i = 0; i < 20; i++)
        count += trace_line(&tape.trace, i) && strstr(trace_line(&tape.trace, i), text);
    return count;
}

TEST(a_worker_that_stops_to_commit_is_named_once_in_a_round)
{
    for (int i = 0; i <= 12; i++) {
        BEAT("a", OF(1, C(7 + (unsigned)i), 0, 0), OF(2, C(5), i * S, 0));
        CHECK_OK(t, tape_wait(&tape, S));
    }
    CHECK_INT(t,
              lines_with("rank 1 (a:1#2) has made 5 commits in round 1, another rank 13: let "
                         "each rank commit equally often"),
              ==, 1);
    CHECK_PLAY(t, &tape, "exited 4 exit1\nrecovering 1-3 held=1.5\nentered 1-3\n");
    for (int i = 0; i <= 12; i++) {
        BEAT("a", OF(1, COMMIT_FIRST_OF(2) | (7 + (unsigned)i), 0, 0), OF(2, C(5), i * S, 0));
        CHECK_OK(t, tape_wait(&tape, S));
    }
    CHECK_INT(t, lines_with("rank 1 (a:1#2) has made 0 commits in round 2, another rank 13"), ==,
              1);
}

/* Members that wait for each other: the line says which of them commits less often. One commit
 * fewer is no reason: members are that far apart in each step. */
TEST(a_circle_of_waits_tells_of_different_commits)
{
    BEAT("a", OF(1, C(7), 0, 0), OF(2, C(6), 0, 0));
    CHECK_PLAY(t, &tape, "stalled 1 60s 2\nstalled 2 60s 1\nwait 2s\n");
    CHECK_INT(t, lines_with("wait for each other, for 1m in allreduce: a:0#1 for a:1#2"), ==, 1);
    CHECK_INT(t, lines_with("commits in round 1"), ==, 0);
    BEAT("a", OF(1, C(8), 0, 0));
    CHECK_PLAY(t, &tape, "wait 1m\nstalled 1 120s 2\nstalled 2 120s 1\nwait 2s\n");
    CHECK_INT(t,
              lines_with("a:0#1 for a:1#2: rank 1 (a:1#2) has made 6 commits in round 1, another "
                         "rank 8: let each rank commit equally often"),
              ==, 1);
}

/* Members have left round 1 at their agreed check, and one has not come to it: the commit with
 * which the next round begins is newer than its own. */
TEST(a_switch_that_one_member_holds_up_names_it)
{
    CHECK_PLAY(t, &tape,
               "hosts a:2,b:2,c:1\nhello c\nlaunched 5\nready 5\nprepared 1-5\n"
               "at 1-4 10\n");
    BEAT("a", OF(1, COMMIT_FIRST_OF(2), 0, 0), OF(2, C(9), 0, 0));
    BEAT("b", OF(3, COMMIT_FIRST_OF(2), 0, 0), OF(4, COMMIT_FIRST_OF(2), 0, 0));
    CHECK_PLAY(t, &tape, "stalled 1 60s 2 round=2\nstalled 2 60s 1 round=1\nwait 2s\n");
    CHECK_INT(t,
              lines_with("rank 1 (a:1#2) has made 9 commits in round 1, and has not come to the "
                         "check at which others left it: let each rank commit equally often"),
              ==, 1);
}

TEST(an_agent_speaks_for_its_own_workers_and_known_rounds)
{
    BEAT("a", OF(1, C(5), 0, 0), OF(3, C(9), 0, 0), OF(99, C(9), 0, 0));
    CHECK_HAS(t, trace_line(&tape.trace, 1), "BEAT names worker #3, which runs on b");
    CHECK_HAS(t, trace_line(&tape.trace, 0), "BEAT names worker #99, which was never launched");
    CHECK_INT(t, of(3)->commit, ==, 0);
    CHECK_INT(t, view.newest, ==, C(5));
    BEAT("a", OF(1, COMMIT_FIRST_OF(9), 0, 0)); /* no agent was told of round 9 */
    CHECK_INT(t, of(1)->commit, ==, C(5));
    CHECK_INT(t, view.newest, ==, C(5));
    CHECK_PLAY(t, &tape, "exited 2 exit1\nrecovering 1,3,4 held=1.5\n");
    BEAT("a", OF(2, C(9), 0, 0)); /* comes late */
    CHECK_INT(t, view.newest, ==, C(5));
}

TEST(commits_are_counted_over_the_last_seconds)
{
    BEAT("a", OF(1, C(0), 0, 0));
    for (unsigned i = 1; i <= 30; i++) {
        CHECK_OK(t, tape_wait(&tape, S));
        BEAT("a", OF(1, C(20 * i), 0, 0));
    }
    CHECK(t, view.commits_us >= 10 * S && view.commits_us <= 21 * S);
    /* a mark is set before the heartbeat of the same second */
    CHECK(t, view.commits >= 20 * (uint64_t)(view.commits_us / S));
    CHECK(t, view.commits <= 20 * (uint64_t)(view.commits_us / S) + 20);
    for (unsigned i = 1; i <= 30; i++) { /* no commit for long */
        CHECK_OK(t, tape_wait(&tape, S));
        BEAT("a", OF(1, C(600), i * S, 0));
    }
    CHECK_INT(t, view.commits, ==, 0);
    CHECK(t, view.commits_us >= 10 * S);
    /* the next round begins its own count */
    CHECK_PLAY(t, &tape, "exited 4 exit1\nrecovering 1-3 held=1.600\nentered 1-3\n");
    BEAT("a", OF(1, C(600), 0, 0));
    CHECK_INT(t, view.commits_us, ==, 0); /* no rate can be known so soon, also not one of 0 */
    CHECK_OK(t, tape_wait(&tape, S));
    CHECK_OK(t, core_view(tape.core, &view));
    CHECK_INT(t, view.commits_us, ==, 0);
    CHECK_OK(t, tape_wait(&tape, S));
    BEAT("a", OF(1, COMMIT_FIRST_OF(2) | 3, 0, 0));
    CHECK_INT(t, view.commits, ==, 3);
    CHECK(t, view.commits_us > 0 && view.commits_us < 10 * S);
}
