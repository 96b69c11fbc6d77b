#include "base/limits.h"
#include "tests/lib/agent_script.h"
#include "tests/lib/test.h"

#include <stdio.h>

#define S TIME_S

#define SELF \
    "minor=1 version=\"0.1.0\" job=\"job\" host=\"host\" agent=77 cores=8 memory_bytes=1024"
#define HELLO        "driver: HELLO_AGENT " SELF
#define HELLO_TERM_1 "driver: HELLO_AGENT term=1 " SELF

static struct script s;

static void it_dials_says_hello_and_serves(struct test *t)
{
    struct msg welcome = script_welcome(3);

    CHECK_OK(t, script_init(&s));
    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_INT(t, agent_deadline(s.agent), ==, LIMIT_FIRST_DRIVER_US);
    CHECK_TEXT(t, script_start(&s), "");
    CHECK_TEXT(t, script_up(&s), HELLO "\n");
    CHECK_INT(t, agent_deadline(s.agent), ==, LIMIT_GREETING_US);
    CHECK_TEXT(t, script_up(&s), "");
    CHECK_TEXT(t, script_driver(&s, &welcome), "");
    CHECK_INT(t, agent_deadline(s.agent), ==, 1 * S); /* the first beat */
    CHECK_HAS(t, trace_line(&s.trace, 0), "agent: alone -> serving");
out:
    script_release(&s);
}

static void it_dials_again_when_nobody_answers(struct test *t)
{
    CHECK_OK(t, script_init(&s));
    CHECK_TEXT(t, script_start(&s), "dial\n");
    script_at(&s, 0.5);
    CHECK_TEXT(t, script_down(&s), "");
    CHECK_TEXT(t, script_down(&s), "");
    CHECK_INT(t, agent_deadline(s.agent), ==, 5 * S / 2);
    CHECK_TEXT(t, script_step(&s, &(struct agent_event){ .kind = AGENT_TIMER }), "");
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_TEXT(t, script_step(&s, &(struct agent_event){ .kind = AGENT_DRIVER_DOWN }), "");
    CHECK_HAS(t, trace_line(&s.trace, 0), "dialling -> down: the connection is gone");
out:
    script_release(&s);
}

static void a_driver_without_a_welcome_is_left(struct test *t)
{
    CHECK_OK(t, script_init(&s));
    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_TEXT(t, script_up(&s), HELLO "\n");
    CHECK_TEXT(t, script_timer(&s), "hang up: no welcome in time\n");
    CHECK_INT(t, s.now_us, ==, LIMIT_GREETING_US);
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_INT(t, s.now_us, ==, LIMIT_GREETING_US + SCRIPT_REDIAL_S * S);
out:
    script_release(&s);
}

static void it_beats_when_it_says_nothing_else(struct test *t)
{
    struct msg beat = { .type = MSG_BEAT, .term = 1, .u.beat = { .sequence = 9 } };
    struct msg launch = script_launch(1, 0);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, script_timer(&s), "driver: BEAT term=1 sequence=1\n");
    CHECK_TEXT(t, script_driver(&s, &beat), "");
    beat.u.beat.sequence = 7; /* comes late */
    CHECK_TEXT(t, script_driver(&s, &beat), "");
    script_at(&s, 1.5);
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 1\n");
    CHECK_TEXT(t, script_spawned(&s, 1, 101), "driver: LAUNCHED term=1 incarnation=1 pid=101\n");
    CHECK_INT(t, agent_deadline(s.agent), ==, 5 * S / 2);
    CHECK_TEXT(t, script_timer(&s), "driver: BEAT term=1 sequence=2 answers=9\n");
    CHECK_OK(t, script_lose(&s)); /* another driver counts from its own beginning */
    CHECK_HAS(t, script_return(&s, 1), "LAUNCHED");
    CHECK_TEXT(t, script_timer(&s), "driver: BEAT term=1 sequence=3\n");
out:
    script_release(&s);
}

static void any_frame_renews_the_lease_of_the_driver(struct test *t)
{
    struct msg drain = { .type = MSG_HOSTS_UPDATED, .term = 1, .round = 1 };

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_TEXT(t, script_driver(&s, &drain), ""); /* at 2 s */
    for (int i = 3; i < 6; i++)
        CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_TEXT(t, script_timer(&s), "hang up: the driver is silent\n");
    CHECK_INT(t, s.now_us, ==, 6 * S);
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_INT(t, s.now_us, ==, 8 * S);
out:
    script_release(&s);
}

static void the_welcome_sets_the_intervals(struct test *t)
{
    struct msg welcome = script_welcome(1);

    welcome.u.welcome_agent.beat_us = 3 * S;
    welcome.u.welcome_agent.lease_us = 7 * S;
    welcome.u.welcome_agent.driver_grace_us = 11 * S;
    CHECK_OK(t, script_init(&s));
    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_TEXT(t, script_up(&s), HELLO "\n");
    CHECK_TEXT(t, script_driver(&s, &welcome), "");
    CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_INT(t, s.now_us, ==, 3 * S);
    CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_HAS(t, script_timer(&s), "hang up");
    CHECK_INT(t, s.now_us, ==, 7 * S);
    CHECK_HAS(t, script_timer(&s), "dial");
    CHECK_HAS(t, script_timer(&s), "exit -17: no driver came back in time");
    CHECK_INT(t, s.now_us, ==, 18 * S);
out:
    script_release(&s);
}

static void an_old_driver_is_told_and_left(struct test *t)
{
    struct msg welcome = script_welcome(5);
    struct msg stop = {
        .type = MSG_STOP, .term = 4, .u.stop = {0, "old"}
    };

    CHECK_OK(t, script_init(&s));
    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_TEXT(t, script_up(&s), HELLO "\n");
    CHECK_TEXT(t, script_driver(&s, &welcome), "");
    CHECK_TEXT(t, script_driver(&s, &stop),
               "driver: BYE term=5 reason=\"term 4 is over, 5 is obeyed\"\n"
               "hang up: term 4 is over, 5 is obeyed\n");
    CHECK_TEXT(t, script_driver(&s, &stop), "");
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_HAS(t, script_up(&s), "HELLO_AGENT term=5");
    welcome.term = 4;
    CHECK_HAS(t, script_driver(&s, &welcome), "BYE");
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_HAS(t, script_up(&s), "HELLO_AGENT term=5");
    welcome.term = 6;
    CHECK_TEXT(t, script_driver(&s, &welcome), "");
    CHECK_HAS(t, script_timer(&s), "BEAT term=6");
out:
    script_release(&s);
}

static void any_frame_may_carry_a_higher_term(struct test *t)
{
    struct msg beat = { .type = MSG_BEAT, .term = 8, .u.beat = { .sequence = 1 } };

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, script_driver(&s, &beat), "");
    beat.term = 0; /* does not say */
    CHECK_TEXT(t, script_driver(&s, &beat), "");
    beat.term = 1;
    CHECK_HAS(t, script_driver(&s, &beat), "term 1 is over, 8 is obeyed");
out:
    script_release(&s);
}

static void what_cannot_be_ends_the_connection(struct test *t)
{
    struct msg welcome = script_welcome(1);
    struct msg ready = { .type = MSG_READY, .term = 1, .incarnation = 1 };
    struct msg bye = { .type = MSG_BYE, .u.bye = { "moving" } };

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_HAS(t, script_driver(&s, &welcome), "hang up: WELCOME_AGENT after the greeting\n");
    CHECK_TEXT(t, script_return(&s, 1), "");
    CHECK_HAS(t, script_driver(&s, &ready), "hang up: READY does not go from the driver");
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_TEXT(t, script_driver(&s, &bye), ""); /* there is no connection yet */
    CHECK_HAS(t, script_up(&s), "HELLO");
    ready = script_launch(1, 1);
    CHECK_HAS(t, script_driver(&s, &ready), "hang up: LAUNCH before the greeting is over\n");
    CHECK_TEXT(t, script_return(&s, 1), "");
    CHECK_TEXT(t, script_driver(&s, &bye), "hang up: the driver says bye: moving\n");
out:
    script_release(&s);
}

static void a_refusal_for_good_ends_it(struct test *t)
{
    static const int finals[] = { HVD_E_VERSION, HVD_E_DENIED, HVD_E_MISMATCH };
    struct msg refused = {
        .type = MSG_REFUSED, .u.refused = {0, "no"}
    };
    char lines[128];

    for (size_t i = 0; i < ARRAY_SIZE(finals); i++) {
        script_release(&s);
        refused.u.refused.code = finals[i];
        snprintf(lines, sizeof(lines),
                 "hang up: refused by the driver: no\nexit %d: refused by the driver: no\n",
                 finals[i]);
        CHECK_OK(t, script_init(&s));
        CHECK_TEXT(t, script_start(&s), "dial\n");
        CHECK_HAS(t, script_up(&s), "HELLO");
        CHECK_TEXT(t, script_driver(&s, &refused), lines);
        CHECK_INT(t, agent_deadline(s.agent), ==, TIME_NEVER);
    }
out:
    script_release(&s);
}

static void a_refusal_for_now_is_asked_again(struct test *t)
{
    struct msg refused = {
        .type = MSG_REFUSED, .u.refused = {HVD_E_BUSY, "later"}
    };

    CHECK_OK(t, script_init(&s));
    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_HAS(t, script_up(&s), "HELLO");
    CHECK_TEXT(t, script_driver(&s, &refused), "hang up: refused by the driver: later\n");
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_INT(t, s.now_us, ==, SCRIPT_REDIAL_S * S);
out:
    script_release(&s);
}

static void a_final_refusal_ends_the_workers_first(struct test *t)
{
    struct msg refused = {
        .type = MSG_REFUSED, .u.refused = {HVD_E_MISMATCH, "another job"}
    };

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_run(&s, 1, 0));
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_TEXT(t, script_up(&s), HELLO_TERM_1 " slots=1\n  1 slot 0 pid 101 started round 0\n");
    CHECK_TEXT(t, script_driver(&s, &refused),
               "hang up: refused by the driver: another job\nterm 1\n");
    CHECK_TEXT(t, script_ended(&s, 1, ENDED_SIGNAL, 15, WITNESS_PIDFD),
               "exit -16: refused by the driver: another job\n");
out:
    script_release(&s);
}

static void without_a_driver_it_ends_after_the_grace(struct test *t)
{
    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_run(&s, 1, 0));
    CHECK_OK(t, script_run(&s, 2, 1));
    script_at(&s, 0.5);
    CHECK_OK(t, script_lose(&s));
    while (agent_deadline(s.agent) < 121 * S / 2) {
        CHECK_TEXT(t, script_timer(&s), "dial\n");
        CHECK_TEXT(t, script_down(&s), "");
    }
    CHECK_TEXT(t, script_timer(&s), "dial\nterm 1\nterm 2\n");
    CHECK_INT(t, s.now_us, ==, 121 * S / 2);
    CHECK_HAS(t, trace_line(&s.trace, 0), "agent: alone -> ending: no driver came back in time");
    CHECK_TEXT(t, script_ended(&s, 1, ENDED_SIGNAL, 15, WITNESS_PIDFD), "");
    CHECK_TEXT(t, script_down(&s), "");
    while (agent_deadline(s.agent) < 131 * S / 2) {
        CHECK_TEXT(t, script_timer(&s), "dial\n");
        CHECK_TEXT(t, script_down(&s), "");
    }
    CHECK_TEXT(t, script_timer(&s), "kill 2\n");
    CHECK_TEXT(t, script_ended(&s, 2, ENDED_SIGNAL, 9, WITNESS_PIDFD),
               "exit -17: no driver came back in time (driver grace)\n");
    CHECK_INT(t, agent_deadline(s.agent), ==, TIME_NEVER);
    CHECK_TEXT(t, script_timer(&s), "");
out:
    script_release(&s);
}

/* Its driver has ended, or was ended, while it was being started: it has nothing to keep. */
static void one_that_never_met_a_driver_does_not_wait_long(struct test *t)
{
    CHECK_OK(t, script_init(&s));
    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_TEXT(t, script_down(&s), "");
    script_at(&s, 10);
    CHECK_HAS(t, script_moved(&s, NULL), "dial\n"); /* somebody wants it */
    while (agent_deadline(s.agent) < 40 * S) {
        CHECK_TEXT(t, script_down(&s), "");
        CHECK_TEXT(t, script_timer(&s), "dial\n");
    }
    CHECK_HAS(t, script_timer(&s), "exit -17: the driver that started it is not there\n");
    CHECK_INT(t, s.now_us, ==, 40 * S);
out:
    script_release(&s);
}

static void a_driver_in_time_stops_the_grace(struct test *t)
{
    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_lose(&s));
    script_at(&s, 57);
    CHECK_TEXT(t, script_return(&s, 2), "");
    CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_INT(t, s.now_us, ==, 60 * S);
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_INT(t, agent_deadline(s.agent), ==, 120 * S); /* the grace began anew */
out:
    script_release(&s);
}

static void a_driver_that_comes_while_it_ends_hears_of_it(struct test *t)
{
    struct msg launch = script_launch(2, 1);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_run(&s, 1, 0));
    CHECK_OK(t, script_lose(&s));
    script_at(&s, 60);
    CHECK_TEXT(t, script_timer(&s), "dial\nterm 1\n");
    CHECK_HAS(t, script_up(&s), "1 slot 0 pid 101");
    launch.term = 2;
    CHECK_TEXT(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 2 }),
               "driver: LAUNCHED term=2 incarnation=1 pid=101\n");
    CHECK_TEXT(t, script_driver(&s, &launch),
               "driver: LAUNCH_FAILED term=2 incarnation=2 slot=1 code=-4 text=\"the agent is "
               "ending\"\n");
    CHECK_TEXT(t, script_ended(&s, 1, ENDED_SIGNAL, 15, WITNESS_PIDFD),
               "driver: EXITED term=2 incarnation=1 pid=101 ended=2 value=15 witness=2 ran=1m\n"
               "driver: BYE term=2 reason=\"no driver came back in time (driver grace)\"\n"
               "hang up: no driver came back in time (driver grace)\n"
               "exit -17: no driver came back in time (driver grace)\n");
out:
    script_release(&s);
}

static void many_workers_are_reported(struct test *t)
{
    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    for (uint64_t i = 1; i <= 60; i++)
        CHECK_OK(t, script_run(&s, i, (uint32_t)i));
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_HAS(t, script_up(&s), "  60 slot 60 pid 160 started round 0\n");
out:
    script_release(&s);
}

static void a_notice_is_said_with_what_is_left_of_it(struct test *t)
{
    CHECK_OK(t, script_init(&s));
    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_TEXT(t, script_notice(&s, 30 * S, "spot\nmarket"), "");
    script_at(&s, 5);
    CHECK_HAS(t, script_up(&s), "HELLO");
    CHECK_TEXT(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }),
               "driver: NOTICE term=1 left=25s source=\"spot market\"\n");
    CHECK_TEXT(t, script_notice(&s, 10 * S, NULL), "driver: NOTICE term=1 left=10s\n");
    CHECK_OK(t, script_lose(&s));
    script_at(&s, 20);
    CHECK_TEXT(t, script_return(&s, 1), ""); /* its time is over: it stands no more */
    CHECK_TEXT(t, script_notice(&s, TIME_NEVER, "rumour"),
               "driver: NOTICE term=1 left=never source=\"rumour\"\n");
    CHECK_TEXT(t, script_notice(&s, -1, "now"), "driver: NOTICE term=1 source=\"now\"\n");
out:
    script_release(&s);
}

static void a_driver_that_has_moved_is_dialled_at_once(struct test *t)
{
    struct msg welcome = script_welcome(1);

    CHECK_OK(t, script_init(&s));
    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_TEXT(t, script_moved(&s, "to b:1"), "hang up: to b:1\ndial\n"); /* dialling */
    CHECK_TEXT(t, script_down(&s), "");
    CHECK_TEXT(t, script_moved(&s, "to c:1"), "dial\n"); /* down */
    CHECK_INT(t, agent_deadline(s.agent), ==, LIMIT_FIRST_DRIVER_US);
    CHECK_TEXT(t, script_up(&s), HELLO "\n");
    CHECK_TEXT(t, script_moved(&s, NULL),
               "driver: BYE reason=\"the driver is elsewhere now\"\n"
               "hang up: the driver is elsewhere now\ndial\n"); /* greeting */
    CHECK_TEXT(t, script_up(&s), HELLO "\n");
    CHECK_TEXT(t, script_driver(&s, &welcome), "");
    script_at(&s, 10);
    CHECK_TEXT(t, script_moved(&s, "to d:1"),
               "driver: BYE term=1 reason=\"to d:1\"\nhang up: to d:1\ndial\n"); /* open */
    CHECK_INT(t, agent_deadline(s.agent), ==, (10 + SCRIPT_GRACE_S) * S);
out:
    script_release(&s);
}

TESTS(CASE(it_dials_says_hello_and_serves), CASE(it_dials_again_when_nobody_answers),
      CASE(a_driver_without_a_welcome_is_left), CASE(it_beats_when_it_says_nothing_else),
      CASE(any_frame_renews_the_lease_of_the_driver), CASE(the_welcome_sets_the_intervals),
      CASE(an_old_driver_is_told_and_left), CASE(any_frame_may_carry_a_higher_term),
      CASE(what_cannot_be_ends_the_connection), CASE(a_refusal_for_good_ends_it),
      CASE(a_refusal_for_now_is_asked_again), CASE(a_final_refusal_ends_the_workers_first),
      CASE(without_a_driver_it_ends_after_the_grace),
      CASE(one_that_never_met_a_driver_does_not_wait_long), CASE(a_driver_in_time_stops_the_grace),
      CASE(a_driver_that_comes_while_it_ends_hears_of_it), CASE(many_workers_are_reported),
      CASE(a_notice_is_said_with_what_is_left_of_it),
      CASE(a_driver_that_has_moved_is_dialled_at_once))
