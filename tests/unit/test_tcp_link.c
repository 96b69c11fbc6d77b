/*
 * TCP links: messages in one thread, strangers, and peers that die at each step.
 */
#include "base/mem.h"
#include "collectives/link/tcp_words.h"
#include "os/clock.h"
#include "tests/lib/link_team.h"
#include "tests/lib/test.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define NO_TORTURE TEST_NO_TORTURE

/* ---- two TCP links in one thread, so that under torture too ---- */

static int pair_open(struct team *team)
{
    int64_t until_us = clock_now_us() + LONG_US;
    int rc = team_open(team, LINK_TCP, "127.0.0.1", 2);

    for (uint32_t i = 0; i < 2 && !rc; i++) {
        team->timeout_us[i] = 0;
        rc = team_connect_one(team, i, 1 - i);
    }
    if (rc)
        return rc;
    do {
        team->rc[0] = team_connected(team, 0);
        team->rc[1] = team_connected(team, 1);
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
    link_fill(out, 100000, 0, 1);
    CHECK_OK(t, link_send_now(team.links[0], 1, 1, out, 7));
    CHECK_OK(t, link_send_now(team.links[0], 1, 1, out, 0));
    CHECK_OK(t, link_send_now(team.links[0], 1, 2, out, 5000));
    CHECK_OK(t, link_send_now(team.links[0], 1, 3, out, 8));
    CHECK_OK(t, link_post_send(team.links[0], 1, 4, out, 100000, &large));
    CHECK_OK(t, link_post_send(team.links[0], 1, 5, out, 9, &last));
    CHECK_OK(t, link_receive_now(team.links[1], 0, 3, in, 8));
    CHECK(t, link_is_filled(in, 8, 0, 1));
    CHECK_OK(t, link_receive_now(team.links[1], 0, 1, in, 7));
    CHECK_OK(t, link_receive_now(team.links[1], 0, 2, in, 5000));
    CHECK(t, link_is_filled(in, 5000, 0, 1));
    CHECK_OK(t, link_receive_now(team.links[1], 0, 1, in, 100)); /* may be shorter */
    CHECK_OK(t, link_receive_now(team.links[1], 0, 4, in, 100000));
    CHECK(t, link_is_filled(in, 100000, 0, 1));
    CHECK_OK(t, link_receive_now(team.links[1], 0, 5, in, 9));
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
    CHECK_OK(t, link_send_now(team.links[0], 1, 1, "one", 3));
    CHECK_OK(t, link_send_now(team.links[0], 1, 2, "two", 3));
    team.links[0]->ops->free(team.links[0]);
    team.links[0] = NULL;
    CHECK_OK(t, link_receive_now(team.links[1], 0, 2, in, 3));
    CHECK_CODE(t, link_receive_now(team.links[1], 0, 3, in, 3), HVD_E_LOST);
    CHECK_OK(t, link_receive_now(team.links[1], 0, 1, in, 3));
    CHECK(t, memcmp(in, "one", 3) == 0);
    CHECK_CODE(t, link_send_now(team.links[1], 0, 1, in, 3), HVD_E_LOST);
out:
    team_close(&team);
}

static void longer_than_its_memory(struct test *t)
{
    struct team team;
    uint8_t in[3];

    CHECK_OK(t, pair_open(&team));
    CHECK_OK(t, link_send_now(team.links[0], 1, 1, "four", 4));
    CHECK_CODE(t, link_receive_now(team.links[1], 0, 1, in, 3), HVD_E_LOST);
    CHECK_CODE(t, link_receive_now(team.links[0], 1, 1, in, 3), HVD_E_LOST);
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
        rc = team_connected(team, rank);
    while (rc == HVD_E_TIMEOUT && clock_now_us() < until_us);
    return rc;
}

static void try_once(struct team *team, uint32_t rank)
{
    team->timeout_us[rank] = SHORT_US;
    team->rc[rank] = team_connected(team, rank);
}

/* Who has not proved who it is leaves nothing behind: the right one still comes in. */
static void strangers(struct test *t)
{
    struct team team;
    int fds[100], fd = -1;
    size_t count = 0;

    CHECK_OK(t, team_open(&team, LINK_TCP, "127.0.0.1", 2));
    CHECK_OK(t, team_connect_one(&team, 1, 0));
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

/* poll takes no more than the limit: what is looked at is what is there, not all that may come. */
static void few_descriptors(struct test *t)
{
    struct team team = { .size = 0 };
    struct rlimit before, few;

    CHECK_OK(t, getrlimit(RLIMIT_NOFILE, &before));
    few = (struct rlimit){ .rlim_cur = 40, .rlim_max = before.rlim_max };
    CHECK_OK(t, setrlimit(RLIMIT_NOFILE, &few));
    CHECK_OK(t, team_open(&team, LINK_TCP, "127.0.0.1", 3));
    team_run(&team, team_act_connect);
    for (uint32_t i = 0; i < team.size; i++)
        CHECK_OK(t, team.rc[i]);
out:
    team_close(&team);
    (void)setrlimit(RLIMIT_NOFILE, &before);
}

static void dies_dialling(struct test *t)
{
    static const size_t said[] = { 0, 10, TCP_GREETING_BYTES };
    struct team team;
    int fd = -1;
    uint8_t in;

    for (size_t i = 0; i < 2 * ARRAY_SIZE(said); i++) {
        CHECK_OK(t, team_open(&team, LINK_TCP, "127.0.0.1", 2));
        CHECK_OK(t, team_connect_one(&team, 1, 0));
        fd = raw_dial(&team);
        raw_greet(&team, fd, 0, said[i / 2], false);
        end(fd, i % 2);
        fd = -1;
        try_once(&team, 1);
        if (said[i / 2] == TCP_GREETING_BYTES && !team.rc[1]) {
            CHECK_CODE(t, link_receive_now(team.links[1], 0, 1, &in, 1), HVD_E_LOST);
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
    uint8_t none = 0;
    int listener;

    for (int i = 0; i < 2 * DIES_STEPS; i++) {
        CHECK_OK(t, team_open(&team, LINK_TCP, "127.0.0.1", 2));
        listener = raw_listen(&team);
        if (i / 2 == DIES_BEFORE)
            die_dialled(&team, listener, DIES_BEFORE, i % 2);
        CHECK_OK(t, team_connect_one(&team, 0, 1));
        if (i / 2 != DIES_BEFORE)
            die_dialled(&team, listener, i / 2, i % 2);
        CHECK_CODE(t, settle(&team, 0), HVD_E_LOST);
        CHECK_INT(t, team.missing[0], ==, 1);
        CHECK_CODE(t, link_send_now(team.links[0], 1, 1, &none, 1), HVD_E_LOST);
        CHECK_CODE(t, link_receive_now(team.links[0], 1, 1, &none, 1), HVD_E_LOST);
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
    int listener = -1, fds[5] = { -1, -1, -1, -1, -1 };

    CHECK_OK(t, team_open(&team, LINK_TCP, "127.0.0.1", 2));
    listener = raw_listen(&team);
    CHECK_OK(t, team_connect_one(&team, 0, 1));
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
    CHECK_OK(t, team_connect_one(&team, 1, 0));
    fd = raw_dial(&team);
    raw_greet(&team, fd, 0, TCP_GREETING_BYTES, false);
    CHECK_OK(t, settle(&team, 1));
    CHECK_INT(t, send(fd, out, length - 50, MSG_NOSIGNAL), ==, length - 50);
    CHECK_OK(t, link_post_receive(team.links[1], 0, 1, memory, 100, &dropped));
    CHECK_OK(t, link_receive_now(team.links[1], 0, 2, in, 1)); /* the other one came with it */
    team.links[1]->ops->drop(team.links[1], dropped);
    dropped = NULL;
    mem_free(memory);
    memory = NULL;
    length = 50 + put_message(out + 50, 3, 1);
    CHECK_INT(t, send(fd, out, length, MSG_NOSIGNAL), ==, length);
    CHECK_OK(t, link_receive_now(team.links[1], 0, 3, in, 1));
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
    CHECK_OK(t, link_post_send(team.links[0], 1, 1, out, LARGE, &request));
    team.links[0]->ops->drop(team.links[0], request);
    CHECK_CODE(t, link_send_now(team.links[0], 1, 2, out, 1), HVD_E_LOST);
    CHECK_CODE(t, link_receive_now(team.links[1], 0, 1, out, LARGE), HVD_E_LOST);
    CHECK_CODE(t, link_receive_now(team.links[1], 0, 2, in, 1), HVD_E_LOST);
out:
    team_close(&team);
    mem_free(out);
}

TESTS(CASE_FLAGS(put_aside, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(data_before_the_end, TEST_SURVIVES_ALLOC), CASE(longer_than_its_memory),
      CASE_FLAGS(strangers, NO_TORTURE), CASE_FLAGS(few_descriptors, NO_TORTURE),
      CASE_FLAGS(dies_dialling, NO_TORTURE), CASE_FLAGS(dies_dialled, NO_TORTURE),
      CASE_FLAGS(wrong_answer, NO_TORTURE), CASE(half_received_and_dropped),
      CASE_FLAGS(half_sent_and_dropped, NO_TORTURE))
