#include "base/limits.h"
#include "tests/lib/agent_script.h"
#include "tests/lib/test.h"

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

static void a_launch_is_carried_out_once(struct test *t)
{
    struct msg launch = script_launch(7, 2);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_TEXT(t, script_driver(&s, &launch), ""); /* the answer is on its way */
    CHECK_TEXT(t, script_spawned(&s, 7, 107),
               "driver: LAUNCHED term=1 incarnation=7 slot=2 pid=107\n");
    CHECK_TEXT(t, script_driver(&s, &launch),
               "driver: LAUNCHED term=1 incarnation=7 slot=2 pid=107\n");
    CHECK_TEXT(t, script_spawned(&s, 7, 108), "");
    CHECK_TEXT(t, script_spawn_failed(&s, 7, HVD_E_IO, "late"), "");
    CHECK_TEXT(t, script_spawned(&s, 8, 108), "");
out:
    script_release(&s);
}

static void an_end_is_said_until_it_is_forgotten(struct test *t)
{
    static const char end[] =
        "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=1 value=3 witness=2 ran=2s\n";
    struct msg launch = script_launch(7, 2);
    struct msg forget_7 = forget(7);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, script_driver(&s, &forget_7), ""); /* it runs */
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
out:
    script_release(&s);
}

static struct msg useless(uint64_t incarnation)
{
    return (struct msg){ .type = MSG_USELESS,
                         .incarnation = incarnation,
                         .u.useless = { "its device is stuck" } };
}

static void who_is_of_no_more_use_is_killed_at_once(struct test *t)
{
    static const char word[] = "driver: USELESS incarnation=7 text=\"its device is stuck\"\n";
    struct msg message = useless(7);
    struct msg kill = kill_in(7, 5 * S);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_TEXT(t, script_driver(&s, &kill), "term 7\n"); /* it has time, and needs none */
    CHECK_HAS(t, script_worker(&s, 3, &message), word);
    CHECK_HAS(t, s.lines, "kill 7\n");
    CHECK_TEXT(t, script_worker(&s, 3, &message), word);
    script_at(&s, 60);
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_MUTEX),
               "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=2 value=9 witness=1 "
               "ran=1m\n");
    CHECK_TEXT(t, script_worker(&s, 3, &message), word); /* a child of it has the socket */
out:
    script_release(&s);
}

/* Its process has said hello, and the agent does not know its number yet. */
static void who_is_of_no_more_use_before_it_is_known(struct test *t)
{
    struct msg launch = script_launch(7, 2);
    struct msg hello = script_hello(7, 107);
    struct msg message = useless(7);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_HAS(t, script_worker(&s, 3, &hello), "WELCOME_WORKER");
    CHECK_HAS(t, script_worker(&s, 3, &message), "driver: USELESS");
    CHECK_HAS(t, script_spawned(&s, 7, 107), "kill 7\n");
out:
    script_release(&s);
}

/* By its connection, which is of one incarnation: nobody is ended for the word of another. */
static void who_is_of_no_more_use_speaks_for_itself(struct test *t)
{
    struct msg message = useless(6);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_join(&s, 6, 1, 2));
    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_TEXT(t, script_worker(&s, 3, &message), "drop 3: it speaks for another incarnation\n");
    CHECK_TEXT(t, script_worker(&s, 4, &message), "drop 4: it says something else before hello\n");
    CHECK_HAS(t, script_worker(&s, 2, &message), "kill 6\n");
out:
    script_release(&s);
}

/* A child of the one before has its socket: the word is of that one, which is no more. */
static void who_is_of_no_more_use_is_not_its_successor(struct test *t)
{
    struct msg message = useless(7);
    struct msg forget_7 = forget(7);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_join(&s, 7, 2, 3));
    CHECK_HAS(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_MUTEX), "EXITED");
    CHECK_OK(t, script_join(&s, 8, 2, 4));
    CHECK_TEXT(t, script_worker(&s, 3, &message),
               "driver: USELESS incarnation=7 text=\"its device is stuck\"\n");
    CHECK_TEXT(t, script_driver(&s, &forget_7), "drop 3: its worker is gone\n");
    CHECK_TEXT(t, script_worker(&s, 3, &message), "drop 3: it says something else before hello\n");
out:
    script_release(&s);
}

static void an_end_without_a_driver_is_said_to_the_next(struct test *t)
{
    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
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
out:
    script_release(&s);
}

static void a_failed_launch_is_said_until_it_is_forgotten(struct test *t)
{
    static const char failed[] =
        "driver: LAUNCH_FAILED term=1 incarnation=7 slot=2 code=-5 text=\"no such program\"\n";
    struct msg launch = script_launch(7, 2);
    struct msg forget_7 = forget(7);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_TEXT(t, script_spawn_failed(&s, 7, HVD_E_NOTFOUND, "no such\nprogram"), failed);
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_EXIT, 1, WITNESS_PIDFD), "");
    CHECK_TEXT(t, script_driver(&s, &launch), failed);
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_timer(&s), "dial\n");
    CHECK_HAS(t, script_up(&s), "memory_bytes=1024\n"); /* and no slots: no process was there */
    CHECK_TEXT(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }), failed);
    CHECK_TEXT(t, script_driver(&s, &forget_7), "");
    CHECK_TEXT(t, script_driver(&s, &launch), "");
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 1), "");
out:
    script_release(&s);
}

static void a_failed_launch_gives_way_to_the_next(struct test *t)
{
    struct msg launch = script_launch(7, 2);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_TEXT(t, script_spawn_failed(&s, 7, 0, NULL),
               "driver: LAUNCH_FAILED term=1 incarnation=7 slot=2 code=-7\n");
    launch = script_launch(8, 2);
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 8\n");
    CHECK_TEXT(t, script_spawned(&s, 8, 108),
               "driver: LAUNCHED term=1 incarnation=8 slot=2 pid=108\n");
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 1), "driver: LAUNCHED term=1 incarnation=8 slot=2 pid=108\n");
out:
    script_release(&s);
}

static void a_slot_runs_one_incarnation(struct test *t)
{
    struct msg launch = script_launch(8, 2);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, script_driver(&s, &launch),
               "driver: LAUNCH_FAILED term=1 incarnation=8 slot=2 code=-10 text=\"an older "
               "incarnation still runs in the slot\"\n");
    launch = script_launch(6, 2); /* older than the one that runs */
    CHECK_TEXT(t, script_driver(&s, &launch), "");
    launch = script_launch(7, 3); /* it is in slot 2 */
    CHECK_TEXT(t, script_driver(&s, &launch), "");
    launch = script_launch(9, LIMIT_SLOTS_PER_HOST);
    CHECK_TEXT(t, script_driver(&s, &launch), "");
    launch = script_launch(0, 1);
    CHECK_TEXT(t, script_driver(&s, &launch), "");
    CHECK_HAS(t, script_ended(&s, 7, ENDED_EXIT, 0, WITNESS_PIDFD), "EXITED");
    launch = script_launch(8, 2); /* while the end of the older one is not forgotten */
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 8\n");
    CHECK_HAS(t, script_spawned(&s, 8, 108), "LAUNCHED");
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 1),
               "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=1 witness=2\n"
               "driver: LAUNCHED term=1 incarnation=8 slot=2 pid=108\n");
out:
    script_release(&s);
}

static void incarnations_may_come_in_any_order(struct test *t)
{
    static const uint64_t order[] = { 5, 9, 2, 7, 3 };
    struct msg message;

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    for (uint32_t i = 0; i < ARRAY_SIZE(order); i++)
        CHECK_OK(t, script_run(&s, order[i], i));
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        CHECK_HAS(t, script_ended(&s, order[i], ENDED_EXIT, 1, WITNESS_PIDFD), "EXITED");
        message = forget(order[i]);
        CHECK_TEXT(t, script_driver(&s, &message), "");
    }
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_return(&s, 1), "");
out:
    script_release(&s);
}

static void a_kill_without_grace_is_one(struct test *t)
{
    struct msg kill = kill_in(7, 0);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, script_driver(&s, &kill), "kill 7\n");
    CHECK_TEXT(t, script_driver(&s, &kill), "");
    CHECK_HAS(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_PIDFD), "EXITED");
    CHECK_TEXT(t, script_driver(&s, &kill), ""); /* it is gone */
    kill = kill_in(99, 0);
    CHECK_TEXT(t, script_driver(&s, &kill), "");
    CHECK_HAS(t, trace_line(&s.trace, 0), "KILL of 99, which does not run");
out:
    script_release(&s);
}

static void a_kill_with_grace_waits(struct test *t)
{
    struct msg kill = kill_in(7, 3 * S);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, script_driver(&s, &kill), "term 7\n");
    script_at(&s, 1);
    CHECK_TEXT(t, script_driver(&s, &kill), ""); /* the first grace counts */
    CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_HAS(t, script_timer(&s), "BEAT");
    CHECK_HAS(t, script_timer(&s), "kill 7\n");
    CHECK_INT(t, s.now_us, ==, 3 * S);
out:
    script_release(&s);
}

static void a_second_kill_may_be_sooner(struct test *t)
{
    struct msg kill = kill_in(7, TIME_NEVER);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_TEXT(t, script_driver(&s, &kill), "term 7\n");
    kill = kill_in(7, 500 * TIME_MS);
    CHECK_TEXT(t, script_driver(&s, &kill), "");
    CHECK_TEXT(t, script_timer(&s), "kill 7\n");
    CHECK_INT(t, s.now_us, ==, S / 2);
out:
    script_release(&s);
}

static void a_kill_before_it_runs_is_not_lost(struct test *t)
{
    struct msg kill = kill_in(7, S / 2);
    struct msg launch = script_launch(7, 2);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_TEXT(t, script_driver(&s, &kill), "");
    launch = script_launch(8, 3);
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 8\n");
    kill = kill_in(8, 0);
    CHECK_TEXT(t, script_driver(&s, &kill), "");
    CHECK_INT(t, agent_deadline(s.agent), ==, 1 * S); /* nothing to do about them yet */
    CHECK_TEXT(t, script_spawned(&s, 7, 107),
               "driver: LAUNCHED term=1 incarnation=7 slot=2 pid=107\nterm 7\n");
    CHECK_TEXT(t, script_timer(&s), "kill 7\n");
    CHECK_INT(t, s.now_us, ==, S / 2);
    CHECK_TEXT(t, script_spawned(&s, 8, 108),
               "driver: LAUNCHED term=1 incarnation=8 slot=3 pid=108\nkill 8\n");
out:
    script_release(&s);
}

static void a_process_may_end_before_its_start_is_told(struct test *t)
{
    struct msg launch = script_launch(7, 2);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 7\n");
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_EXIT, 127, WITNESS_PIDFD),
               "driver: EXITED term=1 incarnation=7 slot=2 ended=1 value=127 witness=2\n");
    CHECK_TEXT(t, script_spawned(&s, 7, 107), "");
out:
    script_release(&s);
}

static void a_stop_ends_all_and_then_itself(struct test *t)
{
    struct msg stop = stop_in(3 * S);
    struct msg launch = script_launch(9, 4);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
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
out:
    script_release(&s);
}

static void a_stop_without_workers_is_done_at_once(struct test *t)
{
    struct msg stop = stop_in(3 * S);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, script_driver(&s, &stop),
               "driver: BYE term=1 reason=\"stopped: test\"\nhang up: stopped: test\n"
               "exit 0: stopped: test\n");
out:
    script_release(&s);
}

static void a_stop_from_here_needs_no_driver(struct test *t)
{
    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
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
out:
    script_release(&s);
}

static void an_exit_0_that_the_agent_asked_for_is_no_success(struct test *t)
{
    struct msg hello = script_hello(8, 108);
    struct msg left = { .type = MSG_LEFT, .incarnation = 8 };

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
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
out:
    script_release(&s);
}

static void an_exit_0_that_the_driver_asked_for_is_one(struct test *t)
{
    struct msg stop = stop_in(3 * S);
    struct msg kill = kill_in(7, 3 * S);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_run(&s, 7, 1));
    CHECK_OK(t, script_run(&s, 8, 2));
    CHECK_TEXT(t, script_driver(&s, &kill), "term 7\n");
    CHECK_TEXT(t, script_stop(&s, NULL), "term 8\n");
    CHECK_HAS(t, script_ended(&s, 7, ENDED_EXIT, 0, WITNESS_PIDFD), "pid=107 ended=1 witness=2");
    CHECK_TEXT(t, script_driver(&s, &stop), "");
    CHECK_HAS(t, script_ended(&s, 8, ENDED_EXIT, 0, WITNESS_PIDFD), "pid=108 ended=1 witness=2");
out:
    script_release(&s);
}

static void a_stop_kills_who_does_not_end(struct test *t)
{
    struct msg stop = stop_in(S / 2);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_run(&s, 7, 2));
    CHECK_OK(t, script_run(&s, 8, 3));
    CHECK_TEXT(t, script_driver(&s, &stop), "term 7\nterm 8\n");
    CHECK_OK(t, script_lose(&s)); /* it ends all the same */
    CHECK_TEXT(t, script_timer(&s), "kill 7\nkill 8\n");
    CHECK_TEXT(t, script_ended(&s, 8, ENDED_SIGNAL, 9, WITNESS_PIDFD), "");
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_PIDFD), "exit 0: stopped: test\n");
out:
    script_release(&s);
}

static void ends_that_nobody_forgets_are_limited(struct test *t)
{
    struct msg launch;
    struct msg message = forget(1);

    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    for (uint64_t i = 1; i <= LIMIT_SLOT_REPORTS; i++) {
        CHECK_OK(t, script_run(&s, i, (uint32_t)(i % LIMIT_SLOTS_PER_HOST)));
        CHECK_HAS(t, script_ended(&s, i, ENDED_EXIT, 1, WITNESS_PIDFD), "EXITED");
    }
    launch = script_launch(LIMIT_SLOT_REPORTS + 1, 0);
    CHECK_HAS(t, script_driver(&s, &launch), "code=-3");
    CHECK_TEXT(t, script_driver(&s, &message), "");
    CHECK_TEXT(t, script_driver(&s, &launch), "spawn 16385\n");
out:
    script_release(&s);
}

TESTS(CASE(a_launch_is_carried_out_once), CASE(an_end_is_said_until_it_is_forgotten),
      CASE(who_is_of_no_more_use_is_killed_at_once), CASE(who_is_of_no_more_use_before_it_is_known),
      CASE(who_is_of_no_more_use_speaks_for_itself),
      CASE(who_is_of_no_more_use_is_not_its_successor),
      CASE(an_end_without_a_driver_is_said_to_the_next),
      CASE(a_failed_launch_is_said_until_it_is_forgotten),
      CASE(a_failed_launch_gives_way_to_the_next), CASE(a_slot_runs_one_incarnation),
      CASE(incarnations_may_come_in_any_order), CASE(a_kill_without_grace_is_one),
      CASE(a_kill_with_grace_waits), CASE(a_second_kill_may_be_sooner),
      CASE(a_kill_before_it_runs_is_not_lost), CASE(a_process_may_end_before_its_start_is_told),
      CASE(a_stop_ends_all_and_then_itself), CASE(a_stop_without_workers_is_done_at_once),
      CASE(a_stop_from_here_needs_no_driver),
      CASE(an_exit_0_that_the_agent_asked_for_is_no_success),
      CASE(an_exit_0_that_the_driver_asked_for_is_one), CASE(a_stop_kills_who_does_not_end),
      CASE_FLAGS(ends_that_nobody_forgets_are_limited, TEST_NO_TORTURE))
