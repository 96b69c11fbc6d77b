/* The collectives of two workers, in one process: each side has an engine and rounds of its own. */
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/fixture.h"
#include "tests/lib/loopback.h"
#include "worker/rounds.h"

#include <stdio.h>
#include <string.h>

#define SIDES       2
#define ROUNDS_MAX  8
#define PATIENCE_US (100 * INT64_C(1000000))

struct side {
    struct rounds *rounds;
    struct coll_engine *engine;
    char address[256];
    const char *addresses[1];
    uint64_t incarnation;
    struct pair *pair;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned said[ROUNDS_MAX]; /* how often the end of a preparation was reported */
    struct hvd_err outcomes[ROUNDS_MAX];

    uint64_t round; /* the round of its thread's work */
    bool prepared;
    int rc;
    struct hvd_err err;
};

struct pair {
    struct side sides[SIDES];
    struct msg_member members[SIDES];
    struct msg_member_list list;
};

static const uint8_t secret_bytes[LIMIT_ROUND_SECRET_BYTES] = "the secret of each round here";
static const struct msg_bytes secret = { secret_bytes, sizeof(secret_bytes) };

static void on_prepared(void *arg, uint64_t round, const struct hvd_err *outcome)
{
    struct side *side = arg;

    pthread_mutex_lock(&side->lock);
    side->said[round]++;
    side->outcomes[round] = *outcome;
    pthread_cond_broadcast(&side->changed);
    pthread_mutex_unlock(&side->lock);
}

static bool await_prepared(struct side *side, uint64_t round)
{
    int64_t deadline_us = clock_now_us() + PATIENCE_US;
    bool said;

    pthread_mutex_lock(&side->lock);
    while (!side->said[round] && !thread_cond_wait(&side->changed, &side->lock, deadline_us)) {
    }
    said = side->said[round] > 0;
    pthread_mutex_unlock(&side->lock);
    return said;
}

static int open_side(struct side *side, struct msg_member *member)
{
    int rc = rounds_create(NULL, on_prepared, side, &side->rounds, &side->err);

    if (!rc)
        rc = coll_engine_open(&(struct coll_options){ .host = loopback_own() }, &side->engine,
                              &side->err);
    if (!rc)
        rc = rounds_use_engine(side->rounds, side->engine, &side->err);
    if (rc)
        return rc;
    snprintf(side->address, sizeof(side->address), "data=%s", coll_engine_contact(side->engine));
    side->addresses[0] = side->address;
    *member = (struct msg_member){
        .incarnation = side->incarnation, .host = "a", .addresses = {side->addresses, 1}
    };
    return 0;
}

static int pair_open(struct pair *pair)
{
    int rc = 0;

    memset(pair, 0, sizeof(*pair));
    for (size_t i = 0; i < SIDES; i++) {
        struct side *side = &pair->sides[i];

        side->pair = pair;
        side->incarnation = 10 + i;
        pthread_mutex_init(&side->lock, NULL);
        if (thread_cond_init(&side->changed))
            return HVD_E_NOMEM;
        rc = rc ? rc : open_side(side, &pair->members[i]);
    }
    pair->list = (struct msg_member_list){ pair->members, SIDES };
    return rc;
}

static void prepare(struct side *side, uint64_t round)
{
    const struct msg msg = {
        .type = MSG_PREPARE,
        .round = round,
        .u.prepare = {.members = side->pair->list, .secret = secret}
    };

    rounds_prepare(side->rounds, side->incarnation, &msg);
}

/* ---- the calls of a side's loop ---- */

static int meet(struct side *side, bool inside)
{
    struct coll *coll;
    int rc = rounds_get(side->rounds, inside, &coll, &side->err);

    if (rc)
        return rc;
    rc = coll_run(coll, &(struct coll_call){ .kind = COLL_BARRIER }, &side->err);
    rounds_put(side->rounds, rc);
    return rc;
}

static int enter_with(struct side *side, uint64_t round, const struct msg_member_list *members,
                      bool prepared)
{
    const struct rounds_order order = {
        .incarnation = side->incarnation, .round = round, .members = members, .secret = secret
    };

    return rounds_enter(side->rounds, &order, prepared, &side->err);
}

static void *enter(void *arg)
{
    struct side *side = arg;

    side->rc = enter_with(side, side->round, &side->pair->list, side->prepared);
    if (!side->rc)
        side->rc = meet(side, true);
    return NULL;
}

static void *cross(void *arg)
{
    struct side *side = arg;

    side->rc = meet(side, false);
    return NULL;
}

static int both(struct pair *pair, thread_fn *act, uint64_t round, bool prepared)
{
    pthread_t threads[SIDES];
    size_t started = 0;
    int rc = 0;

    for (; started < SIDES && !rc; started++) {
        pair->sides[started].round = round;
        pair->sides[started].prepared = prepared;
        rc = thread_start(&threads[started], 0, act, &pair->sides[started]);
    }
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < SIDES && !rc; i++)
        rc = pair->sides[i].rc;
    return rc;
}

/* Waits until the side's collective, or its connecting, is in progress. */
static bool await_operation(struct side *side, const char *operation)
{
    int64_t deadline_us = clock_now_us() + PATIENCE_US;
    struct coll_wait wait;

    while (!rounds_look(side->rounds, &wait) || strcmp(wait.operation, operation) != 0) {
        if (clock_now_us() > deadline_us)
            return false;
    }
    return true;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static struct pair own;
static pthread_t thread; /* the thread that the first side has started */
static bool started;

static void begin(struct test *t)
{
    CHECK_OK(t, pair_open(&own));
}

static void end(struct test *t)
{
    (void)t;
    if (started) {
        rounds_cancel(own.sides[0].rounds, UINT64_MAX);
        pthread_join(thread, NULL);
    }
    started = false;
    for (size_t i = 0; i < SIDES; i++)
        rounds_free(own.sides[i].rounds);
    for (size_t i = 0; i < SIDES; i++) {
        coll_engine_close(own.sides[i].engine);
        pthread_cond_destroy(&own.sides[i].changed);
        pthread_mutex_destroy(&own.sides[i].lock);
    }
}
FIXTURE(begin, end)

TEST_FLAGS(rounds_follow_each_other, TEST_NO_TORTURE)
{
    CHECK_OK(t, both(&own, enter, 1, false));
    CHECK_CODE(t, meet(&own.sides[0], false), HVD_E_STATE); /* not open to the program */
    for (size_t i = 0; i < SIDES; i++)
        prepare(&own.sides[i], 2);
    for (size_t i = 0; i < SIDES; i++) {
        CHECK(t, await_prepared(&own.sides[i], 2));
        CHECK_OK(t, own.sides[i].outcomes[2].code);
        rounds_open(own.sides[i].rounds, true);
    }
    CHECK_OK(t, both(&own, cross, 0, false)); /* still in round 1 */
    CHECK_OK(t, both(&own, enter, 2, true));
    CHECK_OK(t, both(&own, enter, 3, true)); /* round 3 was not prepared */
    CHECK_INT(t, own.sides[0].said[2], ==, 1);
    rounds_open(own.sides[0].rounds, true);
    rounds_finish(own.sides[0].rounds);
    CHECK_CODE(t, meet(&own.sides[0], false), HVD_E_STATE);
}

TEST_FLAGS(an_abandoned_preparation_is_not_reported, TEST_NO_TORTURE)
{
    prepare(&own.sides[0], 1); /* the other side does not come */
    rounds_abandon(own.sides[0].rounds, 1);
    prepare(&own.sides[0], 2);
    prepare(&own.sides[0], 3); /* instead of round 2 */
    rounds_abandon(own.sides[0].rounds, 2);
    prepare(&own.sides[1], 3);
    for (size_t i = 0; i < SIDES; i++) {
        CHECK(t, await_prepared(&own.sides[i], 3));
        CHECK_OK(t, own.sides[i].outcomes[3].code);
    }
    CHECK_INT(t, own.sides[0].said[1] + own.sides[0].said[2], ==, 0);
    rounds_abandon(own.sides[1].rounds, 3); /* after all */
    prepare(&own.sides[1], 4);
    prepare(&own.sides[0], 4);
    CHECK(t, await_prepared(&own.sides[0], 4) && await_prepared(&own.sides[1], 4));
    CHECK_OK(t, both(&own, enter, 4, true));
}

TEST_FLAGS(a_preparation_that_fails_says_why, TEST_NO_TORTURE)
{
    own.members[1].addresses.count = 0;
    prepare(&own.sides[0], 1);
    CHECK(t, await_prepared(&own.sides[0], 1));
    CHECK(t, own.sides[0].outcomes[1].code < 0);
    CHECK_HAS(t, own.sides[0].outcomes[1].text, "rank 1");
    own.members[1].addresses.count = 1;
    CHECK_OK(t, both(&own, enter, 2, false));
}

TEST_FLAGS(rounds_may_end_while_they_are_prepared, TEST_SURVIVES_ALLOC)
{
    prepare(&own.sides[0], 1);
    rounds_close(own.sides[0].rounds);
    CHECK_INT(t, own.sides[0].said[1], ==, 0);
    prepare(&own.sides[0], 2); /* this preparation comes too late: not reported, and freed */
    rounds_cancel(own.sides[0].rounds, UINT64_MAX);
    prepare(&own.sides[0], 3);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

TEST_FLAGS(a_cancel_may_come_first, TEST_NO_TORTURE)
{
    rounds_cancel(own.sides[0].rounds, 2);
    rounds_cancel(own.sides[0].rounds, 1);
    CHECK_CODE(t, enter_with(&own.sides[0], 2, &own.list, false), HVD_E_REVOKED);
    CHECK_HAS(t, own.sides[0].err.text, "round 2 is revoked");
    prepare(&own.sides[0], 3);
    rounds_cancel(own.sides[0].rounds, 3);
    CHECK_CODE(t, enter_with(&own.sides[0], 3, &own.list, true), HVD_E_REVOKED);
    CHECK_OK(t, both(&own, enter, 4, false));
}

TEST_FLAGS(a_cancel_ends_a_running_call, TEST_NO_TORTURE)
{
    struct side *side = &own.sides[0];

    side->round = 1;
    CHECK_OK(t, thread_start(&thread, 0, enter, side));
    started = true;
    CHECK(t, await_operation(side, "connect"));
    rounds_cancel(side->rounds, 1);
    pthread_join(thread, NULL);
    started = false;
    CHECK_CODE(t, side->rc, HVD_E_REVOKED);
    CHECK_OK(t, both(&own, enter, 2, false));
    rounds_open(side->rounds, true);
    CHECK_OK(t, thread_start(&thread, 0, cross, side));
    started = true;
    CHECK(t, await_operation(side, "barrier"));
    CHECK(t, !rounds_failed(side->rounds));
    rounds_cancel(side->rounds, 2);
    pthread_join(thread, NULL);
    started = false;
    CHECK_CODE(t, side->rc, HVD_E_REVOKED);
    CHECK(t, rounds_failed(side->rounds));
    CHECK_CODE(t, meet(side, false), HVD_E_REVOKED);
    CHECK_OK(t, both(&own, enter, 3, false));
    CHECK(t, !rounds_failed(side->rounds));
}

TEST_FLAGS(one_thread_at_a_time, TEST_NO_TORTURE)
{
    struct side *side = &own.sides[0];
    struct hvd_err err = { 0 };
    struct coll *coll;

    CHECK_OK(t, both(&own, enter, 1, false));
    rounds_open(side->rounds, true);
    CHECK_OK(t, thread_start(&thread, 0, cross, side));
    started = true;
    CHECK(t, await_operation(side, "barrier"));
    CHECK_CODE(t, rounds_get(side->rounds, false, &coll, &err), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "one thread at a time");
    rounds_finish(side->rounds); /* a thread is still inside: the peers are told nothing */
    /* A thread that was left behind in a collective must not keep the loop from the next round. */
    CHECK_OK(t, enter_with(side, 2, &(struct msg_member_list){ own.members, 1 }, false));
    pthread_join(thread, NULL);
    started = false;
    CHECK_CODE(t, side->rc, HVD_E_REVOKED);
    CHECK_OK(t, meet(side, true));
}
