/* Snapshots, fetches and warnings of a job of one worker, with an agent that plays a script. A
 * fetch brings a commit of another host into the worker's snapshot. */
#include "base/time.h"
#include "collectives/coll.h"
#include "os/clock.h"
#include "state/snapshot/copy.h"
#include "tests/lib/fake_job.h"
#include "tests/lib/fixture.h"
#include "tests/lib/loopback.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct fake_job job;

/* ---- the snapshot ---------------------------------------------------------------------------- */

static struct snapshot *elsewhere; /* the snapshot of another host */
static struct snapshot *left;      /* the snapshot of the former worker */
static struct coll_engine *engine;

static void end_case(struct test *t)
{
    (void)t;
    snapshot_free(elsewhere);
    elsewhere = NULL;
    snapshot_free(left);
    left = NULL;
    coll_engine_close(engine);
    engine = NULL;
    fake_job_release(&job);
}
FIXTURE(NULL, end_case)

TEST_FLAGS(a_snapshot_that_is_not_granted, TEST_SURVIVES_ALLOC)
{
    static const struct msg no = {
        .type = MSG_GRANTED,
        .incarnation = FAKE_INCARNATION,
        .u.granted = {HVD_E_NOMEM, "the machine has 3 MiB left; run fewer workers here"}
    };

    BEGIN(t);
    PLAY(t, HELLO, SAY(&no), DO(FAKE_OVER));
    CHECK_CODE(t, job.code, HVD_E_NOMEM);
    CHECK_HAS(t, hvd_last_error(), "run fewer workers here");
    fake_job_release(&job);
    BEGIN(t);
    PLAY(t, HELLO, DO(FAKE_BARE_GRANT), DO(FAKE_OVER));
    CHECK_CODE(t, job.code, HVD_E_PROTO);
    CHECK_HAS(t, hvd_last_error(), "sent no descriptor with the message");
}

TEST_FLAGS(a_snapshot_granted_to_another_worker_is_not_used, TEST_SURVIVES_ALLOC)
{
    static const struct msg foreign = {
        .type = MSG_GRANTED,
        .incarnation = FAKE_INCARNATION + 1,
        .u.granted = {HVD_E_NOMEM, "not yours"}
    };
    static const struct msg revoke_foreign = { .type = MSG_REVOKE,
                                               .term = 1,
                                               .round = 1,
                                               .incarnation = FAKE_INCARNATION + 1,
                                               .u.revoke = { .reason = "not yours" } };

    BEGIN(t);
    job.wait_at = 4;
    PLAY(t, HELLO, SAY(&foreign), DO(FAKE_GRANT), DO(FAKE_GRANT), /* twice */
         HEAR(MSG_READY), SAY(&round_first), HEAR(MSG_ENTERED), DO(FAKE_HOLD), SAY(&revoke_foreign),
         SAY(&revoke_first), HEAR(MSG_RECOVERING), SAY(&round_recovery), END);
    CHECK_OK(t, job.code);
    CHECK(t, fake_agent_heard(&job.agent, "RECOVERING incarnation=7 round=1 held=2\n"));
}

/* The successor is another process in the same slot; its snapshot has the commits of the former
 * worker. */
TEST_FLAGS(a_successor_finds_what_was_committed, TEST_SURVIVES_ALLOC)
{
    static const uint64_t self = FAKE_INCARNATION;
    static const struct msg_member members[] = {
        {.incarnation = FAKE_INCARNATION, .host = "a"}
    };
    static const struct msg later = {
        .type = MSG_ROUND,
        .term = 1,
        .round = 3,
        .u.round = {.cause = CAUSE_RECOVERY,
                    .previous = 1,
                    .commit = COMMIT(1, 4), /* no other worker has made 1.5 */
                     .holders = { &self, 1 },
                    .members = { members, 1 }}
    };

    BEGIN(t);
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    left = job.agent.snapshot;
    job.agent.snapshot = NULL;
    fake_job_release(&job);
    BEGIN(t);
    job.agent.snapshot = left;
    left = NULL;
    job.goal = 6;
    PLAY(t, JOIN, SAY(&later), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK(t, fake_agent_heard(&job.agent, "held=2"));
    CHECK_INT(t, job.began_at[0], ==, 4);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(3, 2)), ==, 6);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(1, 5)), ==, -1);
}

/* ---- fetches --------------------------------------------------------------------------------- */

static const struct msg_member only_self[] = {
    {.incarnation = FAKE_INCARNATION, .host = "a"}
};
static const struct msg_source kept[] = {
    {.host = "b", .slot = 1}
};

#define FROM_AGENTS(number)                                         \
    {                                                               \
        .type = MSG_ROUND, .term = 1, .round = number, .u.round = { \
            .cause = CAUSE_RECOVERY,                                \
            .previous = 1,                                          \
            .commit = COMMIT(5, 2),                                 \
            .members = {only_self, 1},                            \
            .sources = { kept,     1}                                  \
        }                                                           \
    }

static const struct msg round_far = FROM_AGENTS(6);
static const struct msg round_far_again = FROM_AGENTS(7);
static const struct msg revoke_far = {
    .type = MSG_REVOKE, .term = 1, .round = 6, .u.revoke = { .reason = "a worker has died" }
};

/* Makes commit 5.2 (step 40), which agents of other hosts keep. */
static int keep_elsewhere(struct snapshot **ret_snapshot)
{
    int64_t step = 40;
    int64_t mine = 1;
    struct manifest manifest;
    struct copy_part parts[] = { { .at = &step }, { .at = &mine } };
    struct copy copy = { .manifest = &manifest, .parts = parts, .which = COPY_ALL };
    struct hvd_err err;
    int rc;

    manifest_init(&manifest);
    rc = manifest_add(&manifest, "step", sizeof(step), ENTRY_REPLICATED, false, &err);
    if (!rc)
        rc = manifest_add(&manifest, "mine", sizeof(mine), ENTRY_PER_RANK, false, &err);
    if (!rc) {
        manifest_seal(&manifest);
        rc = snapshot_create(
            &(struct snapshot_shape){ manifest.digest, manifest.replicated_bytes, manifest.bytes },
            ret_snapshot, &err);
    }
    if (!rc)
        rc = copy_commit(*ret_snapshot, &copy, &err);
    if (!rc)
        snapshot_end(*ret_snapshot, COMMIT(5, 2));
    manifest_release(&manifest);
    return rc;
}

/* The round begins from commit 5.2 of another host. Answers for another fetch and for another
 * worker are ignored. */
TEST_FLAGS(a_commit_of_another_host_is_fetched, TEST_SURVIVES_ALLOC)
{
    static const struct msg stale = {
        .type = MSG_FETCHED,
        .incarnation = FAKE_INCARNATION,
        .u.fetched = {.number = 99, .commit = 1, .text = ""}
    };
    static const struct msg foreign = {
        .type = MSG_FETCHED,
        .incarnation = FAKE_INCARNATION + 1,
        .u.fetched = {.number = 1, .commit = 1, .text = ""}
    };

    BEGIN(t);
    CHECK_OK(t, keep_elsewhere(&elsewhere));
    job.agent.source = elsewhere;
    job.mine = 3;
    job.goal = 41;
    PLAY(t, JOIN, SAY(&round_far), HEAR(MSG_FETCH), SAY(&stale), SAY(&foreign), DO(FAKE_FETCHED),
         DO(FAKE_FETCHED), /* twice */
         HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.began_at[0], ==, 40);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(5, 2)), ==, 40);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(6, 1)), ==, 41);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static const char *const checkpoint_address[] = { "checkpoint=/ckpt/commit-5.2" };
static const struct msg_source checkpoint[] = {
    {.host = "", .addresses = { checkpoint_address, 1 }}
};
static const struct msg round_of_checkpoint = {
    .type = MSG_ROUND,
    .term = 1,
    .round = 6,
    .u.round = {.cause = CAUSE_FIRST,
                .commit = COMMIT(5, 2),
                .members = { only_self, 1 },
                .sources = { checkpoint, 1 }}
};

static int64_t mine_at_first; /* the value of the per-rank entry when train begins */

static int look_at_mine(struct fake_job *training)
{
    mine_at_first = training->mine;
    return 0;
}

/* The agent reads the checkpoint by the names of the entries, and may have those of this rank. */
TEST_FLAGS(a_checkpoint_is_fetched_with_the_entries_of_the_rank, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    CHECK_OK(t, keep_elsewhere(&elsewhere));
    job.agent.source = elsewhere;
    job.agent.per_rank = true;
    job.mine = 3;
    job.goal = 41;
    job.first = look_at_mine;
    PLAY(t, JOIN, SAY(&round_of_checkpoint), HEAR_OF(MSG_FETCH, " sources=1 entries=2 size=1"),
         DO(FAKE_FETCHED), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.began_at[0], ==, 40);
    CHECK_INT(t, mine_at_first, ==, 1);
    CHECK_INT(t, fake_job_step_of(&job, COMMIT(5, 2)), ==, 40);
    CHECK_INT(t, fake_agent_count(&job.agent, "REMARK"), ==, 0);
}

TEST_FLAGS(a_checkpoint_of_other_ranks_has_no_entries_of_this_rank, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    CHECK_OK(t, keep_elsewhere(&elsewhere));
    job.agent.source = elsewhere;
    job.agent.fetched_text = "4 ranks, not 1";
    job.mine = 3;
    job.goal = 41;
    job.first = look_at_mine;
    PLAY(t, JOIN, SAY(&round_of_checkpoint), HEAR(MSG_FETCH), DO(FAKE_FETCHED), HEAR(MSG_REMARK),
         HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.began_at[0], ==, 40);
    CHECK_INT(t, mine_at_first, ==, 3);
    CHECK(t, fake_agent_heard(&job.agent, "4 ranks, not 1; per-rank entri"));
}

/* The driver finds another checkpoint when this one is damaged. A worker that may not read it has
 * failed itself. */
TEST_FLAGS(a_checkpoint_that_cannot_be_read_is_named, TEST_SURVIVES_ALLOC)
{
    static const struct msg damaged = {
        .type = MSG_FETCHED,
        .incarnation = FAKE_INCARNATION,
        .u.fetched = {.number = 1,
                      .commit = COMMIT(5, 2),
                      .code = HVD_E_CORRUPT,
                      .text = "/ckpt/commit-5.2/a: damaged"}
    };
    static const struct msg denied = {
        .type = MSG_FETCHED,
        .incarnation = FAKE_INCARNATION,
        .u.fetched = {.number = 2,
                      .commit = COMMIT(5, 2),
                      .code = HVD_E_DENIED,
                      .text = "/ckpt: permission denied"}
    };
    static const struct msg next = {
        .type = MSG_ROUND,
        .term = 1,
        .round = 7,
        .u.round = {.cause = CAUSE_RECOVERY,
                    .previous = 6,
                    .commit = COMMIT(5, 2),
                    .members = { only_self, 1 },
                    .sources = { checkpoint, 1 }}
    };

    BEGIN(t);
    PLAY(t, JOIN, SAY(&round_of_checkpoint), HEAR(MSG_FETCH), SAY(&damaged), HEAR(MSG_RECOVERING),
         SAY(&revoke_far), SAY(&next), HEAR(MSG_FETCH), SAY(&denied), END);
    CHECK(t, fake_agent_heard(&job.agent, "text=\"/ckpt/commit-5.2/a: damaged\" code=-11"));
    CHECK_CODE(t, job.code, HVD_E_DENIED);
    CHECK_HAS(t, hvd_last_error(), "/ckpt: permission denied");
    CHECK_INT(t, job.trains, ==, 0);
}

/* ---- fetches that fail ----------------------------------------------------------------------- */

/* The fetch fails; another round may find the commit elsewhere. */
TEST_FLAGS(a_failed_fetch_gives_the_round_up, TEST_SURVIVES_ALLOC)
{
    static const struct msg no = {
        .type = MSG_FETCHED,
        .incarnation = FAKE_INCARNATION,
        .u.fetched = {.number = 1,
                      .commit = COMMIT(5, 2),
                      .code = HVD_E_LOST,
                      .text = "b is gone"}
    };

    BEGIN(t);
    CHECK_OK(t, keep_elsewhere(&elsewhere));
    job.agent.source = elsewhere;
    job.goal = 41;
    PLAY(t, JOIN, SAY(&round_far), HEAR(MSG_FETCH), SAY(&no), HEAR(MSG_RECOVERING),
         SAY(&revoke_far), SAY(&round_far_again), HEAR(MSG_FETCH), DO(FAKE_FETCHED),
         HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK(t, fake_agent_heard(&job.agent, "b is gone"));
    CHECK_INT(t, job.rounds[0], ==, 7);
    CHECK_INT(t, job.trains, ==, 1);
}

/* The worker was to make the commit of the switch, but its round before failed, and no member has
 * the commit: the worker says which round failed, and blames no member. */
TEST_FLAGS(a_switch_whose_commit_was_not_made_is_given_up, TEST_SURVIVES_ALLOC)
{
    static const uint64_t self[] = { FAKE_INCARNATION };
    static const struct msg unmade = {
        .type = MSG_ROUND,
        .term = 1,
        .round = 6,
        .u.round = {.cause = CAUSE_SWITCH,
                    .previous = 5,
                    .commit = COMMIT(6, 0),
                    .members = { only_self, 1 },
                    .holders = { self, 1 }}
    };

    BEGIN(t);
    CHECK_OK(t, keep_elsewhere(&elsewhere));
    job.agent.source = elsewhere;
    job.goal = 41;
    PLAY(t, JOIN, SAY(&unmade), HEAR(MSG_RECOVERING), SAY(&revoke_far), SAY(&round_far_again),
         HEAR(MSG_FETCH), DO(FAKE_FETCHED), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK(t, fake_agent_heard(&job.agent, "round 5 failed in its last step"));
    CHECK_INT(t, job.trains, ==, 1);
}

/* The round is revoked during the fetch: the worker ends the fetch with an empty one, and fetches
 * again for the next round. */
TEST_FLAGS(a_fetch_for_a_dead_round_is_ended_first, TEST_SURVIVES_ALLOC)
{
    static const struct msg no = {
        .type = MSG_FETCHED,
        .incarnation = FAKE_INCARNATION,
        .u.fetched = {.number = 1, .commit = COMMIT(5, 2), .code = HVD_E_REVOKED, .text = "ended"}
    };
    static const struct msg ended = {
        .type = MSG_FETCHED,
        .incarnation = FAKE_INCARNATION,
        .u.fetched = {.number = 2, .text = ""}
    };

    BEGIN(t);
    CHECK_OK(t, keep_elsewhere(&elsewhere));
    job.agent.source = elsewhere;
    job.goal = 41;
    PLAY(t, JOIN, SAY(&round_far), HEAR(MSG_FETCH), SAY(&revoke_far),
         HEAR(MSG_FETCH), /* of nothing */
         SAY(&no), SAY(&ended), HEAR(MSG_RECOVERING), SAY(&round_far_again), HEAR(MSG_FETCH),
         DO(FAKE_FETCHED), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK(t, fake_agent_heard(&job.agent, "FETCH incarnation=7 number=2\n"));
    CHECK_INT(t, job.rounds[0], ==, 7);
}

/* The agent reports the whole commit, but a part is missing: the worker does not train. */
TEST_FLAGS(a_fetch_that_lies_is_found_out, TEST_SURVIVES_ALLOC)
{
    static const struct msg lie = {
        .type = MSG_FETCHED,
        .incarnation = FAKE_INCARNATION,
        .u.fetched = {.number = 1, .commit = COMMIT(5, 2), .text = ""}
    };

    BEGIN(t);
    PLAY(t, JOIN, SAY(&round_far), HEAR(MSG_FETCH), SAY(&lie), END);
    CHECK_CODE(t, job.code, HVD_E_CORRUPT);
    CHECK_INT(t, job.trains, ==, 0);
    CHECK_HAS(t, hvd_last_error(), "step");
    CHECK_INT(t, snapshot_newest(job.agent.snapshot), ==, 0);
}

TEST_FLAGS(an_agent_may_die_during_a_fetch, TEST_SURVIVES_ALLOC)
{
    BEGIN(t);
    PLAY(t, JOIN, SAY(&round_far), HEAR(MSG_FETCH), DO(FAKE_CLOSE));
    CHECK_CODE(t, job.code, HVD_E_LOST);
    fake_job_release(&job);
    BEGIN(t);
    PLAY(t, JOIN, SAY(&round_far), HEAR(MSG_FETCH), SAY(&revoke_far), HEAR(MSG_FETCH),
         DO(FAKE_CLOSE));
    CHECK_CODE(t, job.code, HVD_E_LOST);
    CHECK_INT(t, job.trains, ==, 0);
}

/* ---- a round that makes no progress ---- */

#define SOON_US 20000

TEST_FLAGS(a_step_that_hangs_is_said, TEST_NO_TORTURE)
{
    BEGIN(t);
    job.agent.welcome.stall_warning_us = SOON_US;
    job.await = "operation=\"step\"";
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_STALLED), END);
    CHECK_OK(t, job.code);
    CHECK(t, fake_agent_heard(&job.agent, "operation=\"step\" missing=7\n"));
}

TEST_FLAGS(a_reset_callback_that_hangs_is_said, TEST_NO_TORTURE)
{
    BEGIN(t);
    job.agent.welcome.stall_warning_us = SOON_US;
    job.reset_await = "operation=\"reset callback\"";
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_STALLED), END);
    CHECK_OK(t, job.code);
    CHECK(t, fake_agent_heard(&job.agent, "operation=\"reset callback\" missing=7\n"));
}

TEST_FLAGS(a_worker_that_waits_says_so, TEST_NO_TORTURE)
{
    BEGIN(t);
    CHECK_OK(t, keep_elsewhere(&elsewhere));
    job.agent.source = elsewhere;
    job.agent.welcome.stall_warning_us = SOON_US;
    job.goal = 41;
    PLAY(t, JOIN, SAY(&round_far), HEAR(MSG_FETCH), HEAR_OF(MSG_STALLED, "state"),
         HEAR_OF(MSG_STALLED, "state"), DO(FAKE_FETCHED), HEAR(MSG_ENTERED), END);
    CHECK_OK(t, job.code);
    CHECK(t, fake_agent_heard(&job.agent, "operation=\"state\"\n"));
}

TEST_FLAGS(a_check_that_waits_is_said, TEST_NO_TORTURE)
{
    BEGIN(t);
    job.agent.welcome.stall_warning_us = SOON_US;
    job.wait_at = 2;
    PLAY(t, JOIN, SAY(&round_first), HEAR(MSG_ENTERED), DO(FAKE_HOLD), SAY(&prepare_next),
         HEAR(MSG_PREPARED), SAY(&pending_next), HEAR(MSG_NEXT_CHECK),
         HEAR_OF(MSG_STALLED, "check"), { FAKE_SWITCH_AT, 0, &switch_at_next, NULL },
         SAY(&round_switch), END);
    CHECK_OK(t, job.code);
    CHECK(t, fake_agent_heard(&job.agent, "operation=\"check\""));
}

/* Returns the waiting time in the first STALLED message of a round; -1: there is none. */
static int64_t waited_us(const struct fake_agent *agent, uint64_t round)
{
    char text[TIME_TEXT_MAX];
    int64_t us = -1;
    const char *at;

    snprintf(text, sizeof(text), " round=%" PRIu64 " ", round);
    at = strstr(agent->heard, "STALLED ");
    while (at && strncmp(at + strcspn(at + 8, " ") + 8, text, strlen(text)) != 0)
        at = strstr(at + 1, "STALLED ");
    at = at ? strstr(at, "waited=") : NULL;
    if (!at)
        return -1;
    at += strlen("waited=");
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, " "), at);
    return time_parse(text, &us, NULL) ? -1 : us;
}

/* the address of a peer that exists but never connects */
static char contact[256];
static const char *const addresses[] = { contact };
static const struct msg_member job_and_peer[] = {
    {.incarnation = FAKE_INCARNATION, .host = "a"                  },
    { .incarnation = FAKE_INCARNATION + 1,                    .host = "b", .addresses = { addresses, 1 } }
};
static const uint64_t self = FAKE_INCARNATION;
static const struct msg first_of_two = {
    .type = MSG_ROUND,
    .term = 1,
    .round = 1,
    .u.round = {.cause = CAUSE_FIRST,
                .commit = COMMIT(1, 0),
                .holders = { &self, 1 },
                .members = { job_and_peer, 2 },
                .secret = FAKE_SECRET}
};

/* The warning names the member that does not come. The watchdog may look for the first time during
 * the wait. */
static void check_who_does_not_come(struct test *t, int64_t warning_us)
{
    int64_t begun_us = clock_now_us();
    struct hvd_err err;

    BEGIN(t);
    CHECK_OK(t, coll_engine_open(&(struct coll_options){ .host = loopback_own() }, &engine, &err));
    snprintf(contact, sizeof(contact), "data=%s", coll_engine_contact(engine));
    job.agent.welcome.stall_warning_us = warning_us;
    PLAY(t, JOIN, SAY(&first_of_two), HEAR_OF(MSG_STALLED, "missing=8"), SAY(&revoke_first),
         HEAR(MSG_RECOVERING), SAY(&done), DO(FAKE_OVER));
    CHECK_CODE(t, job.code, HVD_DONE);
    CHECK_INT(t, job.trains, ==, 0);
    CHECK(t, fake_agent_heard(&job.agent, "operation=\"connect\" missing=8\n"));
    CHECK_INT(t, waited_us(&job.agent, 1), >=, warning_us);
    CHECK_INT(t, waited_us(&job.agent, 1), <=, clock_now_us() - begun_us);
}

TEST_FLAGS(a_peer_that_does_not_come_is_named, TEST_NO_TORTURE)
{
    check_who_does_not_come(t, SOON_US);
}

TEST_FLAGS(an_awaited_peer_is_not_blamed_at_the_first_look, TEST_NO_TORTURE)
{
    check_who_does_not_come(t, 20 * SOON_US);
}

/* Two rounds in a row stop at the same point. The time in the second round's report counts from the
 * beginning of that round: both times together are no longer than the time that has passed. */
TEST_FLAGS(a_new_round_has_not_waited_yet, TEST_NO_TORTURE)
{
    static const struct msg second = {
        .type = MSG_ROUND,
        .term = 1,
        .round = 2,
        .u.round = {.cause = CAUSE_RECOVERY,
                    .previous = 1,
                    .commit = COMMIT(1, 0),
                    .holders = { &self, 1 },
                    .members = { job_and_peer, 2 },
                    .secret = FAKE_SECRET}
    };
    static const struct msg revoke_second = {
        .type = MSG_REVOKE, .term = 1, .round = 2, .u.revoke = { .reason = "a worker has died" }
    };
    int64_t begun_us = clock_now_us();
    int64_t waits_us[2];
    struct hvd_err err;

    BEGIN(t);
    CHECK_OK(t, coll_engine_open(&(struct coll_options){ .host = loopback_own() }, &engine, &err));
    snprintf(contact, sizeof(contact), "data=%s", coll_engine_contact(engine));
    job.agent.welcome.stall_warning_us = 20 * SOON_US;
    PLAY(t, JOIN, SAY(&first_of_two), HEAR_OF(MSG_STALLED, "round=1"), SAY(&revoke_first),
         HEAR(MSG_RECOVERING), SAY(&second), HEAR_OF(MSG_STALLED, "round=2"), SAY(&revoke_second),
         HEAR(MSG_RECOVERING), SAY(&done), DO(FAKE_OVER));
    CHECK_CODE(t, job.code, HVD_DONE);
    for (uint64_t round = 1; round <= 2; round++)
        waits_us[round - 1] = waited_us(&job.agent, round);
    CHECK_INT(t, waits_us[0], >=, 20 * SOON_US);
    CHECK_INT(t, waits_us[1], >=, 20 * SOON_US);
    CHECK_INT(t, waits_us[0] + waits_us[1], <=, clock_now_us() - begun_us);
}
