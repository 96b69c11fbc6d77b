#include "tests/lib/agent_script.h"
#include "tests/lib/test.h"

#define S        TIME_S
#define LAUNCHED "driver: LAUNCHED term=1 incarnation=7 slot=2 pid=107\n"

static struct script s;
static struct msg_member members[] = {
    {.incarnation = 6, .host = "other"},
    { .incarnation = 7,  .host = "host",       .slot = 2 }
};

static struct msg up(enum msg_type type, uint64_t round)
{
    return (struct msg){ .type = type, .incarnation = 7, .round = round };
}

static struct msg down(enum msg_type type, uint64_t round)
{
    return (struct msg){ .type = type, .term = 1, .round = round };
}

static struct msg round_of(uint64_t round, size_t member_count)
{
    struct msg msg = down(MSG_ROUND, round);

    msg.u.round.members = (struct msg_member_list){ members, member_count };
    return msg;
}

static int begin(void)
{
    int rc = script_init(&s);

    if (!rc)
        rc = script_serve(&s);
    return rc ? rc : script_join(&s, 7, 2, 3);
}

/* The worker says it, whether it goes up now or not. */
static int say(struct msg msg)
{
    script_worker(&s, 3, &msg);
    return s.list.failed ? HVD_E_NOMEM : 0;
}

static int tell(struct msg msg)
{
    script_driver(&s, &msg);
    return s.list.failed ? HVD_E_NOMEM : 0;
}

/* The driver's connection breaks and comes back: what is said to it then. */
static const char *again(void)
{
    int rc = script_lose(&s);

    return rc ? err_name(rc) : script_return(&s, 1);
}

/* What the next hello says of the worker. */
static const char *reported(void)
{
    int rc = script_lose(&s);

    if (rc)
        return err_name(rc);
    script_timer(&s);
    return s.list.failed ? s.lines : script_up(&s);
}

static void ready_holds_until_a_round(struct test *t)
{
    char name[] = "weights";
    struct msg_entry entry = { .name = name, .bytes = 4 };
    struct msg ready = up(MSG_READY, 0);

    ready.u.ready.entries = (struct msg_entry_list){ &entry, 1 };
    CHECK_OK(t, begin());
    CHECK_OK(t, say(ready));
    name[0] = 'W'; /* its frame is gone by then */
    CHECK_TEXT(t, again(), LAUNCHED "driver: READY incarnation=7 entries=1\n");
    CHECK_TEXT(t, s.list.items[1].msg->u.ready.entries.items[0].name, "weights");
    CHECK_HAS(t, reported(), "  7 slot 2 pid 107 ready round 0\n");
    CHECK_HAS(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }), "READY");
    CHECK_OK(t, tell(round_of(1, 1))); /* without it */
    CHECK_TEXT(t, again(), LAUNCHED "driver: READY incarnation=7 entries=1\n");
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_TEXT(t, again(), LAUNCHED);
    CHECK_HAS(t, reported(), "  7 slot 2 pid 107 active round 2\n");
out:
    script_release(&s);
}

static void what_was_said_to_nobody_is_said_later(struct test *t)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, script_lose(&s));
    CHECK_OK(t, say(up(MSG_READY, 0)));
    CHECK_TEXT(t, script_return(&s, 1), LAUNCHED "driver: READY incarnation=7\n");
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, script_lose(&s));
    CHECK_OK(t, say(up(MSG_ENTERED, 1)));
    CHECK_OK(t, say(up(MSG_STALLED, 1)));
    CHECK_OK(t, say(up(MSG_PREPARED, 2)));
    CHECK_TEXT(t, script_return(&s, 1),
               LAUNCHED "driver: ENTERED incarnation=7 round=1\n"
                        "driver: PREPARED incarnation=7 round=2\n");
out:
    script_release(&s);
}

/* It is ended meanwhile: its word comes before its end, and nothing takes it back. */
static void that_it_is_of_no_more_use_is_said_to_the_next(struct test *t)
{
    struct msg message = up(MSG_USELESS, 0);

    message.u.useless.text = "its device is stuck";
    CHECK_OK(t, begin());
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_worker(&s, 3, &message), "kill 7\n");
    CHECK_OK(t, say(up(MSG_RECOVERING, 1)));
    CHECK_TEXT(t, script_return(&s, 1),
               LAUNCHED "driver: USELESS incarnation=7 text=\"its device is stuck\"\n");
    CHECK_OK(t, tell(down(MSG_REVOKE, 1)));
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_PIDFD), "");
    CHECK_TEXT(t, script_return(&s, 1),
               "driver: USELESS incarnation=7 text=\"its device is stuck\"\n"
               "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=2 value=9 witness=2 "
               "ran=2s\n");
out:
    script_release(&s);
}

/* One driver has heard it; the next one may not have read of it. */
static void that_it_is_of_no_more_use_is_said_in_each_term(struct test *t)
{
    static const char word[] = "driver: USELESS incarnation=7 text=\"its device is stuck\"\n";
    struct msg message = up(MSG_USELESS, 0);

    message.u.useless.text = "its device is stuck";
    CHECK_OK(t, begin());
    CHECK_HAS(t, script_worker(&s, 3, &message), word);
    CHECK_OK(t, script_lose(&s));
    CHECK_HAS(t, script_return(&s, 2), word);
out:
    script_release(&s);
}

static void that_it_has_finished_counts_for_more(struct test *t)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(up(MSG_FINISHED, 1)));
    CHECK_OK(t, say(up(MSG_USELESS, 0)));
    CHECK_TEXT(t, again(), LAUNCHED "driver: FINISHED incarnation=7 round=1\n");
out:
    script_release(&s);
}

static void a_round_for_another_changes_nothing(struct test *t)
{
    struct msg round = round_of(1, 2);

    CHECK_OK(t, begin());
    CHECK_OK(t, script_join(&s, 6, 1, 4));
    CHECK_OK(t, say(up(MSG_READY, 0)));
    round.incarnation = 6;
    CHECK_HAS(t, script_driver(&s, &round), "worker 4: ROUND");
    CHECK_HAS(t, again(), "READY");
    CHECK_HAS(t, reported(),
              "  6 slot 1 pid 106 active round 1\n  7 slot 2 pid 107 ready round 0\n");
out:
    script_release(&s);
}

static void a_round_without_a_connection_changes_nothing(struct test *t)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, say(up(MSG_READY, 0)));
    CHECK_TEXT(t, script_gone(&s, 3), "");
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_HAS(t, again(), "READY");
out:
    script_release(&s);
}

static void at_holds_until_the_next_round(struct test *t)
{
    struct msg at = up(MSG_AT, 1);

    at.u.at = (struct msg_at){ .next = 2, .check = 40 };
    CHECK_OK(t, begin());
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(at));
    CHECK_TEXT(t, again(), LAUNCHED "driver: AT incarnation=7 round=1 next=2 check=40\n");
    CHECK_OK(t, tell(round_of(1, 2))); /* said again */
    CHECK_HAS(t, again(), "AT ");
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_TEXT(t, again(), LAUNCHED);
out:
    script_release(&s);
}

static void a_change_that_is_abandoned_is_not_spoken_of(struct test *t)
{
    struct msg at = up(MSG_AT, 1);
    struct msg abandon = down(MSG_ABANDON, 1);

    at.u.at = (struct msg_at){ .next = 2, .check = 40 };
    abandon.u.abandon = (struct msg_abandon){ .next = 3, .reason = "test" };
    CHECK_OK(t, begin());
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, tell(abandon));
    CHECK_OK(t, say(up(MSG_PREPARED, 2)));
    CHECK_OK(t, say(at));
    CHECK_OK(t, tell(abandon));
    CHECK_TEXT(t, again(),
               LAUNCHED "driver: PREPARED incarnation=7 round=2\n"
                        "driver: AT incarnation=7 round=1 next=2 check=40\n");
    abandon.u.abandon.next = 2;
    CHECK_OK(t, tell(abandon));
    CHECK_TEXT(t, again(), LAUNCHED);
out:
    script_release(&s);
}

static void a_prepare_of_another_round_outdates_the_answer(struct test *t)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, tell(down(MSG_PREPARE, 2)));
    CHECK_OK(t, say(up(MSG_PREPARED, 2)));
    CHECK_OK(t, tell(down(MSG_PREPARE, 2))); /* said again */
    CHECK_HAS(t, again(), "PREPARED incarnation=7 round=2\n");
    CHECK_OK(t, tell(down(MSG_PREPARE, 3)));
    CHECK_TEXT(t, again(), LAUNCHED);
out:
    script_release(&s);
}

static void a_revoked_round_is_not_spoken_of(struct test *t)
{
    struct msg at = up(MSG_AT, 1);

    at.u.at = (struct msg_at){ .next = 2, .check = 40 };
    CHECK_OK(t, begin());
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, tell(down(MSG_REVOKE, 1)));
    CHECK_OK(t, say(up(MSG_PREPARED, 2)));
    CHECK_OK(t, say(at)); /* crossed the REVOKE */
    CHECK_OK(t, tell(down(MSG_REVOKE, 1)));
    CHECK_TEXT(t, again(), LAUNCHED "driver: PREPARED incarnation=7 round=2\n");
    CHECK_HAS(t, reported(), "active round 1\n"); /* until it says that it recovers */
    CHECK_HAS(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }), "LAUNC");
    CHECK_OK(t, tell(down(MSG_REVOKE, 2)));
    CHECK_TEXT(t, again(), LAUNCHED);
out:
    script_release(&s);
}

static void recovering_holds_until_a_later_round(struct test *t)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, say(up(MSG_READY, 0)));
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(up(MSG_ENTERED, 1)));
    CHECK_OK(t, say(up(MSG_RECOVERING, 1)));
    CHECK_TEXT(t, again(),
               LAUNCHED "driver: ENTERED incarnation=7 round=1\n"
                        "driver: RECOVERING incarnation=7 round=1\n");
    CHECK_OK(t, tell(round_of(1, 2))); /* said again by a driver that does not know yet */
    CHECK_HAS(t, again(), "RECOVERING");
    CHECK_HAS(t, reported(), "recovering round 1\n");
    CHECK_HAS(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }), "RECOV");
    CHECK_OK(t, say(up(MSG_RECOVERING, 3)));
    CHECK_OK(t, tell(round_of(2, 2))); /* older than what it recovers from */
    CHECK_OK(t, say(up(MSG_ENTERED, 2)));
    CHECK_HAS(t, again(), "RECOVERING incarnation=7 round=3\n");
    CHECK_HAS(t, reported(), "recovering round 3\n");
    CHECK_HAS(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }), "RECOV");
    CHECK_OK(t, tell(round_of(4, 2)));
    CHECK_TEXT(t, again(), LAUNCHED);
    CHECK_HAS(t, reported(), "active round 4\n");
out:
    script_release(&s);
}

static void an_entered_holds_as_long_as_its_round(struct test *t)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(up(MSG_ENTERED, 1)));
    CHECK_OK(t, say(up(MSG_PREPARED, 2)));
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_TEXT(t, again(), LAUNCHED);
    CHECK_OK(t, say(up(MSG_ENTERED, 2)));
    CHECK_TEXT(t, again(), LAUNCHED "driver: ENTERED incarnation=7 round=2\n");
out:
    script_release(&s);
}

static void last_words_come_before_the_end(struct test *t)
{
    CHECK_OK(t, begin());
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(up(MSG_ENTERED, 1)));
    CHECK_OK(t, say(up(MSG_LEFT, 0)));
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_OK(t, say(up(MSG_ENTERED, 3))); /* cannot be; it has left all the same */
    CHECK_HAS(t, script_ended(&s, 7, ENDED_EXIT, 0, WITNESS_PIDFD), "EXITED");
    CHECK_TEXT(t, again(),
               "driver: ENTERED incarnation=7 round=3\ndriver: LEFT incarnation=7\n"
               "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=1 witness=2\n");
    CHECK_HAS(t, reported(), "  7 slot 2 pid 107 left round 1 ended 1 value 0 witness 2 ran 0\n");
out:
    script_release(&s);
}

static void finished_is_for_good(struct test *t)
{
    struct msg finished = up(MSG_FINISHED, 1);

    finished.u.finished.text = "";
    CHECK_OK(t, begin());
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(finished));
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_OK(t, tell(down(MSG_REVOKE, 2)));
    CHECK_TEXT(t, again(), LAUNCHED "driver: FINISHED incarnation=7 round=1\n");
    CHECK_HAS(t, reported(), "finished round 1\n");
out:
    script_release(&s);
}

static void a_training_that_failed_is_told_as_it_was(struct test *t)
{
    struct msg finished = up(MSG_FINISHED, 1);

    finished.u.finished = (struct msg_finished){ .code = 5, .text = "no data" };
    CHECK_OK(t, begin());
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(finished));
    CHECK_TEXT(t, again(),
               LAUNCHED "driver: FINISHED incarnation=7 round=1 code=5 text=\"no data\"\n");
    CHECK_HAS(t, reported(), "active round 1\n");
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_EXIT, 5, WITNESS_PIDFD), "");
    CHECK_OK(t, say(up(MSG_READY, 0))); /* nothing makes it come back */
    CHECK_TEXT(t, script_down(&s), "");
    CHECK_HAS(t, script_timer(&s), "dial");
    CHECK_HAS(t, script_up(&s), "ended round 1 ended 1 value 5");
out:
    script_release(&s);
}

TESTS(CASE(ready_holds_until_a_round), CASE(what_was_said_to_nobody_is_said_later),
      CASE(that_it_is_of_no_more_use_is_said_to_the_next),
      CASE(that_it_is_of_no_more_use_is_said_in_each_term),
      CASE(that_it_has_finished_counts_for_more), CASE(a_round_for_another_changes_nothing),
      CASE(a_round_without_a_connection_changes_nothing), CASE(at_holds_until_the_next_round),
      CASE(a_change_that_is_abandoned_is_not_spoken_of),
      CASE(a_prepare_of_another_round_outdates_the_answer), CASE(a_revoked_round_is_not_spoken_of),
      CASE(recovering_holds_until_a_later_round), CASE(an_entered_holds_as_long_as_its_round),
      CASE(last_words_come_before_the_end), CASE(finished_is_for_good),
      CASE(a_training_that_failed_is_told_as_it_was))
