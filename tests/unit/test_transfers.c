/* The program's sends and receives: beside collectives that wait, in the order of their channel,
 * and at the end of a round. One rank of two, whose transfers end when the test says so. */
#include "os/thread.h"
#include "tests/lib/fake_coll.h"
#include "tests/lib/fixture.h"
#include "worker/rounds_internal.h"

#include <string.h>

#define SELF 7

static const struct msg_member both[] = {
    {.incarnation = SELF,      .host = "a"},
    { .incarnation = SELF + 1, .host = "b"}
};
static const struct msg_member_list members = { both, 2 };
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
}
FIXTURE(begin, end)

/* A call to or from rank 1 whose count is the number. */
static hvd_call call_of(hvd_kind kind, size_t number)
{
    static uint8_t in[64], out[64];

    return (hvd_call){
        .kind = kind, .in = in, .out = out, .count = number, .type = HVD_UINT8, .root = 1
    };
}

MUST_CHECK static int start(hvd_kind kind, size_t number, hvd_request **ret_request)
{
    const hvd_call call = call_of(kind, number);

    return requests_start(rounds, &call, ret_request, &err);
}

MUST_CHECK static int run(hvd_kind kind, size_t number)
{
    const hvd_call call = call_of(kind, number);

    return requests_run(rounds, &call, &err);
}

MUST_CHECK static int await(hvd_request *request)
{
    return requests_wait(rounds, request, &err);
}

TEST(a_transfer_waits_for_no_collective)
{
    hvd_request *add = NULL, *send = NULL;
    int done = 1;

    fake_coll_hold(5);
    CHECK_OK(t, start(HVD_ALLREDUCE, 5, &add));
    CHECK_OK(t, requests_test(rounds, add, &done, &err)); /* so that it is not held back */
    CHECK(t, fake_coll_await(5));
    CHECK_OK(t, run(HVD_RECV, 1));
    CHECK_OK(t, start(HVD_SEND, 2, &send));
    CHECK_OK(t, await(send));
    CHECK_OK(t, run(HVD_RECV, 3));
    CHECK_INT(t, fake_coll_seen().channels, ==, 2);
    CHECK_OK(t, requests_test(rounds, add, &done, &err));
    CHECK_INT(t, done, ==, 0);
    fake_coll_go();
    CHECK_OK(t, await(add));
}

TEST(a_collective_waits_for_no_transfer)
{
    hvd_request *receive = NULL, *send = NULL;
    int done = 1;

    fake_coll_hold(9);
    CHECK_OK(t, start(HVD_RECV, 9, &receive));
    CHECK_OK(t, run(HVD_ALLREDUCE, 4));
    CHECK_OK(t, start(HVD_SEND, 2, &send));
    CHECK_OK(t, await(send));
    CHECK_OK(t, requests_test(rounds, receive, &done, &err));
    CHECK_INT(t, done, ==, 0);
    CHECK_CODE(t, requests_wait_for(rounds, receive, 1000, &err), HVD_E_TIMEOUT);
    fake_coll_go();
    CHECK_OK(t, await(receive));
    CHECK_CODE(t, await(receive), HVD_E_INVAL);
}

TEST(transfers_of_a_channel_are_made_in_order)
{
    hvd_request *requests[20];

    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        CHECK_OK(t, start(HVD_SEND, i + 1, &requests[i]));
    for (size_t i = ARRAY_SIZE(requests); i-- > 0;)
        CHECK_OK(t, await(requests[i]));
    CHECK_OK(t, run(HVD_SEND, 21));
    for (size_t i = 0; i <= ARRAY_SIZE(requests); i++)
        CHECK_INT(t, fake_coll_seen().ran[i], ==, i + 1);
}

TEST(the_end_of_a_round_ends_its_transfers)
{
    hvd_request *first = NULL, *second = NULL, *other = NULL;

    fake_coll_hold(1);
    CHECK_OK(t, start(HVD_SEND, 1, &first));
    CHECK_OK(t, start(HVD_SEND, 2, &second));
    CHECK_OK(t, start(HVD_RECV, 1, &other));
    rounds_cancel(rounds, the_round);
    CHECK_CODE(t, await(second), HVD_E_REVOKED);
    CHECK_CODE(t, await(first), HVD_E_REVOKED);
    CHECK_CODE(t, await(other), HVD_E_REVOKED);
    CHECK_CODE(t, run(HVD_ALLREDUCE, 4), HVD_E_REVOKED);
    CHECK_CODE(t, run(HVD_SEND, 4), HVD_E_REVOKED);
    fake_coll_go();
    CHECK_OK(t, enter_next());
    CHECK_OK(t, run(HVD_SEND, 4));
    /* train returns without having waited */
    fake_coll_hold(6);
    CHECK_OK(t, start(HVD_SEND, 6, &first));
    rounds_open(rounds, false);
    CHECK_CODE(t, await(first), HVD_E_REVOKED);
    CHECK_HAS(t, err.text, "train has returned before the send or receive was done; call hvd_wait");
    CHECK_CODE(t, run(HVD_SEND, 4), HVD_E_STATE);
    CHECK_CODE(t, start(HVD_RECV, 4, &first), HVD_E_STATE);
}

TEST(a_failure_of_a_transfer_is_that_of_the_round)
{
    hvd_request *first = NULL, *second = NULL;
    int rc;

    fake_coll_fail(1, HVD_E_MISMATCH);
    CHECK_OK(t, start(HVD_SEND, 1, &first));
    rc = start(HVD_SEND, 2, &second); /* the round may have failed by now */
    CHECK_CODE(t, await(first), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "count 1 does not please");
    CHECK_CODE(t, rc ? rc : await(second), HVD_E_REVOKED);
    CHECK_CODE(t, run(HVD_ALLREDUCE, 4), HVD_E_REVOKED);
}

TEST(a_wrong_transfer_ends_the_round)
{
    /* clang-format off */
    const hvd_call wrong[] = {
        { .kind = HVD_SEND, .count = 1, .root = 1 },
        { .kind = HVD_RECV, .count = 1, .root = 1 },
        { .kind = HVD_SEND, .root = 0 },
        { .kind = HVD_SEND, .root = 2 },
        { .kind = HVD_RECV, .root = -1 },
        { .kind = HVD_RECV, .root = 1, .prescale = 2 },
        { .kind = HVD_SEND, .root = 1, .piece_count = 1 },
        { .kind = HVD_SEND, .root = 1, .count = SIZE_MAX, .type = HVD_FLOAT32, .in = &the_round },
    };
    /* clang-format on */
    static const char *const whys[] = {
        "send: the buffer \"in\" is NULL, and its count is not 0; give memory for this buffer",
        "receive: the buffer \"out\" is NULL, and its count is not 0; give memory for this buffer",
        "send: root 0 is this rank; name the rank of the other side in root",
        "send: root 2 is no rank of this round; use 0 to 1",
        "receive: root -1 is no rank of this round; use 0 to 1",
        "receive: this collective computes nothing that could be scaled",
        "send: pieces is set; use in or out, and count",
        "numbers of float32 are more than memory can hold; correct the argument count",
    };
    hvd_request *request = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        int rc = i % 2 ? requests_start(rounds, &wrong[i], &request, &err)
                       : requests_run(rounds, &wrong[i], &err);

        CHECK_CODE(t, rc, HVD_E_INVAL);
        CHECK_HAS(t, err.text, whys[i]);
        CHECK_HAS(t, fake_coll_seen().refused, whys[i]);
        CHECK_CODE(t, run(HVD_ALLREDUCE, 4), HVD_E_REVOKED);
        CHECK_OK(t, enter_next());
    }
}
