/*
 * The place where workers meet (connect before a round), without links and rounds: the test
 * connects as a stranger, or plays a peer.
 */
#include "base/limits.h"
#include "collectives/meet/meet.h"
#include "collectives/meet/proof.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/descriptors.h"
#include "tests/lib/fixture.h"
#include "tests/lib/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_MS 100000

/* The events that a round got. */
struct told {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned met, missed, heard, parted, gone;
    int code;
    char text[MEET_TEXT_MAX];
    uint8_t address[MEET_ADDRESS_MAX];
    size_t length;
};

static void note(struct told *told, unsigned *what, int code, const char *text)
{
    pthread_mutex_lock(&told->mutex);
    ++*what;
    /* without a text another thread may read told already: a peer may part at once */
    if (text[0]) {
        told->code = code;
        memcpy(told->text, text, strlen(text) + 1);
    }
    pthread_cond_broadcast(&told->changed);
    pthread_mutex_unlock(&told->mutex);
}

static void met(void *arg, size_t peer, const uint8_t *address, size_t length)
{
    struct told *told = arg;

    (void)peer;
    memcpy(told->address, address, length);
    told->length = length;
    note(told, &told->met, 0, "");
}

static void missed(void *arg, size_t peer, int code, const char *why)
{
    struct told *told = arg;

    (void)peer;
    note(told, &told->missed, code, why);
}

static void heard(void *arg, size_t peer, int code, uint32_t rank, const char *why)
{
    struct told *told = arg;

    (void)peer;
    (void)rank;
    note(told, &told->heard, code, why);
}

static void parted(void *arg, size_t peer)
{
    struct told *told = arg;

    (void)peer;
    note(told, &told->parted, 0, "");
}

static void gone(void *arg)
{
    struct told *told = arg;

    note(told, &told->gone, 0, "");
}

static const struct meet_ops ops = { met, missed, heard, parted, gone };

static void told_init(struct told *told)
{
    memset(told, 0, sizeof(*told));
    pthread_mutex_init(&told->mutex, NULL);
    if (thread_cond_init(&told->changed))
        abort();
}

static bool await(struct told *told, const unsigned *what)
{
    int64_t until_us = clock_now_us() + LONG_MS * INT64_C(1000);
    bool late = false, there;

    pthread_mutex_lock(&told->mutex);
    while (!*what && !late)
        late = thread_cond_wait(&told->changed, &told->mutex, until_us);
    there = *what;
    pthread_mutex_unlock(&told->mutex);
    return there;
}

static const uint8_t round_secret[SEAL_KEY_BYTES] = "the secret of all rounds here..";

static unsigned count_of(struct told *told, const unsigned *what)
{
    unsigned count;

    pthread_mutex_lock(&told->mutex);
    count = *what;
    pthread_mutex_unlock(&told->mutex);
    return count;
}

/* Joins a round of `rank` and one peer; which of the two connects depends on the ranks. */
static int join(struct meet *meet, uint64_t round, uint32_t rank, uint32_t peer,
                const char *contact, struct told *told, struct meet_round **ret_party)
{
    struct meet_peer one = { .rank = peer, .incarnation = 100 + peer, .contact = contact };
    const struct meet_spec spec = {
        .round = round,
        .incarnation = 100 + rank,
        .rank = rank,
        .roster = 77,
        .secret = round_secret,
        .peers = &one,
        .peer_count = 1,
        .ops = &ops,
        .arg = told,
    };

    one.address[0] = (uint8_t)rank;
    one.address_length = 1;
    return meet_join(meet, &spec, ret_party, NULL);
}

static void leave(struct meet_round *round, struct told *told, bool politely)
{
    if (!round)
        return;
    meet_leave(round, politely);
    (void)await(told, &told->gone);
}

/* ---- a stranger ---- */

static int dial(const struct meet *meet)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    struct meet_contact contact;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || meet_contact_read(meet_contact(meet), &contact, NULL))
        return fd;
    address.sin_port = htons(contact.port);
    (void)inet_pton(AF_INET, contact.host, &address.sin_addr);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool say(int fd, const struct meet_frame *frame)
{
    struct buf buf;
    bool sent;

    buf_init(&buf, MEET_FRAME_MAX);
    sent = !meet_frame_append(frame, &buf) &&
           send(fd, buf.data, buf.length, MSG_NOSIGNAL) == (ssize_t)buf.length;
    buf_release(&buf);
    return sent;
}

/* Reads a frame. 1: a frame; 0: the end of the connection; -1: nothing came in time. */
static int answer(int fd, struct meet_frame *ret_frame)
{
    struct pollfd readable = { .fd = fd, .events = POLLIN };
    uint8_t bytes[MEET_FRAME_MAX];
    size_t length = 0, used;

    for (;;) {
        ssize_t got;

        if (poll(&readable, 1, LONG_MS) != 1)
            return -1;
        got = recv(fd, bytes + length, 1, 0);
        if (got <= 0)
            return 0;
        length += (size_t)got;
        if (meet_frame_read(bytes, length, ret_frame, &used) == 1)
            return 1;
    }
}

/* The words of a dialler, and the one fault that they may have. */
enum spoilt { SPOILT_NOTHING, SPOILT_GATE, SPOILT_PROOF, SPOILT_CONTACT, SPOILT_SECRET };
struct caller {
    uint64_t round, from, to, roster;
    enum spoilt spoilt;
    struct proof_keys gate, line;
    struct meet_frame hello; /* the last one that was said */
};

static const struct caller usual = { .round = 9, .from = 100, .to = 101, .roster = 77 };

/* Makes the HELLO that answers this challenge. */
static bool make_hello(const struct meet *meet, struct caller *caller, const uint8_t *challenge)
{
    struct meet_frame *hello = &caller->hello;
    uint8_t secret[SEAL_KEY_BYTES];
    struct meet_contact contact;

    if (meet_contact_read(meet_contact(meet), &contact, NULL))
        return false;
    memcpy(secret, round_secret, sizeof(secret));
    secret[31] ^= caller->spoilt == SPOILT_SECRET;
    contact.secret[15] ^= caller->spoilt == SPOILT_CONTACT;
    *hello = (struct meet_frame){ .kind = MEET_HELLO,
                                  .round = caller->round,
                                  .from = caller->from,
                                  .to = caller->to,
                                  .roster = caller->roster };
    if (seal_random(hello->nonce, sizeof(hello->nonce)) ||
        proof_of_contact(contact.secret, hello, challenge, true, &caller->gate) ||
        proof_of_round(secret, hello, challenge, true, &caller->line) ||
        proof_make(&caller->gate, hello, hello->gate) ||
        proof_make(&caller->line, hello, hello->proof))
        return false;
    hello->gate[0] ^= caller->spoilt == SPOILT_GATE;
    hello->proof[0] ^= caller->spoilt == SPOILT_PROOF;
    return true;
}

/* Reads the challenge, and answers it. */
static bool say_hello(const struct meet *meet, int to, struct caller *caller)
{
    struct meet_frame challenge;

    return answer(to, &challenge) == 1 && challenge.kind == MEET_CHALLENGE &&
           make_hello(meet, caller, challenge.nonce) && say(to, &caller->hello);
}

/* Reads the WELCOME, which must be proved. */
static bool is_welcome(int from, struct caller *caller)
{
    struct meet_frame frame;

    return answer(from, &frame) == 1 && frame.kind == MEET_WELCOME &&
           proof_holds(&caller->line, &frame, frame.proof) && frame.address_length == 1 &&
           frame.address[0] == 1;
}

/* ---- cases ---- */

static struct meet *own, *other;
static struct meet_round *own_round, *others_round;
static struct told heard_by[2];
static int fd;

static void begin(struct test *t)
{
    (void)t;
    own = other = NULL;
    own_round = others_round = NULL;
    told_init(&heard_by[0]);
    told_init(&heard_by[1]);
    fd = -1;
}

static void end(struct test *t)
{
    (void)t;
    if (fd >= 0)
        close(fd);
    leave(own_round, &heard_by[0], false);
    leave(others_round, &heard_by[1], false);
    meet_close(own);
    meet_close(other);
}
FIXTURE(begin, end)

TEST_FLAGS(two_members_meet, TEST_NO_TORTURE)
{
    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    CHECK_OK(t, meet_open(loopback_own(), &other, NULL));
    CHECK_OK(t, join(own, 1, 0, 1, meet_contact(other), &heard_by[0], &own_round));
    CHECK_OK(t, join(other, 1, 1, 0, meet_contact(own), &heard_by[1], &others_round));
    CHECK(t, await(&heard_by[0], &heard_by[0].met) && await(&heard_by[1], &heard_by[1].met));
    CHECK(t, heard_by[0].length == 1 && heard_by[0].address[0] == 1);
    CHECK(t, heard_by[1].length == 1 && heard_by[1].address[0] == 0);
    meet_tell(own_round, HVD_E_MISMATCH, 1, "first");
    meet_tell(own_round, HVD_E_LOST, 0, "second: not told");
    CHECK(t, await(&heard_by[1], &heard_by[1].heard));
    CHECK_TEXT(t, heard_by[1].text, "first");
    CHECK_INT(t, heard_by[1].code, ==, HVD_E_MISMATCH);
    leave(own_round, &heard_by[0], false);
    own_round = NULL;
    CHECK(t, await(&heard_by[1], &heard_by[1].parted));
}

/* A peer that says bye is not dead; a member that leaves waits for the peer's bye. */
TEST_FLAGS(a_bye_is_no_death, TEST_NO_TORTURE)
{
    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    CHECK_OK(t, meet_open(loopback_own(), &other, NULL));
    CHECK_OK(t, join(own, 1, 0, 1, meet_contact(other), &heard_by[0], &own_round));
    CHECK_OK(t, join(other, 1, 1, 0, meet_contact(own), &heard_by[1], &others_round));
    CHECK(t, await(&heard_by[0], &heard_by[0].met) && await(&heard_by[1], &heard_by[1].met));
    meet_leave(own_round, true);
    leave(others_round, &heard_by[1], true);
    others_round = NULL;
    CHECK(t, await(&heard_by[0], &heard_by[0].gone));
    own_round = NULL;
    CHECK(t, !count_of(&heard_by[0], &heard_by[0].parted) &&
                 !count_of(&heard_by[1], &heard_by[1].parted) &&
                 !count_of(&heard_by[0], &heard_by[0].heard) &&
                 !count_of(&heard_by[1], &heard_by[1].heard));
}

TEST_FLAGS(an_early_dialler_waits, TEST_NO_TORTURE)
{
    struct caller caller = usual;

    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    fd = dial(own);
    CHECK(t, fd >= 0 && say_hello(own, fd, &caller));
    CHECK_OK(t, join(own, 9, 1, 0, meet_contact(own), &heard_by[0], &own_round));
    CHECK(t, await(&heard_by[0], &heard_by[0].met));
    CHECK(t, is_welcome(fd, &caller));
    close(fd);
    fd = -1;
    CHECK(t, await(&heard_by[0], &heard_by[0].parted));
}

/* A group of round 9: this process opens it after the peer has dialled. A group with another roster
 * is none of this one's; it waits too, until the round is left. */
TEST_FLAGS(groups_of_a_round_are_told_apart, TEST_NO_TORTURE)
{
    struct caller caller = usual, stranger = usual;
    struct meet_frame frame;
    int second;

    caller.round = stranger.round = 9 | MEET_OF_GROUP;
    stranger.roster = 78;
    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    fd = dial(own);
    second = dial(own);
    CHECK(t, fd >= 0 && say_hello(own, fd, &caller));
    CHECK(t, second >= 0 && say_hello(own, second, &stranger));
    CHECK_OK(t, join(own, 9, 1, 3, meet_contact(own), &heard_by[1], &others_round));
    CHECK_OK(t, join(own, 9 | MEET_OF_GROUP, 1, 0, meet_contact(own), &heard_by[0], &own_round));
    CHECK(t, await(&heard_by[0], &heard_by[0].met));
    CHECK(t, is_welcome(fd, &caller));
    close(fd);
    CHECK(t, await(&heard_by[0], &heard_by[0].parted));
    /* the round is left: what waits is refused when the next round begins, and so is a late one */
    leave(own_round, &heard_by[0], true);
    leave(others_round, &heard_by[1], true);
    others_round = NULL;
    told_init(&heard_by[0]);
    CHECK_OK(t, join(own, 10, 1, 3, meet_contact(own), &heard_by[0], &own_round));
    CHECK_INT(t, answer(second, &frame), ==, 1);
    CHECK(t, frame.kind == MEET_REFUSED && frame.code == HVD_E_NOTFOUND);
    close(second);
    fd = dial(own);
    CHECK(t, fd >= 0 && say_hello(own, fd, &caller));
    CHECK_INT(t, answer(fd, &frame), ==, 1);
    CHECK(t, frame.kind == MEET_REFUSED && frame.code == HVD_E_NOTFOUND);
}

/* The same peer connects twice: the newer connection counts, and no peer has died. */
TEST_FLAGS(a_second_dial_is_the_same_member, TEST_NO_TORTURE)
{
    struct caller caller = usual;
    struct meet_frame frame;
    int fds[2] = { -1, -1 };

    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    CHECK_OK(t, join(own, 9, 1, 0, meet_contact(own), &heard_by[0], &own_round));
    for (int i = 0; i < 2; i++) {
        fds[i] = dial(own);
        CHECK(t, fds[i] >= 0 && say_hello(own, fds[i], &caller));
        CHECK(t, is_welcome(fds[i], &caller));
    }
    CHECK_INT(t, answer(fds[0], &frame), ==, 0);
    CHECK(t, count_of(&heard_by[0], &heard_by[0].met) == 1 &&
                 !count_of(&heard_by[0], &heard_by[0].parted));
    for (int i = 0; i < 2; i++)
        close(fds[i]);
}

TEST_FLAGS(an_unknown_caller_is_turned_away, TEST_NO_TORTURE)
{
    static const struct {
        uint64_t round, from, to, roster;
        int code;
    } wrong[] = {
        {8,  100, 101, 77, HVD_E_NOTFOUND}, /* an older round */
        { 9, 100, 555, 77, HVD_E_MISMATCH}, /* meant for another worker */
        { 9, 555, 101, 77, HVD_E_MISMATCH}, /* an older incarnation */
        { 9, 100, 101, 78, HVD_E_MISMATCH}, /* with other members */
    };
    struct meet_frame frame;

    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    CHECK_OK(t, join(own, 9, 1, 0, meet_contact(own), &heard_by[0], &own_round));
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct caller caller = usual;

        caller.round = wrong[i].round;
        caller.from = wrong[i].from;
        caller.to = wrong[i].to;
        caller.roster = wrong[i].roster;
        fd = dial(own);
        CHECK(t, fd >= 0 && say_hello(own, fd, &caller));
        CHECK_INT(t, answer(fd, &frame), ==, 1);
        CHECK_INT(t, frame.kind, ==, MEET_REFUSED);
        CHECK(t, proof_holds(&caller.gate, &frame, frame.proof));
        CHECK_INT(t, frame.code, ==, wrong[i].code);
        CHECK_INT(t, answer(fd, &frame), ==, 0);
        close(fd);
        fd = -1;
    }
    CHECK(t, !count_of(&heard_by[0], &heard_by[0].met) &&
                 !count_of(&heard_by[0], &heard_by[0].missed) &&
                 !count_of(&heard_by[0], &heard_by[0].parted));
}

/* A stranger gets a challenge and no answer. */
TEST_FLAGS(a_stranger_is_hung_up_on, TEST_NO_TORTURE)
{
    static const enum spoilt wrong[] = { SPOILT_GATE, SPOILT_CONTACT, SPOILT_PROOF, SPOILT_SECRET };
    struct meet_frame frame, bye = { .kind = MEET_BYE };

    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    CHECK_OK(t, join(own, 9, 1, 0, meet_contact(own), &heard_by[0], &own_round));
    for (size_t i = 0; i < ARRAY_SIZE(wrong) + 2; i++) {
        struct caller caller = usual;

        caller.spoilt = i < ARRAY_SIZE(wrong) ? wrong[i] : SPOILT_NOTHING;
        fd = dial(own);
        CHECK(t, fd >= 0);
        if (i < ARRAY_SIZE(wrong))
            CHECK(t, say_hello(own, fd, &caller));
        else if (i == ARRAY_SIZE(wrong))
            CHECK(t, answer(fd, &frame) == 1 && say(fd, &bye));
        else
            CHECK(t, answer(fd, &frame) == 1 &&
                         send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL) == 18);
        CHECK_INT(t, answer(fd, &frame), ==, 0);
        close(fd);
        fd = -1;
    }
    CHECK(t, !count_of(&heard_by[0], &heard_by[0].met) &&
                 !count_of(&heard_by[0], &heard_by[0].missed) &&
                 !count_of(&heard_by[0], &heard_by[0].parted));
}

/* A HELLO that was read on its way is worth nothing on another connection, whether its round runs
 * or is still to come; nor is one of which only a part comes. The living line stays. */
TEST_FLAGS(a_replay_replaces_nothing, TEST_NO_TORTURE)
{
    struct caller caller = usual, early = usual;
    struct meet_frame frame;
    int thief, half;

    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    CHECK_OK(t, join(own, 9, 1, 0, meet_contact(own), &heard_by[0], &own_round));
    fd = dial(own);
    CHECK(t, fd >= 0 && say_hello(own, fd, &caller) && is_welcome(fd, &caller));
    early.round = 10;
    half = dial(own);
    CHECK(t, half >= 0 && answer(half, &frame) == 1 && make_hello(own, &early, frame.nonce));
    CHECK(t, send(half, "\1\2", 2, MSG_NOSIGNAL) == 2);
    for (int i = 0; i < 2; i++) {
        thief = dial(own);
        CHECK(t, thief >= 0 && answer(thief, &frame) == 1);
        CHECK(t, say(thief, i ? &early.hello : &caller.hello));
        CHECK_INT(t, answer(thief, &frame), ==, 0);
        close(thief);
    }
    close(half);
    CHECK(t, count_of(&heard_by[0], &heard_by[0].met) == 1 &&
                 !count_of(&heard_by[0], &heard_by[0].parted) &&
                 !count_of(&heard_by[0], &heard_by[0].heard));
    /* the line still carries what the round has to say */
    meet_tell(own_round, HVD_E_LOST, 1, "why");
    CHECK_INT(t, answer(fd, &frame), ==, 1);
    CHECK(t, frame.kind == MEET_NOTICE && proof_holds(&caller.line, &frame, frame.proof));
}

/* A device repeats a HELLO, and both come at once. The second is not left lying until the round has
 * something to say: the connection is closed, and the peer dials again. */
TEST_FLAGS(a_hello_comes_once, TEST_NO_TORTURE)
{
    struct caller caller = usual;
    struct meet_frame frame;
    struct buf twice;
    bool sent;

    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    CHECK_OK(t, join(own, 9, 1, 0, meet_contact(own), &heard_by[0], &own_round));
    fd = dial(own);
    CHECK(t, fd >= 0 && answer(fd, &frame) == 1 && make_hello(own, &caller, frame.nonce));
    buf_init(&twice, 4096);
    sent = true;
    for (int i = 0; i < 2; i++)
        sent = !meet_frame_append(&caller.hello, &twice) && sent;
    sent = sent && send(fd, twice.data, twice.length, MSG_NOSIGNAL) == (ssize_t)twice.length;
    buf_release(&twice);
    CHECK(t, sent);
    CHECK_INT(t, answer(fd, &frame), ==, 0);
    close(fd);
    fd = dial(own);
    CHECK(t, fd >= 0 && say_hello(own, fd, &caller) && is_welcome(fd, &caller));
}

/* The other side's own words come back to it: a challenge, then a HELLO. */
TEST_FLAGS(a_reflection_proves_nothing, TEST_NO_TORTURE)
{
    struct meet_frame frame;
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t length = sizeof(at);
    char contact[MEET_CONTACT_MAX];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), mirror;

    CHECK(t, listener >= 0 && inet_pton(AF_INET, loopback_own(), &at.sin_addr) == 1);
    CHECK(t, !bind(listener, (struct sockaddr *)&at, length) && !listen(listener, 4) &&
                 !getsockname(listener, (struct sockaddr *)&at, &length));
    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    (void)snprintf(contact, sizeof(contact), "%s:%u/000102030405060708090a0b0c0d0e0f",
                   loopback_own(), (unsigned)ntohs(at.sin_port));
    CHECK_OK(t, join(own, 9, 0, 1, contact, &heard_by[0], &own_round)); /* rank 0 dials */
    mirror = accept(listener, NULL, NULL);
    CHECK(t, mirror >= 0);
    frame = (struct meet_frame){ .kind = MEET_CHALLENGE };
    CHECK(t, say(mirror, &frame));
    CHECK(t, answer(mirror, &frame) == 1 && frame.kind == MEET_HELLO);
    CHECK(t, say(mirror, &frame));
    CHECK(t, await(&heard_by[0], &heard_by[0].missed));
    CHECK(t, !count_of(&heard_by[0], &heard_by[0].met) && heard_by[0].code == HVD_E_PROTO);
    CHECK_HAS(t, heard_by[0].text, "not as a member of the round");
    close(mirror);
    close(listener);
}

/* After the two have met: a NOTICE without the right proof, one that comes twice, and bytes that
 * are no frame. Each ends the line, and the reason says so. */
TEST_FLAGS(a_forged_notice_is_not_believed, TEST_NO_TORTURE)
{
    struct meet_frame notice = { .kind = MEET_NOTICE, .code = HVD_E_MISMATCH, .text = "forged" };

    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    for (uint64_t i = 0; i < 3; i++) {
        struct caller caller = usual;

        told_init(&heard_by[0]);
        caller.round = 9 + i;
        CHECK_OK(t, join(own, 9 + i, 1, 0, meet_contact(own), &heard_by[0], &own_round));
        fd = dial(own);
        CHECK(t, fd >= 0 && say_hello(own, fd, &caller) && is_welcome(fd, &caller));
        if (i == 1) {
            CHECK_OK(t, proof_make(&caller.line, &notice, notice.proof));
            CHECK(t, say(fd, &notice) && await(&heard_by[0], &heard_by[0].heard));
            CHECK_CODE(t, heard_by[0].code, HVD_E_MISMATCH);
        }
        if (i < 2)
            CHECK(t, say(fd, &notice));
        else
            CHECK(t, send(fd, "\377\377\377\377", 4, MSG_NOSIGNAL) == 4);
        while (answer(fd, &notice) == 1) {
        }
        leave(own_round, &heard_by[0], false);
        own_round = NULL;
        CHECK_INT(t, count_of(&heard_by[0], &heard_by[0].heard), ==, i == 1 ? 2 : 1);
        CHECK_CODE(t, heard_by[0].code, HVD_E_LOST);
        CHECK_HAS(t, heard_by[0].text, "ranks 1 and 0");
        notice = (struct meet_frame){ .kind = MEET_NOTICE, .code = HVD_E_MISMATCH, .text = "x" };
        close(fd);
        fd = -1;
    }
}

/* Strangers fill all places: the oldest one is dropped, and a member that knows the secret gets
 * in. */
TEST_FLAGS(strangers_keep_no_member_out, TEST_NO_TORTURE)
{
    static int fds[LIMIT_STRANGERS + 20];
    struct caller caller = usual;
    struct meet_frame frame;
    size_t count = 0;

    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    CHECK_OK(t, join(own, 9, 1, 0, meet_contact(own), &heard_by[0], &own_round));
    for (; count < ARRAY_SIZE(fds); count++) {
        fds[count] = dial(own);
        CHECK(t, fds[count] >= 0);
    }
    CHECK(t, say_hello(own, fds[count - 1], &caller));
    CHECK(t, is_welcome(fds[count - 1], &caller));
    CHECK_INT(t, answer(fds[0], &frame), ==, 1);
    CHECK_INT(t, answer(fds[0], &frame), ==, 0);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

/* The owner gets an error, and a peer that connects is let in when a descriptor is free again. */
TEST_FLAGS(without_a_descriptor, TEST_NO_TORTURE)
{
    struct caller caller = usual;
    struct rlimit before;

    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    CHECK_OK(t, join(own, 9, 1, 0, meet_contact(own), &heard_by[0], &own_round));
    CHECK_OK(t, descriptors_allow(1, &before));
    fd = dial(own); /* takes the last descriptor */
    CHECK(t, fd >= 0);
    CHECK(t, await(&heard_by[0], &heard_by[0].missed));
    CHECK_CODE(t, heard_by[0].code, HVD_E_LIMIT);
    CHECK(t, strstr(heard_by[0].text, "ulimit -n"));
    CHECK_OK(t, setrlimit(RLIMIT_NOFILE, &before));
    CHECK(t, say_hello(own, fd, &caller));
    CHECK(t, is_welcome(fd, &caller));
}

/* Without a free descriptor an accept fails, also when no connection waits. */
TEST_FLAGS(a_member_gets_the_last_descriptor, TEST_NO_TORTURE)
{
    struct caller caller = usual;
    struct rlimit before;

    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    CHECK_OK(t, join(own, 9, 1, 0, meet_contact(own), &heard_by[0], &own_round));
    CHECK_OK(t, descriptors_allow(2, &before));
    fd = dial(own);
    CHECK(t, fd >= 0 && say_hello(own, fd, &caller));
    CHECK(t, is_welcome(fd, &caller));
    CHECK_OK(t, setrlimit(RLIMIT_NOFILE, &before));
}

/* An old member of the job has the contact, so it can park connections for rounds to come. */
TEST_FLAGS(a_parked_connection_keeps_no_member_out, TEST_NO_TORTURE)
{
    struct caller caller = usual, parks = usual;
    struct meet_frame frame;
    struct rlimit before;
    int parked;

    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    CHECK_OK(t, join(own, 9, 1, 0, meet_contact(own), &heard_by[0], &own_round));
    CHECK_OK(t, descriptors_allow(3, &before));
    parks.round = 99;
    parked = dial(own);
    CHECK(t, parked >= 0 && say_hello(own, parked, &parks));
    fd = dial(own);
    CHECK(t, fd >= 0 && say_hello(own, fd, &caller));
    CHECK(t, is_welcome(fd, &caller));
    CHECK_INT(t, answer(parked, &frame), ==, 0);
    close(parked);
    CHECK_OK(t, setrlimit(RLIMIT_NOFILE, &before));
}

/* Parked connections leave most descriptors to the user's program, and those that found no place do
 * not keep a member out. */
TEST_FLAGS(parked_connections_are_few, TEST_NO_TORTURE)
{
    struct caller caller = usual, parks = usual;
    struct rlimit before, few;
    struct meet_frame frame;
    int parked[40];
    char byte;

    CHECK_OK(t, getrlimit(RLIMIT_NOFILE, &before));
    few = (struct rlimit){ .rlim_cur = 128, .rlim_max = before.rlim_max };
    CHECK_OK(t, meet_open(loopback_own(), &own, NULL));
    CHECK_OK(t, join(own, 9, 1, 0, meet_contact(own), &heard_by[0], &own_round));
    CHECK_OK(t, setrlimit(RLIMIT_NOFILE, &few));
    parks.round = 99;
    for (size_t i = 0; i < ARRAY_SIZE(parked); i++) {
        parked[i] = dial(own);
        CHECK(t, parked[i] >= 0 && say_hello(own, parked[i], &parks));
    }
    for (size_t i = few.rlim_cur / 4; i < ARRAY_SIZE(parked); i++)
        CHECK_INT(t, answer(parked[i], &frame), ==, 0);
    CHECK_INT(t, recv(parked[few.rlim_cur / 4 - 1], &byte, 1, MSG_DONTWAIT), ==, -1);
    fd = dial(own);
    CHECK(t, fd >= 0 && say_hello(own, fd, &caller));
    CHECK(t, is_welcome(fd, &caller));
    for (size_t i = 0; i < ARRAY_SIZE(parked); i++)
        close(parked[i]);
    CHECK_OK(t, setrlimit(RLIMIT_NOFILE, &before));
}

TEST(contacts)
{
#define SECRET "000102030405060708090a0b0c0d0e0f"
    static const char *const wrong[] = {
        "",
        "/",
        "1.2.3.4:5",
        "1.2.3.4/" SECRET,
        "1.2.3.4:0/" SECRET,
        "1.2.3.4:65536/" SECRET,
        "1.2.3.4:5/" SECRET "0",
        "1.2.3.4:5/0" SECRET,
        "1.2.3.4:5/" SECRET "/",
        "1.2.3.4:5/00010203040506070809Xa0b0c0d0e0f",
        ":5/" SECRET,
        "::1:5/" SECRET,
        "[]:5/" SECRET,
    };
    char text[MEET_CONTACT_MAX];
    struct hvd_err err = { .text = "" };
    struct meet_contact contact;

    CHECK_OK(t, meet_contact_read("1.2.3.4:5/" SECRET, &contact, NULL));
    CHECK_TEXT(t, contact.host, "1.2.3.4");
    CHECK(t, contact.port == 5 && contact.secret[15] == 15);
    meet_contact_write(&contact, text);
    CHECK_TEXT(t, text, "1.2.3.4:5/" SECRET);
    CHECK_OK(t, meet_contact_read("[fe80::1]:5/" SECRET, &contact, NULL));
    CHECK_TEXT(t, contact.host, "fe80::1");
    meet_contact_write(&contact, text);
    CHECK_TEXT(t, text, "[fe80::1]:5/" SECRET);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CHECK_CODE(t, meet_contact_read(wrong[i], &contact, &err), HVD_E_INVAL);
        CHECK(t, !strstr(err.text, "0102")); /* a secret is never shown */
    }
}
