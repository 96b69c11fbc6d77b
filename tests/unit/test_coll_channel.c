/*
 * Sends and receives between two members: every layout and size, all pairs at the same time, beside
 * operations of the round; what does not fit together, a member that never comes, a round that
 * ends.
 */
#include "base/mem.h"
#include "collectives/channel.h"
#include "os/clock.h"
#include "tests/lib/coll_team.h"
#include "tests/lib/fixture.h"

#include <string.h>

static const char *const layouts[] = { "aa",   "ab",      "aabb",    "abbaab",
                                       "abcd", "gloo ab", "tcp aaa", "ordered aabba" };

static struct team own;

static void begin(struct test *t)
{
    (void)t;
    own = (struct team){ .size = 0 };
}

static void end(struct test *t)
{
    (void)t;
    team_close(&own);
}
FIXTURE(begin, end)

static void check_team(struct test *t, const struct team *team)
{
    for (uint32_t i = 0; i < team->size; i++) {
        CHECK_TEXT(t, team->err[i].text, "");
        CHECK_OK(t, team->rc[i]);
    }
}

static int barrier(struct team *team, uint32_t rank)
{
    const struct coll_call call = { .kind = COLL_BARRIER };

    return coll_run(team->colls[rank], &call, &team->err[rank]);
}

static int open_to(struct team *team, uint32_t rank, uint32_t peer, bool sends,
                   struct coll_channel **ret_channel)
{
    return coll_open_channel(team->colls[rank], peer, sends, ret_channel, &team->err[rank]);
}

/* One end of a channel, on a thread of its own: sends or receives messages of several sizes. */
struct stream {
    struct team *team;
    uint32_t rank, peer;
    bool sends;
    int rc;
    struct hvd_err err;
};

static const size_t sizes[] = { 1, 0, 7, 32768, 65536, 65537, 1, 200001, 3 };
#define MOST 200001

static int32_t value_of(uint32_t from, uint32_t to, size_t message, size_t i)
{
    return (int32_t)(from * 1000003 + to * 10007 + message * 101 + i);
}

static void *run_stream(void *arg)
{
    struct stream *stream = arg;
    uint32_t from = stream->sends ? stream->rank : stream->peer;
    uint32_t to = stream->sends ? stream->peer : stream->rank;
    int32_t *numbers = mem_zalloc_array(MOST, sizeof(*numbers));
    struct coll_channel *channel = NULL;

    stream->rc = coll_open_channel(stream->team->colls[stream->rank], stream->peer, stream->sends,
                                   &channel, &stream->err);
    for (size_t m = 0; m < ARRAY_SIZE(sizes) && !stream->rc; m++) {
        const struct coll_call call = { .kind = stream->sends ? COLL_SEND : COLL_RECEIVE,
                                        .type = HVD_INT32,
                                        .in = numbers,
                                        .out = numbers,
                                        .count = sizes[m],
                                        .tag = m };

        for (size_t i = 0; i < sizes[m]; i++)
            numbers[i] = stream->sends ? value_of(from, to, m, i) : 0;
        stream->rc = coll_transfer(channel, &call, &stream->err);
        for (size_t i = 0; i < sizes[m] && !stream->rc; i++)
            stream->rc = numbers[i] == value_of(from, to, m, i) ? 0 : 1;
    }
    mem_free(numbers);
    return NULL;
}

/* Each member sends to all others and receives from them, each channel on a thread, while its own
 * thread makes allreduces with all. */
static void act_all_pairs(struct team *team, uint32_t rank)
{
    struct stream streams[2 * COLL_TEAM_MAX];
    pthread_t threads[2 * COLL_TEAM_MAX];
    size_t count = 0;
    int64_t sum = 1;
    const struct coll_call add = {
        .kind = COLL_ALLREDUCE, .type = HVD_INT64, .in = &sum, .out = &sum, .count = 1
    };

    team_act_connect(team, rank);
    if (team->rc[rank])
        return;
    for (uint32_t peer = 0; peer < team->size; peer++) {
        for (int sends = 0; sends < 2 && peer != rank; sends++) {
            streams[count] =
                (struct stream){ .team = team, .rank = rank, .peer = peer, .sends = sends };
            pthread_create(&threads[count], NULL, run_stream, &streams[count]);
            count++;
        }
    }
    for (int i = 0; i < 20 && !team->rc[rank]; i++) {
        sum = 1;
        team->rc[rank] = coll_run(team->colls[rank], &add, &team->err[rank]);
        if (!team->rc[rank] && sum != team->size)
            team->rc[rank] = 1;
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        if (!team->rc[rank] && streams[i].rc) {
            team->rc[rank] = streams[i].rc;
            team->err[rank] = streams[i].err;
        }
    }
    if (!team->rc[rank])
        team->rc[rank] = barrier(team, rank);
}

TEST_FLAGS(all_pairs_send_beside_the_operations, TEST_NO_TORTURE)
{
    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        team_run(&own, act_all_pairs);
        check_team(t, &own);
        team_close(&own);
    }
}

/* ---- what does not fit together -------------------------------------------------------------- */

enum { COUNTS, TYPES, TAGS, CANCELS, WAYS };

/* The second message of rank 1 to rank 0 is not what rank 0 waits for; other ranks wait in a
 * barrier. */
static void act_wrong(struct team *team, uint32_t rank)
{
    int32_t numbers[4] = { 0 };
    struct coll_call call = { .kind = rank ? COLL_SEND : COLL_RECEIVE,
                              .type = HVD_INT32,
                              .in = numbers,
                              .out = numbers,
                              .count = 2,
                              .tag = 5 };
    struct coll_channel *channel = NULL;
    int *rc = &team->rc[rank];

    team_act_connect(team, rank);
    if (!*rc)
        *rc = barrier(team, rank);
    if (!*rc && rank < 2)
        *rc = open_to(team, rank, 1 - rank, rank, &channel);
    if (!*rc && rank < 2)
        *rc = coll_transfer(channel, &call, &team->err[rank]);
    if (rank == 1 && team->way == COUNTS)
        call.count = 3;
    if (rank == 1 && team->way == TYPES)
        call.type = HVD_FLOAT32;
    if (rank == 1 && team->way == TAGS)
        call.tag = 6;
    if (!*rc && rank == 1 && team->way == CANCELS)
        coll_cancel(team->colls[rank]);
    if (!*rc && rank < 2)
        *rc = coll_transfer(channel, &call, &team->err[rank]);
    if (!*rc)
        *rc = barrier(team, rank);
}

TEST_FLAGS(a_message_that_does_not_fit_ends_the_round, TEST_NO_TORTURE)
{
    static const char *const theirs[] = { "send of 3 int32 from rank 1, tag 5",
                                          "send of 2 float32 from rank 1, tag 5",
                                          "send of 2 int32 from rank 1, tag 6" };

    for (size_t layout = 0; layout < ARRAY_SIZE(layouts); layout++) {
        CHECK_OK(t, team_open_layout(&own, layouts[layout]));
        for (int way = 0; way < WAYS; way++) {
            team_part(&own);
            CHECK_OK(t, team_make(&own, (uint64_t)way + 2));
            own.way = way;
            team_run(&own, act_wrong);
            for (uint32_t i = 0; i < own.size; i++) {
                CHECK_CODE(t, own.rc[i], way == CANCELS ? HVD_E_REVOKED : HVD_E_MISMATCH);
                if (way == CANCELS)
                    continue;
                CHECK_HAS(t, own.err[i].text, theirs[way]);
                CHECK_HAS(t, own.err[i].text, "send of 2 int32 from rank 1, tag 5");
            }
        }
        team_close(&own);
    }
}

/* ---- a member that does not come ------------------------------------------------------------- */

/* Rank 0 receives, or sends, what rank 1 never does; rank 1 waits for the end of the round. */
static void act_alone(struct team *team, uint32_t rank)
{
    int32_t number = 0;
    const struct coll_call call = {
        .kind = COLL_SEND, .type = HVD_INT32, .in = &number, .out = &number, .count = 1
    };
    struct coll_channel *channel = NULL;
    int *rc = &team->rc[rank];

    team_act_connect(team, rank);
    if (!*rc)
        *rc = barrier(team, rank);
    if (!*rc && rank == 1 && team->way / 2)
        *rc = open_to(team, rank, 0, !(team->way % 2), &channel);
    if (!*rc && rank == 0)
        *rc = open_to(team, rank, 1, team->way % 2, &channel);
    if (!*rc)
        *rc = rank ? barrier(team, rank) : coll_transfer(channel, &call, &team->err[rank]);
}

TEST_FLAGS(a_member_that_does_not_come_is_named, TEST_NO_TORTURE)
{
    static const char *const pairs[] = { "aa", "ab", "tcp aa" };

    for (size_t pair = 0; pair < ARRAY_SIZE(pairs); pair++) {
        CHECK_OK(t, team_open_layout(&own, pairs[pair]));
        for (int way = 0; way < 4; way++) {
            int64_t until_us = clock_now_us() + COLL_TEAM_LONG_US;
            struct coll_wait wait = { .operation = NULL };

            team_part(&own);
            CHECK_OK(t, team_make(&own, (uint64_t)way + 2));
            own.way = way;
            team_start(&own, act_alone);
            while (!wait.operation && clock_now_us() < until_us)
                coll_transfer_look(own.colls[0], &wait);
            CHECK_TEXT(t, wait.operation ? wait.operation : "", way % 2 ? "send" : "receive");
            CHECK_INT(t, wait.missing_count, ==, 1);
            CHECK_INT(t, wait.missing[0], ==, 101);
            coll_cancel(own.colls[0]);
            team_await(&own);
            for (uint32_t i = 0; i < own.size; i++)
                CHECK_CODE(t, own.rc[i], HVD_E_REVOKED);
        }
        team_close(&own);
    }
}
