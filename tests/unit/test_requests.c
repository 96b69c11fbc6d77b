/* Which thread is in a collective, and which requests wait: one rank, whose collectives end when
 * the test says so. */
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/fake_coll.h"
#include "tests/lib/fixture.h"
#include "worker/rounds_groups.h"
#include "worker/rounds_internal.h"

#include <poll.h>
#include <sched.h>

#define SELF        7
#define PATIENCE_US (100 * INT64_C(1000000))

static const struct msg_member self = { .incarnation = SELF, .host = "a" };
static const struct msg_member_list members = { &self, 1 };
static struct rounds *rounds;
static struct hvd_err err;
static uint64_t the_round;

/* The threads of a case; the end of the case waits for them. */
static pthread_t threads[16];
static size_t started;

static void on_prepared(void *arg, uint64_t round, const struct hvd_err *outcome)
{
    (void)arg;
    (void)round;
    (void)outcome;
}

MUST_CHECK static int enter_next(void)
{
    const struct rounds_order order = { .incarnation = SELF,
                                        .round = ++the_round,
                                        .members = &members };
    int rc = rounds_enter(rounds, &order, false, &err);

    if (!rc)
        rounds_open(rounds, true);
    return rc;
}

static void begin(struct test *t)
{
    fake_coll_reset();
    err = (struct hvd_err){ .code = 0 };
    the_round = 0;
    rounds = NULL;
    CHECK_OK(t, rounds_create(NULL, on_prepared, NULL, &rounds, &err));
    CHECK_OK(t, enter_next());
}

static void end(struct test *t)
{
    (void)t;
    fake_coll_go();
    rounds_free(rounds);
    rounds = NULL;
    while (started)
        pthread_join(threads[--started], NULL);
}
FIXTURE(begin, end)

/* Makes a call whose count is the number. */
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

TEST(requests_run_in_order_and_are_awaited_in_any_order)
{
    hvd_request *requests[6] = { NULL };

    for (size_t i = 0; i < 6; i++)
        CHECK_OK(t, start(i + 1, &requests[i]));
    CHECK_OK(t, await(requests[3]));
    CHECK_OK(t, await(requests[5]));
    CHECK_OK(t, await(requests[0]));
    CHECK_OK(t, await(requests[1]));
    CHECK_OK(t, await(requests[4]));
    CHECK_OK(t, await(requests[2]));
    CHECK(t, ran(6));
}

TEST(a_test_tells_without_waiting)
{
    hvd_request *first = NULL;
    hvd_request *second = NULL;
    int done = -1;

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
}

/* The work of the threads. It is not in the frame of a case, because a thread may run on after a
 * CHECK that has failed. */
static struct runner {
    size_t number;
    int rc;
    struct hvd_err err;
} runners[3];

static void *run_one(void *arg)
{
    struct runner *runner = arg;
    const hvd_call call = call_of(runner->number);

    runner->rc = requests_run(rounds, &call, &runner->err);
    return NULL;
}

/* Waits until the other thread waits behind the request. false: this took too long. */
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

/* Request 2 runs, and call 3 of another thread waits behind it: meanwhile a call or request of this
 * thread is refused. */
TEST_FLAGS(a_waiting_call_goes_behind_a_pending_request, TEST_NO_TORTURE)
{
    hvd_request *request = NULL;
    hvd_request *more = NULL;

    runners[0] = (struct runner){ .number = 3 };
    fake_coll_hold(2);
    CHECK_OK(t, run(1));
    CHECK_OK(t, start(2, &request));
    CHECK(t, fake_coll_await(2));
    CHECK_OK(t, thread_start(&threads[0], 0, run_one, &runners[0]));
    started = 1;
    CHECK(t, await_blocked());
    CHECK_CODE(t, run(4), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "one thread at a time");
    CHECK_CODE(t, start(4, &more), HVD_E_BUSY);
    fake_coll_go();
    pthread_join(threads[--started], NULL);
    CHECK_OK(t, runners[0].rc);
    CHECK_OK(t, await(request));
    CHECK_OK(t, run(4));
    CHECK(t, ran(4));
}

TEST_FLAGS(a_call_keeps_requests_out, TEST_NO_TORTURE)
{
    hvd_request *request = NULL;

    runners[0] = (struct runner){ .number = 1 };
    fake_coll_hold(1);
    CHECK_OK(t, thread_start(&threads[0], 0, run_one, &runners[0]));
    started = 1;
    CHECK(t, fake_coll_await(1));
    CHECK_CODE(t, start(2, &request), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "one thread at a time");
    CHECK_CODE(t, run(2), HVD_E_BUSY);
    fake_coll_go();
    pthread_join(threads[--started], NULL);
    CHECK_OK(t, start(2, &request));
    CHECK_OK(t, await(request));
    CHECK(t, ran(2));
}

/* A wait with a limit leaves the request as it is. */
TEST(a_wait_may_have_a_limit)
{
    hvd_request *request = NULL;

    fake_coll_hold(1);
    CHECK_OK(t, start(1, &request));
    CHECK_CODE(t, requests_wait_for(rounds, request, 0, &err), HVD_E_TIMEOUT);
    CHECK_HAS(t, err.text, "call hvd_wait_for again");
    CHECK_CODE(t, requests_wait_for(rounds, request, 1000, &err), HVD_E_TIMEOUT);
    fake_coll_go();
    CHECK_OK(t, requests_wait_for(rounds, request, PATIENCE_US, &err));
    CHECK_CODE(t, requests_wait_for(rounds, request, 0, &err), HVD_E_INVAL);
    CHECK(t, ran(1));
}

/* ---- news ------------------------------------------------------------------------------------ */

static bool fd_is_readable(int fd)
{
    struct pollfd look = { .fd = fd, .events = POLLIN };

    return poll(&look, 1, 0) == 1;
}

TEST(news_come_and_go)
{
    char reason[ERR_TEXT_MAX];
    int fd = rounds_news_fd(rounds, &err);

    CHECK_INT(t, fd, >=, 0);
    CHECK_INT(t, rounds_news_fd(rounds, &err), ==, fd);
    CHECK_INT(t, rounds_news(rounds), ==, 0);
    rounds_watch(rounds, true);
    CHECK_INT(t, rounds_news(rounds), ==, HVD_HOSTS_UPDATED);
    CHECK(t, fd_is_readable(fd));
    rounds_watch(rounds, true); /* said twice */
    rounds_watch(rounds, false);
    CHECK_INT(t, rounds_news(rounds), ==, 0);
    CHECK(t, !fd_is_readable(fd));
    rounds_watch(rounds, true); /* of a round that begins only now */
    CHECK_OK(t, rounds_keep_reason(rounds, "of the old round", &err));
    CHECK_OK(t, enter_next());
    CHECK(t, !rounds_reason(rounds, reason));
    CHECK_INT(t, rounds_news(rounds), ==, HVD_HOSTS_UPDATED);
    rounds_watch(rounds, false);
    rounds_tell(rounds, HVD_HOSTS_UPDATED);
    CHECK_INT(t, rounds_news(rounds), ==, HVD_HOSTS_UPDATED);
    CHECK_CODE(t, rounds_revoke(rounds, "too late", &err), HVD_E_STATE);
    rounds_cancel(rounds, the_round - 1); /* late: an older round */
    CHECK_INT(t, rounds_news(rounds), ==, HVD_HOSTS_UPDATED);
    rounds_cancel(rounds, the_round);
    CHECK_INT(t, rounds_news(rounds), ==, HVD_E_REVOKED);
    CHECK(t, fd_is_readable(fd));
    rounds_open(rounds, false);
    CHECK_INT(t, rounds_news(rounds), ==, 0);
    CHECK(t, !fd_is_readable(fd));
    CHECK_CODE(t, rounds_revoke(rounds, "too late", &err), HVD_E_STATE);
    CHECK_CODE(t, rounds_keep_reason(rounds, "too late", &err), HVD_E_STATE);
}

/* The program revokes the round while a request is in progress. */
TEST(a_revoke_ends_the_calls_of_a_round)
{
    hvd_request *requests[2] = { NULL };

    fake_coll_hold(1);
    CHECK_OK(t, start(1, &requests[0]));
    CHECK_OK(t, start(2, &requests[1]));
    CHECK_OK(t, rounds_revoke(rounds, "not a number", &err));
    CHECK_INT(t, rounds_news(rounds), ==, HVD_E_REVOKED);
    CHECK_CODE(t, await(requests[1]), HVD_E_REVOKED);
    CHECK_CODE(t, await(requests[0]), HVD_E_REVOKED);
    CHECK_CODE(t, run(3), HVD_E_REVOKED);
    CHECK_HAS(t, err.text, "rank 0 has revoked the round: not a number");
    CHECK_OK(t, rounds_revoke(rounds, "again", &err)); /* it is over already */
    CHECK_OK(t, enter_next());
    CHECK_INT(t, rounds_news(rounds), ==, 0);
    CHECK_OK(t, run(3));
}

/* ---- names ----------------------------------------------------------------------------------- */

TEST(a_finished_request_is_recognised)
{
    hvd_request *old = NULL;
    hvd_request *request = NULL;

    CHECK_OK(t, start(1, &old));
    CHECK_OK(t, await(old));
    CHECK_CODE(t, await(old), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "wait once");
    CHECK_OK(t, start(2, &request)); /* in the same place of the table */
    CHECK(t, request != old);
    CHECK_CODE(t, await(old), HVD_E_INVAL);
    CHECK_CODE(t, await(NULL), HVD_E_INVAL);
    /* a valid place, but a wrong name */
    CHECK_CODE(t, await((hvd_request *)(uintptr_t)1), HVD_E_INVAL);
    CHECK_CODE(t, await((hvd_request *)UINTPTR_MAX), HVD_E_INVAL);
    CHECK_CODE(t, await((hvd_request *)&request), HVD_E_INVAL);
    CHECK_OK(t, await(request));
    CHECK_OK(t, run(3)); /* none of these errors ended the round */
    end(t);
    begin(t); /* as in another hvd_init */
    CHECK_OK(t, start(1, &old));
    CHECK_CODE(t, await(request), HVD_E_INVAL);
    CHECK_OK(t, await(old));
}

TEST_FLAGS(the_number_of_requests_is_limited, TEST_NO_TORTURE)
{
    static hvd_request *requests[16384];
    hvd_request *more;

    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        CHECK_OK(t, start(1, &requests[i]));
    CHECK_CODE(t, start(1, &more), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "LIMIT_REQUESTS");
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        CHECK_OK(t, await(requests[i]));
    CHECK_OK(t, start(1, &more));
    CHECK_OK(t, await(more));
}

/* ---- failures -------------------------------------------------------------------------------- */

/* The second of four requests fails: the first succeeds, the later ones are revoked, and calls fail
 * until the next round. */
TEST(a_failure_fails_the_requests_behind_it)
{
    hvd_request *requests[4] = { NULL };

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
    CHECK_HAS(t, err.text, "has failed already");
    CHECK_OK(t, enter_next());
    CHECK_OK(t, start(2, &requests[0]));
    CHECK_CODE(t, await(requests[0]), HVD_E_MISMATCH);
    CHECK_OK(t, enter_next());
    CHECK_OK(t, run(3));
}

/* A wrong call or request ends the round, and revokes the request that runs. */
TEST(a_call_that_makes_no_sense_ends_the_round)
{
    hvd_request *requests[2] = { NULL };
    hvd_call call = call_of(2);

    fake_coll_hold(1);
    CHECK_OK(t, start(1, &requests[0]));
    CHECK(t, fake_coll_await(1));
    call.out = NULL;
    CHECK_CODE(t, requests_start(rounds, &call, &requests[1], &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "is NULL");
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
    CHECK_OK(t, run(4)); /* each wrong call has given the ticket back */
    fake_coll_go();
}

/* A call that waits behind a request is refused for the same reasons as other calls. */
TEST(calls_behind_a_request_are_checked_too)
{
    hvd_request *request = NULL;
    hvd_call call = call_of(2);

    fake_coll_hold(1);
    CHECK_OK(t, start(1, &request));
    call.op = (hvd_op)9;
    CHECK_CODE(t, requests_run(rounds, &call, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "no op 9");
    CHECK_CODE(t, await(request), HVD_E_REVOKED);
}

/* ---- the ends of rounds ---------------------------------------------------------------------- */

TEST(pending_requests_end_with_the_round)
{
    hvd_request *requests[3] = { NULL };
    int done = 0;

    fake_coll_hold(1);
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(t, start(i + 1, &requests[i]));
    CHECK(t, fake_coll_await(1));
    rounds_cancel(rounds, the_round); /* as after a REVOKE */
    CHECK_CODE(t, await(requests[2]), HVD_E_REVOKED);
    CHECK_CODE(t, await(requests[0]), HVD_E_REVOKED);
    CHECK_OK(t, enter_next());
    /* the request can still be tested */
    CHECK_OK(t, requests_test(rounds, requests[1], &done, &err));
    CHECK_INT(t, done, ==, 1);
    CHECK_CODE(t, await(requests[1]), HVD_E_REVOKED);
    CHECK_OK(t, run(4));
}

/* train returns while three requests run: each has ended with HVD_E_REVOKED, and the next round
 * works. */
TEST(train_may_return_before_requests_are_done)
{
    hvd_request *requests[3] = { NULL };
    int done = 0;

    fake_coll_hold(1);
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(t, start(i + 1, &requests[i]));
    CHECK(t, fake_coll_await(1));
    rounds_open(rounds, false);
    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(t, requests_test(rounds, requests[i], &done, &err));
        CHECK_INT(t, done, ==, 1);
    }
    CHECK(t, !rounds_failed(rounds)); /* the round has not failed */
    CHECK_CODE(t, start(4, &requests[0]), HVD_E_STATE);
    CHECK_HAS(t, err.text, "call collectives only in train");
    CHECK_CODE(t, await(requests[1]), HVD_E_REVOKED);
    CHECK_HAS(t, err.text, "train has returned");
    CHECK_OK(t, enter_next());
    CHECK_CODE(t, await(requests[2]), HVD_E_REVOKED);
    fake_coll_go();
    CHECK_OK(t, run(1));
}

TEST_FLAGS(the_end_may_come_at_any_moment, TEST_NO_TORTURE)
{
    hvd_request *request = NULL;

    for (int i = 0; i < 50; i++) {
        for (int k = 0; k < i % 5; k++)
            CHECK_OK(t, start(1, &request));
        if (i % 2)
            CHECK_OK(t, enter_next());
        if (request && i % 3)
            CHECK(t, await(request) != HVD_E_INVAL || !(i % 5));
        end(t);
        begin(t);
    }
}

TEST(news_prevents_new_requests)
{
    hvd_request *request = NULL;

    fake_coll_hold(1);
    CHECK_OK(t, start(1, &request));
    rounds_tell(rounds, HVD_HOSTS_UPDATED);
    CHECK_CODE(t, run(2), HVD_E_STATE);
    CHECK_HAS(t, err.text, "HVD_HOSTS_UPDATED");
    fake_coll_go();
    CHECK_OK(t, await(request)); /* the request has ended */
    CHECK_CODE(t, start(2, &request), HVD_E_STATE);
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

TEST_FLAGS(threads_do_not_harm_each_other, TEST_NO_TORTURE)
{
    for (; started < 3; started++) {
        runners[started] = (struct runner){ .number = started + 1 };
        CHECK_OK(t, thread_start(&threads[started], 0, start_and_await, &runners[started]));
    }
    while (started)
        pthread_join(threads[--started], NULL);
    for (size_t i = 0; i < 3; i++)
        CHECK_OK(t, runners[i].rc);
    CHECK_OK(t, run(1));
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
        waiting = rounds->requests.waiters;
        pthread_mutex_unlock(&rounds->lock);
        (void)sched_yield();
    }
    return waiting == count;
}

/* The threads have been woken but run later; the data that they look at must still be there. */
TEST_FLAGS(waiting_threads_return_before_the_end, TEST_NO_TORTURE)
{
    hvd_request *requests[16] = { NULL };

    for (int i = 0; i < 20; i++) {
        fake_coll_hold(1);
        for (size_t k = 0; k < 16; k++)
            CHECK_OK(t, start(k + 1, &requests[k]));
        for (; started < 16; started++)
            CHECK_OK(t, thread_start(&threads[started], 0, await_one, requests[started]));
        CHECK(t, all_wait(16));
        end(t);
        begin(t);
    }
}

/* ---- groups that are opened ------------------------------------------------------------------ */

static const int just_us[] = { 0 };
static const struct group_rule of_us = { .listed = true, .ranks = just_us, .count = 1 };

TEST(groups_are_opened_between_calls)
{
    hvd_group *group = NULL;
    hvd_group *other = NULL;
    hvd_call call = call_of(2);

    CHECK_OK(t, run(1));
    CHECK_OK(t, rounds_open_group(rounds, &of_us, &group, &err));
    CHECK_OK(t, rounds_open_group(rounds, &of_us, &other, &err));
    CHECK_INT(t, rounds_group(rounds, group, true, &err), ==, 1);
    call.group = group;
    CHECK_OK(t, requests_run(rounds, &call, &err));
    CHECK_INT(t, fake_coll_seen().group, ==, 1);
    CHECK_OK(t, rounds_close_group(rounds, group, &err));
    CHECK_CODE(t, rounds_group(rounds, group, true, &err), HVD_E_INVAL);
    CHECK_INT(t, rounds_group(rounds, other, false, &err), ==, 0);
    /* the next round has none of them */
    CHECK_OK(t, enter_next());
    CHECK_CODE(t, rounds_group(rounds, other, false, &err), HVD_E_INVAL);
    call.group = other;
    CHECK_CODE(t, requests_run(rounds, &call, &err), HVD_E_INVAL);
}

/* Whether the request is done does not matter: it was not waited for. */
TEST(no_group_is_opened_or_closed_beside_requests)
{
    hvd_request *request = NULL;
    hvd_group *group = NULL;

    CHECK_OK(t, rounds_open_group(rounds, &of_us, &group, &err));
    for (int closes = 0; closes < 2; closes++) {
        int done = 0;

        CHECK_OK(t, start(1, &request));
        while (!done)
            CHECK_OK(t, requests_test(rounds, request, &done, &err));
        if (closes)
            CHECK_CODE(t, rounds_close_group(rounds, group, &err), HVD_E_BUSY);
        else
            CHECK_CODE(t, rounds_open_group(rounds, &of_us, &group, &err), HVD_E_BUSY);
        CHECK_HAS(t, err.text, "while 1 requests of rank 0 are open; call hvd_wait");
        CHECK_HAS(t, fake_coll_seen().refused, "while 1 requests");
        CHECK_OK(t, await(request));
        CHECK_CODE(t, run(2), HVD_E_REVOKED);
        CHECK_OK(t, enter_next());
    }
}

/* Only the members know of such a group, so nothing needs to be agreed on: requests may be open,
 * also one that is in progress. */
TEST(members_open_a_group_beside_requests)
{
    hvd_request *request = NULL, *other = NULL;
    hvd_group *group = NULL, *second = NULL;
    hvd_call call = call_of(3);

    fake_coll_hold(1);
    CHECK_OK(t, start(1, &request));
    CHECK(t, fake_coll_await(1));
    CHECK_OK(t, rounds_open_apart(rounds, just_us, 1, 77, &group, &err));
    CHECK_INT(t, fake_coll_seen().opened, ==, 1);
    CHECK_INT(t, fake_coll_seen().opened_tag, ==, 77);
    CHECK_INT(t, rounds_group(rounds, group, true, &err), ==, 1);
    call.group = group;
    CHECK_OK(t, requests_start(rounds, &call, &other, &err));
    fake_coll_go();
    CHECK_OK(t, await(request));
    CHECK_OK(t, await(other));
    CHECK_INT(t, fake_coll_seen().group, ==, 1);
    CHECK_OK(t, rounds_open_apart(rounds, just_us, 1, 78, &second, &err));
    /* one that all ranks open has the number that it has on all of them */
    CHECK_OK(t, rounds_open_group(rounds, &of_us, &second, &err));
    CHECK_OK(t, rounds_close_group(rounds, second, &err));
    CHECK_INT(t, fake_coll_seen().closed, ==, 1);
    /* closed without the others, and beside a request */
    CHECK_OK(t, start(1, &request));
    CHECK_OK(t, rounds_close_group(rounds, group, &err));
    CHECK_OK(t, await(request));
    CHECK_CODE(t, rounds_group(rounds, group, true, &err), HVD_E_INVAL);
    CHECK_INT(t, fake_coll_seen().closed, ==, 1);
}

TEST(members_that_open_a_group_wrongly_end_the_round)
{
    static const int strange[] = { 0, 5 };
    hvd_group *group = NULL;

    CHECK_CODE(t, rounds_open_apart(rounds, strange, 2, 1, &group, &err), HVD_E_INVAL);
    CHECK_HAS(t, fake_coll_seen().refused, "rank 5 is no rank of this round");
    CHECK_CODE(t, run(1), HVD_E_REVOKED);
    CHECK_CODE(t, rounds_open_apart(rounds, just_us, 1, 1, &group, &err), HVD_E_REVOKED);
    CHECK_OK(t, enter_next());
    CHECK_CODE(t, rounds_open_apart(rounds, just_us, 1, 1, NULL, &err), HVD_E_INVAL);
    CHECK_HAS(t, fake_coll_seen().refused, "hvd_group_open: ret_group is NULL");
    CHECK_OK(t, enter_next());
    rounds_cancel(rounds, the_round); /* between the check and the opening */
    CHECK_CODE(t, rounds_open_apart(rounds, just_us, 1, 1, &group, &err), HVD_E_REVOKED);
    CHECK_OK(t, enter_next());
    rounds_open(rounds, false);
    CHECK_CODE(t, rounds_open_apart(rounds, just_us, 1, 1, &group, &err), HVD_E_STATE);
}

TEST(a_group_that_cannot_be_opened_ends_the_round)
{
    static const int twice[] = { 0, 0 };
    const struct group_rule wrong = { .listed = true, .ranks = twice, .count = 2 };
    hvd_group *group = NULL;

    CHECK_CODE(t, rounds_open_group(rounds, &wrong, &group, &err), HVD_E_INVAL);
    CHECK_HAS(t, fake_coll_seen().refused, "rank 0 is in the list twice");
    CHECK_CODE(t, run(1), HVD_E_REVOKED);
    CHECK_OK(t, enter_next());
    CHECK_CODE(t, rounds_open_group(rounds, &of_us, NULL, &err), HVD_E_INVAL);
    CHECK_OK(t, enter_next());
    CHECK_CODE(t, rounds_close_group(rounds, NULL, &err), HVD_E_INVAL);
    CHECK_HAS(t, fake_coll_seen().refused, "the group is not open");
    CHECK_OK(t, enter_next());
    rounds_open(rounds, false);
    CHECK_CODE(t, rounds_open_group(rounds, &of_us, &group, &err), HVD_E_STATE);
}
