/* hvd_elastic_run in a job of one, against an agent with a script. */
#include "tests/lib/fake_job.h"
#include "tests/lib/test.h"
#include "worker/worker.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define JOIN \
    HEAR(MSG_HELLO_WORKER), DO(FAKE_WELCOME), HEAR(MSG_SNAPSHOT), DO(FAKE_GRANT), HEAR(MSG_READY)
#define END HEAR(MSG_FINISHED), DO(FAKE_OVER)

static struct fake_job job;

/* What every case begins and ends with. */
#define BEGIN(t) CHECK_OK(t, fake_job_init(&job))
#define PLAY(t, script)                           \
    do {                                          \
        CHECK_OK(t, fake_job_play(&job, script)); \
        fake_agent_stop(&job.agent);              \
        CHECK_TEXT(t, job.agent.why, "");         \
    } while (0)

/* ---- as it should be ------------------------------------------------------------------------- */

static void trains_to_its_end(struct test *t)
{
    static const struct fake_step script[] = { JOIN, SAY(&round_first), HEAR(MSG_ENTERED), END };

    BEGIN(t);
    PLAY(t, script);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.trains, ==, 1);
    CHECK_INT(t, job.resets, ==, 1);
    CHECK_INT(t, job.rounds[0], ==, 1);
    CHECK_INT(t, job.size, ==, 1);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(1, 5)), ==, 5);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(1, 4)), ==, 4);
    CHECK(t, fake_agent_heard(&job.agent, "ENTERED incarnation=7 round=1 commit=4294967296"));
    CHECK_INT(t, fake_agent_count(&job.agent, "ENTERED"), ==, 1);
    CHECK_INT(t, fake_agent_count(&job.agent, "FINISHED"), ==, 1);
    CHECK(t, !fake_agent_heard(&job.agent, "RECOVERING"));
out:
    fake_job_release(&job);
}

static void what_is_revoked_goes_back_to_the_commit(struct test *t)
{
    static const struct fake_step script[] = { JOIN,
                                               SAY(&round_first),
                                               HEAR(MSG_ENTERED),
                                               DO(FAKE_HOLD),
                                               SAY(&revoke_first),
                                               HEAR(MSG_RECOVERING),
                                               SAY(&revoke_first), /* twice */
                                               SAY(&round_recovery),
                                               SAY(&round_recovery),
                                               HEAR(MSG_ENTERED),
                                               END };

    BEGIN(t);
    job.wait_at = 4;
    PLAY(t, script);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.trains, ==, 2);
    CHECK_INT(t, job.news, ==, 0);
    CHECK_INT(t, job.began_at[1], ==, 3);
    CHECK_INT(t, job.rounds[1], ==, 2);
    CHECK_INT(t, job.mine, ==, 105);
    CHECK(t, fake_agent_heard(&job.agent, "RECOVERING incarnation=7 round=1 held=2"));
    CHECK_INT(t, fake_agent_count(&job.agent, "RECOVERING"), ==, 1);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(2, 2)), ==, 5);
out:
    fake_job_release(&job);
}

static const struct fake_step switches[] = {
    JOIN,
    SAY(&round_first),
    HEAR(MSG_ENTERED),
    DO(FAKE_HOLD),
    SAY(&prepare_next),
    HEAR(MSG_PREPARED),
    SAY(&pending_next),
    HEAR(MSG_AT),
    {FAKE_SWITCH_AT, 0, &switch_at_next, NULL},
    SAY(&round_switch),
    HEAR(MSG_ENTERED),
    END
};

static void a_switch_loses_nothing(struct test *t)
{
    BEGIN(t);
    job.wait_at = 4;
    PLAY(t, switches);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.trains, ==, 2);
    CHECK_INT(t, job.began_at[1], ==, 4);
    CHECK_INT(t, job.rounds[1], ==, 2);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(2, 0)), ==, 4);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(2, 1)), ==, 5);
    CHECK(t, fake_agent_heard(&job.agent, "PREPARED incarnation=7 round=2\n"));
    CHECK(t, fake_agent_heard(&job.agent, "ENTERED incarnation=7 round=2 commit=8589934592"));
    CHECK(t, !fake_agent_heard(&job.agent, "RECOVERING"));
out:
    fake_job_release(&job);
}

/* The program calls nothing but hvd_state_commit: what is to be switched at has just been copied.
 */
static void a_fresh_commit_gets_the_name_of_the_switch(struct test *t)
{
    static const struct fake_step script[] = {
        JOIN,
        SAY(&round_first),
        HEAR(MSG_ENTERED),
        SAY(&prepare_next),
        HEAR(MSG_PREPARED),
        SAY(&pending_next),
        HEAR(MSG_AT),
        {FAKE_SWITCH_AT, 0, &switch_at_next, NULL},
        SAY(&round_switch),
        END
    };

    BEGIN(t);
    job.goal = INT64_MAX;
    job.trains_max = 2;
    PLAY(t, script);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.news, ==, HVD_HOSTS_UPDATED);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(2, 0)), ==, job.step);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(1, job.step)), ==, -1);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(1, job.step - 1)), ==, job.step - 1);
out:
    fake_job_release(&job);
}

static void an_abandoned_change_is_forgotten(struct test *t)
{
    static const struct fake_step script[] = {
        JOIN,
        SAY(&round_first),
        HEAR(MSG_ENTERED),
        DO(FAKE_HOLD),
        SAY(&prepare_next),
        HEAR(MSG_PREPARED),
        SAY(&pending_next),
        HEAR(MSG_AT),
        SAY(&abandon_next),
        SAY(&abandon_next),
        SAY(&revoke_first),
        HEAR(MSG_RECOVERING),
        DO(FAKE_CLOSE),
    };

    BEGIN(t);
    job.wait_after = 2;
    PLAY(t, script);
    CHECK_CODE(t, job.code, HVD_E_LOST);
    CHECK_INT(t, job.news, ==, HVD_E_REVOKED);
    CHECK_INT(t, job.trains, ==, 1);
    CHECK(t, !fake_agent_heard(&job.agent, "ENTERED incarnation=7 round=2"));
out:
    fake_job_release(&job);
}

/* The others leave at a check that this worker has behind it: it is not to go where they are not.
 */
static void a_switch_that_was_missed_gives_the_round_up(struct test *t)
{
    static const struct msg too_early = {
        .type = MSG_SWITCH_AT, .term = 1, .round = 1, .u.switch_at = {.next = 2, .check = 1}
    };
    static const struct msg round_without = {
        .type = MSG_ROUND,
        .term = 1,
        .round = 2,
        .u.round = {.cause = CAUSE_SWITCH, .previous = 1, .commit = COMMIT(2, 0)}
    };
    static const struct fake_step script[] = {
        JOIN,
        SAY(&round_first),
        HEAR(MSG_ENTERED),
        DO(FAKE_HOLD),
        SAY(&prepare_next),
        HEAR(MSG_PREPARED),
        SAY(&pending_next),
        HEAR(MSG_AT),
        SAY(&too_early),
        HEAR_OF(MSG_RECOVERING, "the agreed check"),
        SAY(&round_without), /* it was counted as dead */
        HEAR(MSG_LEFT),
        DO(FAKE_OVER),
    };

    BEGIN(t);
    job.wait_at = 4;
    PLAY(t, script);
    CHECK_CODE(t, job.code, HVD_LEFT);
    CHECK_INT(t, job.news, ==, HVD_E_REVOKED);
    CHECK_INT(t, job.trains, ==, 1);
out:
    fake_job_release(&job);
}

/* ---- how it ends ----------------------------------------------------------------------------- */

static void who_is_not_in_the_next_round_leaves(struct test *t)
{
    static const struct fake_step script[] = {
        JOIN,
        SAY(&round_first),
        HEAR(MSG_ENTERED),
        DO(FAKE_HOLD),
        SAY(&drain), /* news only */
        SAY(&prepare_without),
        SAY(&pending_next),
        HEAR(MSG_AT),
        {FAKE_SWITCH_AT, 0, &switch_at_next, NULL},
        HEAR(MSG_LEFT),
        DO(FAKE_OVER)
    };

    BEGIN(t);
    job.wait_at = 3;
    PLAY(t, script);
    CHECK_CODE(t, job.code, HVD_LEFT);
    CHECK_INT(t, job.news, ==, HVD_LEFT);
    CHECK_INT(t, job.trains, ==, 1);
    CHECK(t, !fake_agent_heard(&job.agent, "FINISHED"));
out:
    fake_job_release(&job);
}

static void who_waits_for_a_round_may_be_told_to_go(struct test *t)
{
    static const struct fake_step leaves[] = { JOIN, SAY(&drain), HEAR(MSG_LEFT), DO(FAKE_OVER) };
    static const struct fake_step ends[] = { JOIN, SAY(&done), DO(FAKE_OVER) };

    BEGIN(t);
    PLAY(t, leaves);
    CHECK_CODE(t, job.code, HVD_LEFT);
    fake_job_release(&job);
    BEGIN(t);
    PLAY(t, ends);
    CHECK_CODE(t, job.code, HVD_DONE);
    CHECK_INT(t, job.trains, ==, 0);
out:
    fake_job_release(&job);
}

/* Its loop hangs: another thread finds out that this will not end, and says so. */
static void *find_out(void *arg)
{
    worker_is_useless(worker_get(), "device 0 does not end its kernel");
    worker_is_useless(worker_get(), "nor now");
    return arg;
}

static int hang(struct fake_job *stuck)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, find_out, NULL))
        return HVD_E_INTERNAL;
    (void)fake_agent_await(&stuck->agent, "USELESS");
    pthread_join(thread, NULL);
    return 0;
}

static void who_is_of_no_more_use_says_so(struct test *t)
{
    static const struct fake_step script[] = { JOIN, SAY(&round_first), HEAR(MSG_USELESS),
                                               SAY(&revoke_first), DO(FAKE_OVER) };

    BEGIN(t);
    job.first = hang;
    PLAY(t, script);
    CHECK_CODE(t, job.code, HVD_E_LOST);
    CHECK(t, fake_agent_heard(&job.agent,
                              "USELESS incarnation=7 text=\"device 0 does not end its kernel\""));
    CHECK_INT(t, fake_agent_count(&job.agent, "USELESS"), ==, 1);
    CHECK(t, !fake_agent_heard(&job.agent, "RECOVERING"));
out:
    fake_job_release(&job);
}

/* The agent is a process of this machine that outlives its workers: its last word counts though it
 * is gone by the time that it is read. */
static void the_last_word_is_heard(struct test *t)
{
    static const struct fake_step script[] = { JOIN, SAY(&done), DO(FAKE_CLOSE) };

    BEGIN(t);
    PLAY(t, script);
    CHECK_CODE(t, job.code, HVD_DONE);
out:
    fake_job_release(&job);
}

static void a_failure_of_train_is_said(struct test *t)
{
    static const struct fake_step script[] = { JOIN, SAY(&round_first), HEAR(MSG_ENTERED), END };
    static const int codes[][2] = {
        {-1000,              -1000        },
        { HVD_E_CORRUPT,     HVD_E_CORRUPT},
        { HVD_HOSTS_UPDATED, HVD_E_STATE  },
        { HVD_LEFT,          HVD_E_STATE  },
    };

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        char line[64];

        BEGIN(t);
        job.quit_at = 3;
        job.quit = codes[i][0];
        PLAY(t, script);
        CHECK_INT(t, job.code, ==, codes[i][1]);
        CHECK(t, hvd_last_error()[0]);
        snprintf(line, sizeof(line), "FINISHED incarnation=7 round=1 code=%d", job.code);
        CHECK(t, fake_agent_heard(&job.agent, line));
        fake_job_release(&job);
    }
    BEGIN(t);
out:
    fake_job_release(&job);
}

static void a_reset_that_fails_ends_the_worker(struct test *t)
{
    static const struct fake_step script[] = { JOIN, SAY(&round_first), END };

    BEGIN(t);
    job.reset = -77;
    PLAY(t, script);
    CHECK_INT(t, job.code, ==, -77);
    CHECK_INT(t, job.trains, ==, 0);
    CHECK_TEXT(t, hvd_last_error(), "reset callback 1 of 1 returned -77");
    CHECK(t, fake_agent_heard(&job.agent, "reset callback 1 of 1"));
out:
    fake_job_release(&job);
}

/* ---- the agent dies -------------------------------------------------------------------------- */

static int play_until(struct fake_job *each, const struct fake_step *script, size_t close_at)
{
    int rc = fake_job_init(each);

    each->agent.close_at = close_at;
    each->wait_at = 4;
    return rc ? rc : fake_job_play(each, script);
}

static void an_agent_may_die_at_any_moment(struct test *t)
{
    size_t count = ARRAY_SIZE(switches) - 1;

    for (size_t i = 0; i < count; i++) {
        int rc = play_until(&job, switches, i);

        rc = rc ? rc : job.code;
        if (rc || i < count - 2) { /* in round 2 it may be through before it hears of that */
            CHECK_CODE(t, rc, HVD_E_LOST);
            CHECK(t, hvd_last_error()[0]);
        }
        fake_job_release(&job);
    }
    BEGIN(t);
out:
    fake_job_release(&job);
}

TESTS(CASE_FLAGS(trains_to_its_end, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(what_is_revoked_goes_back_to_the_commit, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(a_switch_loses_nothing, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(a_fresh_commit_gets_the_name_of_the_switch, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(an_abandoned_change_is_forgotten, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(a_switch_that_was_missed_gives_the_round_up, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(who_is_not_in_the_next_round_leaves, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(who_waits_for_a_round_may_be_told_to_go, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(who_is_of_no_more_use_says_so, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(the_last_word_is_heard, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(a_failure_of_train_is_said, TEST_NO_TORTURE),
      CASE_FLAGS(a_reset_that_fails_ends_the_worker, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(an_agent_may_die_at_any_moment, TEST_NO_TORTURE))
