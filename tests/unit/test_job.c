/* hvd_elastic_run in a job of one worker, with an agent that plays a script. */
#include "tests/lib/fake_job.h"
#include "tests/lib/fixture.h"
#include "worker/worker.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static struct fake_job job;

/* ---- without faults ---- */

static void end_case(struct test *t)
{
    (void)t;
    fake_job_release(&job);
}
FIXTURE(NULL, end_case)

TEST_FLAGS(trains_to_its_end, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), END);
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
}

TEST_FLAGS(a_revoked_round_goes_back_to_the_commit, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.wait_at = 4;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), DO(FAKE_HOLD), SAY(&revoke_first),
         HEAR(MSG_RECOVERING), SAY(&revoke_first), /* sent twice */
         SAY(&round_recovery), SAY(&round_recovery), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.trains, ==, 2);
    CHECK_INT(t, job.news, ==, 0);
    CHECK_INT(t, job.began_at[1], ==, 3);
    CHECK_INT(t, job.rounds[1], ==, 2);
    CHECK_INT(t, job.mine, ==, 105);
    CHECK(t, fake_agent_heard(&job.agent, "RECOVERING incarnation=7 round=1 held=2"));
    CHECK_INT(t, fake_agent_count(&job.agent, "RECOVERING"), ==, 1);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(2, 2)), ==, 5);
}

#define SWITCHES                                                                   \
    JOIN, SAY(&round_first), HEAR(MSG_ENTERED), DO(FAKE_HOLD), SAY(&prepare_next), \
        HEAR(MSG_PREPARED), SAY(&pending_next), HEAR(MSG_NEXT_CHECK),              \
        { FAKE_SWITCH_AT, 0, &switch_at_next, NULL }, SAY(&round_switch), HEAR(MSG_ENTERED), END

TEST_FLAGS(a_switch_loses_nothing, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.wait_at = 4;
    PLAY(t, SWITCHES);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.trains, ==, 2);
    CHECK_INT(t, job.began_at[1], ==, 4);
    CHECK_INT(t, job.rounds[1], ==, 2);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(2, 0)), ==, 4);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(2, 1)), ==, 5);
    CHECK(t, fake_agent_heard(&job.agent, "PREPARED incarnation=7 round=2\n"));
    CHECK(t, fake_agent_heard(&job.agent, "ENTERED incarnation=7 round=2 commit=8589934592"));
    CHECK(t, !fake_agent_heard(&job.agent, "RECOVERING"));
}

/* The program calls only hvd_state_commit: the commit that gets the switch's name was just made. */
TEST_FLAGS(a_fresh_commit_gets_the_name_of_the_switch, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.goal = INT64_MAX;
    job.trains_max = 2;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), SAY(&prepare_next), HEAR(MSG_PREPARED),
         SAY(&pending_next), HEAR(MSG_NEXT_CHECK), { FAKE_SWITCH_AT, 0, &switch_at_next, NULL },
         SAY(&round_switch), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.news, ==, HVD_HOSTS_UPDATED);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(2, 0)), ==, job.step);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(1, job.step)), ==, -1);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(1, job.step - 1)), ==, job.step - 1);
}

TEST_FLAGS(an_abandoned_change_is_forgotten, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.wait_after = 2;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), DO(FAKE_HOLD), SAY(&prepare_next),
         HEAR(MSG_PREPARED), SAY(&pending_next), HEAR(MSG_NEXT_CHECK), SAY(&abandon_next),
         SAY(&abandon_next), SAY(&revoke_first), HEAR(MSG_RECOVERING), DO(FAKE_CLOSE));
    CHECK_CODE(t, job.code, HVD_E_LOST);
    CHECK_INT(t, job.news, ==, HVD_E_REVOKED);
    CHECK_INT(t, job.trains, ==, 1);
    CHECK(t, !fake_agent_heard(&job.agent, "ENTERED incarnation=7 round=2"));
}

/* The other members leave at a check that this worker has already passed: it must give the round
 * up. */
TEST_FLAGS(a_switch_that_was_missed_gives_the_round_up, TEST_SURVIVES_ALLOC)
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

    BEGIN(t);
    job.wait_at = 4;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), DO(FAKE_HOLD), SAY(&prepare_next),
         HEAR(MSG_PREPARED), SAY(&pending_next), HEAR(MSG_NEXT_CHECK), SAY(&too_early),
         HEAR_OF(MSG_RECOVERING, "the agreed check"),
         SAY(&round_without), /* the worker was counted as dead */
         HEAR(MSG_LEFT), DO(FAKE_OVER));
    CHECK_CODE(t, job.code, HVD_LEFT);
    CHECK_INT(t, job.news, ==, HVD_E_REVOKED);
    CHECK_INT(t, job.trains, ==, 1);
}

/* ---- ends of the job ---- */

TEST_FLAGS(a_worker_outside_the_next_round_leaves, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.wait_at = 3;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), DO(FAKE_HOLD), SAY(&drain), /* news only */
         SAY(&prepare_without), SAY(&pending_next), HEAR(MSG_NEXT_CHECK),
         { FAKE_SWITCH_AT, 0, &switch_at_next, NULL }, HEAR(MSG_LEFT), DO(FAKE_OVER));
    CHECK_CODE(t, job.code, HVD_LEFT);
    CHECK_INT(t, job.news, ==, HVD_LEFT);
    CHECK_INT(t, job.trains, ==, 1);
    CHECK(t, !fake_agent_heard(&job.agent, "FINISHED"));
}

TEST_FLAGS(a_waiting_worker_may_be_told_to_leave, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    PLAY(t, JOIN, SAY(&drain), HEAR(MSG_LEFT), DO(FAKE_OVER));
    CHECK_CODE(t, job.code, HVD_LEFT);
    fake_job_release(&job);
    BEGIN(t);
    PLAY(t, JOIN, SAY(&done), DO(FAKE_OVER));
    CHECK_CODE(t, job.code, HVD_DONE);
    CHECK_INT(t, job.trains, ==, 0);
}

/* The training loop hangs; another thread finds this out, and reports the worker as unusable. */
static void *find_out(void *arg)
{
    worker_is_unusable(worker_get(), "device 0 does not end its kernel");
    worker_is_unusable(worker_get(), "nor now");
    return arg;
}

static int hang(struct fake_job *stuck)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, find_out, NULL))
        return HVD_E_INTERNAL;
    (void)fake_agent_await(&stuck->agent, "UNUSABLE");
    pthread_join(thread, NULL);
    return 0;
}

TEST_FLAGS(an_unusable_worker_says_so, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.first = hang;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_UNUSABLE), SAY(&revoke_first), DO(FAKE_OVER));
    CHECK_CODE(t, job.code, HVD_E_LOST);
    CHECK(t, fake_agent_heard(&job.agent,
                              "UNUSABLE incarnation=7 text=\"device 0 does not end its kernel\""));
    CHECK_INT(t, fake_agent_count(&job.agent, "UNUSABLE"), ==, 1);
    CHECK(t, !fake_agent_heard(&job.agent, "RECOVERING"));
}

/* The agent ends after its last message. The message counts, although the connection is closed when
 * the worker reads it. */
TEST_FLAGS(the_last_word_is_heard, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    PLAY(t, JOIN, SAY(&done), DO(FAKE_CLOSE));
    CHECK_CODE(t, job.code, HVD_DONE);
}

TEST_FLAGS(a_failure_of_train_is_said, TEST_NO_TORTURE)
{
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
        PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), END);
        CHECK_INT(t, job.code, ==, codes[i][1]);
        CHECK(t, hvd_last_error()[0]);
        snprintf(line, sizeof(line), "FINISHED incarnation=7 round=1 code=%d", job.code);
        CHECK(t, fake_agent_heard(&job.agent, line));
        fake_job_release(&job);
    }
    BEGIN(t);
}

TEST_FLAGS(a_reset_that_fails_ends_the_worker, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.reset = -77;
    PLAY(t, JOIN, SAY(&round_first), END);
    CHECK_INT(t, job.code, ==, -77);
    CHECK_INT(t, job.trains, ==, 0);
    CHECK_TEXT(t, hvd_last_error(),
               "reset callback 1 of 1 returned -77 instead of 0, so the worker cannot train on; "
               "let the callback return 0, or remove the cause of its error");
    CHECK(t, fake_agent_heard(&job.agent, "reset callback 1 of 1"));
}

static int fail_in_words(struct fake_job *failing)
{
    (void)failing;
    return hvd_fail("ValueError: bad\nweather") ? HVD_E_INTERNAL : -1000;
}

TEST_FLAGS(a_reason_in_words_is_said, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.each = fail_in_words;
    PLAY(t, JOIN, SAY(&round_first), END);
    CHECK_INT(t, job.code, ==, -1000);
    CHECK_TEXT(t, hvd_last_error(), "ValueError: bad weather");
    CHECK(t, fake_agent_heard(&job.agent, "code=-1000 text=\"ValueError: bad weather\""));
}

static int fail_behind(struct fake_job *failing)
{
    return failing->step == 3 ? hvd_fail("OSError: no space") : 0;
}

TEST_FLAGS(a_program_says_why_it_fails_after_its_training, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.goal = 4;
    job.each = fail_behind;
    PLAY(t, JOIN, SAY(&round_first), END);
    CHECK_INT(t, job.code, ==, 0);
    CHECK(t, fake_agent_heard(&job.agent, " text=\"OSError: no space\""));
}

static int revoke_once(struct fake_job *revoking)
{
    if (revoking->trains > 1 || revoking->step < 4)
        return 0;
    return hvd_revoke("bad weather") ? HVD_E_INTERNAL : hvd_barrier();
}

TEST_FLAGS(a_program_may_revoke_its_round, TEST_NO_TORTURE)
{
    BEGIN(t);
    job.each = revoke_once;
    PLAY(t, JOIN, SAY(&round_first), HEAR_OF(MSG_RECOVERING, "revoked the round: bad weather"),
         SAY(&round_recovery), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.trains, ==, 2);
    CHECK_INT(t, job.began_at[1], ==, 3);
}

/* The news of a switch come with PENDING, and end with the round. */
static int saw;

static int look_at_news(struct fake_job *looking)
{
    if (looking->step == 1 && looking->trains == 1) {
        fake_agent_go(&looking->agent);
        while (!(saw = hvd_news()))
            sched_yield();
    }
    return looking->trains > 1 && hvd_news() ? HVD_E_INTERNAL : 0;
}

TEST_FLAGS(news_of_a_switch_come_before_it, TEST_NO_TORTURE)
{
    BEGIN(t);
    saw = 0;
    job.goal = INT64_MAX;
    job.trains_max = 2;
    job.each = look_at_news;
    PLAY(t, JOIN, SAY(&round_first), DO(FAKE_HOLD), SAY(&prepare_next), HEAR(MSG_PREPARED),
         SAY(&pending_next), HEAR(MSG_NEXT_CHECK), { FAKE_SWITCH_AT, 0, &switch_at_next, NULL },
         SAY(&round_switch), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, saw, ==, HVD_HOSTS_UPDATED);
}

/* ---- hvd_elastic_next: each round in a thread of its own ---- */

TEST_FLAGS(a_loop_of_the_program_goes_back_to_the_commit, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.turned = true;
    job.wait_at = 4;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), DO(FAKE_HOLD), SAY(&revoke_first),
         HEAR(MSG_RECOVERING), SAY(&round_recovery), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.trains, ==, 2);
    CHECK_INT(t, job.began_at[1], ==, 3);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(2, 2)), ==, 5);
}

TEST_FLAGS(a_loop_of_the_program_switches, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.turned = true;
    job.wait_at = 4;
    PLAY(t, SWITCHES);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.began_at[1], ==, 4);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(2, 1)), ==, 5);
}

TEST_FLAGS(a_loop_of_the_program_leaves, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    job.turned = true;
    PLAY(t, JOIN, SAY(&drain), HEAR(MSG_LEFT), DO(FAKE_OVER));
    CHECK_CODE(t, job.code, HVD_LEFT);
    fake_job_release(&job);
    BEGIN(t);
    job.turned = true;
    job.reset = -77;
    PLAY(t, JOIN, SAY(&round_first), END);
    CHECK_INT(t, job.code, ==, -77);
    CHECK_HAS(t, job.why, "reset callback 1 of 1");
}

/* Calls that are not allowed change nothing, and the worker trains on. */
static int call_wrongly(struct fake_job *wrong)
{
    (void)wrong;
    return hvd_elastic_begin(wrong->state) == HVD_E_STATE &&
                   strstr(hvd_last_error(), "running already")
               ? 0
               : HVD_E_INTERNAL;
}

static int next_in_reset(hvd_state *state, void *arg)
{
    (void)arg;
    return hvd_elastic_next(state, 0) == HVD_E_BUSY ? 0 : HVD_E_INTERNAL;
}

static int add_reset(struct fake_job *ready)
{
    return hvd_state_on_reset(ready->state, next_in_reset, NULL);
}

TEST_FLAGS(wrong_calls_change_nothing, TEST_NO_TORTURE)
{
    BEGIN(t);
    job.turned = true;
    job.ready = add_reset;
    job.first = call_wrongly;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.trains, ==, 1);
}

/* The agent may die at any moment of such a loop too. */
TEST_FLAGS(a_loop_of_the_program_loses_its_agent, TEST_NO_TORTURE)
{
    static const struct fake_step switches[] = { SWITCHES };

    for (size_t i = 0; i < ARRAY_SIZE(switches) - 3; i++) {
        int rc = fake_job_init(&job);

        job.turned = true;
        job.agent.close_at = i;
        job.wait_at = 4;
        rc = rc ? rc : fake_job_play(&job, switches);
        CHECK_CODE(t, rc ? rc : job.code, HVD_E_LOST);
        fake_job_release(&job);
    }
    BEGIN(t);
}

/* ---- the agent dies -------------------------------------------------------------------------- */

static int play_until(struct fake_job *each, const struct fake_step *script, size_t close_at)
{
    int rc = fake_job_init(each);

    each->agent.close_at = close_at;
    each->wait_at = 4;
    return rc ? rc : fake_job_play(each, script);
}

TEST_FLAGS(an_agent_may_die_at_any_moment, TEST_NO_TORTURE)
{
    static const struct fake_step switches[] = { SWITCHES };
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
}
