/* A worker in a round of two members. Its peer is a thread of the test, with its own
 * collectives. */
#include "collectives/coll.h"
#include "os/thread.h"
#include "tests/lib/fake_job.h"
#include "tests/lib/fixture.h"
#include "tests/lib/loopback.h"

#include <stdio.h>
#include <string.h>

#define PEER            (FAKE_INCARNATION + 1)
#define LONG_US         (100 * INT64_C(1000000))
#define SOON_US         20000

#define ALLREDUCE_WAITS HEAR_OF(MSG_STALLED, "operation=\"allreduce (number")
/* The barrier of the first commit is operation 1. A slow peer may be awaited in each operation. */
#define THIRD_ALLREDUCE_WAITS HEAR_OF(MSG_STALLED, "operation=\"allreduce (number 4)")

static struct fake_job job;

static struct peer {
    struct coll_engine *engine;
    pthread_mutex_t lock; /* protects coll, which the test may cancel */
    struct coll *coll;
    char contact[256];
    const char *await; /* the peer takes part in an allreduce after the worker has sent this */
    const struct coll_ranks *parts; /* the groups of the round */
    size_t part_count;
    unsigned allreduces;
    bool dies;
    pthread_t thread;
    bool started;
    int rc;
    struct hvd_err err;
} peer;

static const uint64_t holder = FAKE_INCARNATION;
static const char *const contact_of_job[] = { job.agent.contact };
static const char *const contact_of_peer[] = { peer.contact };
static const struct msg_member both[] = {
    {.incarnation = FAKE_INCARNATION, .host = "a", .addresses = { contact_of_job, 1 } },
    { .incarnation = PEER,            .host = "b", .addresses = { contact_of_peer, 1 }}
};
static const struct msg round_of_two = {
    .type = MSG_ROUND,
    .term = 1,
    .round = 1,
    .u.round = {.cause = CAUSE_FIRST,
                .commit = COMMIT(1, 0),
                .holders = { &holder, 1 },
                .members = { both, 2 },
                .secret = FAKE_SECRET}
};
static const struct msg round_alone = {
    .type = MSG_ROUND,
    .term = 1,
    .round = 2,
    .u.round = {.cause = CAUSE_RECOVERY,
                .previous = 1,
                .commit = COMMIT(1, 2),
                .holders = { &holder, 1 },
                .members = { both, 1 }}
};

/* ---- the peer -------------------------------------------------------------------------------- */

/* The peer's part: connects, waits for the first commit and for peer.await, and makes its
 * allreduces. */
static int take_part(void)
{
    const struct coll_peer peers[] = {
        {.incarnation = FAKE_INCARNATION,
         .host = "a",
         .contact = job.agent.contact + strlen("data=")                                         },
        { .incarnation = PEER,            .host = "b", .contact = peer.contact + strlen("data=")}
    };
    const struct coll_roster roster = { .round = 1,
                                        .rank = 1,
                                        .size = 2,
                                        .peers = peers,
                                        .secret = round_of_two.u.round.secret.at,
                                        .secret_length = LIMIT_ROUND_SECRET_BYTES,
                                        .groups = peer.parts,
                                        .group_count = peer.part_count };
    const struct coll_call barrier = { .kind = COLL_BARRIER };
    int64_t one = 1;
    int64_t sum;
    const struct coll_call add = {
        .kind = COLL_ALLREDUCE, .in = &one, .out = &sum, .count = 1, .type = HVD_INT64
    };
    int rc;

    pthread_mutex_lock(&peer.lock);
    rc = coll_create(peer.engine, &roster, &peer.coll, &peer.err);
    pthread_mutex_unlock(&peer.lock);
    if (!rc)
        rc = coll_connect(peer.coll, LONG_US, &peer.err);
    if (!rc)
        rc = coll_run(peer.coll, &barrier, &peer.err); /* the worker has made the first commit */
    if (!rc && peer.await && !fake_agent_await(&job.agent, peer.await))
        rc = HVD_E_TIMEOUT;
    for (unsigned i = 0; i < peer.allreduces && !rc; i++)
        rc = coll_run(peer.coll, &add, &peer.err);
    return rc;
}

static void *be_peer(void *arg)
{
    (void)arg;
    if (!fake_agent_await(&job.agent, "READY"))
        return NULL;
    peer.rc = take_part();
    pthread_mutex_lock(&peer.lock);
    if (!peer.rc && peer.dies) {
        coll_free(peer.coll);
        peer.coll = NULL;
    }
    pthread_mutex_unlock(&peer.lock);
    return NULL;
}

static int pair_init(void)
{
    int rc = fake_job_init(&job);

    memset(&peer, 0, sizeof(peer));
    pthread_mutex_init(&peer.lock, NULL);
    job.goal = 6;
    peer.allreduces = 3;
    if (!rc)
        rc = coll_engine_open(&(struct coll_options){ .host = loopback_own() }, &peer.engine,
                              &peer.err);
    if (!rc)
        snprintf(peer.contact, sizeof(peer.contact), "data=%s", coll_engine_contact(peer.engine));
    return rc;
}

static int start_peer(void)
{
    int rc = thread_start(&peer.thread, 0, be_peer, NULL);

    peer.started = !rc;
    return rc;
}

/* ---- the cases ------------------------------------------------------------------------------- */

static void begin_case(struct test *t)
{
    CHECK_OK(t, pair_init());
}

static void end_case(struct test *t)
{
    (void)t;
    fake_agent_stop(&job.agent);
    if (peer.started) {
        pthread_mutex_lock(&peer.lock);
        if (peer.coll)
            coll_cancel(peer.coll);
        pthread_mutex_unlock(&peer.lock);
        pthread_join(peer.thread, NULL);
    }
    coll_free(peer.coll);
    coll_engine_close(peer.engine);
    pthread_mutex_destroy(&peer.lock);
    fake_job_release(&job);
}
FIXTURE(begin_case, end_case)

TEST_FLAGS(an_awaited_peer_is_named, TEST_NO_TORTURE)
{
    job.agent.welcome.stall_warning_us = SOON_US;
    peer.await = "operation=\"allreduce (number";
    CHECK_OK(t, start_peer());
    PLAY(t, JOIN, SAY(&round_of_two), ALLREDUCE_WAITS, END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.step, ==, 6);
    CHECK_INT(t, job.size, ==, 2);
    CHECK(t, fake_agent_heard(&job.agent, "operation=\"allreduce (number "));
    CHECK(t, fake_agent_heard(&job.agent, ")\" missing=8\n"));
}

TEST_FLAGS(a_peer_that_dies_is_named, TEST_NO_TORTURE)
{
    peer.allreduces = 2;
    peer.dies = true;
    CHECK_OK(t, start_peer());
    PLAY(t, JOIN, SAY(&round_of_two), HEAR(MSG_RECOVERING), SAY(&revoke_first), SAY(&round_alone),
         END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.trains, ==, 2);
    CHECK_INT(t, job.began_at[1], ==, 4);
    CHECK_INT(t, job.size, ==, 1);
    CHECK(t, fake_agent_heard(&job.agent, "RECOVERING incarnation=7 round=1 held=2 text=\""));
    CHECK(t, fake_agent_heard(&job.agent, "rank 1"));
}

/* The peer is silent, and the driver has found that it is dead. */
TEST_FLAGS(a_collective_ends_when_its_round_is_revoked, TEST_NO_TORTURE)
{
    job.agent.welcome.stall_warning_us = SOON_US;
    peer.allreduces = 2;
    CHECK_OK(t, start_peer());
    PLAY(t, JOIN, SAY(&round_of_two), HEAR(MSG_ENTERED), THIRD_ALLREDUCE_WAITS, SAY(&revoke_first),
         HEAR(MSG_RECOVERING), SAY(&round_alone), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.began_at[1], ==, 4);
    CHECK(t, fake_agent_heard(&job.agent, "RECOVERING incarnation=7 round=1 held=2\n"));
}

TEST_FLAGS(an_agent_that_dies_ends_a_collective, TEST_NO_TORTURE)
{
    job.agent.welcome.stall_warning_us = SOON_US;
    peer.allreduces = 2;
    CHECK_OK(t, start_peer());
    PLAY(t, JOIN, SAY(&round_of_two), THIRD_ALLREDUCE_WAITS, DO(FAKE_CLOSE));
    CHECK_CODE(t, job.code, HVD_E_LOST);
    CHECK_INT(t, job.trains, ==, 1);
}

/* ---- requests and groups --------------------------------------------------------------------- */

static hvd_request *requests[3];
static hvd_group *groups[2];
static float numbers[2][4];
static int codes[3];
static int places[2][4]; /* rank and size in both groups, at each train */

static int by_host(const hvd_place *place, void *arg)
{
    (void)arg;
    return place->cross_rank;
}

static int make_groups(struct fake_job *each)
{
    const int ranks[] = { 1, 0 };
    int rc = hvd_group_rank(NULL) == HVD_E_STATE ? 0 : HVD_E_INTERNAL;

    (void)each;
    if (!rc)
        rc = hvd_group_create(by_host, NULL, &groups[0]);
    return rc ? rc : hvd_group_create_of(ranks, 2, &groups[1]);
}

/* Starts calls in which the peer takes no part. In the next round the requests still exist. */
static int start_or_await(struct fake_job *each)
{
    const hvd_call call = {
        .kind = HVD_ALLREDUCE, .in = numbers[0], .out = numbers[1], .count = 4, .type = HVD_FLOAT32
    };
    int rc = 0;

    if (each->trains > 1) {
        for (size_t i = 0; i < 3; i++)
            codes[i] = hvd_wait(requests[2 - i]);
        return 0;
    }
    for (size_t i = 0; i < 3 && !rc; i++)
        rc = hvd_start(&call, &requests[i]);
    while (!rc)
        rc = hvd_state_check(each->state);
    return rc;
}

/* The peer makes allreduces of one number in the group of all; this worker's calls are equal. */
static int use_groups(struct fake_job *each)
{
    int64_t number = 5;
    const hvd_call call = { .kind = HVD_ALLREDUCE,
                            .group = groups[0],
                            .in = &number,
                            .out = &number,
                            .count = 1,
                            .type = HVD_INT64 };
    int *seen = places[each->trains - 1];
    hvd_request *request;
    int rc = hvd_run(&call);

    if (!rc)
        rc = hvd_start(&call, &request);
    if (!rc)
        rc = hvd_wait(request);
    seen[0] = hvd_group_rank(groups[0]);
    seen[1] = hvd_group_size(groups[0]);
    seen[2] = hvd_group_rank(groups[1]);
    seen[3] = hvd_group_size(groups[1]);
    return rc ? rc : number == 5 ? 0 : HVD_E_INTERNAL;
}

TEST_FLAGS(requests_outlive_their_round, TEST_NO_TORTURE)
{
    static const struct msg round_again = {
        .type = MSG_ROUND,
        .term = 1,
        .round = 2,
        .u.round = {.cause = CAUSE_RECOVERY,
                    .previous = 1,
                    .commit = COMMIT(1, 0),
                    .secret = FAKE_SECRET,
                    .holders = { &holder, 1 },
                    .members = { both, 1 }}
    };

    job.agent.welcome.stall_warning_us = SOON_US;
    job.first = start_or_await;
    peer.allreduces = 0;
    CHECK_OK(t, start_peer());
    PLAY(t, JOIN, SAY(&round_of_two), HEAR(MSG_ENTERED), ALLREDUCE_WAITS, SAY(&revoke_first),
         HEAR(MSG_RECOVERING), SAY(&round_again), END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.trains, ==, 2);
    for (size_t i = 0; i < 3; i++)
        CHECK_CODE(t, codes[i], HVD_E_REVOKED);
}

TEST_FLAGS(groups_are_those_of_each_round, TEST_NO_TORTURE)
{
    static const uint32_t own[] = { 0 };
    static const uint32_t other[] = { 1 };
    static const uint32_t all[] = { 0, 1 };
    static const struct coll_ranks parts[] = {
        {own,    1},
        { other, 1},
        { all,   2}
    };

    job.ready = make_groups;
    job.first = use_groups;
    peer.parts = parts;
    peer.part_count = 3;
    peer.allreduces = 2;
    peer.dies = true;
    CHECK_OK(t, start_peer());
    PLAY(t, JOIN, SAY(&round_of_two), HEAR(MSG_RECOVERING), SAY(&revoke_first), SAY(&round_alone),
         END);
    CHECK_OK(t, job.code);
    CHECK_INT(t, job.trains, ==, 2);
    CHECK_INT(t, places[0][0], ==, 0);
    CHECK_INT(t, places[0][1], ==, 1);
    CHECK_INT(t, places[0][2], ==, 0);
    CHECK_INT(t, places[0][3], ==, 2);
    CHECK_INT(t, places[1][1], ==, 1);
    CHECK_INT(t, places[1][3], ==, 1);
}
