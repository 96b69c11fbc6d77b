/*
 * test_agent_checkpoint.c: agent/core/agent_checkpoint.c: HOLD, SAVE and RELEASE that come in
 * order, twice, late, or from another driver; results that are ready when their driver is gone.
 */
#include "tests/lib/agent_script.h"
#include "tests/lib/fixture.h"

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

static const char *hold(uint64_t term, uint64_t number)
{
    static const uint64_t slots[] = { 0, 1 };
    struct msg msg = { .type = MSG_HOLD, .term = term, .round = 3 };

    msg.u.hold = (struct msg_hold){
        .number = number, .at = 7, .slots = {slots, 2}
    };
    return script_driver(&s, &msg);
}

static const char *save(uint64_t number)
{
    struct msg msg = { .type = MSG_SAVE, .term = 1, .round = 3 };

    msg.u.save = (struct msg_save){ .number = number, .commit = 9, .folder = "/c", .name = "part" };
    return script_driver(&s, &msg);
}

static const char *release(uint64_t number)
{
    struct msg msg = { .type = MSG_RELEASE, .term = 1, .round = 3, .u.release.number = number };

    return script_driver(&s, &msg);
}

static const char *holding(uint64_t number)
{
    static const struct msg_kept kept[] = {
        {.slot = 0,  .commit = 9},
        { .slot = 1, .commit = 9}
    };
    struct msg msg = { .type = MSG_HOLDING, .round = 3 };

    msg.u.holding = (struct msg_holding){
        .number = number, .text = "", .kept = {kept, 2}
    };
    return script_step(&s, &(struct agent_event){ .kind = AGENT_CHECKPOINT_RESULT, .msg = &msg });
}

static const char *saved(uint64_t number)
{
    struct msg msg = { .type = MSG_SAVED, .round = 3 };

    msg.u.saved = (struct msg_saved){ .number = number, .name = "part", .text = "", .bytes = 500 };
    return script_step(&s, &(struct agent_event){ .kind = AGENT_CHECKPOINT_RESULT, .msg = &msg });
}

TEST(a_checkpoint_in_order)
{
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, hold(1, 5), "hold 5\n");
    CHECK_HAS(t, holding(5), "driver: HOLDING term=1 round=3 number=5");
    CHECK_TEXT(t, save(5), "save 5 part\n");
    CHECK_HAS(t, saved(5), "driver: SAVED term=1");
    CHECK_HAS(t, saved(5), "bytes=500");
    CHECK_TEXT(t, release(5), "release 5\n");
    CHECK_TEXT(t, saved(5), "");
    CHECK_TEXT(t, holding(5), "");
}

TEST(a_hold_ends_the_attempts_before_it)
{
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, hold(1, 5), "hold 5\n");
    CHECK_TEXT(t, hold(1, 6), "hold 6\n");
    CHECK_TEXT(t, holding(5), "");
    CHECK_TEXT(t, hold(1, 5), "");
    CHECK_TEXT(t, save(5), "");
    CHECK_TEXT(t, release(5), "");
    CHECK_HAS(t, holding(6), "HOLDING");
    CHECK_TEXT(t, hold(1, 6), "hold 6\n"); /* the answer may be lost */
    CHECK_HAS(t, holding(6), "HOLDING");
}

TEST(what_was_released_is_over)
{
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, release(4), "release 4\n"); /* an attempt that this agent has never heard of */
    CHECK_TEXT(t, hold(1, 4), "");
    CHECK_TEXT(t, save(4), "");
    CHECK_TEXT(t, hold(1, 5), "hold 5\n");
    CHECK_TEXT(t, release(7), "release 7\n"); /* this one and all before it */
    CHECK_TEXT(t, holding(5), "");
    CHECK_TEXT(t, hold(1, 7), "");
    CHECK_TEXT(t, hold(1, 8), "hold 8\n");
}

TEST(a_save_without_a_hold_is_answered)
{
    CHECK_OK(t, script_serve(&s));
    CHECK_HAS(t, save(2), "driver: SAVED");
    CHECK_HAS(t, save(2), "no HOLD");
    CHECK_TEXT(t, hold(1, 2), "hold 2\n");
    CHECK_TEXT(t, save(2), "save 2 part\n");
}

/* The connection breaks while the agent works: the result goes to no later connection, until the
 * driver there asks again. The commits stay held. */
TEST(a_result_goes_to_the_driver_that_asked)
{
    CHECK_OK(t, script_serve(&s));
    CHECK_TEXT(t, hold(1, 5), "hold 5\n");
    CHECK_OK(t, script_lose(&s));
    CHECK_TEXT(t, holding(5), "");
    script_return(&s, 1);
    CHECK_TEXT(t, holding(5), "");
    CHECK_TEXT(t, hold(1, 5), "hold 5\n");
    CHECK_HAS(t, holding(5), "driver: HOLDING");
    CHECK_TEXT(t, save(5), "save 5 part\n");
    CHECK_OK(t, script_lose(&s));
    script_return(&s, 2); /* the next driver, whose attempts have higher numbers */
    CHECK_TEXT(t, saved(5), "");
    CHECK_TEXT(t, hold(2, 6), "hold 6\n");
    CHECK_TEXT(t, saved(5), "");
    CHECK_HAS(t, holding(6), "driver: HOLDING term=2");
    CHECK_HAS(t, hold(1, 7), "BYE"); /* a driver that has been replaced */
}

/* The agent has asked its workers to end. A last checkpoint may still be written. */
TEST(an_agent_that_ends_still_holds)
{
    struct msg stop = {
        .type = MSG_STOP, .term = 1, .u.stop = {TIME_S, "test"}
    };

    CHECK_OK(t, script_serve(&s));
    CHECK_OK(t, script_run(&s, 1, 0));
    CHECK_HAS(t, script_driver(&s, &stop), "term 1");
    CHECK_TEXT(t, hold(1, 5), "hold 5\n");
    CHECK_HAS(t, holding(5), "HOLDING");
}
