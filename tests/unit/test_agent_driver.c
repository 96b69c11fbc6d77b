/*
 * test_agent_driver.c: agent/core and its driver: connecting, welcome, leases, terms (the number of
 * a driver), refusals and successors. An agent serves the driver with the newest term, and outlives
 * each driver that it cannot believe.
 */
#include "base/err.h"
#include "base/limits.h"
#include "proto/report.h"
#include "tests/lib/agent_script.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>

#define S TIME_S

#define SELF \
    "minor=5 version=\"0.1.0\" job=\"job\" host=\"host\" agent=77 cores=8 memory_bytes=1024"
#define HELLO        "driver: HELLO_AGENT " SELF
#define HELLO_TERM_1 "driver: HELLO_AGENT term=1 " SELF

static struct script s;

static void begin_case(struct test *t)
{
    CHECK_OK(t, script_init(&s));
}

static void end_case(struct test *t)
{
    (void)t;
    script_release(&s);
}
FIXTURE(begin_case, end_case)

TEST(the_agent_dials_says_hello_and_serves)
{
    struct msg welcome = script_welcome(3);

    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_INT(t, agent_deadline(s.agent), ==, LIMIT_FIRST_DRIVER_US);
    CHECK_TEXT(t, script_start(&s), "");
    CHECK_TEXT(t, script_up(&s), HELLO "\n");
    CHECK_INT(t, agent_deadline(s.agent), ==, LIMIT_GREETING_US);
    CHECK_TEXT(t, script_up(&s), "");
    CHECK_TEXT(t, script_driver(&s, &welcome), "");
    CHECK_INT(t, agent_deadline(s.agent), ==, 1 * S); /* the time of the first beat */
    CHECK_HAS(t, trace_line(&s.trace, 0), "agent: alone -> serving");
}

TEST(the_hello_says_where_the_agent_serves_commits)
{
    const struct agent_event up = { .kind = AGENT_DRIVER_UP, .text = "state=10.0.0.1:4001" };

    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_TEXT(t, script_step(&s, &up), HELLO " addresses=1\n  serves state=10.0.0.1:4001\n");
}

TEST(the_agent_dials_again_without_an_answer)
{
    CHECK_TEXT(t, script_start(&s), "dial\n");
    script_at(&s, 0.5);
    CHECK_TEXT(t, script_down(&s), "");
    CHECK_TEXT(t, script_down(&s), "");
    CHECK_INT(t, agent_deadline(s.agent), ==, 5 * S / 2);
    CHECK_TEXT(t, script_step(&s, &(struct agent_event){ .kind = AGENT_TIMER }), "");
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_TEXT(t, script_step(&s, &(struct agent_event){ .kind = AGENT_DRIVER_DOWN }), "");
    CHECK_HAS(t, trace_line(&s.trace, 0), "dialling -> down: the connection is gone");
}

/* A driver has died: its successor may be there at once, or after a while. */
TEST(the_agent_dials_often_after_a_driver_was_there)
{
    const int64_t waits[] = { S / 2, S * 3 / 4, S * 9 / 8, S * 27 / 16, 2 * S, 2 * S };
    const struct msg welcome = script_welcome(2);
    int rc;

    script_release(&s);
    script_redial_first_us = S / 2;
    rc = script_init(&s);
    script_redial_first_us = SCRIPT_REDIAL_S * S;
    CHECK_OK(t, rc);
    CHECK_OK(t, script_serve(&s));
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
            int64_t lost_us = s.now_us;

            CHECK_TEXT(t, script_down(&s), "");
            CHECK_TEXT(t, script_timer(&s), "dial\n");
            CHECK_INT(t, s.now_us - lost_us, ==, waits[i]);
        }
        /* the next welcome begins the count anew */
        CHECK_HAS(t, script_up(&s), "driver: HELLO_AGENT");
        CHECK_TEXT(t, script_driver(&s, &welcome), "");
    }
}

TEST(a_driver_without_a_welcome_is_left)
{
    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_TEXT(t, script_up(&s), HELLO "\n");
    CHECK_TEXT(t, script_timer(&s), "hang up: no welcome in time\n");
    CHECK_INT(t, s.now_us, ==, LIMIT_GREETING_US);
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_INT(t, s.now_us, ==, LIMIT_GREETING_US + SCRIPT_REDIAL_S * S);
}

TEST(an_idle_agent_sends_heartbeats)
{
    struct msg beat = { .type = MSG_BEAT, .term = 1, .u.beat = { .sequence = 9 } };
    struct msg launch = script_launch(1, 0);

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
    CHECK_OK(t, script_lose(&s)); /* another driver has its own count */
    CHECK_HAS(t, script_return(&s, 1), "LAUNCHED");
    CHECK_TEXT(t, script_timer(&s), "driver: BEAT term=1 sequence=3\n");
}

/* Returns the pulses of the heartbeat that a TIMER at this time has sent as its first action. */
static const struct msg_pulse_list *pulses_at(struct test *t, double seconds, uint64_t commit)
{
    static const struct msg_pulse_list none;
    const struct msg_kept items[] = {
        {2,                     commit},
        { 9,                    5     },
        { LIMIT_SLOTS_PER_HOST, 7     }
    };
    const struct msg_kept_list kept = { items, ARRAY_SIZE(items) };
    const struct agent_event timer = { .kind = AGENT_TIMER, .kept = &kept };

    script_at(&s, seconds);
    CHECK_HAS(t, script_step(&s, &timer), "driver: BEAT");
    return s.list.count ? &s.list.items[0].msg->u.beat.pulses : &none;
}

TEST(a_heartbeat_says_how_the_workers_are)
{
    struct msg beat = { .type = MSG_BEAT, .u.beat = { .sequence = 1 } };
    struct msg of_driver = { .type = MSG_BEAT, .term = 1, .u.beat = { .sequence = 1 } };
    const struct msg_pulse_list *pulses;

    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_OK(t, script_run(&s, 8, 9)); /* has not said hello */
    pulses = pulses_at(t, 1, 100);
    CHECK_INT(t, pulses->count, ==, 1);
    CHECK_INT(t, pulses->items[0].incarnation, ==, 7);
    CHECK_INT(t, pulses->items[0].commit, ==, 100);
    CHECK_INT(t, pulses->items[0].commit_us, ==, 0);
    CHECK_INT(t, pulses->items[0].silent_us, ==, 1 * S);
    script_at(&s, 1.5);
    CHECK_TEXT(t, script_worker(&s, 3, &beat), "");
    pulses = pulses_at(t, 2, 100);
    CHECK_INT(t, pulses->items[0].commit_us, ==, 1 * S);
    CHECK_INT(t, pulses->items[0].silent_us, ==, S / 2);
    pulses = pulses_at(t, 3, 101);
    CHECK_INT(t, pulses->items[0].commit, ==, 101);
    CHECK_INT(t, pulses->items[0].commit_us, ==, 0);
    CHECK_TEXT(t, script_driver(&s, &of_driver), "");
    CHECK_TEXT(t, script_gone(&s, 3), "");
    pulses = pulses_at(t, 4, 101);
    CHECK_INT(t, pulses->count, ==, 0);
}

/* Tells the agent of values that worker 7 has in its page, with a timer or as its last ones;
 * returns the reports of the heartbeat that follows as the first action. */
static const struct msg_reported_list *reports_at(struct test *t, double seconds,
                                                  enum agent_event_kind kind, uint64_t said)
{
    static const struct msg_reported_list none;
    const struct report_seen items[] = {
        {7,  0, 1,    { "once", 1, 2, 3, S }       },
        { 7, 5, said, { "loss", said, 2, 4, 5 * S }},
        { 8, 0, 1,    { "stranger", 1, 1, 1, 1 }   },
    };
    const struct report_list reports = { items, ARRAY_SIZE(items) };

    script_at(&s, seconds);
    CHECK(t, !strstr(script_step(&s, &(struct agent_event){ .kind = kind, .reports = &reports }),
                     err_name(HVD_E_NOMEM)));
    return s.list.count && s.list.items[0].kind == AGENT_DO_SEND_DRIVER &&
                   s.list.items[0].msg->type == MSG_BEAT
               ? &s.list.items[0].msg->u.beat.reports
               : &none;
}

TEST(a_heartbeat_says_the_values_that_are_new)
{
    const struct msg_reported_list *reports;

    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_join(&s, 7, 2, 3));
    reports = reports_at(t, 6, AGENT_TIMER, 1);
    CHECK_INT(t, reports->count, ==, 2);
    CHECK_INT(t, reports->items[0].incarnation, ==, 7);
    CHECK_TEXT(t, reports->items[0].name, "once");
    CHECK_INT(t, reports->items[0].age_us, ==, 5 * S);
    CHECK_TEXT(t, reports->items[1].name, "loss");
    CHECK_INT(t, reports->items[1].said, ==, 1);
    CHECK_INT(t, reports->items[1].round, ==, 2);
    CHECK_INT(t, reports->items[1].commit, ==, 4);
    CHECK_INT(t, reports->items[1].age_us, ==, S);
    reports = reports_at(t, 7, AGENT_TIMER, 1);
    CHECK_INT(t, reports->count, ==, 0);
    reports = reports_at(t, 8, AGENT_TIMER, 2);
    CHECK_INT(t, reports->count, ==, 1);
    CHECK_INT(t, reports->items[0].said, ==, 2);
    /* the worker is about to end: what it has said last waits for no heartbeat */
    reports = reports_at(t, 8.1, AGENT_REPORTS, 3);
    CHECK_INT(t, reports->count, ==, 1);
    CHECK_INT(t, reports->items[0].said, ==, 3);
    reports = reports_at(t, 8.1, AGENT_REPORTS, 3);
    CHECK_INT(t, reports->count, ==, 0);
    /* without a driver nothing is said, and the next one hears all of it with its age */
    CHECK_OK(t, script_lose(&s));
    reports = reports_at(t, 8.2, AGENT_REPORTS, 4);
    CHECK_INT(t, reports->count, ==, 0);
    CHECK_HAS(t, script_return(&s, 2), "LAUNCHED");
    reports = reports_at(t, 12, AGENT_TIMER, 4);
    CHECK_INT(t, reports->count, ==, 2);
    CHECK_INT(t, reports->items[0].age_us, ==, 11 * S);
}

/* Output of workers all the time renews the lease, but says nothing of the other workers. */
TEST(a_heartbeat_comes_beside_other_frames)
{
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_join(&s, 7, 2, 3));
    for (int half = 1; half < 4; half++) {
        script_at(&s, half / 2.0);
        CHECK_HAS(t, script_output(&s, 7, STREAM_STDOUT, "x", 1), "OUTPUT");
    }
    CHECK_INT(t, agent_deadline(s.agent), ==, 2 * S);
    CHECK_HAS(t, script_timer(&s), "BEAT term=1 sequence=1 pulses=1");
}

TEST(many_workers_take_several_heartbeats)
{
    CHECK_OK(t, script_serve(&s));
    for (uint32_t i = 0; i <= LIMIT_BEAT_PULSES; i++)
        CHECK_OK(t, script_join(&s, i + 1, i, i));
    CHECK_TEXT(t, script_timer(&s),
               "driver: BEAT term=1 sequence=1 pulses=256\n"
               "driver: BEAT term=1 sequence=2 pulses=1\n");
}

TEST(any_frame_renews_the_lease_of_the_driver)
{
    struct msg drain = { .type = MSG_HOSTS_UPDATED, .term = 1, .round = 1 };

    CHECK_OK(t, script_serve(&s));
    CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_TEXT(t, script_driver(&s, &drain), ""); /* at 2 s the drain has no effect yet */
    for (int i = 3; i < 6; i++)
        CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_TEXT(t, script_timer(&s), "hang up: the driver is silent\n");
    CHECK_INT(t, s.now_us, ==, 6 * S);
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_INT(t, s.now_us, ==, 8 * S);
}

TEST(the_welcome_sets_the_intervals)
{
    struct msg welcome = script_welcome(1);

    welcome.u.welcome_agent.beat_us = 3 * S;
    welcome.u.welcome_agent.lease_us = 7 * S;
    welcome.u.welcome_agent.driver_grace_us = 11 * S;
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
}

TEST(a_new_key_is_taken_and_then_told)
{
    struct msg rekey = { .type = MSG_REKEY, .term = 1, .u.rekey.epoch = 4 };
    struct agent_event taken = { .kind = AGENT_KEY_TAKEN, .epoch = 4 };

    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, script_driver(&s, &rekey), "take key 4\n");
    CHECK_TEXT(t, script_step(&s, &taken), "driver: REKEYED term=1 epoch=4\n");
    CHECK_TEXT(t, script_driver(&s, &rekey), "take key 4\n"); /* it comes twice */
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_step(&s, &taken), "");   /* the next hello proves the key */
    CHECK_TEXT(t, script_driver(&s, &rekey), ""); /* without a connection */
    CHECK_TEXT(t, script_return(&s, 2), "");
    CHECK_HAS(t, script_driver(&s, &rekey), "BYE term=2 reason=\"term 1 is over"); /* too late */
}

/* The agent serves term 5; a STOP or WELCOME of term 4 is answered with BYE, and the agent connects
 * again until term 6 comes. */
TEST(an_old_driver_is_told_and_left)
{
    struct msg welcome = script_welcome(5);
    struct msg stop = {
        .type = MSG_STOP, .term = 4, .u.stop = {0, "old"}
    };

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
}

TEST(any_frame_may_carry_a_higher_term)
{
    struct msg beat = { .type = MSG_BEAT, .term = 8, .u.beat = { .sequence = 1 } };

    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, script_driver(&s, &beat), "");
    beat.term = 0; /* a beat without a term */
    CHECK_TEXT(t, script_driver(&s, &beat), "");
    beat.term = 1;
    CHECK_HAS(t, script_driver(&s, &beat), "term 1 is over, 8 is obeyed");
}

TEST(an_impossible_message_ends_the_connection)
{
    struct msg welcome = script_welcome(1);
    struct msg ready = { .type = MSG_READY, .term = 1, .incarnation = 1 };
    struct msg bye = { .type = MSG_BYE, .u.bye = { "moving" } };

    CHECK_OK(t, script_serve(&s));
    CHECK_HAS(t, script_driver(&s, &welcome),
              "hang up: WELCOME_AGENT came after the greeting; install");
    CHECK_TEXT(t, script_return(&s, 1), "");
    CHECK_HAS(t, script_driver(&s, &ready),
              "hang up: the message READY may not go from the driver");
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_TEXT(t, script_driver(&s, &bye), ""); /* there is no connection yet */
    CHECK_HAS(t, script_up(&s), "HELLO");
    ready = script_launch(1, 1);
    CHECK_HAS(t, script_driver(&s, &ready),
              "hang up: LAUNCH came before the greeting was over; install");
    CHECK_TEXT(t, script_return(&s, 1), "");
    CHECK_TEXT(t, script_driver(&s, &bye), "hang up: the driver says bye: moving\n");
}

TEST(a_final_refusal_ends_the_agent)
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
}

TEST(a_temporary_refusal_is_asked_again)
{
    struct msg refused = {
        .type = MSG_REFUSED, .u.refused = {HVD_E_BUSY, "later"}
    };

    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_HAS(t, script_up(&s), "HELLO");
    CHECK_TEXT(t, script_driver(&s, &refused), "hang up: refused by the driver: later\n");
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_INT(t, s.now_us, ==, SCRIPT_REDIAL_S * S);
}

TEST(a_final_refusal_ends_the_workers_first)
{
    struct msg refused = {
        .type = MSG_REFUSED, .u.refused = {HVD_E_MISMATCH, "another job"}
    };

    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_run(&s, 1, 0));
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_TEXT(t, script_up(&s), HELLO_TERM_1 " slots=1\n  1 slot 0 pid 101 started round 0\n");
    CHECK_TEXT(t, script_driver(&s, &refused),
               "hang up: refused by the driver: another job\nterm 1\n");
    CHECK_TEXT(t, script_ended(&s, 1, ENDED_SIGNAL, 15, WITNESS_PIDFD),
               "exit -16: refused by the driver: another job\n");
}

/* Without a driver the agent connects again and again. After the grace of 60 s it ends its workers,
 * kills the one that stays, and exits. */
TEST(an_agent_without_a_driver_ends_after_the_grace)
{
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
}

/* The driver ended while its agent was started, so the agent has no workers to keep. */
TEST(an_agent_that_never_met_a_driver_does_not_wait_long)
{
    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_TEXT(t, script_down(&s), "");
    script_at(&s, 10);
    CHECK_HAS(t, script_moved(&s, NULL), "dial\n"); /* a driver asks the agent to connect */
    while (agent_deadline(s.agent) < 40 * S) {
        CHECK_TEXT(t, script_down(&s), "");
        CHECK_TEXT(t, script_timer(&s), "dial\n");
    }
    CHECK_HAS(t, script_timer(&s), "exit -17: the driver that started the agent does not answer\n");
    CHECK_INT(t, s.now_us, ==, 40 * S);
}

TEST(a_driver_in_time_stops_the_grace)
{
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_lose(&s));
    script_at(&s, 57);
    CHECK_TEXT(t, script_return(&s, 2), "");
    CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_INT(t, s.now_us, ==, 60 * S);
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_INT(t, agent_deadline(s.agent), ==, 120 * S); /* the grace began anew */
}

TEST(a_driver_that_connects_hears_of_the_end)
{
    struct msg launch = script_launch(2, 1);

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
}

TEST(many_workers_are_reported)
{
    CHECK_OK(t, script_serve(&s));
    for (uint64_t i = 1; i <= 60; i++)
        CHECK_OK(t, script_run(&s, i, (uint32_t)i));
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_HAS(t, script_up(&s), "  60 slot 60 pid 160 started round 0\n");
}

TEST(a_notice_is_reported_with_its_remaining_time)
{
    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_TEXT(t, script_notice(&s, 30 * S, "spot\nmarket"), "");
    script_at(&s, 5);
    CHECK_HAS(t, script_up(&s), "HELLO");
    CHECK_TEXT(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }),
               "driver: NOTICE term=1 left=25s source=\"spot market\"\n");
    CHECK_TEXT(t, script_notice(&s, 25 * S, "a later one"), "");
    CHECK_TEXT(t, script_notice(&s, TIME_NEVER, "one without a deadline"), "");
    CHECK_TEXT(t, script_notice(&s, 10 * S, NULL), "driver: NOTICE term=1 left=10s\n");
    CHECK_OK(t, script_lose(&s));
    script_at(&s, 20);
    /* the notice is over, so the agent does not repeat it */
    CHECK_TEXT(t, script_return(&s, 1), "");
    CHECK_TEXT(t, script_notice(&s, TIME_NEVER, "rumour"),
               "driver: NOTICE term=1 left=never source=\"rumour\"\n");
    CHECK_TEXT(t, script_notice(&s, -1, "now"), "driver: NOTICE term=1 source=\"now\"\n");
}

TEST(a_driver_that_has_moved_is_dialled_at_once)
{
    struct msg welcome = script_welcome(1);

    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_TEXT(t, script_moved(&s, "to b:1"), "hang up: to b:1\ndial\n"); /* while connecting */
    CHECK_TEXT(t, script_down(&s), "");
    CHECK_TEXT(t, script_moved(&s, "to c:1"), "dial\n"); /* while down */
    CHECK_INT(t, agent_deadline(s.agent), ==, LIMIT_FIRST_DRIVER_US);
    CHECK_TEXT(t, script_up(&s), HELLO "\n");
    CHECK_TEXT(t, script_moved(&s, NULL),
               "driver: BYE reason=\"the driver is elsewhere now\"\n"
               "hang up: the driver is elsewhere now\ndial\n"); /* while greeting */
    CHECK_TEXT(t, script_up(&s), HELLO "\n");
    CHECK_TEXT(t, script_driver(&s, &welcome), "");
    script_at(&s, 10);
    CHECK_TEXT(t, script_moved(&s, "to d:1"),
               "driver: BYE term=1 reason=\"to d:1\"\nhang up: to d:1\ndial\n"); /* open */
    CHECK_INT(t, agent_deadline(s.agent), ==, (10 + SCRIPT_GRACE_S) * S);
}
