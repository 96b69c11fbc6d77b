/* Who is in a collective, and what waits for it: one rank, with collectives that end when told. */
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/fake_coll.h"
#include "tests/lib/test.h"
#include "worker/rounds_inside.h"

#include <sched.h>
#include <string.h>

#define SELF        7
#define PATIENCE_US (20 * INT64_C(1000000))

static const struct msg_member self = { .incarnation = SELF, .host = "a" };
static const struct msg_member_list members = { &self, 1 };
static struct rounds *rounds;
static struct hvd_err err;
static uint64_t the_round;

static void on_prepared(void *arg, uint64_t round, const struct hvd_err *outcome)
{
    (void)arg;
    (void)round;
    (void)outcome;
}

MUST_CHECK static int enter_next(void)
{
    int rc = rounds_enter(rounds, SELF, ++the_round, &members, false, &err);

    if (!rc)
        rounds_open(rounds, true);
    return rc;
}

MUST_CHECK static int begin(void)
{
    int rc;

    fake_coll_reset();
    err = (struct hvd_err){ .code = 0 };
    the_round = 0;
    rounds = NULL;
    rc = rounds_create(NULL, on_prepared, NULL, &rounds, &err);
    return rc ? rc : enter_next();
}

static void end(void)
{
    fake_coll_go();
    rounds_free(rounds);
    rounds = NULL;
}

/* The number of a call is its count. */
static hvd_call call_of(size_t number)
{
    static uint8_t in[64];
    static uint8_t out[64];

    return (hvd_call){
        .kind = HVD_ALLREDUCE, .in = in, .out = out, .count = number, .type = HVD_UINT8
    };
}

MUST_CHECK static int run(size_t number)
{
    const hvd_call call = call_of(number);

    return requests_run(rounds, &call, &err);
}

MUST_CHECK static int start(size_t number, hvd_request **ret_request)
{
    const hvd_call call = call_of(number);

    return requests_start(rounds, &call, ret_request, &err);
}

MUST_CHECK static int await(hvd_request *request)
{
    return requests_wait(rounds, request, &err);
}

static bool ran(size_t count)
{
    const struct fake_coll_seen seen = fake_coll_seen();

    for (size_t i = 0; i < count; i++) {
        if (i >= seen.ran_count || seen.ran[i] != i + 1)
            return false;
    }
    return seen.ran_count == count;
}

/* ---- order ----------------------------------------------------------------------------------- */

static void they_run_in_order_and_are_waited_for_in_any(struct test *t)
{
    hvd_request *requests[6] = { NULL };

    CHECK_OK(t, begin());
    for (size_t i = 0; i < 6; i++)
        CHECK_OK(t, start(i + 1, &requests[i]));
    CHECK_OK(t, await(requests[3]));
    CHECK_OK(t, await(requests[5]));
    CHECK_OK(t, await(requests[0]));
    CHECK_OK(t, await(requests[1]));
    CHECK_OK(t, await(requests[4]));
    CHECK_OK(t, await(requests[2]));
    CHECK(t, ran(6));
out:
    end();
}

static void a_test_tells_without_waiting(struct test *t)
{
    hvd_request *first = NULL;
    hvd_request *second = NULL;
    int done = -1;

    CHECK_OK(t, begin());
    fake_coll_hold(1);
    CHECK_OK(t, start(1, &first));
    CHECK_OK(t, start(2, &second));
    CHECK(t, fake_coll_await(1));
    CHECK_OK(t, requests_test(rounds, first, &done, &err));
    CHECK_INT(t, done, ==, 0);
    fake_coll_go();
    CHECK_OK(t, await(second));
    CHECK_OK(t, requests_test(rounds, first, &done, &err));
    CHECK_INT(t, done, ==, 1);
    CHECK_OK(t, await(first));
    CHECK_CODE(t, requests_test(rounds, first, &done, &err), HVD_E_INVAL);
    CHECK_CODE(t, requests_test(rounds, second, NULL, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "ret_done is NULL");
out:
    end();
}

struct runner {
    size_t number;
    int rc;
    struct hvd_err err;
};

static void *run_one(void *arg)
{
    struct runner *runner = arg;
    const hvd_call call = call_of(runner->number);

    runner->rc = requests_run(rounds, &call, &runner->err);
    return NULL;
}

/* Until the other thread waits behind the request. */
static bool await_blocked(void)
{
    int64_t deadline_us = clock_now_us() + PATIENCE_US;
    bool blocked = false;

    while (!blocked && clock_now_us() < deadline_us) {
        pthread_mutex_lock(&rounds->lock);
        blocked = rounds->requests.blocked;
        pthread_mutex_unlock(&rounds->lock);
        sched_yield();
    }
    return blocked;
}

static void a_call_that_waits_goes_behind_what_is_pending(struct test *t)
{
    hvd_request *request = NULL;
    hvd_request *more = NULL;
    struct runner runner = { .number = 3 };
    pthread_t thread;
    bool started = false;

    CHECK_OK(t, begin());
    fake_coll_hold(2);
    CHECK_OK(t, run(1));
    CHECK_OK(t, start(2, &request));
    CHECK(t, fake_coll_await(2));
    CHECK_OK(t, thread_start(&thread, 0, run_one, &runner));
    started = true;
    CHECK(t, await_blocked());
    CHECK_CODE(t, run(4), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "one thread at a time");
    CHECK_CODE(t, start(4, &more), HVD_E_BUSY);
    fake_coll_go();
    pthread_join(thread, NULL);
    started = false;
    CHECK_OK(t, runner.rc);
    CHECK_OK(t, await(request));
    CHECK_OK(t, run(4));
    CHECK(t, ran(4));
out:
    if (started) {
        fake_coll_go();
        pthread_join(thread, NULL);
    }
    end();
}

static void who_is_in_a_call_keeps_requests_out(struct test *t)
{
    hvd_request *request = NULL;
    struct runner runner = { .number = 1 };
    pthread_t thread;
    bool started = false;

    CHECK_OK(t, begin());
    fake_coll_hold(1);
    CHECK_OK(t, thread_start(&thread, 0, run_one, &runner));
    started = true;
    CHECK(t, fake_coll_await(1));
    CHECK_CODE(t, start(2, &request), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "one thread at a time");
    CHECK_CODE(t, run(2), HVD_E_BUSY);
    fake_coll_go();
    pthread_join(thread, NULL);
    started = false;
    CHECK_OK(t, start(2, &request));
    CHECK_OK(t, await(request));
    CHECK(t, ran(2));
out:
    if (started) {
        fake_coll_go();
        pthread_join(thread, NULL);
    }
    end();
}

/* ---- names ----------------------------------------------------------------------------------- */

static void a_request_that_is_gone_is_known_for_that(struct test *t)
{
    hvd_request *old = NULL;
    hvd_request *request = NULL;

    CHECK_OK(t, begin());
    CHECK_OK(t, start(1, &old));
    CHECK_OK(t, await(old));
    CHECK_CODE(t, await(old), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "wait once");
    CHECK_OK(t, start(2, &request)); /* in the same place */
    CHECK(t, request != old);
    CHECK_CODE(t, await(old), HVD_E_INVAL);
    CHECK_CODE(t, await(NULL), HVD_E_INVAL);
    CHECK_CODE(t, await((hvd_request *)(uintptr_t)1), HVD_E_INVAL); /* no name, but a place */
    CHECK_CODE(t, await((hvd_request *)UINTPTR_MAX), HVD_E_INVAL);
    CHECK_CODE(t, await((hvd_request *)&request), HVD_E_INVAL);
    CHECK_OK(t, await(request));
    CHECK_OK(t, run(3)); /* none of this was a fault of the round */
    end();
    CHECK_OK(t, begin()); /* another life */
    CHECK_OK(t, start(1, &old));
    CHECK_CODE(t, await(request), HVD_E_INVAL);
    CHECK_OK(t, await(old));
out:
    end();
}

static void there_may_be_so_many(struct test *t)
{
    static hvd_request *requests[16384];
    hvd_request *more;

    CHECK_OK(t, begin());
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        CHECK_OK(t, start(1, &requests[i]));
    CHECK_CODE(t, start(1, &more), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "LIMIT_REQUESTS");
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        CHECK_OK(t, await(requests[i]));
    CHECK_OK(t, start(1, &more));
    CHECK_OK(t, await(more));
out:
    end();
}

/* ---- failures -------------------------------------------------------------------------------- */

static void a_failure_takes_those_behind_it_along(struct test *t)
{
    hvd_request *requests[4] = { NULL };

    CHECK_OK(t, begin());
    fake_coll_fail(2, HVD_E_MISMATCH);
    fake_coll_hold(1);
    for (size_t i = 0; i < 4; i++)
        CHECK_OK(t, start(i + 1, &requests[i]));
    fake_coll_go();
    CHECK_CODE(t, await(requests[3]), HVD_E_REVOKED);
    CHECK_HAS(t, err.text, "count 2 does not please");
    CHECK_OK(t, await(requests[0]));
    CHECK_CODE(t, await(requests[2]), HVD_E_REVOKED);
    CHECK_CODE(t, await(requests[1]), HVD_E_MISMATCH);
    CHECK_INT(t, rounds_failed(rounds), ==, HVD_E_MISMATCH);
    CHECK_CODE(t, start(5, &requests[0]), HVD_E_REVOKED);
    CHECK_CODE(t, run(5), HVD_E_REVOKED);
    CHECK_HAS(t, err.text, "has failed before");
    CHECK_OK(t, enter_next());
    CHECK_OK(t, start(2, &requests[0]));
    CHECK_CODE(t, await(requests[0]), HVD_E_MISMATCH);
    CHECK_OK(t, enter_next());
    CHECK_OK(t, run(3));
out:
    end();
}

static void a_call_that_makes_no_sense_ends_the_round(struct test *t)
{
    hvd_request *requests[2] = { NULL };
    hvd_call call = call_of(2);

    CHECK_OK(t, begin());
    fake_coll_hold(1);
    CHECK_OK(t, start(1, &requests[0]));
    CHECK(t, fake_coll_await(1));
    call.out = NULL;
    CHECK_CODE(t, requests_start(rounds, &call, &requests[1], &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "out is NULL");
    CHECK_CODE(t, await(requests[0]), HVD_E_REVOKED);
    CHECK_CODE(t, run(3), HVD_E_REVOKED);
    CHECK_OK(t, enter_next());
    CHECK_CODE(t, requests_run(rounds, &call, &err), HVD_E_INVAL);
    CHECK_INT(t, rounds_failed(rounds), ==, HVD_E_INVAL);
    CHECK_OK(t, enter_next());
    call = call_of(2);
    CHECK_CODE(t, requests_start(rounds, &call, NULL, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "ret_request is NULL");
    CHECK_OK(t, enter_next());
    CHECK_CODE(t, requests_run(rounds, NULL, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "the call is NULL");
    CHECK_OK(t, enter_next());
    CHECK_OK(t, run(4)); /* nobody has been left with the turn */
out:
    fake_coll_go();
    end();
}

/* What is behind a request is refused as it is when nothing is. */
static void behind_a_request_sense_is_asked_for_too(struct test *t)
{
    hvd_request *request = NULL;
    hvd_call call = call_of(2);

    CHECK_OK(t, begin());
    fake_coll_hold(1);
    CHECK_OK(t, start(1, &request));
    call.op = (hvd_op)9;
    CHECK_CODE(t, requests_run(rounds, &call, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "no op 9");
    CHECK_CODE(t, await(request), HVD_E_REVOKED);
out:
    end();
}

/* ---- the ends of rounds ---------------------------------------------------------------------- */

static void what_is_pending_ends_with_the_round(struct test *t)
{
    hvd_request *requests[3] = { NULL };
    int done = 0;

    CHECK_OK(t, begin());
    fake_coll_hold(1);
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(t, start(i + 1, &requests[i]));
    CHECK(t, fake_coll_await(1));
    rounds_cancel(rounds, the_round); /* as a REVOKE does */
    CHECK_CODE(t, await(requests[2]), HVD_E_REVOKED);
    CHECK_CODE(t, await(requests[0]), HVD_E_REVOKED);
    CHECK_OK(t, enter_next());
    CHECK_OK(t, requests_test(rounds, requests[1], &done, &err)); /* it is there still */
    CHECK_INT(t, done, ==, 1);
    CHECK_CODE(t, await(requests[1]), HVD_E_REVOKED);
    CHECK_OK(t, run(4));
out:
    end();
}

static void train_may_return_before_they_are_done(struct test *t)
{
    hvd_request *requests[3] = { NULL };
    int done = 0;

    CHECK_OK(t, begin());
    fake_coll_hold(1);
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(t, start(i + 1, &requests[i]));
    CHECK(t, fake_coll_await(1));
    rounds_open(rounds, false);
    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(t, requests_test(rounds, requests[i], &done, &err));
        CHECK_INT(t, done, ==, 1);
    }
    CHECK(t, !rounds_failed(rounds)); /* the round has not */
    CHECK_CODE(t, start(4, &requests[0]), HVD_E_STATE);
    CHECK_HAS(t, err.text, "call it from train");
    CHECK_CODE(t, await(requests[1]), HVD_E_REVOKED);
    CHECK_HAS(t, err.text, "train has returned");
    CHECK_OK(t, enter_next());
    CHECK_CODE(t, await(requests[2]), HVD_E_REVOKED);
    fake_coll_go();
    CHECK_OK(t, run(1));
out:
    end();
}

static void the_end_may_come_at_any_moment(struct test *t)
{
    hvd_request *request = NULL;

    for (int i = 0; i < 50; i++) {
        CHECK_OK(t, begin());
        for (int k = 0; k < i % 5; k++)
            CHECK_OK(t, start(1, &request));
        if (i % 2)
            CHECK_OK(t, enter_next());
        if (request && i % 3)
            CHECK(t, await(request) != HVD_E_INVAL || !(i % 5));
        end();
    }
    CHECK_OK(t, begin());
out:
    end();
}

static void after_news_nothing_is_begun(struct test *t)
{
    hvd_request *request = NULL;

    CHECK_OK(t, begin());
    fake_coll_hold(1);
    CHECK_OK(t, start(1, &request));
    rounds_tell(rounds, HVD_HOSTS_UPDATED);
    CHECK_CODE(t, run(2), HVD_E_STATE);
    CHECK_HAS(t, err.text, "HVD_HOSTS_UPDATED");
    fake_coll_go();
    CHECK_OK(t, await(request)); /* but ended */
    CHECK_CODE(t, start(2, &request), HVD_E_STATE);
out:
    end();
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *start_and_await(void *arg)
{
    struct runner *runner = arg;
    hvd_request *request;

    for (int i = 0; i < 2000 && !runner->rc; i++) {
        const hvd_call call = call_of(runner->number);
        int rc = i % 2 ? requests_run(rounds, &call, &runner->err)
                       : requests_start(rounds, &call, &request, &runner->err);

        if (!rc && i % 2 == 0)
            rc = requests_wait(rounds, request, &runner->err);
        runner->rc = rc == HVD_E_BUSY ? 0 : rc;
    }
    return NULL;
}

static void threads_do_not_harm_each_other(struct test *t)
{
    struct runner runners[3] = { { .number = 1 }, { .number = 2 }, { .number = 3 } };
    pthread_t threads[3];
    size_t started = 0;

    CHECK_OK(t, begin());
    for (; started < 3; started++)
        CHECK_OK(t, thread_start(&threads[started], 0, start_and_await, &runners[started]));
    while (started)
        pthread_join(threads[--started], NULL);
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(t, runners[i].rc);
    CHECK_OK(t, run(1));
out:
    while (started)
        pthread_join(threads[--started], NULL);
    end();
}

static void *await_one(void *arg)
{
    struct hvd_err why;

    return requests_wait(rounds, arg, &why) ? arg : NULL;
}

static bool all_wait(unsigned count)
{
    int64_t until_us = clock_now_us() + PATIENCE_US;
    unsigned waiting = 0;

    while (waiting < count && clock_now_us() < until_us) {
        pthread_mutex_lock(&rounds->lock);
        waiting = rounds->requests.awaited_by;
        pthread_mutex_unlock(&rounds->lock);
        (void)sched_yield();
    }
    return waiting == count;
}

/* They have been woken, and run some time later: what they look at is there still. */
static void who_waits_comes_out_before_the_end(struct test *t)
{
    hvd_request *requests[16] = { NULL };
    pthread_t threads[16];
    size_t started = 0;

    for (int i = 0; i < 20; i++) {
        CHECK_OK(t, begin());
        fake_coll_hold(1);
        for (size_t k = 0; k < 16; k++)
            CHECK_OK(t, start(k + 1, &requests[k]));
        for (; started < 16; started++)
            CHECK_OK(t, thread_start(&threads[started], 0, await_one, requests[started]));
        CHECK(t, all_wait(16));
        end();
        while (started)
            pthread_join(threads[--started], NULL);
    }
    CHECK_OK(t, begin());
out:
    end();
    while (started)
        pthread_join(threads[--started], NULL);
}

TESTS(CASE(they_run_in_order_and_are_waited_for_in_any), CASE(a_test_tells_without_waiting),
      CASE_FLAGS(a_call_that_waits_goes_behind_what_is_pending, TEST_NO_TORTURE),
      CASE_FLAGS(who_is_in_a_call_keeps_requests_out, TEST_NO_TORTURE),
      CASE(a_request_that_is_gone_is_known_for_that),
      CASE_FLAGS(there_may_be_so_many, TEST_NO_TORTURE),
      CASE(a_failure_takes_those_behind_it_along), CASE(a_call_that_makes_no_sense_ends_the_round),
      CASE(behind_a_request_sense_is_asked_for_too), CASE(what_is_pending_ends_with_the_round),
      CASE(train_may_return_before_they_are_done),
      CASE_FLAGS(the_end_may_come_at_any_moment, TEST_NO_TORTURE),
      CASE(after_news_nothing_is_begun),
      CASE_FLAGS(threads_do_not_harm_each_other, TEST_NO_TORTURE),
      CASE_FLAGS(who_waits_comes_out_before_the_end, TEST_NO_TORTURE))
