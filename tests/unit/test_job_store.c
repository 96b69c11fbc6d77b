/*
 * test_job_store.c: hvd/store.h in a job of one worker, with an agent that plays a script: answers,
 * failures, an answer that comes too late, the end of the round and of the agent; and in a program
 * of its own.
 */
#include "base/time.h"
#include "hvd/store.h"
#include "tests/lib/fake_job.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_job job;
static int got, again, mismatched;
static int64_t sum;
static size_t length;
static char value[64], why[512];

static void end_case(struct test *t)
{
    (void)t;
    fake_job_release(&job);
    hvd_shutdown();
    got = again = mismatched = 0;
    sum = 0;
    length = 0;
    value[0] = why[0] = '\0';
}
FIXTURE(NULL, end_case)

#define ANSWER(channel_of, number_of, code_of, text_of, value_of)           \
    {                                                                       \
        .type = MSG_STORED, .term = 1, .incarnation = FAKE_INCARNATION,     \
        .u.stored = {                                                       \
            .channel = (channel_of),                                        \
            .number = (number_of),                                          \
            .code = (code_of),                                              \
            .text = (text_of),                                              \
            .value = {(const uint8_t *)(value_of), sizeof(value_of) - 1}, \
        },                                                                  \
    }

static const struct msg wrong_number = ANSWER(0, 9, 0, "", "wrong");
static const struct msg first_is = ANSWER(0, 1, 0, "", "-42");
static const struct msg second_fails =
    ANSWER(0, 2, HVD_E_MISMATCH, "the key has another value", "x");
static const struct msg third_is = ANSWER(0, 3, 0, "", "a value");

static void keep(int code)
{
    got = code;
    snprintf(why, sizeof(why), "%s", hvd_last_error());
}

static int three_calls(struct fake_job *training)
{
    if (training->step != 3)
        return 0;
    keep(hvd_store_add(HVD_STORE_ROUND, "n", 7, &sum));
    mismatched = hvd_store_compare_set(HVD_STORE_JOB, "k", "old", 3, "new", 3);
    again = hvd_store_get(HVD_STORE_JOB, "k", value, sizeof(value), &length);
    return 0;
}

TEST_FLAGS(calls_are_answered_by_their_numbers, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.agent.welcome.minor = 4;
    job.each = three_calls;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED),
         HEAR_OF(MSG_STORE, "incarnation=7 round=1 number=1 op=3 key=\"n\""), SAY(&wrong_number),
         SAY(&first_is), SAY(&first_is), HEAR_OF(MSG_STORE, "incarnation=7 number=2 op=4"),
         SAY(&second_fails), HEAR_OF(MSG_STORE, "incarnation=7 number=3 op=1"), SAY(&third_is),
         END);
    CHECK_OK(t, job.code);
    CHECK_OK(t, got);
    CHECK_INT(t, sum, ==, -42);
    CHECK_CODE(t, mismatched, HVD_E_MISMATCH);
    CHECK_OK(t, again);
    CHECK_INT(t, length, ==, 7);
    CHECK(t, !memcmp(value, "a value", 7));
}

static int wait_in_step_3(struct fake_job *training)
{
    if (training->step != 3 || training->trains != 1)
        return 0;
    keep(hvd_store_wait(HVD_STORE_ROUND, "k", -1, NULL, 0, NULL));
    return got == HVD_E_REVOKED ? got : 0;
}

static const struct msg recovery = {
    .type = MSG_ROUND,
    .term = 1,
    .round = 2,
    .u.round = {.cause = CAUSE_RECOVERY,
                .previous = 1,
                .commit = COMMIT(1, 2),
                .holders = { &(const uint64_t){ FAKE_INCARNATION }, 1 },
                .members = { &(const struct msg_member){ .incarnation = FAKE_INCARNATION,
                                                          .host = "a" },
                              1 }}
};

TEST_FLAGS(a_revoked_round_ends_the_wait, TEST_NO_TORTURE)
{
    BEGIN(t);
    job.agent.welcome.minor = 4;
    job.each = wait_in_step_3;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED),
         HEAR_OF(MSG_STORE, "round=1 number=1 channel=1 op=2"), SAY(&revoke_first),
         HEAR(MSG_RECOVERING), SAY(&recovery), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_CODE(t, got, HVD_E_REVOKED);
    CHECK_TEXT(t, why, "hvd_store_wait: \"k\": the round of this value is over");
}

/* Neither a value of the job nor one of the round is waited for any more. */
static int wait_for_the_job(struct fake_job *training)
{
    if (training->step != 3)
        return 0;
    keep(hvd_store_wait(HVD_STORE_JOB, "k", -1, NULL, 0, NULL));
    again = hvd_store_set(HVD_STORE_JOB, "k", "x", 1);
    return got;
}

TEST_FLAGS(an_agent_that_is_gone_ends_all_calls, TEST_NO_TORTURE)
{
    BEGIN(t);
    job.agent.welcome.minor = 4;
    job.each = wait_for_the_job;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), HEAR(MSG_STORE), DO(FAKE_CLOSE));
    CHECK_CODE(t, got, HVD_E_LOST);
    CHECK_CODE(t, again, HVD_E_LOST);
}

/* The answer to the first wait comes after its time, while the second one waits in its channel. */
static int wait_twice(struct fake_job *training)
{
    if (training->step != 3)
        return 0;
    keep(hvd_store_wait(HVD_STORE_JOB, "k", 0, NULL, 0, NULL));
    again = hvd_store_wait(HVD_STORE_JOB, "k", -1, value, sizeof(value), &length);
    return 0;
}

static const struct msg late = ANSWER(1, 1, 0, "", "late");
static const struct msg right = ANSWER(1, 2, 0, "", "right");

TEST_FLAGS(a_late_answer_is_for_no_other_call, TEST_NO_TORTURE)
{
    BEGIN(t);
    job.agent.welcome.minor = 4;
    job.each = wait_twice;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), HEAR_OF(MSG_STORE, "number=2 channel=1"),
         SAY(&late), SAY(&right), END);
    CHECK_OK(t, job.code);
    CHECK_CODE(t, got, HVD_E_TIMEOUT);
    CHECK_OK(t, again);
    CHECK(t, length == 5 && !memcmp(value, "right", 5));
}

static int set_once(struct fake_job *training)
{
    if (training->step == 3)
        keep(hvd_store_set(HVD_STORE_JOB, "k", "x", 1));
    return 0;
}

TEST_FLAGS(an_older_agent_is_named, TEST_NO_TORTURE)
{
    BEGIN(t);
    job.agent.welcome.minor = 3;
    job.each = set_once;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), END);
    CHECK_CODE(t, got, HVD_E_UNSUPPORTED);
    CHECK_INT(t, fake_agent_count(&job.agent, "STORE"), ==, 0);
}

/* ---- without hvd-elastic --------------------------------------------------------------------- */

TEST_FLAGS(a_process_of_its_own_has_values_too, TEST_NO_TORTURE)
{
    char key[HVD_STORE_KEY_BYTES + 2];

    memset(key, 'k', sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    unsetenv("HVD_AGENT");
    unsetenv("HVD_INCARNATION");
    CHECK_CODE(t, hvd_store_set(HVD_STORE_JOB, "k", "x", 1), HVD_E_STATE);
    CHECK_OK(t, hvd_init());
    CHECK_CODE(t, hvd_store_set(HVD_STORE_ROUND, "k", "x", 1), HVD_E_STATE);
    CHECK_CODE(t, hvd_store_set(HVD_STORE_JOB, key, "x", 1), HVD_E_INVAL);
    CHECK_CODE(t, hvd_store_set(HVD_STORE_JOB, "a\nb\001", "x", 1), HVD_E_INVAL);
    CHECK_CODE(t, hvd_store_set(HVD_STORE_JOB, NULL, "x", 1), HVD_E_INVAL);
    CHECK_CODE(t, hvd_store_set(HVD_STORE_JOB, "k", NULL, 1), HVD_E_INVAL);
    CHECK_CODE(t, hvd_store_set(HVD_STORE_JOB, "k", key, HVD_STORE_VALUE_BYTES + 1), HVD_E_INVAL);
    CHECK_CODE(t, hvd_store_set((hvd_store_scope)7, "k", "x", 1), HVD_E_INVAL);
    CHECK_CODE(t, hvd_store_get(HVD_STORE_JOB, "k", NULL, 0, NULL), HVD_E_NOTFOUND);
    CHECK_CODE(t, hvd_store_wait(HVD_STORE_JOB, "k", 0, NULL, 0, NULL), HVD_E_TIMEOUT);
    CHECK_OK(t, hvd_store_compare_set(HVD_STORE_JOB, "k", NULL, 0, "abc", 3));
    CHECK_CODE(t, hvd_store_get(HVD_STORE_JOB, "k", value, 2, &length), HVD_E_FULL);
    CHECK_INT(t, length, ==, 3);
    CHECK_OK(t, hvd_store_wait(HVD_STORE_JOB, "k", 0, value, sizeof(value), &length));
    CHECK_CODE(t, hvd_store_add(HVD_STORE_JOB, "k", 1, NULL), HVD_E_INVAL);
    CHECK_OK(t, hvd_store_add(HVD_STORE_JOB, "n", INT64_MIN, &sum));
    CHECK_OK(t, hvd_store_delete(HVD_STORE_JOB, "k"));
    CHECK_CODE(t, hvd_store_delete(HVD_STORE_JOB, "k"), HVD_E_NOTFOUND);
}
