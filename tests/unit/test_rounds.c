/* The collectives of two workers, in one process: each side has an engine and rounds of its own. */
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/test.h"
#include "worker/rounds.h"

#include <stdio.h>
#include <string.h>

#define SIDES       2
#define ROUNDS_MAX  8
#define PATIENCE_US (20 * INT64_C(1000000))

struct side {
    struct rounds *rounds;
    struct coll_engine *engine;
    char address[256];
    const char *addresses[1];
    uint64_t incarnation;
    struct pair *pair;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned said[ROUNDS_MAX]; /* how often the end of a preparation was */
    struct hvd_err outcomes[ROUNDS_MAX];

    uint64_t round; /* of what its thread does */
    bool prepared;
    int rc;
    struct hvd_err err;
};

struct pair {
    struct side sides[SIDES];
    struct msg_member members[SIDES];
    struct msg_member_list list;
};

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
        rc = coll_engine_open(&(struct coll_options){ .host = "127.0.0.1" }, &side->engine,
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

static void pair_close(struct pair *pair)
{
    for (size_t i = 0; i < SIDES; i++)
        rounds_free(pair->sides[i].rounds);
    for (size_t i = 0; i < SIDES; i++) {
        coll_engine_close(pair->sides[i].engine);
        pthread_cond_destroy(&pair->sides[i].changed);
        pthread_mutex_destroy(&pair->sides[i].lock);
    }
}

static void prepare(struct side *side, uint64_t round)
{
    const struct msg msg = { .type = MSG_PREPARE,
                             .round = round,
                             .u.prepare = { .members = side->pair->list } };

    rounds_prepare(side->rounds, side->incarnation, &msg);
}

/* ---- what the loop of a side does ------------------------------------------------------------ */

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

static void *enter(void *arg)
{
    struct side *side = arg;

    side->rc = rounds_enter(side->rounds, side->incarnation, side->round, &side->pair->list,
                            side->prepared, &side->err);
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

/* Until its collective, or its connecting, is under way. */
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

static void rounds_follow_each_other(struct test *t)
{
    static struct pair pair;

    CHECK_OK(t, pair_open(&pair));
    CHECK_OK(t, both(&pair, enter, 1, false));
    CHECK_CODE(t, meet(&pair.sides[0], false), HVD_E_STATE); /* not open to the program */
    for (size_t i = 0; i < SIDES; i++)
        prepare(&pair.sides[i], 2);
    for (size_t i = 0; i < SIDES; i++) {
        CHECK(t, await_prepared(&pair.sides[i], 2));
        CHECK_OK(t, pair.sides[i].outcomes[2].code);
        rounds_open(pair.sides[i].rounds, true);
    }
    CHECK_OK(t, both(&pair, cross, 0, false)); /* in round 1 still */
    CHECK_OK(t, both(&pair, enter, 2, true));
    CHECK_OK(t, both(&pair, enter, 3, true)); /* it was not prepared */
    CHECK_INT(t, pair.sides[0].said[2], ==, 1);
    rounds_open(pair.sides[0].rounds, true);
    rounds_finish(pair.sides[0].rounds);
    CHECK_CODE(t, meet(&pair.sides[0], false), HVD_E_STATE);
out:
    pair_close(&pair);
}

static void what_is_abandoned_is_not_said(struct test *t)
{
    static struct pair pair;

    CHECK_OK(t, pair_open(&pair));
    prepare(&pair.sides[0], 1); /* the other one does not come */
    rounds_abandon(pair.sides[0].rounds, 1);
    prepare(&pair.sides[0], 2);
    prepare(&pair.sides[0], 3); /* instead of 2 */
    rounds_abandon(pair.sides[0].rounds, 2);
    prepare(&pair.sides[1], 3);
    for (size_t i = 0; i < SIDES; i++) {
        CHECK(t, await_prepared(&pair.sides[i], 3));
        CHECK_OK(t, pair.sides[i].outcomes[3].code);
    }
    CHECK_INT(t, pair.sides[0].said[1] + pair.sides[0].said[2], ==, 0);
    rounds_abandon(pair.sides[1].rounds, 3); /* after all */
    prepare(&pair.sides[1], 4);
    prepare(&pair.sides[0], 4);
    CHECK(t, await_prepared(&pair.sides[0], 4) && await_prepared(&pair.sides[1], 4));
    CHECK_OK(t, both(&pair, enter, 4, true));
out:
    pair_close(&pair);
}

static void a_preparation_that_fails_says_why(struct test *t)
{
    static struct pair pair;

    CHECK_OK(t, pair_open(&pair));
    pair.members[1].addresses.count = 0;
    prepare(&pair.sides[0], 1);
    CHECK(t, await_prepared(&pair.sides[0], 1));
    CHECK(t, pair.sides[0].outcomes[1].code < 0);
    CHECK_HAS(t, pair.sides[0].outcomes[1].text, "rank 1");
    pair.members[1].addresses.count = 1;
    CHECK_OK(t, both(&pair, enter, 2, false));
out:
    pair_close(&pair);
}

static void rounds_may_end_while_they_are_prepared(struct test *t)
{
    static struct pair pair;

    CHECK_OK(t, pair_open(&pair));
    prepare(&pair.sides[0], 1);
    rounds_close(pair.sides[0].rounds);
    CHECK_INT(t, pair.sides[0].said[1], ==, 0);
    prepare(&pair.sides[0], 2); /* it comes too late: not said, and freed */
    rounds_cancel(pair.sides[0].rounds, UINT64_MAX);
    prepare(&pair.sides[0], 3);
out:
    pair_close(&pair);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

static void a_cancel_may_come_first(struct test *t)
{
    static struct pair pair;

    CHECK_OK(t, pair_open(&pair));
    rounds_cancel(pair.sides[0].rounds, 2);
    rounds_cancel(pair.sides[0].rounds, 1);
    CHECK_CODE(t, rounds_enter(pair.sides[0].rounds, 10, 2, &pair.list, false, &pair.sides[0].err),
               HVD_E_REVOKED);
    CHECK_HAS(t, pair.sides[0].err.text, "round 2 is revoked");
    prepare(&pair.sides[0], 3);
    rounds_cancel(pair.sides[0].rounds, 3);
    CHECK_CODE(t, rounds_enter(pair.sides[0].rounds, 10, 3, &pair.list, true, &pair.sides[0].err),
               HVD_E_REVOKED);
    CHECK_OK(t, both(&pair, enter, 4, false));
out:
    pair_close(&pair);
}

static void a_cancel_ends_what_is_under_way(struct test *t)
{
    static struct pair pair;
    struct side *side = &pair.sides[0];
    pthread_t thread;
    bool started = false;

    CHECK_OK(t, pair_open(&pair));
    side->round = 1;
    CHECK_OK(t, thread_start(&thread, 0, enter, side));
    started = true;
    CHECK(t, await_operation(side, "connect"));
    rounds_cancel(side->rounds, 1);
    pthread_join(thread, NULL);
    started = false;
    CHECK_CODE(t, side->rc, HVD_E_REVOKED);
    CHECK_OK(t, both(&pair, enter, 2, false));
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
    CHECK_OK(t, both(&pair, enter, 3, false));
    CHECK(t, !rounds_failed(side->rounds));
out:
    if (started) {
        rounds_cancel(side->rounds, UINT64_MAX);
        pthread_join(thread, NULL);
    }
    pair_close(&pair);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void one_thread_at_a_time(struct test *t)
{
    static struct pair pair;
    struct side *side = &pair.sides[0];
    struct hvd_err err = { 0 };
    struct coll *coll;
    pthread_t thread;
    bool started = false;

    CHECK_OK(t, pair_open(&pair));
    CHECK_OK(t, both(&pair, enter, 1, false));
    rounds_open(side->rounds, true);
    CHECK_OK(t, thread_start(&thread, 0, cross, side));
    started = true;
    CHECK(t, await_operation(side, "barrier"));
    CHECK_CODE(t, rounds_get(side->rounds, false, &coll, &err), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "one thread at a time");
    rounds_finish(side->rounds); /* somebody is in it still: nothing is said to the others */
    /* A thread that was left behind in a collective must not keep the loop from the next round. */
    CHECK_CODE(t,
               rounds_enter(side->rounds, 10, 2, &(struct msg_member_list){ pair.members, 1 },
                            false, &err),
               0);
    pthread_join(thread, NULL);
    started = false;
    CHECK_CODE(t, side->rc, HVD_E_REVOKED);
    CHECK_OK(t, meet(side, true));
out:
    if (started) {
        rounds_cancel(side->rounds, UINT64_MAX);
        pthread_join(thread, NULL);
    }
    pair_close(&pair);
}

TESTS(CASE_FLAGS(rounds_follow_each_other, TEST_NO_TORTURE),
      CASE_FLAGS(what_is_abandoned_is_not_said, TEST_NO_TORTURE),
      CASE_FLAGS(a_preparation_that_fails_says_why, TEST_NO_TORTURE),
      CASE_FLAGS(rounds_may_end_while_they_are_prepared, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(a_cancel_may_come_first, TEST_NO_TORTURE),
      CASE_FLAGS(a_cancel_ends_what_is_under_way, TEST_NO_TORTURE),
      CASE_FLAGS(one_thread_at_a_time, TEST_NO_TORTURE))
