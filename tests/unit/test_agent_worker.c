/*
 * test_agent_worker.c: agent/core and the connections of workers: greeting, refusals, messages in
 * both directions, and the end of a worker that is silent or hangs up.
 */
#include "tests/lib/agent_script.h"
#include "tests/lib/fixture.h"

#define S TIME_S

#define WELCOME_7                                                                          \
    "worker 3: WELCOME_WORKER term=1 incarnation=7 minor=5 version=\"0.1.0\" job=\"job\" " \
    "host=\"host\" "                                                                       \
    "slot=2 rank=2 size=4 min_np=1 max_np=9 beat=1s stall_warning=30s stall_shutdown=never\n"

static struct script s;

static struct msg beat(void)
{
    return (struct msg){ .type = MSG_BEAT, .u.beat = { .sequence = 1 } };
}

static struct msg word(enum msg_type type, uint64_t incarnation, uint64_t round)
{
    struct msg msg = { .type = type, .incarnation = incarnation, .round = round };

    if (type == MSG_FINISHED)
        msg.u.finished.text = "";
    return msg;
}

/* Lets time pass up to `until_us`; the driver sends enough beats to count as alive. */
static const char *pass_time(int64_t until_us)
{
    struct msg from_driver = { .type = MSG_BEAT, .term = 1 };
    const char *lines = "";

    while (agent_deadline(s.agent) <= until_us) {
        lines = script_timer(&s);
        if (!test_has_text(lines, "BEAT") || test_has_text(lines, "kill"))
            return lines;
        lines = script_driver(&s, &from_driver);
        if (lines[0])
            return lines;
    }
    s.now_us = until_us;
    return "";
}

static void begin_case(struct test *t)
{
    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
}

static void end_case(struct test *t)
{
    (void)t;
    script_release(&s);
}
FIXTURE(begin_case, end_case)

TEST(a_hello_is_answered_with_the_place)
{
    struct msg hello = script_hello(7, 107);

    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, script_worker(&s, 3, &hello), WELCOME_7);
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_HAS(t, script_up(&s), "  7 slot 2 pid 107 joining round 0\n");
}

TEST(a_hello_may_come_before_the_start_is_told)
{
    struct msg launch = script_launch(7, 2);
    struct msg hello = script_hello(7, 107);

    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_TEXT(t, script_worker(&s, 3, &hello), WELCOME_7);
    CHECK_HAS(t, script_spawn_failed(&s, 7, HVD_E_IO, "a lie"), "LAUNCH_FAILED");
    CHECK_HAS(t, script_spawn_failed(&s, 7, HVD_E_IO, "a lie"), "");
}

TEST(an_unknown_worker_is_refused)
{
    struct msg hello = script_hello(8, 108);

    CHECK_TEXT(t, script_worker(&s, 3, &hello),
               "worker 3: REFUSED term=1 code=-5 text=\"no worker of this incarnation runs on this "
               "host\"\n"
               "drop 3: no worker of this incarnation runs on this host\n");
    CHECK_TEXT(t, script_gone(&s, 3), "");
    CHECK_OK(t, script_run(&s, 8, 2));
    CHECK_HAS(t, script_ended(&s, 8, ENDED_EXIT, 0, WITNESS_PIDFD), "EXITED");
    CHECK_HAS(t, script_worker(&s, 3, &hello), "REFUSED term=1 code=-5");
    CHECK_OK(t, script_run(&s, 9, 2));
    hello = script_hello(9, 108);
    CHECK_HAS(t, script_worker(&s, 4, &hello), "REFUSED term=1 code=-9");
}

TEST(a_second_connection_waits_for_the_end_of_the_first)
{
    struct msg hello = script_hello(7, 107);

    CHECK_OK(t, script_join(&s, 7, 2, 5));
    CHECK_TEXT(t, script_worker(&s, 3, &hello),
               "worker 3: REFUSED term=1 code=-10 text=\"this incarnation has a connection\"\n"
               "drop 3: this incarnation has a connection\n");
    CHECK_TEXT(t, script_gone(&s, 5), "");
    CHECK_TEXT(t, script_worker(&s, 3, &hello), WELCOME_7);
    CHECK_TEXT(t, pass_time(3 * S), "");
}

TEST(an_impossible_message_ends_the_connection)
{
    struct msg message = beat();

    CHECK_TEXT(t, script_worker(&s, 3, &message),
               "drop 3: the process says something else before hello\n");
    CHECK_OK(t, script_join(&s, 7, 2, 3));
    message = script_hello(7, 107);
    CHECK_HAS(t, script_worker(&s, 3, &message), "drop 3: HELLO_WORKER came after the greeting; ");
    CHECK_TEXT(t, script_worker(&s, 3, &message), WELCOME_7);
    message = word(MSG_READY, 8, 0);
    CHECK_TEXT(t, script_worker(&s, 3, &message),
               "drop 3: the worker speaks for another incarnation\n");
    message = script_hello(7, 107);
    CHECK_TEXT(t, script_worker(&s, 3, &message), WELCOME_7);
    message = word(MSG_ROUND, 7, 1);
    CHECK_HAS(t, script_worker(&s, 3, &message),
              "drop 3: the message ROUND may not go from a worker");
    message = script_hello(7, 107);
    CHECK_TEXT(t, script_worker(&s, 3, &message), WELCOME_7);
    message = (struct msg){ .type = MSG_BYE, .u.bye = { "done" } };
    CHECK_TEXT(t, script_worker(&s, 3, &message), "drop 3: the worker says bye: done\n");
    CHECK_TEXT(t, script_worker(&s, 3, &message),
               "drop 3: the process says something else before hello\n");
}

TEST(every_word_goes_up_unchanged)
{
    static const enum msg_type types[] = { MSG_READY,      MSG_NEXT_CHECK, MSG_PREPARED,
                                           MSG_RECOVERING, MSG_ENTERED,    MSG_LEFT,
                                           MSG_FINISHED,   MSG_STALLED };

    CHECK_OK(t, script_join(&s, 7, 2, 3));
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct msg message = word(types[i], 7, 1);

        CHECK_HAS(t, script_worker(&s, 3, &message), "driver: ");
        CHECK_INT(t, s.list.count, ==, 1);
        CHECK(t, s.list.items[0].msg == &message);
    }
    CHECK_OK(t, script_lose(&s));
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct msg message = word(types[i], 7, 1);

        CHECK_TEXT(t, script_worker(&s, 3, &message), "");
    }
}

TEST(a_message_of_the_driver_goes_to_the_worker_it_names)
{
    struct msg message = {
        .type = MSG_DRAIN, .term = 1, .u.drain = {5 * S, "test"}
    };

    CHECK_OK(t, script_join(&s, 7, 2, 30));
    CHECK_OK(t, script_join(&s, 8, 3, 10));
    CHECK_OK(t, script_join(&s, 9, 4, 20));
    CHECK_OK(t, script_run(&s, 10, 5));
    CHECK_TEXT(t, script_driver(&s, &message),
               "worker 10: DRAIN term=1 left=5s reason=\"test\"\n"
               "worker 20: DRAIN term=1 left=5s reason=\"test\"\n"
               "worker 30: DRAIN term=1 left=5s reason=\"test\"\n");
    CHECK(t, s.list.items[2].msg == &message);
    message.incarnation = 9;
    CHECK_TEXT(t, script_driver(&s, &message),
               "worker 20: DRAIN term=1 incarnation=9 left=5s reason=\"test\"\n");
    message.incarnation = 10; /* has not said hello */
    CHECK_TEXT(t, script_driver(&s, &message), "");
    CHECK_HAS(t, trace_line(&s.trace, 0), "DRAIN for 10, which has no connection: dropped");
    message.incarnation = 11;
    CHECK_TEXT(t, script_driver(&s, &message), "");
    CHECK_TEXT(t, script_gone(&s, 20), "");
    CHECK_HAS(t, script_ended(&s, 8, ENDED_EXIT, 0, WITNESS_PIDFD), "EXITED");
    message.incarnation = 0; /* 8 has ended, although its socket is open */
    CHECK_TEXT(t, script_driver(&s, &message), "worker 30: DRAIN term=1 left=5s reason=\"test\"\n");
    message.incarnation = 8;
    CHECK_TEXT(t, script_driver(&s, &message), "");
}

TEST(a_silent_worker_is_killed)
{
    struct msg message = beat();

    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_TEXT(t, pass_time(7 * S / 2), "");
    CHECK_TEXT(t, script_worker(&s, 3, &message), "");
    CHECK_TEXT(t, pass_time(7 * S), "");
    CHECK_TEXT(t, pass_time(8 * S), "kill 7\n");
    CHECK_INT(t, s.now_us, ==, 15 * S / 2);
    CHECK_HAS(t, trace_line(&s.trace, 0), "worker: 7 is silent for too long");
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_PIDFD),
               "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=3 value=9 witness=4 "
               "ran=7.5s\n");
}

TEST(a_worker_whose_connection_is_gone_is_killed)
{
    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_TEXT(t, pass_time(3 * S / 2), "");
    CHECK_TEXT(t, script_gone(&s, 3), "");
    CHECK_TEXT(t, pass_time(5 * S), "");
    CHECK_TEXT(t, pass_time(6 * S), "kill 7\n");
    CHECK_INT(t, s.now_us, ==, 11 * S / 2);
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_PIDFD),
               "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=3 value=9 witness=3 "
               "ran=5.5s\n");
}

TEST(a_worker_that_never_said_hello_has_no_lease)
{
    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, pass_time(60 * S), "");
}

TEST(a_finished_worker_has_no_lease)
{
    struct msg left = word(MSG_LEFT, 7, 0);
    struct msg finished = word(MSG_FINISHED, 8, 1);
    struct msg failed = word(MSG_FINISHED, 9, 1);
    struct msg done = { .type = MSG_DONE, .term = 1, .incarnation = 10 };

    failed.u.finished.code = -4;
    CHECK_OK(t, script_join(&s, 7, 0, 1));
    CHECK_OK(t, script_join(&s, 8, 1, 2));
    CHECK_OK(t, script_join(&s, 9, 2, 3));
    CHECK_OK(t, script_join(&s, 10, 3, 4));
    CHECK_HAS(t, script_worker(&s, 1, &left), "LEFT");
    CHECK_HAS(t, script_worker(&s, 2, &finished), "FINISHED");
    CHECK_HAS(t, script_worker(&s, 3, &failed), "FINISHED");
    CHECK_HAS(t, script_driver(&s, &done), "worker 4: DONE");
    CHECK_TEXT(t, script_gone(&s, 1), "");
    CHECK_TEXT(t, script_gone(&s, 3), "");
    CHECK_TEXT(t, pass_time(60 * S), "");
    CHECK_TEXT(t, script_gone(&s, 2), "");
    CHECK_TEXT(t, pass_time(120 * S), "");
}

TEST(a_worker_told_to_end_has_its_grace)
{
    struct msg kill = {
        .type = MSG_KILL, .term = 1, .incarnation = 7, .u.kill = {30 * S, "test"}
    };

    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_TEXT(t, script_driver(&s, &kill), "term 7\n");
    CHECK_TEXT(t, script_gone(&s, 3), "");
    CHECK_TEXT(t, pass_time(29 * S), "");
    CHECK_HAS(t, pass_time(31 * S), "kill 7\n");
    CHECK_INT(t, s.now_us, ==, 30 * S);
    CHECK_HAS(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_PIDFD), "ended=2 value=9 witness=2");
}

TEST(a_shorter_lease_spares_slow_heartbeats)
{
    struct msg welcome = script_welcome(1);
    struct msg message = beat();

    welcome.u.welcome_agent.lease_us = S;
    welcome.u.welcome_agent.beat_us = S / 2;
    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_HAS(t, script_up(&s), "HELLO");
    CHECK_HAS(t, script_driver(&s, &welcome), "LAUNCHED");
    CHECK_TEXT(t, script_worker(&s, 3, &message), "");
    CHECK_TEXT(t, pass_time(5 * S), "");
}

/* The machine was suspended: all workers look silent only because the agent read nothing. */
TEST(an_agent_that_slept_accuses_no_worker)
{
    struct msg message = beat();

    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_OK(t, script_run(&s, 8, 3));
    s.now_us = 100 * S;
    CHECK_TEXT(t, script_step(&s, &(struct agent_event){ .kind = AGENT_TIMER }),
               "driver: BEAT term=1 sequence=1 pulses=1\n");
    CHECK_HAS(t, trace_line(&s.trace, 0), "agent: slept for 99000000 us");
    CHECK_TEXT(t, script_worker(&s, 3, &message), "");
    CHECK_OK(t, script_lose(&s));
    s.now_us = 110 * S;
    CHECK_TEXT(t, script_step(&s, &(struct agent_event){ .kind = AGENT_TIMER }), "dial\n");
    CHECK_TEXT(t, script_timer(&s), "kill 7\n"); /* the agent runs, and 7 is silent */
    CHECK_INT(t, s.now_us, ==, 114 * S);
}

TEST(a_socket_that_outlives_its_worker_is_closed)
{
    struct msg left = word(MSG_LEFT, 7, 0);
    struct msg forget = { .type = MSG_FORGET, .term = 1, .incarnation = 7 };

    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_HAS(t, script_ended(&s, 7, ENDED_EXIT, 0, WITNESS_PIDFD), "EXITED");
    CHECK_HAS(t, script_worker(&s, 3, &left), "driver: LEFT"); /* was on its way */
    CHECK_TEXT(t, script_driver(&s, &forget), "drop 3: its worker is gone\n");
    CHECK_TEXT(t, script_gone(&s, 3), "");
    CHECK_OK(t, script_join(&s, 8, 2, 3));
    CHECK_HAS(t, script_ended(&s, 8, ENDED_EXIT, 0, WITNESS_PIDFD), "EXITED");
    CHECK_TEXT(t, script_gone(&s, 3), "");
    forget.incarnation = 8;
    CHECK_TEXT(t, script_driver(&s, &forget), "");
}
