/*
 * test_agent_words.c: agent/core keeps the words (messages) of workers until a driver has heard
 * them: READY, AT, FINISHED and UNUSABLE survive a change of the driver, and a round ends the words
 * that it answers.
 */
#include "proto/commit.h"
#include "tests/lib/agent_script.h"
#include "tests/lib/fixture.h"

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

static void begin_case(struct test *t)
{
    CHECK_OK(t, script_init(&s));
    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_join(&s, 7, 2, 3));
}

/* The worker sends the message, whether the agent passes the message on now or not. */
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

/* The driver's connection breaks and comes back. Returns the agent's messages to the driver. */
static const char *again(void)
{
    int rc = script_lose(&s);

    return rc ? err_name(rc) : script_return(&s, 1);
}

/* Returns the worker's report in the next hello. */
static const char *reported(void)
{
    int rc = script_lose(&s);

    if (rc)
        return err_name(rc);
    script_timer(&s);
    return s.list.failed ? s.lines : script_up(&s);
}

static void end_case(struct test *t)
{
    (void)t;
    script_release(&s);
}
FIXTURE(begin_case, end_case)

TEST(ready_holds_until_a_round)
{
    char name[] = "weights";
    struct msg_entry entry = { .name = name, .bytes = 4 };
    struct msg ready = up(MSG_READY, 0);

    ready.u.ready.entries = (struct msg_entry_list){ &entry, 1 };
    CHECK_OK(t, say(ready));
    name[0] = 'W'; /* the frame is gone by then */
    CHECK_TEXT(t, again(), LAUNCHED "driver: READY incarnation=7 entries=1\n");
    CHECK_TEXT(t, s.list.items[1].msg->u.ready.entries.items[0].name, "weights");
    CHECK_HAS(t, reported(), "  7 slot 2 pid 107 ready round 0\n");
    CHECK_HAS(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }), "READY");
    CHECK_OK(t, tell(round_of(1, 1))); /* a round without this worker */
    CHECK_TEXT(t, again(), LAUNCHED "driver: READY incarnation=7 entries=1\n");
    /* From now on it is sent only for the entries, which a driver needs that has taken over. */
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_TEXT(t, again(), LAUNCHED "driver: READY incarnation=7 round=2 entries=1\n");
    CHECK_HAS(t, reported(), "  7 slot 2 pid 107 active round 2\n");
    CHECK_HAS(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }), "READY");
    CHECK_OK(t, say(up(MSG_RECOVERING, 2)));
    CHECK_TEXT(t, again(),
               LAUNCHED "driver: READY incarnation=7 round=2 entries=1\n"
                        "driver: RECOVERING incarnation=7 round=2\n");
}

TEST(a_message_without_a_driver_is_sent_later)
{
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
}

/* The worker is ended meanwhile: its UNUSABLE comes before its end, and no message cancels it. */
TEST(unusable_is_repeated_to_the_next_driver)
{
    struct msg message = up(MSG_UNUSABLE, 0);

    message.u.unusable.text = "its device is stuck";
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_worker(&s, 3, &message), "kill 7\n");
    CHECK_OK(t, say(up(MSG_RECOVERING, 1)));
    CHECK_TEXT(t, script_return(&s, 1),
               LAUNCHED "driver: UNUSABLE incarnation=7 text=\"its device is stuck\"\n");
    CHECK_OK(t, tell(down(MSG_REVOKE, 1)));
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_SIGNAL, 9, WITNESS_PIDFD), "");
    CHECK_TEXT(t, script_return(&s, 1),
               "driver: UNUSABLE incarnation=7 text=\"its device is stuck\"\n"
               "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=2 value=9 witness=2 "
               "ran=2s\n");
}

/* One driver has heard UNUSABLE; the next driver may not have read about this. */
TEST(unusable_is_repeated_in_each_term)
{
    static const char word[] = "driver: UNUSABLE incarnation=7 text=\"its device is stuck\"\n";
    struct msg message = up(MSG_UNUSABLE, 0);

    message.u.unusable.text = "its device is stuck";
    CHECK_HAS(t, script_worker(&s, 3, &message), word);
    CHECK_OK(t, script_lose(&s));
    CHECK_HAS(t, script_return(&s, 2), word);
}

TEST(finished_counts_for_more_than_unusable)
{
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(up(MSG_FINISHED, 1)));
    CHECK_OK(t, say(up(MSG_UNUSABLE, 0)));
    CHECK_TEXT(t, again(), LAUNCHED "driver: FINISHED incarnation=7 round=1\n");
}

TEST(a_round_for_another_changes_nothing)
{
    struct msg round = round_of(1, 2);

    CHECK_OK(t, script_join(&s, 6, 1, 4));
    CHECK_OK(t, say(up(MSG_READY, 0)));
    round.incarnation = 6;
    CHECK_HAS(t, script_driver(&s, &round), "worker 4: ROUND");
    CHECK_HAS(t, again(), "READY");
    CHECK_HAS(t, reported(),
              "  6 slot 1 pid 106 active round 1\n  7 slot 2 pid 107 ready round 0\n");
}

TEST(a_round_without_a_connection_changes_nothing)
{
    CHECK_OK(t, say(up(MSG_READY, 0)));
    CHECK_TEXT(t, script_gone(&s, 3), "");
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_HAS(t, again(), "READY");
}

TEST(a_next_check_holds_until_the_next_round)
{
    struct msg at = up(MSG_NEXT_CHECK, 1);

    at.u.next_check = (struct msg_next_check){ .next = 2, .check = 40 };
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(at));
    CHECK_TEXT(t, again(), LAUNCHED "driver: NEXT_CHECK incarnation=7 round=1 next=2 check=40\n");
    CHECK_OK(t, tell(round_of(1, 2))); /* repeated */
    CHECK_HAS(t, again(), "NEXT_CHECK ");
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_TEXT(t, again(), LAUNCHED);
}

TEST(an_abandoned_change_is_not_repeated)
{
    struct msg at = up(MSG_NEXT_CHECK, 1);
    struct msg abandon = down(MSG_ABANDON, 1);

    at.u.next_check = (struct msg_next_check){ .next = 2, .check = 40 };
    abandon.u.abandon = (struct msg_abandon){ .next = 3, .reason = "test" };
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, tell(abandon));
    CHECK_OK(t, say(up(MSG_PREPARED, 2)));
    CHECK_OK(t, say(at));
    CHECK_OK(t, tell(abandon));
    CHECK_TEXT(t, again(),
               LAUNCHED "driver: PREPARED incarnation=7 round=2\n"
                        "driver: NEXT_CHECK incarnation=7 round=1 next=2 check=40\n");
    abandon.u.abandon.next = 2;
    CHECK_OK(t, tell(abandon));
    CHECK_TEXT(t, again(), LAUNCHED);
}

TEST(a_prepare_of_another_round_outdates_the_answer)
{
    CHECK_OK(t, tell(down(MSG_PREPARE, 2)));
    CHECK_OK(t, say(up(MSG_PREPARED, 2)));
    CHECK_OK(t, tell(down(MSG_PREPARE, 2))); /* repeated */
    CHECK_HAS(t, again(), "PREPARED incarnation=7 round=2\n");
    CHECK_OK(t, tell(down(MSG_PREPARE, 3)));
    CHECK_TEXT(t, again(), LAUNCHED);
}

TEST(a_revoked_round_is_not_repeated)
{
    struct msg at = up(MSG_NEXT_CHECK, 1);

    at.u.next_check = (struct msg_next_check){ .next = 2, .check = 40 };
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, tell(down(MSG_REVOKE, 1)));
    CHECK_OK(t, say(up(MSG_PREPARED, 2)));
    CHECK_OK(t, say(at)); /* crossed the REVOKE on the way */
    CHECK_OK(t, tell(down(MSG_REVOKE, 1)));
    CHECK_TEXT(t, again(), LAUNCHED "driver: PREPARED incarnation=7 round=2\n");
    CHECK_HAS(t, reported(), "active round 1\n"); /* until the worker sends RECOVERING */
    CHECK_HAS(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }), "LAUNC");
    CHECK_OK(t, tell(down(MSG_REVOKE, 2)));
    CHECK_TEXT(t, again(), LAUNCHED);
}

TEST(recovering_holds_until_a_later_round)
{
    CHECK_OK(t, say(up(MSG_READY, 0)));
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(up(MSG_ENTERED, 1)));
    CHECK_OK(t, say(up(MSG_RECOVERING, 1)));
    CHECK_TEXT(t, again(),
               LAUNCHED "driver: ENTERED incarnation=7 round=1\n"
                        "driver: RECOVERING incarnation=7 round=1\n");
    CHECK_OK(t, tell(round_of(1, 2))); /* repeated by a driver that does not know yet */
    CHECK_HAS(t, again(), "RECOVERING");
    CHECK_HAS(t, reported(), "recovering round 1\n");
    CHECK_HAS(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }), "RECOV");
    CHECK_OK(t, say(up(MSG_RECOVERING, 3)));
    CHECK_OK(t, tell(round_of(2, 2))); /* older than the round of RECOVERING */
    CHECK_OK(t, say(up(MSG_ENTERED, 2)));
    CHECK_HAS(t, again(), "RECOVERING incarnation=7 round=3\n");
    CHECK_HAS(t, reported(), "recovering round 3\n");
    CHECK_HAS(t, script_driver(&s, &(struct msg){ .type = MSG_WELCOME_AGENT, .term = 1 }), "RECOV");
    CHECK_OK(t, tell(round_of(4, 2)));
    CHECK_TEXT(t, again(), LAUNCHED);
    CHECK_HAS(t, reported(), "active round 4\n");
}

TEST(an_entered_holds_as_long_as_its_round)
{
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(up(MSG_ENTERED, 1)));
    CHECK_OK(t, say(up(MSG_PREPARED, 2)));
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_TEXT(t, again(), LAUNCHED);
    CHECK_OK(t, say(up(MSG_ENTERED, 2)));
    CHECK_TEXT(t, again(), LAUNCHED "driver: ENTERED incarnation=7 round=2\n");
}

/* ---- requests for a checkpoint ---- */

#define COMMIT_OF(round, place) (COMMIT_FIRST_OF(round) | (place))

static struct msg persist_of(uint64_t round, uint64_t commit)
{
    struct msg msg = up(MSG_PERSIST, round);

    msg.u.persist.commit = commit;
    return msg;
}

static struct msg persisted_of(uint64_t commit, int code)
{
    struct msg msg = down(MSG_PERSISTED, 0);

    msg.incarnation = 7;
    msg.u.persisted = (struct msg_persisted){ commit, code, "" };
    return msg;
}

/* The driver dies between the request and the answer: its successor hears of the newest request. */
TEST(a_request_for_a_checkpoint_holds_until_its_answer)
{
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(persist_of(1, COMMIT_OF(1, 6))));
    CHECK_OK(t, say(persist_of(1, COMMIT_OF(1, 5)))); /* late, or from another thread */
    CHECK_TEXT(t, again(), LAUNCHED "driver: PERSIST incarnation=7 round=1 commit=4294967302\n");
    CHECK_OK(t, tell(persisted_of(COMMIT_OF(1, 5), 0)));
    CHECK_HAS(t, again(), "PERSIST");
    CHECK_OK(t, tell(persisted_of(COMMIT_OF(1, 6), HVD_E_IO)));
    CHECK_TEXT(t, again(), LAUNCHED);
    CHECK_OK(t, say(persist_of(1, COMMIT_OF(1, 6))));
    CHECK_HAS(t, again(), "PERSIST");
    CHECK_OK(t, tell(persisted_of(COMMIT_OF(2, 0), 0))); /* of a later round */
    CHECK_TEXT(t, again(), LAUNCHED);
}

TEST(a_request_for_a_checkpoint_outlives_a_switch_and_no_revoke)
{
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(persist_of(1, COMMIT_OF(1, 6))));
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_HAS(t, again(), "PERSIST incarnation=7 round=1");
    CHECK_OK(t, tell(down(MSG_REVOKE, 2)));
    CHECK_TEXT(t, again(), LAUNCHED);
}

TEST(a_request_without_a_driver_is_sent_later)
{
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, script_lose(&s));
    CHECK_OK(t, say(persist_of(1, COMMIT_OF(1, 6))));
    CHECK_TEXT(t, script_return(&s, 1),
               LAUNCHED "driver: PERSIST incarnation=7 round=1 commit=4294967302\n");
}

/* A driver of minor 2 would skip PERSIST: the agent answers in its place. */
TEST(an_older_driver_is_not_asked_for_a_checkpoint)
{
    struct msg older = script_welcome(1);
    struct msg persist = persist_of(1, COMMIT_OF(1, 6));

    older.u.welcome_agent.minor = 2;
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(persist));
    CHECK_OK(t, script_lose(&s));
    script_timer(&s);
    CHECK_OK(t, s.list.failed ? HVD_E_NOMEM : 0);
    script_up(&s);
    CHECK_OK(t, s.list.failed ? HVD_E_NOMEM : 0);
    CHECK_HAS(t, script_driver(&s, &older),
              "worker 3: PERSISTED term=1 incarnation=7 "
              "commit=4294967302 code=-18");
    CHECK_HAS(t, script_worker(&s, 3, &persist),
              "worker 3: PERSISTED term=1 incarnation=7 "
              "commit=4294967302 code=-18");
    CHECK_TEXT(t, again(), LAUNCHED);
}

/* ---- values of the job ---- */

static struct msg store_of(uint64_t round, uint32_t channel, uint64_t number)
{
    struct msg msg = up(MSG_STORE, round);

    msg.u.store = (struct msg_store){ .channel = channel, .number = number, .key = "k" };
    return msg;
}

static struct msg stored_of(uint32_t channel, uint64_t number)
{
    struct msg msg = down(MSG_STORED, 0);

    msg.incarnation = 7;
    msg.u.stored = (struct msg_stored){ .channel = channel, .number = number, .text = "" };
    return msg;
}

TEST(a_call_for_a_value_holds_until_its_answer)
{
    CHECK_OK(t, say(store_of(0, 0, 1)));
    CHECK_OK(t, say(store_of(0, 2, 2)));
    CHECK_OK(t, say(store_of(0, 2, 3))); /* ends the one before it in its channel */
    CHECK_TEXT(t, again(),
               LAUNCHED "driver: STORE incarnation=7 number=1 key=\"k\"\n"
                        "driver: STORE incarnation=7 number=3 channel=2 key=\"k\"\n");
    CHECK_OK(t, tell(stored_of(2, 2))); /* late */
    CHECK_HAS(t, again(), "number=3");
    CHECK_OK(t, tell(stored_of(2, 3)));
    CHECK_OK(t, tell(stored_of(0, 1)));
    CHECK_OK(t, tell(stored_of(0, 1)));
    CHECK_TEXT(t, again(), LAUNCHED);
}

TEST(a_call_for_a_value_of_a_round_ends_with_the_round)
{
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(store_of(1, 0, 1)));
    CHECK_OK(t, say(store_of(0, 1, 2)));
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_TEXT(t, again(), LAUNCHED "driver: STORE incarnation=7 number=2 channel=1 key=\"k\"\n");
    CHECK_OK(t, say(store_of(2, 0, 3)));
    CHECK_HAS(t, again(), "round=2 number=3");
    CHECK_OK(t, tell(down(MSG_REVOKE, 2)));
    CHECK_TEXT(t, again(), LAUNCHED "driver: STORE incarnation=7 number=2 channel=1 key=\"k\"\n");
}

/* A driver of minor 3 would skip STORE: the agent answers in its place. */
TEST(an_older_driver_is_not_asked_for_a_value)
{
    struct msg older = script_welcome(1);
    struct msg store = store_of(0, 1, 5);

    older.u.welcome_agent.minor = 3;
    CHECK_OK(t, say(store));
    CHECK_OK(t, script_lose(&s));
    script_timer(&s);
    CHECK_OK(t, s.list.failed ? HVD_E_NOMEM : 0);
    script_up(&s);
    CHECK_OK(t, s.list.failed ? HVD_E_NOMEM : 0);
    CHECK_HAS(t, script_driver(&s, &older),
              "worker 3: STORED term=1 incarnation=7 number=5 channel=1 code=-18");
    CHECK_HAS(t, script_worker(&s, 3, &store), "worker 3: STORED term=1 incarnation=7 number=5");
    CHECK_TEXT(t, again(), LAUNCHED);
}

TEST(last_words_come_before_the_end)
{
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(up(MSG_ENTERED, 1)));
    CHECK_OK(t, say(up(MSG_LEFT, 0)));
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_OK(t, say(up(MSG_ENTERED, 3))); /* a wrong message; the worker has left all the same */
    CHECK_HAS(t, script_ended(&s, 7, ENDED_EXIT, 0, WITNESS_PIDFD), "EXITED");
    CHECK_TEXT(t, again(),
               "driver: ENTERED incarnation=7 round=3\ndriver: LEFT incarnation=7\n"
               "driver: EXITED term=1 incarnation=7 slot=2 pid=107 ended=1 witness=2\n");
    CHECK_HAS(t, reported(), "  7 slot 2 pid 107 left round 1 ended 1 value 0 witness 2 ran 0\n");
}

TEST(finished_is_for_good)
{
    struct msg finished = up(MSG_FINISHED, 1);

    finished.u.finished.text = "";
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(finished));
    CHECK_OK(t, tell(round_of(2, 2)));
    CHECK_OK(t, tell(down(MSG_REVOKE, 2)));
    CHECK_TEXT(t, again(), LAUNCHED "driver: FINISHED incarnation=7 round=1\n");
    CHECK_HAS(t, reported(), "finished round 1\n");
}

TEST(a_failed_training_is_reported_with_its_code)
{
    struct msg finished = up(MSG_FINISHED, 1);

    finished.u.finished = (struct msg_finished){ .code = 5, .text = "no data" };
    CHECK_OK(t, tell(round_of(1, 2)));
    CHECK_OK(t, say(finished));
    CHECK_TEXT(t, again(),
               LAUNCHED "driver: FINISHED incarnation=7 round=1 code=5 text=\"no data\"\n");
    CHECK_HAS(t, reported(), "active round 1\n");
    CHECK_TEXT(t, script_ended(&s, 7, ENDED_EXIT, 5, WITNESS_PIDFD), "");
    CHECK_OK(t, say(up(MSG_READY, 0))); /* no message makes the round come back */
    CHECK_TEXT(t, script_down(&s), "");
    CHECK_HAS(t, script_timer(&s), "dial");
    CHECK_HAS(t, script_up(&s), "ended round 1 ended 1 value 5");
}
