/*
 * Links of each kind. A member is a thread with a device of its own, and each is connected to all.
 */
#include "base/mem.h"
#include "collectives/link/links.h"
#include "os/clock.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define TEAM_MAX   9
#define LONG_US    (60 * INT64_C(1000000)) /* nothing here takes that long */
#define SHORT_US   50000
#define MIB        ((size_t)1024 * 1024)
#define LARGE      (17 * MIB) /* more than all buffers of a connection hold */
#define NO_TORTURE TEST_NO_TORTURE

struct address {
    uint8_t bytes[LINK_ADDRESS_MAX];
    size_t length;
};

struct team {
    uint32_t size;
    struct reaper *reaper;
    struct link_device *devices[TEAM_MAX];
    struct link *links[TEAM_MAX];
    struct address told[TEAM_MAX][TEAM_MAX]; /* [by][to] */
    int rc[TEAM_MAX];
    uint32_t missing[TEAM_MAX];
    struct hvd_err err[TEAM_MAX];
    bool away[TEAM_MAX]; /* does not act */
    int64_t timeout_us[TEAM_MAX];
    unsigned turn; /* by how much the order is turned in which each connects the others */
    size_t bytes;
    void (*act)(struct team *team, uint32_t rank);
    pthread_barrier_t gate;
};

struct seat {
    struct team *team;
    uint32_t rank;
    pthread_t thread;
};

static int make_member(struct team *team, enum link_kind kind, const char *host, uint32_t rank)
{
    uint32_t peers[TEAM_MAX];
    size_t count = 0;
    int rc = link_device_open(kind, host, &team->devices[rank], NULL);

    for (uint32_t i = 0; i < team->size; i++) {
        if (i != rank)
            peers[count++] = i;
    }
    if (!rc)
        rc = link_create(team->devices[rank], team->reaper, rank, team->size, peers, count,
                         &team->links[rank], NULL);
    for (size_t i = 0; i < count && !rc; i++) {
        struct address *told = &team->told[rank][peers[i]];

        rc = team->links[rank]->ops->address(team->links[rank], peers[i], told->bytes,
                                             &told->length, NULL);
    }
    return rc;
}

static int team_open(struct team *team, enum link_kind kind, const char *host, uint32_t size)
{
    int rc;

    memset(team, 0, sizeof(*team));
    team->size = size;
    for (uint32_t i = 0; i < size; i++)
        team->timeout_us[i] = LONG_US;
    if (pthread_barrier_init(&team->gate, NULL, size))
        abort();
    rc = reaper_open(NULL, NULL, &team->reaper, NULL);
    for (uint32_t i = 0; i < size && !rc; i++)
        rc = make_member(team, kind, host, i);
    return rc;
}

/* What a cancel has left to do is done before a link is freed. */
static void team_close(struct team *team)
{
    reaper_close(team->reaper);
    for (uint32_t i = 0; i < team->size; i++) {
        if (team->links[i])
            team->links[i]->ops->free(team->links[i]);
        link_device_close(team->devices[i]);
    }
    pthread_barrier_destroy(&team->gate);
}

static void *play(void *arg)
{
    struct seat *seat = arg;

    seat->team->act(seat->team, seat->rank);
    return NULL;
}

static void team_start(struct team *team, struct seat *seats,
                       void (*act)(struct team *team, uint32_t rank))
{
    team->act = act;
    for (uint32_t i = 0; i < team->size; i++) {
        seats[i] = (struct seat){ .team = team, .rank = i };
        if (!team->away[i] && pthread_create(&seats[i].thread, NULL, play, &seats[i]))
            abort();
    }
}

static void team_await(const struct team *team, struct seat *seats)
{
    for (uint32_t i = 0; i < team->size; i++) {
        if (!team->away[i])
            pthread_join(seats[i].thread, NULL);
    }
}

static void team_run(struct team *team, void (*act)(struct team *team, uint32_t rank))
{
    struct seat seats[TEAM_MAX];

    team_start(team, seats, act);
    team_await(team, seats);
}

/* ---- what members do ---- */

static int connect_one(struct team *team, uint32_t rank, uint32_t peer)
{
    const struct address *told = &team->told[peer][rank];

    return team->links[rank]->ops->connect(team->links[rank], peer, told->bytes, told->length,
                                           &team->err[rank]);
}

static int await_all(struct team *team, uint32_t rank)
{
    return team->links[rank]->ops->connected(team->links[rank],
                                             clock_now_us() + team->timeout_us[rank],
                                             &team->missing[rank], &team->err[rank]);
}

static void act_connect(struct team *team, uint32_t rank)
{
    team->rc[rank] = 0;
    for (uint32_t i = 1; i < team->size && !team->rc[rank]; i++) {
        uint32_t place = (i - 1 + team->turn * rank) % (team->size - 1);

        team->rc[rank] = connect_one(team, rank, (rank + 1 + place) % team->size);
    }
    if (!team->rc[rank])
        team->rc[rank] = await_all(team, rank);
}

static uint8_t number_at(uint32_t from, uint32_t to, size_t at)
{
    return (uint8_t)(from * 31 + to * 7 + at + at / 251);
}

static void fill(uint8_t *bytes, size_t length, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = number_at(from, to, i);
}

static bool is_filled(const uint8_t *bytes, size_t length, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != number_at(from, to, i))
            return false;
    }
    return true;
}

static int post_send(struct link *link, uint32_t to, uint64_t tag, const void *bytes, size_t length,
                     struct link_request **ret_request)
{
    return link->ops->send(link, to, tag, bytes, length, ret_request);
}

static int post_receive(struct link *link, uint32_t from, uint64_t tag, void *bytes, size_t length,
                        struct link_request **ret_request)
{
    return link->ops->receive(link, from, tag, bytes, length, ret_request);
}

static int await(struct link *link, struct link_request *request)
{
    return link->ops->wait(link, request);
}

/* Everybody to everybody, both ways at once. */
static int exchange_with(struct team *team, uint32_t rank, uint8_t *out[TEAM_MAX],
                         uint8_t *in[TEAM_MAX])
{
    struct link_request *sent[TEAM_MAX] = { NULL }, *received[TEAM_MAX] = { NULL };
    struct link *link = team->links[rank];
    int rc = 0;

    for (uint32_t i = 0; i < team->size && !rc; i++) {
        if (i != rank)
            rc = post_receive(link, i, 5, in[i], team->bytes, &received[i]);
        if (i != rank && !rc)
            rc = post_send(link, i, 5, out[i], team->bytes, &sent[i]);
    }
    for (uint32_t i = 0; i < team->size && !rc; i++) {
        if (i != rank)
            rc = await(link, sent[i]);
        if (i != rank && !rc)
            rc = await(link, received[i]);
        if (i != rank && !rc && !is_filled(in[i], team->bytes, i, rank))
            rc = HVD_E_INTERNAL;
    }
    return rc;
}

static void act_exchange(struct team *team, uint32_t rank)
{
    uint8_t *out[TEAM_MAX] = { NULL }, *in[TEAM_MAX] = { NULL };

    act_connect(team, rank);
    if (team->rc[rank])
        return;
    for (uint32_t i = 0; i < team->size; i++) {
        out[i] = mem_alloc(team->bytes);
        in[i] = mem_zalloc(team->bytes);
        if (!out[i] || !in[i])
            abort();
        fill(out[i], team->bytes, rank, i);
    }
    team->rc[rank] = exchange_with(team, rank, out, in);
    for (uint32_t i = 0; i < team->size; i++) {
        mem_free(out[i]);
        mem_free(in[i]);
    }
}

/* ---- connecting ---- */

static void check_connects(struct test *t, enum link_kind kind, const char *host)
{
    struct team team;

    for (uint32_t size = 2; size <= TEAM_MAX; size++) {
        CHECK_OK(t, team_open(&team, kind, host, size));
        team.turn = size;
        team_run(&team, act_connect);
        for (uint32_t i = 0; i < size; i++)
            CHECK_OK(t, team.rc[i]);
        team_close(&team);
    }
    return;
out:
    team_close(&team);
}

static void connects_gloo(struct test *t)
{
    check_connects(t, LINK_GLOO, "127.0.0.1");
}

static void connects_tcp(struct test *t)
{
    check_connects(t, LINK_TCP, "127.0.0.1");
}

static void connects_tcp_over_ipv6(struct test *t)
{
    check_connects(t, LINK_TCP, "::1");
}

/* Time runs out, again and again, until nobody is missing but the one that is not there. A Gloo
 * that dials does not miss it: the other side's thread is enough. */
static void act_connect_but_last(struct team *team, uint32_t rank)
{
    int64_t until_us = clock_now_us() + LONG_US;

    team->timeout_us[rank] = SHORT_US;
    act_connect(team, rank);
    while (team->rc[rank] == HVD_E_TIMEOUT && team->missing[rank] != team->size - 1 &&
           clock_now_us() < until_us)
        team->rc[rank] = await_all(team, rank);
    team->timeout_us[rank] = LONG_US;
}

static void act_late(struct team *team, uint32_t rank)
{
    bool last = rank == team->size - 1;

    if (!last)
        act_connect_but_last(team, rank);
    pthread_barrier_wait(&team->gate);
    if (last)
        act_connect(team, rank);
    else if (team->rc[rank] == HVD_E_TIMEOUT)
        team->rc[rank] = await_all(team, rank);
}

static void check_late(struct test *t, enum link_kind kind)
{
    struct team team;

    CHECK_OK(t, team_open(&team, kind, "127.0.0.1", 3));
    team_run(&team, act_late);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_OK(t, team.rc[i]);
out:
    team_close(&team);
}

static void late_peer_gloo(struct test *t)
{
    check_late(t, LINK_GLOO);
}

static void late_peer_tcp(struct test *t)
{
    check_late(t, LINK_TCP);
}

static void cancel_all(struct team *team)
{
    for (uint32_t i = 0; i < team->size; i++) {
        if (team->links[i])
            team->links[i]->ops->cancel(team->links[i]);
    }
}

static void check_missing(struct test *t, enum link_kind kind)
{
    struct team team;

    CHECK_OK(t, team_open(&team, kind, "127.0.0.1", 4));
    team.away[3] = true;
    team_run(&team, act_connect_but_last);
    for (uint32_t i = 0; i < 3; i++) {
        if (kind == LINK_GLOO && !team.rc[i])
            continue;
        CHECK_CODE(t, team.rc[i], HVD_E_TIMEOUT);
        CHECK_INT(t, team.missing[i], ==, 3);
    }
out:
    cancel_all(&team);
    team_close(&team);
}

static void one_never_comes_gloo(struct test *t)
{
    check_missing(t, LINK_GLOO);
}

static void one_never_comes_tcp(struct test *t)
{
    check_missing(t, LINK_TCP);
}

/* ---- messages ---- */

static void check_exchange(struct test *t, enum link_kind kind)
{
    static const size_t sizes[] = { 0, 1, 4096, MIB, LARGE };
    struct team team;

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        uint32_t size = sizes[i] < LARGE ? 4 : 2;

        CHECK_OK(t, team_open(&team, kind, "127.0.0.1", size));
        team.bytes = sizes[i];
        team_run(&team, act_exchange);
        for (uint32_t k = 0; k < size; k++)
            CHECK_OK(t, team.rc[k]);
        team_close(&team);
    }
    return;
out:
    team_close(&team);
}

static void both_ways_gloo(struct test *t)
{
    check_exchange(t, LINK_GLOO);
}

static void both_ways_tcp(struct test *t)
{
    check_exchange(t, LINK_TCP);
}

TESTS(CASE_FLAGS(connects_gloo, NO_TORTURE), CASE_FLAGS(connects_tcp, NO_TORTURE),
      CASE_FLAGS(connects_tcp_over_ipv6, NO_TORTURE), CASE_FLAGS(late_peer_gloo, NO_TORTURE),
      CASE_FLAGS(late_peer_tcp, NO_TORTURE), CASE_FLAGS(one_never_comes_gloo, NO_TORTURE),
      CASE_FLAGS(one_never_comes_tcp, NO_TORTURE), CASE_FLAGS(both_ways_gloo, NO_TORTURE),
      CASE_FLAGS(both_ways_tcp, NO_TORTURE))
