/*
 * TCP links: messages in one thread, strangers that connect, and peers that die at each step of
 * connecting. A raw socket is one that the test writes itself.
 */
#include "base/mem.h"
#include "base/time.h"
#include "collectives/link/tcp_proof.h"
#include "os/clock.h"
#include "os/source.h"
#include "tests/lib/descriptors.h"
#include "tests/lib/link_team.h"
#include "tests/lib/loopback.h"
#include "tests/lib/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define STEP_US 1000

/* ---- two TCP links in one thread, so that torture is possible ---- */

static int pair_open_secured(struct team *team, enum link_security security)
{
    int64_t until_us = clock_now_us() + LONG_US;
    int rc = team_open_secured(team, security, 2);

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

/* A message without a receive is put aside. A message that is too large for this waits, and so do
 * the messages behind it. */
static void check_put_aside(struct test *t, enum link_security security)
{
    uint8_t *out = mem_alloc(100000), *in = mem_zalloc(100000);
    struct link_request *large = NULL, *last = NULL;
    struct team team;

    CHECK_OK(t, pair_open_secured(&team, security));
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
    CHECK_OK(t, link_receive_now(team.links[1], 0, 1, in, 100)); /* the message may be shorter */
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

TEST_FLAGS(put_aside, TEST_SURVIVES_ALLOC)
{
    check_put_aside(t, LINK_SECURITY_NONE);
}

TEST_FLAGS(put_aside_authenticated, TEST_SURVIVES_ALLOC)
{
    check_put_aside(t, LINK_SECURITY_AUTHENTICATED);
}

TEST_FLAGS(put_aside_encrypted, TEST_SURVIVES_ALLOC)
{
    check_put_aside(t, LINK_SECURITY_ENCRYPTED);
}

/* The bytes from before the peer's end arrive, and then the end. */
static void check_data_before_the_end(struct test *t, enum link_security security)
{
    struct team team;
    uint8_t in[3];

    CHECK_OK(t, pair_open_secured(&team, security));
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

TEST_FLAGS(data_before_the_end, TEST_SURVIVES_ALLOC)
{
    check_data_before_the_end(t, LINK_SECURITY_NONE);
}

TEST_FLAGS(data_before_the_end_sealed, TEST_SURVIVES_ALLOC)
{
    check_data_before_the_end(t, LINK_SECURITY_ENCRYPTED);
}

static void check_longer_than_its_memory(struct test *t, enum link_security security)
{
    struct team team;
    char why[200];
    uint8_t in[3];

    CHECK_OK(t, pair_open_secured(&team, security));
    CHECK_OK(t, link_send_now(team.links[0], 1, 1, "four", 4));
    CHECK_CODE(t, link_receive_now(team.links[1], 0, 1, in, 3), HVD_E_LOST);
    CHECK_CODE(t, link_receive_now(team.links[0], 1, 1, in, 3), HVD_E_LOST);
    /* the peer has sent that itself: no frame was forged */
    CHECK(t, !team.links[1]->ops->why(team.links[1], 0, why, sizeof(why)));
    CHECK(t, !team.links[1]->ops->why(team.links[1], 9, why, sizeof(why)));
out:
    team_close(&team);
}

TEST(longer_than_its_memory)
{
    check_longer_than_its_memory(t, LINK_SECURITY_NONE);
}

TEST(longer_than_its_memory_sealed)
{
    check_longer_than_its_memory(t, LINK_SECURITY_AUTHENTICATED);
}

/* ---- a raw socket as the peer ---- */

static void end(int fd, bool hard)
{
    const struct linger at_once = { 1, 0 };

    if (fd >= 0 && hard) /* hard: a reset, as when bytes were left unread */
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    if (fd >= 0)
        close(fd);
}

static struct sockaddr_in local(uint16_t port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };

    if (inet_pton(AF_INET, loopback_own(), &at.sin_addr) != 1)
        abort();
    return at;
}

/* Connects to the link of rank 1, as rank 0. */
static int raw_dial(const struct team *team)
{
    struct tcp_address address;
    struct sockaddr_in at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (tcp_address_read(team->told[1][0].bytes, team->told[1][0].length, &address))
        abort();
    at = local(address.at.port);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)))
        abort();
    return fd;
}

/* The pair of rank 0, which dials, and rank 1. */
static struct tcp_pair pair_of_two(const struct team *team)
{
    struct tcp_pair pair = { .round = &team->round,
                             .dialled = 1,
                             .dialler_incarnation = team->incarnations[0],
                             .dialled_incarnation = team->incarnations[1] };
    struct tcp_address address;

    if (tcp_address_read(team->told[1][0].bytes, team->told[1][0].length, &address))
        abort();
    memcpy(pair.token, address.token, TCP_TOKEN_BYTES);
    return pair;
}

/* Lets the link of this rank run until the raw socket has bytes to read, or a connection to accept.
 */
static void run_until_readable(struct team *team, uint32_t rank, int fd)
{
    struct pollfd readable = { .fd = fd, .events = POLLIN };
    int64_t until_us = clock_now_us() + LONG_US;

    while (poll(&readable, 1, 0) == 0 && clock_now_us() < until_us) {
        team->timeout_us[rank] = STEP_US;
        team->rc[rank] = team_connected(team, rank);
    }
}

static bool raw_read(int fd, uint8_t *bytes, size_t length)
{
    return recv(fd, bytes, length, MSG_WAITALL) == (ssize_t)length;
}

static void try_once(struct team *team, uint32_t rank)
{
    team->timeout_us[rank] = SHORT_US;
    team->rc[rank] = team_connected(team, rank);
}

/* The fault in the greeting of a raw dialler, or in the answer of a raw listener. */
enum wrong {
    WRONG_NOTHING,
    WRONG_PROOF,
    WRONG_SECRET,
    WRONG_ROSTER,
    WRONG_INCARNATION,
    WRONG_COUNT
};

static struct link_round wrong_round(const struct team *team, enum wrong wrong)
{
    static const uint8_t secret[SEAL_KEY_BYTES] = "the secret of another round";
    struct link_round round = team->round;

    if (wrong == WRONG_SECRET)
        round.secret = secret;
    round.roster += wrong == WRONG_ROSTER;
    return round;
}

/* Lets the link of rank 1 challenge the raw dialler, and makes the greeting of rank 0. */
static void raw_make_greeting(struct team *team, int fd, enum wrong wrong,
                              uint8_t ret_greeting[TCP_GREETING_BYTES])
{
    const struct link_round round = wrong_round(team, wrong);
    struct tcp_pair pair = pair_of_two(team);
    uint8_t challenge[TCP_CHALLENGE_BYTES];
    struct tcp_wish plain = { SEAL_PLAIN, SEAL_PLAIN };
    struct tcp_keys keys;

    pair.round = &round;
    pair.dialler_incarnation += wrong == WRONG_INCARNATION;
    run_until_readable(team, 1, fd);
    if (!raw_read(fd, challenge, sizeof(challenge)) ||
        proof_greet(&pair, challenge, plain, ret_greeting, &keys))
        abort();
    ret_greeting[TCP_GREETING_BYTES - 1] ^= wrong == WRONG_PROOF;
}

/* Sends the first `bytes` bytes of the greeting. */
static void raw_greet(struct team *team, int fd, size_t bytes, enum wrong wrong)
{
    uint8_t greeting[TCP_GREETING_BYTES];

    raw_make_greeting(team, fd, wrong, greeting);
    (void)send(fd, greeting, bytes, MSG_NOSIGNAL);
}

/* Opens a raw listener for rank 0 to connect to, on the port of rank 1's link. */
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
    address.at.port = ntohs(at.sin_port);
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

/* Challenges the link of rank 0, which has dialled, and reads its greeting. */
static void raw_hear(struct team *team, int fd, uint8_t ret_nonce[SEAL_NONCE_BYTES],
                     uint8_t ret_greeting[TCP_GREETING_BYTES])
{
    uint8_t challenge[TCP_CHALLENGE_BYTES];

    if (proof_challenge(ret_nonce, challenge) ||
        send(fd, challenge, sizeof(challenge), MSG_NOSIGNAL) != (ssize_t)sizeof(challenge))
        abort();
    run_until_readable(team, 0, fd);
    if (!raw_read(fd, ret_greeting, TCP_GREETING_BYTES))
        abort();
}

/* Answers as rank 1, with the first `bytes` bytes. */
static void raw_answer(struct team *team, int fd, size_t bytes, enum wrong wrong)
{
    uint8_t nonce[SEAL_NONCE_BYTES], greeting[TCP_GREETING_BYTES], answer[TCP_ANSWER_BYTES];
    struct tcp_pair pair = pair_of_two(team);
    struct tcp_wish plain = { SEAL_PLAIN, SEAL_PLAIN };
    enum seal_mode mode;
    struct tcp_keys keys;

    raw_hear(team, fd, nonce, greeting);
    if (proof_admit(&pair, nonce, greeting, plain, answer, &mode, &keys))
        abort();
    answer[TCP_ANSWER_BYTES - 1] ^= wrong == WRONG_PROOF;
    (void)send(fd, answer, bytes, MSG_NOSIGNAL);
}

/* Strangers leave nothing behind: the right peer still gets in. */
TEST_FLAGS(strangers, TEST_NO_TORTURE)
{
    struct team team;
    int fds[100], fd = -1;
    size_t count = 0;

    CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 2));
    CHECK_OK(t, team_connect_one(&team, 1, 0));
    while (count < ARRAY_SIZE(fds)) {
        fds[count] = raw_dial(&team);
        if (count % 4 == 1)
            (void)send(fds[count], "GET / HTTP/1.1\r\nHost: here\r\n\r\n", 30, MSG_NOSIGNAL);
        if (count % 4 == 2)
            raw_greet(&team, fds[count], TCP_GREETING_BYTES,
                      (enum wrong)(1 + count / 4 % (WRONG_COUNT - 1)));
        if (count % 4 == 3)
            raw_greet(&team, fds[count], 10, WRONG_NOTHING);
        count++;
    }
    try_once(&team, 1);
    CHECK_CODE(t, team.rc[1], HVD_E_TIMEOUT);
    fd = raw_dial(&team);
    raw_greet(&team, fd, TCP_GREETING_BYTES, WRONG_NOTHING);
    CHECK_OK(t, settle(&team, 1));
out:
    while (count > 0)
        end(fds[--count], false);
    end(fd, false);
    team_close(&team);
}

/* poll takes no more descriptors than the limit, so a link must poll only its own, not all that may
 * come. */
TEST_FLAGS(few_descriptors, TEST_NO_TORTURE)
{
    struct team team = { .size = 0 };
    struct rlimit before, few;

    CHECK_OK(t, getrlimit(RLIMIT_NOFILE, &before));
    few = (struct rlimit){ .rlim_cur = 40, .rlim_max = before.rlim_max };
    CHECK_OK(t, setrlimit(RLIMIT_NOFILE, &few));
    CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 3));
    team_run(&team, team_act_connect);
    for (uint32_t i = 0; i < team.size; i++)
        CHECK_OK(t, team.rc[i]);
out:
    team_close(&team);
    (void)setrlimit(RLIMIT_NOFILE, &before);
}

/* Without a free descriptor an accept fails so also when no peer waits: the peer has the last one.
 * A stranger that has it gives it up. */
TEST_FLAGS(a_peer_gets_the_last_descriptor, TEST_NO_TORTURE)
{
    struct rlimit before = { .rlim_max = 0 };
    struct team team;
    int fd = -1, stranger = -1;

    CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 2));
    CHECK_OK(t, team_connect_one(&team, 1, 0));
    CHECK_OK(t, descriptors_allow(3, &before)); /* two of them for the diallers */
    stranger = raw_dial(&team);
    try_once(&team, 1);
    CHECK_CODE(t, team.rc[1], HVD_E_TIMEOUT);
    fd = raw_dial(&team);
    raw_greet(&team, fd, TCP_GREETING_BYTES, WRONG_NOTHING);
    CHECK_OK(t, settle(&team, 1));
out:
    if (before.rlim_max)
        (void)setrlimit(RLIMIT_NOFILE, &before);
    end(fd, false);
    end(stranger, false);
    team_close(&team);
}

/* The listener rests while no descriptor is free, and accepts when there is one again. */
TEST_FLAGS(a_link_waits_for_a_descriptor, TEST_NO_TORTURE)
{
    int64_t since_us = clock_now_us();
    struct rlimit before = { .rlim_max = 0 };
    struct team team;
    int fd = -1;

    CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 2));
    CHECK_OK(t, team_connect_one(&team, 1, 0));
    CHECK_OK(t, descriptors_allow(1, &before));
    fd = raw_dial(&team); /* takes the last descriptor */
    try_once(&team, 1);
    if (team.rc[1] == HVD_E_LOST && clock_now_us() - since_us >= TIME_S)
        goto out; /* on a slow machine the link has waited long enough to give up */
    CHECK_CODE(t, team.rc[1], HVD_E_TIMEOUT);
    CHECK_OK(t, setrlimit(RLIMIT_NOFILE, &before));
    before.rlim_max = 0;
    while (!source_has_spoken(fd) && clock_now_us() - since_us < LONG_US)
        try_once(&team, 1);
    raw_greet(&team, fd, TCP_GREETING_BYTES, WRONG_NOTHING);
    CHECK_OK(t, settle(&team, 1));
out:
    if (before.rlim_max)
        (void)setrlimit(RLIMIT_NOFILE, &before);
    end(fd, false);
    team_close(&team);
}

/* A dial without a free descriptor is tried again, and does not count as one that broke. */
TEST_FLAGS(a_dial_waits_for_a_descriptor, TEST_NO_TORTURE)
{
    int64_t since_us = clock_now_us();
    struct rlimit before = { .rlim_max = 0 };
    struct team team;
    int taken = -1;

    CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 2));
    CHECK_OK(t, descriptors_allow(1, &before));
    taken = dup(STDIN_FILENO);
    CHECK_OK(t, team_connect_one(&team, 0, 1));
    for (int i = 0; i < 10; i++) {
        try_once(&team, 0);
        /* on a slow machine the link may have waited long enough to give up */
        CHECK(t, team.rc[0] == HVD_E_TIMEOUT || clock_now_us() - since_us >= TIME_S);
    }
    CHECK_OK(t, setrlimit(RLIMIT_NOFILE, &before));
    before.rlim_max = 0;
    CHECK_OK(t, team_connect_one(&team, 1, 0));
    do {
        try_once(&team, 0);
        try_once(&team, 1);
    } while ((team.rc[0] || team.rc[1]) && clock_now_us() - since_us < LONG_US);
    CHECK_OK(t, team.rc[0]);
    CHECK_OK(t, team.rc[1]);
out:
    if (before.rlim_max)
        (void)setrlimit(RLIMIT_NOFILE, &before);
    end(taken, false);
    team_close(&team);
}

/* A link that never gets a descriptor for a dial ends with the remedy. */
TEST_FLAGS(a_link_that_cannot_dial_ends, TEST_NO_TORTURE)
{
    struct rlimit before = { .rlim_max = 0 };
    struct team team;
    char why[200];
    int taken = -1;

    CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 2));
    CHECK_OK(t, descriptors_allow(1, &before));
    taken = dup(STDIN_FILENO);
    CHECK_OK(t, team_connect_one(&team, 0, 1));
    CHECK_CODE(t, settle(&team, 0), HVD_E_LOST);
    CHECK(t, team.links[0]->ops->why(team.links[0], 1, why, sizeof(why)));
    CHECK_HAS(t, why, "rank 0 cannot connect to rank 1: no file descriptor is left");
out:
    if (before.rlim_max)
        (void)setrlimit(RLIMIT_NOFILE, &before);
    end(taken, false);
    team_close(&team);
}

/* A link that never gets a descriptor ends with the remedy. */
TEST_FLAGS(a_link_without_a_descriptor_ends, TEST_NO_TORTURE)
{
    struct rlimit before = { .rlim_max = 0 };
    struct team team;
    char why[200];
    int fd = -1;

    CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 2));
    CHECK_OK(t, team_connect_one(&team, 1, 0));
    CHECK_OK(t, descriptors_allow(1, &before));
    fd = raw_dial(&team);
    CHECK_CODE(t, settle(&team, 1), HVD_E_LOST);
    CHECK_HAS(t, team.err[1].text, "ulimit -n");
    CHECK(t, team.links[1]->ops->why(team.links[1], 0, why, sizeof(why)));
    CHECK_HAS(t, why, "rank 1 cannot connect to rank 0: no file descriptor is left");
out:
    if (before.rlim_max)
        (void)setrlimit(RLIMIT_NOFILE, &before);
    end(fd, false);
    team_close(&team);
}

TEST_FLAGS(dies_dialling, TEST_NO_TORTURE)
{
    static const size_t said[] = { 0, 10, TCP_GREETING_BYTES };
    struct team team;
    int fd = -1;
    uint8_t in;

    for (size_t i = 0; i < 2 * ARRAY_SIZE(said); i++) {
        CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 2));
        CHECK_OK(t, team_connect_one(&team, 1, 0));
        fd = raw_dial(&team);
        raw_greet(&team, fd, said[i / 2], WRONG_NOTHING);
        end(fd, i % 2);
        fd = -1;
        try_once(&team, 1);
        if (said[i / 2] == TCP_GREETING_BYTES && !team.rc[1]) {
            CHECK_CODE(t, link_receive_now(team.links[1], 0, 1, &in, 1), HVD_E_LOST);
        } else if (said[i / 2] == TCP_GREETING_BYTES && team.rc[1] == HVD_E_LOST) {
            CHECK_INT(t, team.missing[1], ==, 0); /* the end was seen at once */
        } else { /* the link does not know which peer that was, so the right peer may still come */
            CHECK_CODE(t, team.rc[1], HVD_E_TIMEOUT);
            fd = raw_dial(&team);
            raw_greet(&team, fd, TCP_GREETING_BYTES, WRONG_NOTHING);
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

/* The peer goes on up to this step; then all its descriptors close. */
static void die_dialled(struct team *team, int listener, int step, bool hard)
{
    uint8_t nonce[SEAL_NONCE_BYTES], greeting[TCP_GREETING_BYTES];
    int fd = -1;

    if (step > DIES_UNACCEPTED)
        fd = accept(listener, NULL, NULL);
    if (step == DIES_HEARING)
        raw_hear(team, fd, nonce, greeting);
    if (step > DIES_HEARING)
        raw_answer(team, fd, 10, WRONG_NOTHING);
    close(listener);
    end(fd, hard);
}

TEST_FLAGS(dies_dialled, TEST_NO_TORTURE)
{
    struct team team;
    uint8_t none = 0;
    int listener;

    for (int i = 0; i < 2 * DIES_STEPS; i++) {
        CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 2));
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

/* A stranger has the port of a peer that is gone: its answer proves nothing. */
TEST_FLAGS(wrong_answer, TEST_NO_TORTURE)
{
    struct team team;
    int listener = -1, fds[8] = { -1, -1, -1, -1, -1, -1, -1, -1 };
    char why[300];

    CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 2));
    listener = raw_listen(&team);
    CHECK_OK(t, team_connect_one(&team, 0, 1));
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        run_until_readable(&team, 0, listener);
        fds[i] = accept(listener, NULL, NULL);
        CHECK_INT(t, fds[i], >=, 0);
        raw_answer(&team, fds[i], TCP_ANSWER_BYTES, WRONG_PROOF);
    }
    CHECK_CODE(t, settle(&team, 0), HVD_E_LOST);
    CHECK_HAS(t, team.err[0].text, "has no proof");
    CHECK(t, team.links[0]->ops->why(team.links[0], 1, why, sizeof(why)));
    CHECK_HAS(t, why, "has no proof");
out:
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        end(fds[i], false);
    end(listener, false);
    team_close(&team);
}

/* A greeting that was read on its way comes first on another connection: the peer's own connection
 * wins its place. */
TEST_FLAGS(a_replayed_greeting_wins_no_place, TEST_NO_TORTURE)
{
    uint8_t greeting[TCP_GREETING_BYTES], challenge[TCP_CHALLENGE_BYTES];
    int fd = -1, thief = -1;
    struct team team;

    CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 2));
    CHECK_OK(t, team_connect_one(&team, 1, 0));
    fd = raw_dial(&team);
    raw_make_greeting(&team, fd, WRONG_NOTHING, greeting);
    thief = raw_dial(&team);
    run_until_readable(&team, 1, thief);
    CHECK(t, raw_read(thief, challenge, sizeof(challenge)));
    CHECK_INT(t, send(thief, greeting, sizeof(greeting), MSG_NOSIGNAL), ==, sizeof(greeting));
    run_until_readable(&team, 1, thief);
    CHECK_CODE(t, team.rc[1], HVD_E_TIMEOUT);
    CHECK_INT(t, recv(thief, challenge, 1, 0), <=, 0);
    CHECK_INT(t, send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL), ==, sizeof(greeting));
    CHECK_OK(t, settle(&team, 1));
out:
    end(fd, false);
    end(thief, false);
    team_close(&team);
}

/* The link's own greeting comes back to it as the answer. */
TEST_FLAGS(a_reflected_greeting_is_no_answer, TEST_NO_TORTURE)
{
    uint8_t nonce[SEAL_NONCE_BYTES], greeting[TCP_GREETING_BYTES];
    int listener = -1, fd = -1;
    struct team team;

    CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 2));
    listener = raw_listen(&team);
    CHECK_OK(t, team_connect_one(&team, 0, 1));
    for (int i = 0; i < 8; i++) {
        run_until_readable(&team, 0, listener);
        fd = accept(listener, NULL, NULL);
        CHECK_INT(t, fd, >=, 0);
        raw_hear(&team, fd, nonce, greeting);
        (void)send(fd, greeting + TCP_GREETING_BYTES - TCP_ANSWER_BYTES, TCP_ANSWER_BYTES,
                   MSG_NOSIGNAL);
        end(fd, false);
        fd = -1;
    }
    CHECK_CODE(t, settle(&team, 0), HVD_E_LOST);
out:
    end(fd, false);
    end(listener, false);
    team_close(&team);
}

/* No answer that was made for a weaker way is accepted for another. */
TEST(a_weaker_way_is_not_accepted)
{
    static const uint8_t secret[SEAL_KEY_BYTES] = "the secret of this round";
    static const uint64_t incarnations[2] = { 1, 2 };
    const struct link_round round = { .round = 1, .incarnations = incarnations, .secret = secret };
    const struct tcp_pair pair = { .round = &round, .dialled = 1 };
    uint8_t nonce[SEAL_NONCE_BYTES], challenge[TCP_CHALLENGE_BYTES], greeting[TCP_GREETING_BYTES],
        answer[TCP_ANSWER_BYTES], weaker[TCP_ANSWER_BYTES];
    struct tcp_keys ours, theirs;
    enum seal_mode mode;

    for (int least = SEAL_PLAIN; least < SEAL_MODE_COUNT; least++) {
        struct tcp_wish wish = { (enum seal_mode)least, SEAL_ENCRYPTED };

        CHECK_OK(t, proof_challenge(nonce, challenge));
        CHECK_OK(t, proof_greet(&pair, challenge, wish, greeting, &ours));
        CHECK_OK(t, proof_admit(&pair, nonce, greeting, (struct tcp_wish){ SEAL_PLAIN, SEAL_PLAIN },
                                answer, &mode, &theirs));
        CHECK_INT(t, mode, ==, least);
        CHECK(t, seal_same(ours.dialler_stream, theirs.dialler_stream, SEAL_KEY_BYTES));
        for (size_t i = 0; i < 3; i++) { /* the mode, and both wishes */
            for (uint8_t other = 0; other < 4; other++) {
                memcpy(weaker, answer, sizeof(weaker));
                weaker[i] = other;
                CHECK(t, !proof_accept(&ours, greeting, weaker, &mode) == (other == answer[i]));
            }
        }
        greeting[8 + SEAL_NONCE_BYTES] ^= 1;
        CHECK_CODE(t, proof_admit(&pair, nonce, greeting, wish, answer, &mode, &theirs),
                   HVD_E_PROTO);
    }
out:
    return;
}

/* ---- in the middle of a message ---- */

static size_t put_message(uint8_t *at, uint64_t tag, size_t length)
{
    const struct tcp_head head = { tag, length };

    tcp_head_write(&head, at);
    memset(at + TCP_HEAD_BYTES, 'y', length);
    return TCP_HEAD_BYTES + length;
}

/* The rest of the message is dropped, and the next message arrives. */
TEST(half_received_and_dropped)
{
    uint8_t out[200], in[1], *memory = mem_alloc(100);
    size_t first = put_message(out, 2, 1), length = first + put_message(out + first, 1, 100);
    struct link_request *dropped = NULL;
    struct team team;
    int fd = -1;

    CHECK_OK(t, team_open(&team, LINK_TCP, loopback_own(), 2));
    CHECK(t, memory != NULL);
    CHECK_OK(t, team_connect_one(&team, 1, 0));
    fd = raw_dial(&team);
    raw_greet(&team, fd, TCP_GREETING_BYTES, WRONG_NOTHING);
    CHECK_OK(t, settle(&team, 1));
    CHECK_INT(t, send(fd, out, length - 50, MSG_NOSIGNAL), ==, length - 50);
    CHECK_OK(t, link_post_receive(team.links[1], 0, 1, memory, 100, &dropped));
    /* the second message came with the first */
    CHECK_OK(t, link_receive_now(team.links[1], 0, 2, in, 1));
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

/* No message can follow a half one: the other side gets an error. */
static void check_half_sent_and_dropped(struct test *t, enum link_security security)
{
    uint8_t *out = mem_zalloc(LARGE), in[1];
    struct link_request *request;
    struct team team;

    CHECK_OK(t, pair_open_secured(&team, security));
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

TEST_FLAGS(half_sent_and_dropped, TEST_NO_TORTURE)
{
    check_half_sent_and_dropped(t, LINK_SECURITY_NONE);
}

TEST_FLAGS(half_sent_and_dropped_sealed, TEST_NO_TORTURE)
{
    check_half_sent_and_dropped(t, LINK_SECURITY_ENCRYPTED);
}
