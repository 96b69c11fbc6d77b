/*
 * Links (the connections of one member to the others) of each kind, TCP and Gloo: the contract of
 * all kinds. test_tcp_link.c tests the TCP link alone. An act is the function that each member's
 * thread runs; a canceller is a thread that cancels a link.
 */
#include "base/mem.h"
#include "os/clock.h"
#include "tests/lib/gloo_here.h"
#include "tests/lib/link_team.h"
#include "tests/lib/loopback.h"
#include "tests/lib/test.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAGS 40

/* Makes a case for each kind of link. */
#define BOTH_KINDS(name, check)              \
    TEST_FLAGS(name##_gloo, TEST_NO_TORTURE) \
    {                                        \
        if (gloo_here())                     \
            check(t, LINK_GLOO);             \
    }                                        \
    TEST_FLAGS(name##_tcp, TEST_NO_TORTURE)  \
    {                                        \
        check(t, LINK_TCP);                  \
    }

/* Each member sends to and receives from each other member at once. */
static int exchange_with(struct team *team, uint32_t rank, uint8_t *out[TEAM_MAX],
                         uint8_t *in[TEAM_MAX])
{
    struct link_request *sent[TEAM_MAX] = { NULL }, *received[TEAM_MAX] = { NULL };
    struct link *link = team->links[rank];
    int rc = 0;

    for (uint32_t i = 0; i < team->size && !rc; i++) {
        if (i != rank)
            rc = link_post_receive(link, i, 5, in[i], team->bytes, &received[i]);
        if (i != rank && !rc)
            rc = link_post_send(link, i, 5, out[i], team->bytes, &sent[i]);
    }
    for (uint32_t i = 0; i < team->size && !rc; i++) {
        if (i != rank)
            rc = link_await(link, sent[i]);
        if (i != rank && !rc)
            rc = link_await(link, received[i]);
        if (i != rank && !rc && !link_is_filled(in[i], team->bytes, i, rank))
            rc = HVD_E_INTERNAL;
    }
    return rc;
}

/* Fills a message for each member, exchanges the messages and checks the received ones. */
static void act_exchange(struct team *team, uint32_t rank)
{
    uint8_t *out[TEAM_MAX] = { NULL }, *in[TEAM_MAX] = { NULL };

    team_act_connect(team, rank);
    if (team->rc[rank])
        return;
    for (uint32_t i = 0; i < team->size; i++) {
        out[i] = mem_alloc(team->bytes);
        in[i] = mem_zalloc(team->bytes);
        if (!out[i] || !in[i])
            abort();
        link_fill(out[i], team->bytes, rank, i);
    }
    team->rc[rank] = exchange_with(team, rank, out, in);
    for (uint32_t i = 0; i < team->size; i++) {
        mem_free(out[i]);
        mem_free(in[i]);
    }
}

/* ---- connecting ---- */

/* true: the address for the peer `to` is the same as before. */
static bool address_is_kept(struct team *team, uint32_t by, uint32_t to)
{
    const struct team_address *told = &team->told[by][to];
    struct team_address now;

    return !team->links[by]->ops->address(team->links[by], to, now.bytes, &now.length, NULL) &&
           now.length == told->length && !memcmp(now.bytes, told->bytes, now.length);
}

static void check_connects(struct test *t, enum link_kind kind, const char *host)
{
    struct team team;

    for (uint32_t size = 2; size <= TEAM_MAX; size++) {
        CHECK_OK(t, team_open(&team, kind, host, size));
        team.shift = size;
        team_run(&team, team_act_connect);
        for (uint32_t i = 0; i < size; i++)
            CHECK_OK(t, team.rc[i]);
        for (uint32_t i = 0; i < size * size; i++)
            CHECK(t, i / size == i % size || address_is_kept(&team, i / size, i % size));
        team_close(&team);
    }
    return;
out:
    team_close(&team);
}

TEST_FLAGS(connects_gloo, TEST_NO_TORTURE)
{
    if (gloo_here())
        check_connects(t, LINK_GLOO, loopback_own());
}

TEST_FLAGS(connects_tcp, TEST_NO_TORTURE)
{
    check_connects(t, LINK_TCP, loopback_own());
}

TEST_FLAGS(connects_tcp_over_ipv6, TEST_NO_TORTURE)
{
    check_connects(t, LINK_TCP, "::1");
}

/* Connecting times out, until only the absent member is missing. With Gloo the member that dials
 * may succeed, because a thread of the other side is enough. */
static void act_connect_but_last(struct team *team, uint32_t rank)
{
    int64_t until_us = clock_now_us() + LONG_US;

    team->timeout_us[rank] = SHORT_US;
    team_act_connect(team, rank);
    while (team->rc[rank] == HVD_E_TIMEOUT && team->missing[rank] != team->size - 1 &&
           clock_now_us() < until_us)
        team->rc[rank] = team_connected(team, rank);
    team->timeout_us[rank] = LONG_US;
}

static void act_late(struct team *team, uint32_t rank)
{
    bool last = rank == team->size - 1;

    if (!last)
        act_connect_but_last(team, rank);
    pthread_barrier_wait(&team->gate);
    if (last)
        team_act_connect(team, rank);
    else if (team->rc[rank] == HVD_E_TIMEOUT)
        team->rc[rank] = team_connected(team, rank);
}

static void check_late(struct test *t, enum link_kind kind)
{
    struct team team;

    CHECK_OK(t, team_open(&team, kind, loopback_own(), 3));
    team_run(&team, act_late);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_OK(t, team.rc[i]);
out:
    team_close(&team);
}

BOTH_KINDS(late_peer, check_late)

static void check_missing(struct test *t, enum link_kind kind)
{
    struct team team;

    CHECK_OK(t, team_open(&team, kind, loopback_own(), 4));
    team.away[3] = true;
    team_run(&team, act_connect_but_last);
    for (uint32_t i = 0; i < 3; i++) {
        if (kind == LINK_GLOO && !team.rc[i])
            continue;
        CHECK_CODE(t, team.rc[i], HVD_E_TIMEOUT);
        CHECK_INT(t, team.missing[i], ==, 3);
    }
out:
    team_cancel(&team);
    team_close(&team);
}

BOTH_KINDS(a_missing_member_is_named, check_missing)

/* ---- messages ---- */

static void check_exchange(struct test *t, enum link_kind kind)
{
    static const size_t sizes[] = { 0, 1, 4096, MIB, LARGE };
    struct team team;

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        uint32_t size = sizes[i] < LARGE ? 4 : 2;

        CHECK_OK(t, team_open(&team, kind, loopback_own(), size));
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

BOTH_KINDS(both_ways, check_exchange)

/* Many messages arrive before their receives, which come in reverse order. */
static void act_many_tags(struct team *team, uint32_t rank)
{
    struct link_request *sent[TAGS] = { NULL }, *received[TAGS] = { NULL };
    struct link *link = team->links[rank];
    uint64_t in[TAGS] = { 0 }, out[TAGS];

    team_act_connect(team, rank);
    for (uint64_t i = 0; i < TAGS && !team->rc[rank]; i++) {
        out[i] = i * 1000 + rank;
        team->rc[rank] = link_post_send(link, 1 - rank, i, &out[i], sizeof(out[i]), &sent[i]);
    }
    for (uint64_t i = TAGS; i-- > 0 && !team->rc[rank];)
        team->rc[rank] = link_post_receive(link, 1 - rank, i, &in[i], sizeof(in[i]), &received[i]);
    for (uint64_t i = 0; i < TAGS && !team->rc[rank]; i++) {
        team->rc[rank] = link_await(link, received[i]);
        if (!team->rc[rank])
            team->rc[rank] = link_await(link, sent[i]);
        if (!team->rc[rank] && in[i] != i * 1000 + 1 - rank)
            team->rc[rank] = HVD_E_INTERNAL;
    }
}

static void check_many_tags(struct test *t, enum link_kind kind)
{
    struct team team;

    CHECK_OK(t, team_open(&team, kind, loopback_own(), 2));
    team_run(&team, act_many_tags);
    CHECK_OK(t, team.rc[0]);
    CHECK_OK(t, team.rc[1]);
out:
    team_close(&team);
}

BOTH_KINDS(many_tags, check_many_tags)

/* ---- cancelling ---- */

struct canceller {
    struct link *link;
    sem_t begun;
    pthread_t thread;
};

static void *cancel(void *arg)
{
    struct canceller *canceller = arg;

    while (sem_wait(&canceller->begun)) {
    }
    sched_yield(); /* the canceller cancels in the wait or just before */
    canceller->link->ops->cancel(canceller->link);
    canceller->link->ops->cancel(canceller->link);
    return NULL;
}

static void start_canceller(struct canceller *canceller, struct link *link)
{
    canceller->link = link;
    if (sem_init(&canceller->begun, 0, 0) ||
        pthread_create(&canceller->thread, NULL, cancel, canceller))
        abort();
}

static void await_canceller(struct canceller *canceller)
{
    pthread_join(canceller->thread, NULL);
    sem_destroy(&canceller->begun);
}

/* Each member waits without an end: for a connection, for a message, or for a reader of its
 * message. */
static void act_wait_for_connection(struct team *team, uint32_t rank)
{
    struct canceller canceller;

    start_canceller(&canceller, team->links[rank]);
    sem_post(&canceller.begun);
    team_act_connect(team, rank);
    await_canceller(&canceller);
}

static void act_wait_for_message(struct team *team, uint32_t rank)
{
    struct link *link = team->links[rank];
    struct link_request *request = NULL;
    struct canceller canceller;
    uint8_t in;

    team_act_connect(team, rank);
    pthread_barrier_wait(&team->gate);
    start_canceller(&canceller, link);
    if (!team->rc[rank])
        team->rc[rank] = link_post_receive(link, 1 - rank, 1, &in, 1, &request);
    sem_post(&canceller.begun);
    if (!team->rc[rank])
        team->rc[rank] = link_await(link, request);
    await_canceller(&canceller);
    if (team->rc[rank] == HVD_E_REVOKED)
        team->rc[rank] = link_post_receive(link, 1 - rank, 2, &in, 1, &request);
}

static void act_wait_for_reader(struct team *team, uint32_t rank)
{
    struct link *link = team->links[rank];
    uint8_t *out = mem_zalloc(LARGE);
    struct link_request *request = NULL;
    struct canceller canceller;

    if (!out)
        abort();
    team_act_connect(team, rank);
    pthread_barrier_wait(&team->gate);
    start_canceller(&canceller, link);
    if (!team->rc[rank])
        team->rc[rank] = link_post_send(link, 1 - rank, 1, out, LARGE, &request);
    sem_post(&canceller.begun);
    if (!team->rc[rank])
        team->rc[rank] = link_await(link, request);
    await_canceller(&canceller);
    if (team->rc[rank] == HVD_E_REVOKED)
        team->rc[rank] = link_post_send(link, 1 - rank, 2, out, 1, &request);
    mem_free(out);
}

/* A member may see the end of a faster member instead; but after its own cancel each call returns
 * HVD_E_REVOKED. */
static void check_cancel(struct test *t, enum link_kind kind,
                         void (*act)(struct team *team, uint32_t rank))
{
    struct team team;
    uint32_t missing;

    for (int i = 0; i < 20; i++) {
        CHECK_OK(t, team_open(&team, kind, loopback_own(), 2));
        team.away[1] = act == act_wait_for_connection;
        team_run(&team, act);
        for (uint32_t k = 0; k < 2; k++) {
            CHECK(t, team.away[k] || team.rc[k] == HVD_E_REVOKED || team.rc[k] == HVD_E_LOST ||
                         (kind == LINK_GLOO && team.away[1]));
            CHECK(t, team.away[k] || team.links[k]->ops->connected(team.links[k], 0, &missing,
                                                                   NULL) == HVD_E_REVOKED);
        }
        team_cancel(&team);
        team_close(&team);
    }
    return;
out:
    team_cancel(&team);
    team_close(&team);
}

TEST_FLAGS(cancel_connecting_gloo, TEST_NO_TORTURE)
{
    if (gloo_here())
        check_cancel(t, LINK_GLOO, act_wait_for_connection);
}

TEST_FLAGS(cancel_connecting_tcp, TEST_NO_TORTURE)
{
    check_cancel(t, LINK_TCP, act_wait_for_connection);
}

TEST_FLAGS(cancel_receiving_gloo, TEST_NO_TORTURE)
{
    if (gloo_here())
        check_cancel(t, LINK_GLOO, act_wait_for_message);
}

TEST_FLAGS(cancel_receiving_tcp, TEST_NO_TORTURE)
{
    check_cancel(t, LINK_TCP, act_wait_for_message);
}

TEST_FLAGS(cancel_sending_gloo, TEST_NO_TORTURE)
{
    if (gloo_here())
        check_cancel(t, LINK_GLOO, act_wait_for_reader);
}

TEST_FLAGS(cancel_sending_tcp, TEST_NO_TORTURE)
{
    check_cancel(t, LINK_TCP, act_wait_for_reader);
}

/* ---- a peer that is a process ---- */

/* Rank 1 of two, forked before any link is opened. Each rank sends the other its address. */
struct child {
    pid_t pid;
    int fd;
};

static bool swap_addresses(struct team *team, uint32_t rank, int fd)
{
    struct team_address *ours = &team->told[rank][1 - rank], *theirs = &team->told[1 - rank][rank];

    return send(fd, ours, sizeof(*ours), MSG_NOSIGNAL) == sizeof(*ours) &&
           recv(fd, theirs, sizeof(*theirs), MSG_WAITALL) == sizeof(*theirs);
}

/* Opens the link of one rank, swaps addresses through fd, and connects. 0, or a code. */
static int open_one(struct team *team, enum link_kind kind, uint32_t rank, int fd)
{
    int rc;

    memset(team, 0, sizeof(*team));
    team->size = 2;
    team->timeout_us[rank] = LONG_US;
    if (pthread_barrier_init(&team->gate, NULL, 2))
        abort();
    rc = reaper_open(&team->reaper, NULL);
    if (!rc)
        rc = team_member(team, kind, loopback_own(), rank);
    if (!rc && !swap_addresses(team, rank, fd))
        rc = HVD_E_IO;
    if (rc)
        return rc;
    team_act_connect(team, rank);
    return team->rc[rank];
}

/* Sends more than the connection holds, reports this, and stops or kills itself. */
NORETURN static void live_as_child(enum link_kind kind, int fd, int signal_number)
{
    static uint8_t out[LARGE];
    struct link_request *request;
    struct team team;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (open_one(&team, kind, 1, fd) || link_post_send(team.links[1], 0, 1, out, LARGE, &request) ||
        send(fd, "!", 1, MSG_NOSIGNAL) != 1)
        _exit(1);
    (void)raise(signal_number);
    _exit(1);
}

static void child_start(struct child *child, enum link_kind kind, int signal_number)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        abort();
    child->fd = fds[0];
    child->pid = fork();
    if (child->pid < 0)
        abort();
    if (!child->pid) {
        close(fds[0]);
        live_as_child(kind, fds[1], signal_number);
    }
    close(fds[1]);
}

static bool child_stands(const struct child *child)
{
    siginfo_t info;
    char said;

    return recv(child->fd, &said, 1, 0) == 1 &&
           !waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WEXITED | WNOWAIT);
}

static void child_end(struct child *child)
{
    (void)kill(child->pid, SIGKILL);
    (void)waitpid(child->pid, NULL, 0);
    close(child->fd);
}

/* Not Gloo: it does not wake the receiver of a message that has come in part. */
TEST_FLAGS(peer_killed_mid_message, TEST_NO_TORTURE)
{
    uint8_t *in = mem_alloc(LARGE);
    struct team team = { .size = 0 };
    struct child child;

    child_start(&child, LINK_TCP, SIGKILL);
    CHECK(t, in != NULL);
    CHECK_OK(t, open_one(&team, LINK_TCP, 0, child.fd));
    CHECK(t, child_stands(&child));
    CHECK_CODE(t, link_receive_now(team.links[0], 1, 1, in, LARGE), HVD_E_LOST);
out:
    child_end(&child);
    if (team.size)
        team_close(&team);
    mem_free(in);
}

/* The peer stops in the middle of a message: the receiver waits until it is cancelled. */
static void check_peer_stops(struct test *t, enum link_kind kind)
{
    uint8_t *in = mem_alloc(LARGE);
    struct team team = { .size = 0 };
    struct link_request *request;
    struct canceller canceller;
    struct child child;
    int rc;

    child_start(&child, kind, SIGSTOP);
    CHECK(t, in != NULL);
    CHECK_OK(t, open_one(&team, kind, 0, child.fd));
    CHECK(t, child_stands(&child));
    CHECK_OK(t, link_post_receive(team.links[0], 1, 1, in, LARGE, &request));
    start_canceller(&canceller, team.links[0]);
    sem_post(&canceller.begun);
    rc = link_await(team.links[0], request);
    await_canceller(&canceller);
    CHECK_CODE(t, rc, HVD_E_REVOKED);
out:
    child_end(&child);
    if (team.size)
        team_close(&team);
    mem_free(in);
}

BOTH_KINDS(peer_stops, check_peer_stops)
