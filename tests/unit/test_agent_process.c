/*
 * test_agent_process.c: agent/core and the processes of workers: launches, ends, kills, grace times
 * (the time before a kill) and workers that are unusable. The agent reports every end until the
 * driver forgets the incarnation, and reports only one end for each.
 */
#include "base/limits.h"
#include "tests/lib/agent_script.h"
#include "tests/lib/fixture.h"

#include <string.h>

#define S TIME_S

static struct script s;

static struct msg forget(uint64_t incarnation)
{
    return (struct msg){ .type = MSG_FORGET, .term = 1, .incarnation = incarnation };
}

static struct msg kill_in(uint64_t incarnation, int64_t grace_us)
{
    return (struct msg){
        .type = MSG_KILL, .term = 1, .incarnation = incarnation, .u.kill = {grace_us, "test"}
    };
}

static struct msg stop_in(int64_t grace_us)
{
    return (struct msg){
        .type = MSG_STOP, .term = 1, .u.stop = {grace_us, "test"}
    };
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

TEST(a_launch_is_carried_out_once)
{
    struct msg launch = script_launch(7, 2);

    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_TEXT(t, script_driver(&s, &launch), ""); /* the answer is on its way */
    CHECK_TEXT(t, script_spawned(&s, 7, 107),
               "driver: LAUNCHED term=1 incarnation=7 slot=2 pid=107\n");
    CHECK_TEXT(t, script_driver(&s, &launch),
               "driver: LAUNCHED term=1 incarnation=7 slot=2 pid=107\n");
    CHECK_TEXT(t, script_spawned(&s, 7, 108), "");
    CHECK_TEXT(t, script_spawn_failed(&s, 7, HVD_E_IO, "late"), "");
    CHECK_TEXT(t, script_spawned(&s, 8, 108), "");
}

/* The driver gets the same EXITED again after each LAUNCH and each return, until it sends FORGET.
 * Then a LAUNCH of 7 is stale. */
TEST(an_end_is_said_until_it_is_forgotten)
{
    static const char end[] =
        "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=1 value=3 witness=2 ran=2s\n";
    struct msg launch = script_launch(7, 2);
    struct msg forget_7 = forget(7);

    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, script_driver(&s, &forget_7), ""); /* worker 7 runs */
    CHECK_HAS(t, trace_line(&s.trace, 0), "FORGET of 7, which runs");
    script_at(&s, 2);
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_EXIT, 3, WITNESS_PIDFD), end);
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_SOCKET), "");
    CHECK_TEXT(t, script_driver(&s, &launch), end);
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 1), end);
    CHECK_TEXT(t, script_driver(&s, &forget_7), "");
    CHECK_TEXT(t, script_driver(&s, &forget_7), "");
    CHECK_TEXT(t, script_driver(&s, &launch), "");
    CHECK_HAS(t, trace_line(&s.trace, 0), "is stale (7 was there)");
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 1), "");
}

/* ---- autopsies ---- */

static struct recorded recorded;

/* Worker 7 ends, and this is left of it. Returns the actions. */
static const char *ended_with_remains(uint32_t ended, int32_t value)
{
    const struct agent_remains remains = {
        .pid = 4242,
        .recorded = &recorded,
        .output = {{ (const uint8_t *)"out", 3 }, { NULL, 0 }},
        .core_pattern = "core"
    };

    recorded = (struct recorded){
        .items = {{ .name = "train", .round = 2, .began_us = S },
                  { .name = "commit",
                     .round = 2,
                     .number = 5,
                     .bytes = 8,
                     .began_us = 3 * S / 2,
                     .ended_us = 2 * S,
                     .code = HVD_E_IO },
                  /* times and codes that no worker of ours writes */
                   { .name = "liar",
                     .began_us = 100 * S,
                     .ended_us = INT64_MIN,
                     .code = INT64_MAX },
                  { .name = "liar", .began_us = -S, .ended_us = INT64_MAX }},
        .count = 4,
        .rank = 1,
        .round = 2,
        .size = 4,
        .step = 17
    };
    return script_step(&s, &(struct agent_event){ .kind = AGENT_ENDED,
                                                  .incarnation = 7,
                                                  .ended = ended,
                                                  .value = value,
                                                  .witness = WITNESS_PIDFD,
                                                  .remains = &remains });
}

/* The autopsy goes before the EXITED, again after each return, until FORGET. */
TEST(a_bad_end_has_an_autopsy)
{
    static const char end[] = "driver: EXITED term=1 incarnation=7 ";
    struct msg forget_7 = forget(7);
    const struct msg *msg;
    const char *said;

    CHECK_OK(t, script_run(&s, 7, 2));
    script_at(&s, 3);
    said = ended_with_remains(ENDED_SIGNAL, 11);
    CHECK_HAS(t, said,
              "driver: AUTOPSY term=1 incarnation=7 slot=2 pid=4242 ended=2 value=11 ran=3s "
              "rank=1 size=4 last_round=2 step=17 ");
    CHECK(t, strstr(said, end) > strstr(said, "AUTOPSY"));
    msg = s.list.items[0].msg;
    CHECK_INT(t, msg->type, ==, MSG_AUTOPSY);
    CHECK_INT(t, msg->u.autopsy.activities.count, ==, 4);
    CHECK_TEXT(t, msg->u.autopsy.activities.items[0].name, "train");
    CHECK_INT(t, msg->u.autopsy.activities.items[0].ago_us, ==, 2 * S);
    CHECK_INT(t, msg->u.autopsy.activities.items[0].took_us, ==, TIME_NEVER);
    CHECK_INT(t, msg->u.autopsy.activities.items[1].took_us, ==, S / 2);
    CHECK_INT(t, msg->u.autopsy.activities.items[1].code, ==, HVD_E_IO);
    for (size_t i = 2; i < 4; i++) {
        CHECK_INT(t, msg->u.autopsy.activities.items[i].ago_us, ==, 0);
        CHECK_INT(t, msg->u.autopsy.activities.items[i].took_us, ==, 0);
        CHECK_INT(t, msg->u.autopsy.activities.items[i].code, ==, 0);
    }
    CHECK_INT(t, msg->u.autopsy.output.length, ==, 3);
    CHECK_OK(t, script_lose(&s));
    said = script_return(&s, 2);
    CHECK_HAS(t, said, "driver: AUTOPSY term=2 incarnation=7 slot=2 ");
    CHECK_HAS(t, said, "driver: EXITED term=2 incarnation=7 ");
    forget_7.term = 2;
    CHECK_TEXT(t, script_driver(&s, &forget_7), "");
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 2), "");
}

TEST(a_good_end_has_none)
{
    const char *said;

    CHECK_OK(t, script_run(&s, 7, 2));
    said = ended_with_remains(ENDED_EXIT, 0);
    CHECK_HAS(t, said, "driver: EXITED ");
    CHECK(t, !strstr(said, "AUTOPSY"));
}

TEST(an_end_of_the_job_has_none)
{
    struct msg stop = stop_in(S);
    const char *said;

    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_HAS(t, script_driver(&s, &stop), "term 7");
    said = ended_with_remains(ENDED_SIGNAL, 15);
    CHECK_HAS(t, said, "driver: EXITED ");
    CHECK(t, !strstr(said, "AUTOPSY"));
}

/* Of two orders to kill the first one is the reason. */
TEST(an_autopsy_has_the_reason_of_the_driver)
{
    struct msg first = kill_in(7, S), second = kill_in(7, 0);

    first.u.kill.reason = "the worker stalls";
    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, script_driver(&s, &first), "term 7\n");
    CHECK_TEXT(t, script_driver(&s, &second), "kill 7\n");
    CHECK_HAS(t, ended_with_remains(ENDED_SIGNAL, 9), " reason=\"the worker stalls\"");
}

TEST(an_autopsy_has_the_reason_of_the_worker)
{
    struct msg failed = {
        .type = MSG_FINISHED, .incarnation = 7, .round = 1, .u.finished = {HVD_E_IO, "no data"}
    };

    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_HAS(t, script_worker(&s, 3, &failed), "FINISHED");
    CHECK_HAS(t, ended_with_remains(ENDED_EXIT, 1), " reason=\"no data\"");
}

static struct msg unusable(uint64_t incarnation)
{
    return (struct msg){ .type = MSG_UNUSABLE,
                         .incarnation = incarnation,
                         .u.unusable = { "its device is stuck" } };
}

TEST(an_unusable_worker_is_killed_at_once)
{
    static const char word[] = "driver: UNUSABLE incarnation=7 text=\"its device is stuck\"\n";
    struct msg message = unusable(7);
    struct msg kill = kill_in(7, 5 * S);

    CHECK_OK(t, script_join(&s, 7, 2, 3));
    /* the worker gets SIGTERM, and needs no more time */
    CHECK_TEXT(t, script_driver(&s, &kill), "term 7\n");
    CHECK_HAS(t, script_worker(&s, 3, &message), word);
    CHECK_HAS(t, s.lines, "kill 7\n");
    CHECK_TEXT(t, script_worker(&s, 3, &message), word);
    script_at(&s, 60);
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_MUTEX),
               "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=2 value=9 witness=1 "
               "ran=1m\n");
    /* a child process of the worker has the socket */
    CHECK_TEXT(t, script_worker(&s, 3, &message), word);
}

/* The worker has said hello, but the agent does not know its pid yet. */
TEST(a_worker_may_be_unusable_before_it_is_known)
{
    struct msg launch = script_launch(7, 2);
    struct msg hello = script_hello(7, 107);
    struct msg message = unusable(7);

    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_HAS(t, script_worker(&s, 3, &hello), "WELCOME_WORKER");
    CHECK_HAS(t, script_worker(&s, 3, &message), "driver: UNUSABLE");
    CHECK_HAS(t, script_spawned(&s, 7, 107), "kill 7\n");
}

/* The agent takes the incarnation from the connection: no worker ends by another worker's word. */
TEST(an_unusable_worker_reports_for_itself)
{
    struct msg message = unusable(6);

    CHECK_OK(t, script_join(&s, 6, 1, 2));
    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_TEXT(t, script_worker(&s, 3, &message),
               "drop 3: the worker speaks for another incarnation\n");
    CHECK_TEXT(t, script_worker(&s, 4, &message),
               "drop 4: the process says something else before hello\n");
    CHECK_HAS(t, script_worker(&s, 2, &message), "kill 6\n");
}

/* A child of the former worker has its socket: the word is about the worker that has ended. */
TEST(an_unusable_worker_is_not_its_successor)
{
    struct msg message = unusable(7);
    struct msg forget_7 = forget(7);

    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_HAS(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_MUTEX), "EXITED");
    CHECK_OK(t, script_join(&s, 8, 2, 4));
    CHECK_TEXT(t, script_worker(&s, 3, &message),
               "driver: UNUSABLE incarnation=7 text=\"its device is stuck\"\n");
    CHECK_TEXT(t, script_driver(&s, &forget_7), "drop 3: its worker is gone\n");
    CHECK_TEXT(t, script_worker(&s, 3, &message),
               "drop 3: the process says something else before hello\n");
}

TEST(an_end_without_a_driver_is_said_to_the_next)
{
    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_OK(t, script_lose(&s));
    script_at(&s, 1);
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_SIGNAL, 11, WITNESS_MUTEX), "");
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_HAS(t, script_up(&s),
              "  7 slot 2 pid 107 ended round 0 ended 2 value 11 witness 1 ran 1\n");
    CHECK_TEXT(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 2 }),
               "driver: EXITED term=2 incarnation=7 slot=2 pid=107 ended=2 value=11 witness=1 "
               "ran=1s\n");
}

TEST(a_failed_launch_is_said_until_it_is_forgotten)
{
    static const char failed[] =
        "driver: LAUNCH_FAILED term=1 incarnation=7 slot=2 code=-5 text=\"no such program\"\n";
    struct msg launch = script_launch(7, 2);
    struct msg forget_7 = forget(7);

    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_TEXT(t, script_spawn_failed(&s, 7, HVD_E_NOTFOUND, "no such\nprogram"), failed);
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_EXIT, 1, WITNESS_PIDFD), "");
    CHECK_TEXT(t, script_driver(&s, &launch), failed);
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_HAS(t, script_up(&s), "memory_bytes=1024\n"); /* no slots: no process was there */
    CHECK_TEXT(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }), failed);
    CHECK_TEXT(t, script_driver(&s, &forget_7), "");
    CHECK_TEXT(t, script_driver(&s, &launch), "");
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 1), "");
}

TEST(a_failed_launch_gives_way_to_the_next)
{
    struct msg launch = script_launch(7, 2);

    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_TEXT(t, script_spawn_failed(&s, 7, 0, NULL),
               "driver: LAUNCH_FAILED term=1 incarnation=7 slot=2 code=-7\n");
    launch = script_launch(8, 2);
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 8\n");
    CHECK_TEXT(t, script_spawned(&s, 8, 108),
               "driver: LAUNCHED term=1 incarnation=8 slot=2 pid=108\n");
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 1), "driver: LAUNCHED term=1 incarnation=8 slot=2 pid=108\n");
}

/* LAUNCH for slot 2 while incarnation 7 runs there, and after its end: only then may 8 start. */
TEST(a_slot_runs_one_incarnation)
{
    struct msg launch = script_launch(8, 2);

    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, script_driver(&s, &launch),
               "driver: LAUNCH_FAILED term=1 incarnation=8 slot=2 code=-10 text=\"an older "
               "incarnation still runs in the slot\"\n");
    launch = script_launch(6, 2); /* older than the incarnation that runs */
    CHECK_TEXT(t, script_driver(&s, &launch), "");
    launch = script_launch(7, 3); /* incarnation 7 is in slot 2 */
    CHECK_TEXT(t, script_driver(&s, &launch), "");
    launch = script_launch(9, LIMIT_SLOTS_PER_HOST);
    CHECK_TEXT(t, script_driver(&s, &launch), "");
    launch = script_launch(0, 1);
    CHECK_TEXT(t, script_driver(&s, &launch), "");
    CHECK_HAS(t, script_ended(&s, 7, ENDED_EXIT, 0, WITNESS_PIDFD), "EXITED");
    launch = script_launch(8, 2); /* while the end of 7 is not forgotten */
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 8\n");
    CHECK_HAS(t, script_spawned(&s, 8, 108), "LAUNCHED");
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 1),
               "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=1 witness=2\n"
               "driver: LAUNCHED term=1 incarnation=8 slot=2 pid=108\n");
}

TEST(incarnations_may_come_in_any_order)
{
    static const uint64_t order[] = { 5, 9, 2, 7, 3 };
    struct msg message;

    for (uint32_t i = 0; i < ARRAY_SIZE(order); i++)
        CHECK_OK(t, script_run(&s, order[i], i));
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        CHECK_HAS(t, script_ended(&s, order[i], ENDED_EXIT, 1, WITNESS_PIDFD), "EXITED");
        message = forget(order[i]);
        CHECK_TEXT(t, script_driver(&s, &message), "");
    }
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 1), "");
}

TEST(a_kill_without_grace_is_immediate)
{
    struct msg kill = kill_in(7, 0);

    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, script_driver(&s, &kill), "kill 7\n");
    CHECK_TEXT(t, script_driver(&s, &kill), "");
    CHECK_HAS(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_PIDFD), "EXITED");
    CHECK_TEXT(t, script_driver(&s, &kill), ""); /* the worker has ended */
    kill = kill_in(99, 0);
    CHECK_TEXT(t, script_driver(&s, &kill), "");
    CHECK_HAS(t, trace_line(&s.trace, 0), "KILL of 99, which does not run");
}

TEST(a_kill_with_grace_waits)
{
    struct msg kill = kill_in(7, 3 * S);

    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, script_driver(&s, &kill), "term 7\n");
    script_at(&s, 1);
    CHECK_TEXT(t, script_driver(&s, &kill), ""); /* the first grace time counts */
    CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_HAS(t, script_timer(&s), "kill 7\n");
    CHECK_INT(t, s.now_us, ==, 3 * S);
}

TEST(a_second_kill_may_be_sooner)
{
    struct msg kill = kill_in(7, TIME_NEVER);

    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, script_driver(&s, &kill), "term 7\n");
    kill = kill_in(7, 500 * TIME_MS);
    CHECK_TEXT(t, script_driver(&s, &kill), "");
    CHECK_TEXT(t, script_timer(&s), "kill 7\n");
    CHECK_INT(t, s.now_us, ==, S / 2);
}

TEST(a_kill_before_it_runs_is_not_lost)
{
    struct msg kill = kill_in(7, S / 2);
    struct msg launch = script_launch(7, 2);

    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_TEXT(t, script_driver(&s, &kill), "");
    launch = script_launch(8, 3);
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 8\n");
    kill = kill_in(8, 0);
    CHECK_TEXT(t, script_driver(&s, &kill), "");
    /* the agent has nothing to do about the workers yet */
    CHECK_INT(t, agent_deadline(s.agent), ==, 1 * S);
    CHECK_TEXT(t, script_spawned(&s, 7, 107),
               "driver: LAUNCHED term=1 incarnation=7 slot=2 pid=107\nterm 7\n");
    CHECK_TEXT(t, script_timer(&s), "kill 7\n");
    CHECK_INT(t, s.now_us, ==, S / 2);
    CHECK_TEXT(t, script_spawned(&s, 8, 108),
               "driver: LAUNCHED term=1 incarnation=8 slot=3 pid=108\nkill 8\n");
}

TEST(a_process_may_end_before_its_start_is_told)
{
    struct msg launch = script_launch(7, 2);

    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_EXIT, 127, WITNESS_PIDFD),
               "driver: EXITED term=1 incarnation=7 slot=2 ended=1 value=127 witness=2\n");
    CHECK_TEXT(t, script_spawned(&s, 7, 107), "");
}

/* STOP ends worker 7 and refuses new launches; the agent exits when worker 7 has ended and the
 * start of 8 has failed. */
TEST(a_stop_ends_all_and_then_itself)
{
    struct msg stop = stop_in(3 * S);
    struct msg launch = script_launch(9, 4);

    CHECK_OK(t, script_run(&s, 6, 0));
    CHECK_HAS(t, script_ended(&s, 6, ENDED_EXIT, 0, WITNESS_PIDFD), "EXITED");
    CHECK_OK(t, script_run(&s, 7, 2));
    launch = script_launch(8, 3);
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 8\n");
    CHECK_TEXT(t, script_driver(&s, &stop), "term 7\n");
    CHECK_TEXT(t, script_driver(&s, &stop), "");
    launch = script_launch(9, 4);
    CHECK_HAS(t, script_driver(&s, &launch), "LAUNCH_FAILED term=1 incarnation=9 slot=4 code=-4");
    launch = script_launch(7, 2);
    CHECK_HAS(t, script_driver(&s, &launch), "LAUNCHED term=1 incarnation=7");
    CHECK_HAS(t, script_ended(&s, 7, ENDED_SIGNAL, 15, WITNESS_PIDFD), "EXITED");
    CHECK_TEXT(t, script_spawn_failed(&s, 8, HVD_E_NOMEM, "fork"),
               "driver: LAUNCH_FAILED term=1 incarnation=8 slot=3 code=-1 text=\"fork\"\n"
               "driver: BYE term=1 reason=\"stopped: test\"\nhang up: stopped: test\n"
               "exit 0: stopped: test\n");
    CHECK_TEXT(t, script_driver(&s, &stop), "");
}

TEST(a_stop_without_workers_is_done_at_once)
{
    struct msg stop = stop_in(3 * S);

    CHECK_TEXT(t, script_driver(&s, &stop),
               "driver: BYE term=1 reason=\"stopped: test\"\nhang up: stopped: test\n"
               "exit 0: stopped: test\n");
}

TEST(a_stop_by_a_signal_needs_no_driver)
{
    CHECK_OK(t, script_run(&s, 7, 0));
    CHECK_OK(t, script_lose(&s));
    CHECK(t, !agent_is_ending(s.agent));
    CHECK_TEXT(t, script_stop(&s, "SIGTERM, twice"), "term 7\n");
    CHECK(t, agent_is_ending(s.agent));
    CHECK_TEXT(t, script_stop(&s, NULL), "");
    CHECK_INT(t, agent_deadline(s.agent), <=, SCRIPT_KILL_GRACE_S * S);
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_EXIT, 0, WITNESS_PIDFD), "exit 0: SIGTERM, twice\n");
    CHECK(t, agent_is_ending(s.agent));
    script_release(&s);
    CHECK_OK(t, script_init(&s));
    CHECK_TEXT(t, script_start(&s), "dial\n");
    CHECK_TEXT(t, script_stop(&s, NULL), "exit 0: stopped\n");
}

TEST(an_exit_0_that_the_agent_asked_for_is_no_success)
{
    struct msg hello = script_hello(8, 108);
    struct msg left = { .type = MSG_LEFT, .incarnation = 8 };

    CHECK_OK(t, script_run(&s, 6, 0));
    CHECK_OK(t, script_run(&s, 7, 1));
    CHECK_OK(t, script_run(&s, 8, 2));
    CHECK_OK(t, script_run(&s, 9, 3));
    CHECK_HAS(t, script_worker(&s, 1, &hello), "WELCOME_WORKER");
    CHECK_HAS(t, script_ended(&s, 6, ENDED_EXIT, 0, WITNESS_PIDFD), "ended=1 witness=2");
    CHECK_TEXT(t, script_stop(&s, "SIGTERM, twice"), "term 7\nterm 8\nterm 9\n");
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_EXIT, 0, WITNESS_PIDFD),
               "driver: EXITED term=1 incarnation=7 slot=1 pid=107 ended=2 value=15 witness=2\n");
    CHECK_HAS(t, script_worker(&s, 1, &left), "LEFT");
    CHECK_HAS(t, script_ended(&s, 8, ENDED_EXIT, 0, WITNESS_PIDFD), "pid=108 ended=1 witness=2");
    CHECK_HAS(t, script_ended(&s, 9, ENDED_EXIT, 3, WITNESS_PIDFD), "ended=1 value=3 witness=2");
}

TEST(an_exit_0_after_a_kill_is_an_exit)
{
    struct msg stop = stop_in(3 * S);
    struct msg kill = kill_in(7, 3 * S);

    CHECK_OK(t, script_run(&s, 7, 1));
    CHECK_OK(t, script_run(&s, 8, 2));
    CHECK_TEXT(t, script_driver(&s, &kill), "term 7\n");
    CHECK_TEXT(t, script_stop(&s, NULL), "term 8\n");
    CHECK_HAS(t, script_ended(&s, 7, ENDED_EXIT, 0, WITNESS_PIDFD), "pid=107 ended=1 witness=2");
    CHECK_TEXT(t, script_driver(&s, &stop), "");
    CHECK_HAS(t, script_ended(&s, 8, ENDED_EXIT, 0, WITNESS_PIDFD), "pid=108 ended=1 witness=2");
}

TEST(a_stop_kills_a_worker_that_does_not_end)
{
    struct msg stop = stop_in(S / 2);

    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_OK(t, script_run(&s, 8, 3));
    CHECK_TEXT(t, script_driver(&s, &stop), "term 7\nterm 8\n");
    CHECK_OK(t, script_lose(&s)); /* the agent goes on with the stop all the same */
    CHECK_TEXT(t, script_timer(&s), "kill 7\nkill 8\n");
    CHECK_TEXT(t, script_ended(&s, 8, ENDED_SIGNAL, 9, WITNESS_PIDFD), "");
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_PIDFD), "exit 0: stopped: test\n");
}

TEST_FLAGS(reported_ends_that_are_kept_are_limited, TEST_NO_TORTURE)
{
    struct msg launch;
    struct msg message = forget(1);

    for (uint64_t i = 1; i <= LIMIT_SLOT_REPORTS; i++) {
        CHECK_OK(t, script_run(&s, i, (uint32_t)(i % LIMIT_SLOTS_PER_HOST)));
        CHECK_HAS(t, script_ended(&s, i, ENDED_EXIT, 1, WITNESS_PIDFD), "EXITED");
    }
    launch = script_launch(LIMIT_SLOT_REPORTS + 1, 0);
    CHECK_HAS(t, script_driver(&s, &launch), "code=-3");
    CHECK_TEXT(t, script_driver(&s, &message), "");
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 16385\n");
}
