/*
 * test_job_persist.c: hvd_checkpoint in a job of one worker, with an agent that plays a script: the
 * answer, a failure, the end of the round, of the agent and of the run before the answer.
 */
#include "base/time.h"
#include "tests/lib/fake_job.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <stdlib.h>

static struct fake_job job;
static hvd_state *of_alone;
static hvd_request *request;
static int asked, waited, again, done_before, done_after, switched;
static char why[512];

static void end_case(struct test *t)
{
    (void)t;
    fake_job_release(&job);
    hvd_state_free(of_alone);
    hvd_shutdown();
    of_alone = NULL;
    request = NULL;
    asked = waited = again = done_before = done_after = switched = 0;
    why[0] = '\0';
}
FIXTURE(NULL, end_case)

#define ASKED HEAR_OF(MSG_PERSIST, "incarnation=7 round=1 commit=4294967298")

static const struct msg persisted = {
    .type = MSG_PERSISTED,
    .term = 1,
    .incarnation = FAKE_INCARNATION,
    .u.persisted = {.commit = COMMIT(1, 2), .text = ""}
};
static const struct msg older = {
    .type = MSG_PERSISTED,
    .term = 1,
    .incarnation = FAKE_INCARNATION,
    .u.persisted = {.commit = COMMIT(1, 1), .text = ""}
};
static const struct msg failed = {
    .type = MSG_PERSISTED,
    .term = 1,
    .incarnation = FAKE_INCARNATION,
    .u.persisted = {.commit = COMMIT(1, 2),
                    .code = HVD_E_IO,
                    .text = "no checkpoint could be made: a: the disk is full"}
};

static const uint64_t self = FAKE_INCARNATION;
static const struct msg_member members[] = {
    {.incarnation = FAKE_INCARNATION, .host = "a"}
};
static const struct msg recovery = {
    .type = MSG_ROUND,
    .term = 1,
    .round = 2,
    .u.round = {.cause = CAUSE_RECOVERY,
                .previous = 1,
                .commit = COMMIT(1, 2),
                .holders = { &self, 1 },
                .members = { members, 1 }}
};

/* In step 3 commit 1.2 is the newest one. */
static int ask_in_step_3(const struct fake_job *training)
{
    if (training->step != 3 || training->trains != 1)
        return 0;
    asked = hvd_checkpoint(training->state, &request);
    return asked;
}

static int keep_waited(int code)
{
    waited = code;
    snprintf(why, sizeof(why), "%s", hvd_last_error());
    return code == HVD_E_REVOKED ? code : 0;
}

static int wait_in_step_3(struct fake_job *training)
{
    int rc = ask_in_step_3(training);

    if (rc || !request || training->trains != 1)
        return rc;
    (void)hvd_test(request, &done_before);
    fake_agent_go(&training->agent);
    rc = keep_waited(hvd_wait(request));
    again = hvd_wait(request);
    request = NULL;
    return rc;
}

#define PLAY_ASKED(t, ...)                                                                      \
    do {                                                                                        \
        BEGIN(t);                                                                               \
        job.agent.welcome.minor = 3;                                                            \
        job.each = wait_in_step_3;                                                              \
        PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), ASKED, DO(FAKE_HOLD), __VA_ARGS__); \
        CHECK_OK(t, asked);                                                                     \
    } while (0)

TEST_FLAGS(a_request_is_done_when_the_checkpoint_is_complete, TEST_SURVIVES_ALLOC)
{
    PLAY_ASKED(t, SAY(&older), SAY(&persisted), SAY(&persisted), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, done_before, ==, 0);
    CHECK_CODE(t, waited, 0);
    CHECK_CODE(t, again, HVD_E_INVAL); /* the wait has freed the request */
}

TEST_FLAGS(a_wait_says_why_there_is_no_checkpoint, TEST_SURVIVES_ALLOC)
{
    PLAY_ASKED(t, SAY(&failed), END);
    CHECK_OK(t, job.code);
    CHECK_CODE(t, waited, HVD_E_IO);
    CHECK_TEXT(t, why, "no checkpoint could be made: a: the disk is full");
}

/* The training thread waits while the round is revoked: it must come back for the recovery. */
TEST_FLAGS(a_revoked_round_ends_the_wait, TEST_SURVIVES_ALLOC)
{
    PLAY_ASKED(t, SAY(&revoke_first), HEAR(MSG_RECOVERING), SAY(&recovery), SAY(&persisted),
               HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_CODE(t, waited, HVD_E_REVOKED);
    CHECK_HAS(t, why, "ask again after the next commit");
    CHECK_INT(t, job.began_at[1], ==, 2);
}

/* Another thread, or a signal handler, revokes the round while the training thread waits; here the
 * same thread does it before. */
static int revoke_then_wait(struct fake_job *training)
{
    int rc = ask_in_step_3(training);

    if (rc || !request || training->trains != 1)
        return rc;
    if (hvd_revoke("enough"))
        return HVD_E_INTERNAL;
    rc = keep_waited(hvd_wait(request));
    request = NULL;
    return rc;
}

TEST_FLAGS(a_round_that_the_program_revokes_ends_the_wait, TEST_NO_TORTURE)
{
    BEGIN(t);
    job.agent.welcome.minor = 3;
    job.each = revoke_then_wait;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), HEAR(MSG_RECOVERING), SAY(&recovery),
         HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_CODE(t, waited, HVD_E_REVOKED);
}

TEST_FLAGS(an_agent_that_is_gone_ends_the_wait, TEST_NO_TORTURE)
{
    PLAY_ASKED(t, DO(FAKE_CLOSE));
    CHECK(t, waited == HVD_E_LOST || waited == HVD_E_REVOKED);
    CHECK_CODE(t, job.code, HVD_E_LOST);
}

/* The program does not wait: the members change, and the answer comes in the next round. */
static int ask_and_switch(struct fake_job *training)
{
    int rc = ask_in_step_3(training);

    if (rc || training->trains != 2 || !request)
        return rc;
    switched = hvd_wait_for(request, 0);
    fake_agent_go(&training->agent);
    rc = keep_waited(hvd_wait(request));
    request = NULL;
    return rc;
}

/* After news the training thread does not wait: the driver would wait for it. */
static void wait_after_news(struct fake_job *training)
{
    (void)training;
    again = hvd_wait(request);
}

TEST_FLAGS(a_request_outlives_a_switch, TEST_SURVIVES_ALLOC)
{
    static const struct msg of_next = {
        .type = MSG_PERSISTED,
        .term = 1,
        .incarnation = FAKE_INCARNATION,
        .u.persisted = {.commit = COMMIT(2, 0), .text = ""}
    };

    BEGIN(t);
    job.agent.welcome.minor = 3;
    job.each = ask_and_switch;
    job.told = wait_after_news;
    job.wait_at = 3;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), ASKED, DO(FAKE_HOLD), SAY(&prepare_next),
         HEAR(MSG_PREPARED), SAY(&pending_next), HEAR(MSG_NEXT_CHECK),
         { FAKE_SWITCH_AT, 0, &switch_at_next, NULL }, SAY(&round_switch), DO(FAKE_HOLD),
         SAY(&of_next), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_CODE(t, again, HVD_E_STATE);
    CHECK_CODE(t, switched, HVD_E_TIMEOUT);
    CHECK_CODE(t, waited, 0);
}

/* Other workers have finished the job while this one waits. */
TEST_FLAGS(the_end_of_the_job_ends_the_wait, TEST_NO_TORTURE)
{
    BEGIN(t);
    job.agent.welcome.minor = 3;
    job.each = wait_in_step_3;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), ASKED, DO(FAKE_HOLD), SAY(&done),
         DO(FAKE_OVER));
    CHECK_CODE(t, job.code, HVD_DONE);
    CHECK_CODE(t, waited, HVD_E_REVOKED);
}

TEST_FLAGS(an_older_agent_is_named, TEST_NO_TORTURE)
{
    BEGIN(t);
    job.agent.welcome.minor = 2;
    job.each = wait_in_step_3;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), END);
    CHECK_CODE(t, waited, HVD_E_UNSUPPORTED);
    CHECK_INT(t, fake_agent_count(&job.agent, "PERSIST"), ==, 0);
}

/* ---- without hvd-elastic --------------------------------------------------------------------- */

static int alone(hvd_state *state, void *arg)
{
    hvd_request *mine = NULL;
    int rc = hvd_checkpoint(state, (hvd_request **)arg);

    asked = rc;
    rc = hvd_checkpoint(state, &mine);
    if (rc)
        return rc;
    waited = hvd_wait_for(mine, TIME_S);
    snprintf(why, sizeof(why), "%s", hvd_last_error());
    return 0;
}

TEST_FLAGS(a_process_of_its_own_has_no_directory, TEST_NO_TORTURE)
{
    unsetenv("HVD_AGENT");
    unsetenv("HVD_INCARNATION");
    CHECK_OK(t, hvd_init());
    of_alone = hvd_state_create();
    CHECK(t, of_alone);
    CHECK_CODE(t, hvd_checkpoint(of_alone, &request), HVD_E_STATE); /* not in train */
    CHECK_OK(t, hvd_elastic_run(of_alone, alone, NULL));
    CHECK_CODE(t, asked, HVD_E_INVAL);
    CHECK_CODE(t, waited, HVD_E_STATE);
    CHECK_HAS(t, why, "use hvd_state_save, or start it with hvd-elastic --checkpoint-dir DIR");
}
