/*
 * Links of each kind. A member is a thread with a device of its own, and each is connected to all.
 */
#include "base/mem.h"
#include "collectives/link/links.h"
#include "collectives/link/tcp_words.h"
#include "os/clock.h"
#include "tests/lib/test.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEAM_MAX   9
#define LONG_US    (60 * INT64_C(1000000)) /* nothing here takes that long */
#define SHORT_US   50000
#define MIB        ((size_t)1024 * 1024)
#define LARGE      (17 * MIB) /* more than all buffers of a connection hold */
#define TAGS       40
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

static int send_now(struct link *link, uint32_t to, uint64_t tag, const void *bytes, size_t length)
{
    struct link_request *request;
    int rc = post_send(link, to, tag, bytes, length, &request);

    return rc ? rc : await(link, request);
}

static int receive_now(struct link *link, uint32_t from, uint64_t tag, void *bytes, size_t length)
{
    struct link_request *request;
    int rc = post_receive(link, from, tag, bytes, length, &request);

    return rc ? rc : await(link, request);
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

/* Many messages wait for receives that come in the other order. */
static void act_many_tags(struct team *team, uint32_t rank)
{
    struct link_request *sent[TAGS], *received[TAGS];
    struct link *link = team->links[rank];
    uint64_t in[TAGS], out[TAGS];

    act_connect(team, rank);
    for (uint64_t i = 0; i < TAGS && !team->rc[rank]; i++) {
        out[i] = i * 1000 + rank;
        team->rc[rank] = post_send(link, 1 - rank, i, &out[i], sizeof(out[i]), &sent[i]);
    }
    for (uint64_t i = TAGS; i-- > 0 && !team->rc[rank];)
        team->rc[rank] = post_receive(link, 1 - rank, i, &in[i], sizeof(in[i]), &received[i]);
    for (uint64_t i = 0; i < TAGS && !team->rc[rank]; i++) {
        team->rc[rank] = await(link, received[i]);
        if (!team->rc[rank])
            team->rc[rank] = await(link, sent[i]);
        if (!team->rc[rank] && in[i] != i * 1000 + 1 - rank)
            team->rc[rank] = HVD_E_INTERNAL;
    }
}

static void check_many_tags(struct test *t, enum link_kind kind)
{
    struct team team;

    CHECK_OK(t, team_open(&team, kind, "127.0.0.1", 2));
    team_run(&team, act_many_tags);
    CHECK_OK(t, team.rc[0]);
    CHECK_OK(t, team.rc[1]);
out:
    team_close(&team);
}

static void many_tags_gloo(struct test *t)
{
    check_many_tags(t, LINK_GLOO);
}

static void many_tags_tcp(struct test *t)
{
    check_many_tags(t, LINK_TCP);
}

/* ---- two TCP links in one thread, so that under torture too ---- */

static int pair_open(struct team *team)
{
    int64_t until_us = clock_now_us() + LONG_US;
    int rc = team_open(team, LINK_TCP, "127.0.0.1", 2);

    for (uint32_t i = 0; i < 2 && !rc; i++) {
        team->timeout_us[i] = 0;
        rc = connect_one(team, i, 1 - i);
    }
    if (rc)
        return rc;
    do {
        team->rc[0] = await_all(team, 0);
        team->rc[1] = await_all(team, 1);
    } while ((team->rc[0] == HVD_E_TIMEOUT || team->rc[1] == HVD_E_TIMEOUT) &&
             clock_now_us() < until_us);
    return team->rc[0] ? team->rc[0] : team->rc[1];
}

/* What was not asked for is put aside; what is too large for that waits, and what comes behind it.
 */
static void put_aside(struct test *t)
{
    uint8_t *out = mem_alloc(100000), *in = mem_zalloc(100000);
    struct link_request *large = NULL, *last = NULL;
    struct team team;

    CHECK_OK(t, pair_open(&team));
    CHECK(t, out && in);
    fill(out, 100000, 0, 1);
    CHECK_OK(t, send_now(team.links[0], 1, 1, out, 7));
    CHECK_OK(t, send_now(team.links[0], 1, 1, out, 0));
    CHECK_OK(t, send_now(team.links[0], 1, 2, out, 5000));
    CHECK_OK(t, send_now(team.links[0], 1, 3, out, 8));
    CHECK_OK(t, post_send(team.links[0], 1, 4, out, 100000, &large));
    CHECK_OK(t, post_send(team.links[0], 1, 5, out, 9, &last));
    CHECK_OK(t, receive_now(team.links[1], 0, 3, in, 8));
    CHECK(t, is_filled(in, 8, 0, 1));
    CHECK_OK(t, receive_now(team.links[1], 0, 1, in, 7));
    CHECK_OK(t, receive_now(team.links[1], 0, 2, in, 5000));
    CHECK(t, is_filled(in, 5000, 0, 1));
    CHECK_OK(t, receive_now(team.links[1], 0, 1, in, 100)); /* may be shorter */
    CHECK_OK(t, receive_now(team.links[1], 0, 4, in, 100000));
    CHECK(t, is_filled(in, 100000, 0, 1));
    CHECK_OK(t, receive_now(team.links[1], 0, 5, in, 9));
out:
    if (large)
        team.links[0]->ops->drop(team.links[0], large);
    if (last)
        team.links[0]->ops->drop(team.links[0], last);
    team_close(&team);
    mem_free(out);
    mem_free(in);
}

/* What was sent before the end arrives, and then the end. */
static void data_before_the_end(struct test *t)
{
    struct team team;
    uint8_t in[3];

    CHECK_OK(t, pair_open(&team));
    CHECK_OK(t, send_now(team.links[0], 1, 1, "one", 3));
    CHECK_OK(t, send_now(team.links[0], 1, 2, "two", 3));
    team.links[0]->ops->free(team.links[0]);
    team.links[0] = NULL;
    CHECK_OK(t, receive_now(team.links[1], 0, 2, in, 3));
    CHECK_CODE(t, receive_now(team.links[1], 0, 3, in, 3), HVD_E_LOST);
    CHECK_OK(t, receive_now(team.links[1], 0, 1, in, 3));
    CHECK(t, memcmp(in, "one", 3) == 0);
    CHECK_CODE(t, send_now(team.links[1], 0, 1, in, 3), HVD_E_LOST);
out:
    team_close(&team);
}

static void longer_than_its_memory(struct test *t)
{
    struct team team;
    uint8_t in[3];

    CHECK_OK(t, pair_open(&team));
    CHECK_OK(t, send_now(team.links[0], 1, 1, "four", 4));
    CHECK_CODE(t, receive_now(team.links[1], 0, 1, in, 3), HVD_E_LOST);
    CHECK_CODE(t, receive_now(team.links[0], 1, 1, in, 3), HVD_E_LOST);
out:
    team_close(&team);
}

/* ---- a TCP peer that is a socket of the test's ---- */

static void end(int fd, bool hard)
{
    const struct linger at_once = { 1, 0 };

    if (fd >= 0 && hard) /* a reset, as when something was not read */
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    if (fd >= 0)
        close(fd);
}

static struct sockaddr_in local(uint16_t port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

/* To rank 1's link, whose partner 0 we pretend to be. */
static int raw_dial(const struct team *team)
{
    struct tcp_address address;
    struct sockaddr_in at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (tcp_address_read(team->told[1][0].bytes, team->told[1][0].length, &address))
        abort();
    at = local(address.port);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)))
        abort();
    return fd;
}

/* What rank 0 says to rank 1 (or the other way), so many bytes of it. */
static void raw_greet(const struct team *team, int fd, uint32_t from, size_t bytes, bool wrong)
{
    struct tcp_greeting greeting = { .rank = from };
    uint8_t out[TCP_GREETING_BYTES];
    struct tcp_address address;

    if (tcp_address_read(team->told[1 - from][from].bytes, team->told[1 - from][from].length,
                         &address))
        abort();
    memcpy(greeting.token, address.token, TCP_TOKEN_BYTES);
    greeting.token[5] ^= wrong;
    tcp_greeting_write(&greeting, out);
    (void)send(fd, out, bytes, MSG_NOSIGNAL);
}

/* Another rank 1, for rank 0 to dial: its port stands where that of its link did. */
static int raw_listen(struct team *team)
{
    struct sockaddr_in at = local(0);
    socklen_t length = sizeof(at);
    struct tcp_address address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, length) || listen(fd, 16) ||
        getsockname(fd, (struct sockaddr *)&at, &length) ||
        tcp_address_read(team->told[1][0].bytes, team->told[1][0].length, &address))
        abort();
    address.port = ntohs(at.sin_port);
    tcp_address_write(&address, team->told[1][0].bytes);
    return fd;
}

static int settle(struct team *team, uint32_t rank)
{
    int64_t until_us = clock_now_us() + LONG_US;
    int rc;

    team->timeout_us[rank] = SHORT_US;
    do
        rc = await_all(team, rank);
    while (rc == HVD_E_TIMEOUT && clock_now_us() < until_us);
    return rc;
}

static void try_once(struct team *team, uint32_t rank)
{
    team->timeout_us[rank] = SHORT_US;
    team->rc[rank] = await_all(team, rank);
}

/* Who has not proved who it is leaves nothing behind: the right one still comes in. */
static void strangers(struct test *t)
{
    struct team team;
    int fds[100], fd = -1;
    size_t count = 0;

    CHECK_OK(t, team_open(&team, LINK_TCP, "127.0.0.1", 2));
    CHECK_OK(t, connect_one(&team, 1, 0));
    while (count < ARRAY_SIZE(fds)) {
        fds[count] = raw_dial(&team);
        if (count % 4 == 1)
            (void)send(fds[count], "GET / HTTP/1.1\r\nHost: here\r\n\r\n", 30, MSG_NOSIGNAL);
        if (count % 4 == 2)
            raw_greet(&team, fds[count], 0, TCP_GREETING_BYTES, true);
        if (count % 4 == 3)
            raw_greet(&team, fds[count], 0, 10, false);
        count++;
    }
    try_once(&team, 1);
    CHECK_CODE(t, team.rc[1], HVD_E_TIMEOUT);
    fd = raw_dial(&team);
    raw_greet(&team, fd, 0, TCP_GREETING_BYTES, false);
    CHECK_OK(t, settle(&team, 1));
out:
    while (count > 0)
        end(fds[--count], false);
    end(fd, false);
    team_close(&team);
}

static void dies_dialling(struct test *t)
{
    static const size_t said[] = { 0, 10, TCP_GREETING_BYTES };
    struct team team;
    int fd = -1;
    uint8_t in;

    for (size_t i = 0; i < 2 * ARRAY_SIZE(said); i++) {
        CHECK_OK(t, team_open(&team, LINK_TCP, "127.0.0.1", 2));
        CHECK_OK(t, connect_one(&team, 1, 0));
        fd = raw_dial(&team);
        raw_greet(&team, fd, 0, said[i / 2], false);
        end(fd, i % 2);
        fd = -1;
        try_once(&team, 1);
        if (said[i / 2] == TCP_GREETING_BYTES && !team.rc[1]) {
            CHECK_CODE(t, receive_now(team.links[1], 0, 1, &in, 1), HVD_E_LOST);
        } else if (said[i / 2] == TCP_GREETING_BYTES && team.rc[1] == HVD_E_LOST) {
            CHECK_INT(t, team.missing[1], ==, 0); /* it was seen at once */
        } else { /* nobody knows who that was, and it may come yet */
            CHECK_CODE(t, team.rc[1], HVD_E_TIMEOUT);
            fd = raw_dial(&team);
            raw_greet(&team, fd, 0, TCP_GREETING_BYTES, false);
            CHECK_OK(t, settle(&team, 1));
        }
        end(fd, false);
        fd = -1;
        team_close(&team);
    }
    return;
out:
    end(fd, false);
    team_close(&team);
}

enum { DIES_BEFORE, DIES_UNACCEPTED, DIES_ACCEPTED, DIES_HEARING, DIES_ANSWERING, DIES_STEPS };

/* As far as it comes; then all its descriptors close. */
static void die_dialled(struct team *team, int listener, int step, bool hard)
{
    uint8_t heard[TCP_GREETING_BYTES];
    int fd = -1;

    if (step > DIES_UNACCEPTED)
        fd = accept(listener, NULL, NULL);
    if (step > DIES_ACCEPTED) {
        try_once(team, 0);
        if (recv(fd, heard, sizeof(heard), MSG_WAITALL) != sizeof(heard))
            abort();
    }
    if (step > DIES_HEARING)
        raw_greet(team, fd, 1, 10, false);
    close(listener);
    end(fd, hard);
}

static void dies_dialled(struct test *t)
{
    struct team team;
    int listener;

    for (int i = 0; i < 2 * DIES_STEPS; i++) {
        CHECK_OK(t, team_open(&team, LINK_TCP, "127.0.0.1", 2));
        listener = raw_listen(&team);
        if (i / 2 == DIES_BEFORE)
            die_dialled(&team, listener, DIES_BEFORE, i % 2);
        CHECK_OK(t, connect_one(&team, 0, 1));
        if (i / 2 != DIES_BEFORE)
            die_dialled(&team, listener, i / 2, i % 2);
        CHECK_CODE(t, settle(&team, 0), HVD_E_LOST);
        CHECK_INT(t, team.missing[0], ==, 1);
        team_close(&team);
    }
    return;
out:
    team_close(&team);
}

/* A stranger has taken the port of a peer that is gone. */
static void wrong_answer(struct test *t)
{
    struct team team;
    int listener = -1, fds[3] = { -1, -1, -1 };

    CHECK_OK(t, team_open(&team, LINK_TCP, "127.0.0.1", 2));
    listener = raw_listen(&team);
    CHECK_OK(t, connect_one(&team, 0, 1));
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = accept(listener, NULL, NULL);
        CHECK_INT(t, fds[i], >=, 0);
        raw_greet(&team, fds[i], 1, TCP_GREETING_BYTES, true);
        try_once(&team, 0);
    }
    CHECK_CODE(t, settle(&team, 0), HVD_E_LOST);
out:
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        end(fds[i], false);
    end(listener, false);
    team_close(&team);
}

/* ---- in the middle of a message ---- */

static size_t put_message(uint8_t *at, uint64_t tag, size_t length)
{
    const struct tcp_head head = { tag, length };

    tcp_head_write(&head, at);
    memset(at + TCP_HEAD_BYTES, 'y', length);
    return TCP_HEAD_BYTES + length;
}

/* The rest of the message goes nowhere, and what follows it arrives. */
static void half_received_and_dropped(struct test *t)
{
    uint8_t out[200], in[1], *memory = mem_alloc(100);
    size_t first = put_message(out, 2, 1), length = first + put_message(out + first, 1, 100);
    struct link_request *dropped = NULL;
    struct team team;
    int fd = -1;

    CHECK_OK(t, team_open(&team, LINK_TCP, "127.0.0.1", 2));
    CHECK(t, memory != NULL);
    CHECK_OK(t, connect_one(&team, 1, 0));
    fd = raw_dial(&team);
    raw_greet(&team, fd, 0, TCP_GREETING_BYTES, false);
    CHECK_OK(t, settle(&team, 1));
    CHECK_INT(t, send(fd, out, length - 50, MSG_NOSIGNAL), ==, length - 50);
    CHECK_OK(t, post_receive(team.links[1], 0, 1, memory, 100, &dropped));
    CHECK_OK(t, receive_now(team.links[1], 0, 2, in, 1)); /* the other one came with it */
    team.links[1]->ops->drop(team.links[1], dropped);
    dropped = NULL;
    mem_free(memory);
    memory = NULL;
    length = 50 + put_message(out + 50, 3, 1);
    CHECK_INT(t, send(fd, out, length, MSG_NOSIGNAL), ==, length);
    CHECK_OK(t, receive_now(team.links[1], 0, 3, in, 1));
out:
    if (dropped)
        team.links[1]->ops->drop(team.links[1], dropped);
    end(fd, false);
    team_close(&team);
    mem_free(memory);
}

/* Nothing can follow it: the other side learns of that. */
static void half_sent_and_dropped(struct test *t)
{
    uint8_t *out = mem_zalloc(LARGE), in[1];
    struct link_request *request;
    struct team team;

    CHECK_OK(t, pair_open(&team));
    CHECK(t, out != NULL);
    CHECK_OK(t, post_send(team.links[0], 1, 1, out, LARGE, &request));
    team.links[0]->ops->drop(team.links[0], request);
    CHECK_CODE(t, send_now(team.links[0], 1, 2, out, 1), HVD_E_LOST);
    CHECK_CODE(t, receive_now(team.links[1], 0, 1, out, LARGE), HVD_E_LOST);
    CHECK_CODE(t, receive_now(team.links[1], 0, 2, in, 1), HVD_E_LOST);
out:
    team_close(&team);
    mem_free(out);
}

TESTS(CASE_FLAGS(connects_gloo, NO_TORTURE), CASE_FLAGS(connects_tcp, NO_TORTURE),
      CASE_FLAGS(connects_tcp_over_ipv6, NO_TORTURE), CASE_FLAGS(late_peer_gloo, NO_TORTURE),
      CASE_FLAGS(late_peer_tcp, NO_TORTURE), CASE_FLAGS(one_never_comes_gloo, NO_TORTURE),
      CASE_FLAGS(one_never_comes_tcp, NO_TORTURE), CASE_FLAGS(both_ways_gloo, NO_TORTURE),
      CASE_FLAGS(both_ways_tcp, NO_TORTURE), CASE_FLAGS(many_tags_gloo, NO_TORTURE),
      CASE_FLAGS(many_tags_tcp, NO_TORTURE), CASE_FLAGS(put_aside, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(data_before_the_end, TEST_SURVIVES_ALLOC), CASE(longer_than_its_memory),
      CASE_FLAGS(strangers, NO_TORTURE), CASE_FLAGS(dies_dialling, NO_TORTURE),
      CASE_FLAGS(dies_dialled, NO_TORTURE), CASE_FLAGS(wrong_answer, NO_TORTURE),
      CASE(half_received_and_dropped), CASE_FLAGS(half_sent_and_dropped, NO_TORTURE))
