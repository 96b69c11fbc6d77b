/*
 * Where workers meet, with no link and no round: the test dials as a stranger would, or plays a
 * peer.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "collectives/meet/meet.h"
#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define NO_TORTURE(function) CASE_FLAGS(function, TEST_NO_TORTURE)
#define LONG_MS              30000

/* What a party was told. */
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
    if (text[0]) { /* else it may be looked at by now: a peer that has said it may part at once */
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

/* Rank and peer are such that the higher one is dialled, or that it dials. */
static int join(struct meet *meet, uint64_t round, uint32_t rank, uint32_t peer,
                const char *contact, struct told *told, struct meet_party **ret_party)
{
    struct meet_peer one = { .rank = peer, .incarnation = 100 + peer, .contact = contact };
    const struct meet_spec spec = {
        .round = round,
        .incarnation = 100 + rank,
        .rank = rank,
        .roster = 77,
        .peers = &one,
        .peer_count = 1,
        .ops = &ops,
        .arg = told,
    };

    one.address[0] = (uint8_t)rank;
    one.address_length = 1;
    return meet_join(meet, &spec, ret_party, NULL);
}

static void leave(struct meet_party *party, struct told *told, bool politely)
{
    if (!party)
        return;
    meet_leave(party, politely);
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

static struct meet_frame hello_to(const struct meet *meet, uint64_t round, uint64_t from,
                                  uint64_t to)
{
    struct meet_frame hello = {
        .kind = MEET_HELLO, .round = round, .from = from, .to = to, .roster = 77
    };
    struct meet_contact contact;

    if (!meet_contact_read(meet_contact(meet), &contact, NULL))
        memcpy(hello.secret, contact.secret, sizeof(hello.secret));
    return hello;
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

/* 1: a frame; 0: the end; -1: nothing comes. */
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

/* ---- cases ---- */

static void two_meet(struct test *t)
{
    struct meet *left = NULL, *right = NULL;
    struct meet_party *lefts = NULL, *rights = NULL;
    struct told told[2];

    told_init(&told[0]);
    told_init(&told[1]);
    CHECK_OK(t, meet_open("127.0.0.1", &left, NULL));
    CHECK_OK(t, meet_open("127.0.0.1", &right, NULL));
    CHECK_OK(t, join(left, 1, 0, 1, meet_contact(right), &told[0], &lefts));
    CHECK_OK(t, join(right, 1, 1, 0, meet_contact(left), &told[1], &rights));
    CHECK(t, await(&told[0], &told[0].met) && await(&told[1], &told[1].met));
    CHECK(t, told[0].length == 1 && told[0].address[0] == 1);
    CHECK(t, told[1].length == 1 && told[1].address[0] == 0);
    meet_tell(lefts, HVD_E_MISMATCH, 1, "first");
    meet_tell(lefts, HVD_E_LOST, 0, "second: not told");
    CHECK(t, await(&told[1], &told[1].heard));
    CHECK_TEXT(t, told[1].text, "first");
    CHECK_INT(t, told[1].code, ==, HVD_E_MISMATCH);
    leave(lefts, &told[0], false);
    lefts = NULL;
    CHECK(t, await(&told[1], &told[1].parted));
out:
    leave(lefts, &told[0], false);
    leave(rights, &told[1], false);
    meet_close(left);
    meet_close(right);
}

/* Whoever says bye has not died; who goes waits until the other has said it too. */
static void a_bye_is_no_death(struct test *t)
{
    struct meet *left = NULL, *right = NULL;
    struct meet_party *lefts = NULL, *rights = NULL;
    struct told told[2];

    told_init(&told[0]);
    told_init(&told[1]);
    CHECK_OK(t, meet_open("127.0.0.1", &left, NULL));
    CHECK_OK(t, meet_open("127.0.0.1", &right, NULL));
    CHECK_OK(t, join(left, 1, 0, 1, meet_contact(right), &told[0], &lefts));
    CHECK_OK(t, join(right, 1, 1, 0, meet_contact(left), &told[1], &rights));
    CHECK(t, await(&told[0], &told[0].met) && await(&told[1], &told[1].met));
    meet_leave(lefts, true);
    leave(rights, &told[1], true);
    rights = NULL;
    CHECK(t, await(&told[0], &told[0].gone));
    lefts = NULL;
    CHECK(t, !told[0].parted && !told[1].parted && !told[0].heard && !told[1].heard);
out:
    leave(lefts, &told[0], false);
    leave(rights, &told[1], false);
    meet_close(left);
    meet_close(right);
}

static void an_early_dialler_waits(struct test *t)
{
    struct meet *meet = NULL;
    struct meet_party *party = NULL;
    struct meet_frame frame, hello;
    struct told told;
    int fd = -1;

    told_init(&told);
    CHECK_OK(t, meet_open("127.0.0.1", &meet, NULL));
    fd = dial(meet);
    hello = hello_to(meet, 9, 100, 101);
    CHECK(t, fd >= 0 && say(fd, &hello));
    CHECK_OK(t, join(meet, 9, 1, 0, meet_contact(meet), &told, &party));
    CHECK(t, await(&told, &told.met));
    CHECK_INT(t, answer(fd, &frame), ==, 1);
    CHECK_INT(t, frame.kind, ==, MEET_WELCOME);
    CHECK(t, frame.address_length == 1 && frame.address[0] == 1);
    close(fd);
    fd = -1;
    CHECK(t, await(&told, &told.parted));
out:
    if (fd >= 0)
        close(fd);
    leave(party, &told, false);
    meet_close(meet);
}

/* Twice the same: the newer line counts, and nobody has died. */
static void who_dials_again_is_the_same(struct test *t)
{
    struct meet *meet = NULL;
    struct meet_party *party = NULL;
    struct meet_frame frame, hello;
    int fds[2] = { -1, -1 };
    struct told told;

    told_init(&told);
    CHECK_OK(t, meet_open("127.0.0.1", &meet, NULL));
    CHECK_OK(t, join(meet, 9, 1, 0, meet_contact(meet), &told, &party));
    hello = hello_to(meet, 9, 100, 101);
    for (int i = 0; i < 2; i++) {
        fds[i] = dial(meet);
        CHECK(t, fds[i] >= 0 && say(fds[i], &hello));
        CHECK_INT(t, answer(fds[i], &frame), ==, 1);
        CHECK_INT(t, frame.kind, ==, MEET_WELCOME);
    }
    CHECK_INT(t, answer(fds[0], &frame), ==, 0);
    CHECK(t, told.met == 1 && !told.parted);
out:
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    leave(party, &told, false);
    meet_close(meet);
}

static void whom_nobody_knows_is_turned_away(struct test *t)
{
    static const struct {
        uint64_t round, from, to, roster;
        int code;
    } wrong[] = {
        {8,  100, 101, 77, HVD_E_NOTFOUND}, /* an older round */
        { 9, 100, 555, 77, HVD_E_MISMATCH}, /* meant for somebody else */
        { 9, 555, 101, 77, HVD_E_MISMATCH}, /* an older incarnation */
        { 9, 100, 101, 78, HVD_E_MISMATCH}, /* with other members */
    };
    struct meet *meet = NULL;
    struct meet_party *party = NULL;
    struct meet_frame frame, hello;
    struct told told;
    int fd = -1;

    told_init(&told);
    CHECK_OK(t, meet_open("127.0.0.1", &meet, NULL));
    CHECK_OK(t, join(meet, 9, 1, 0, meet_contact(meet), &told, &party));
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        hello = hello_to(meet, wrong[i].round, wrong[i].from, wrong[i].to);
        hello.roster = wrong[i].roster;
        fd = dial(meet);
        CHECK(t, fd >= 0 && say(fd, &hello));
        CHECK_INT(t, answer(fd, &frame), ==, 1);
        CHECK_INT(t, frame.kind, ==, MEET_REFUSED);
        CHECK_INT(t, frame.code, ==, wrong[i].code);
        CHECK_INT(t, answer(fd, &frame), ==, 0);
        close(fd);
        fd = -1;
    }
    CHECK(t, !told.met && !told.missed && !told.parted);
out:
    if (fd >= 0)
        close(fd);
    leave(party, &told, false);
    meet_close(meet);
}

/* No word is said to it. */
static void a_stranger_is_hung_up_on(struct test *t)
{
    struct meet *meet = NULL;
    struct meet_frame frame, hello;
    int fd = -1;

    CHECK_OK(t, meet_open("127.0.0.1", &meet, NULL));
    for (int i = 0; i < 3; i++) {
        hello = hello_to(meet, 9, 100, 101);
        hello.secret[15] ^= i == 0;
        hello.kind = i == 1 ? MEET_BYE : MEET_HELLO;
        fd = dial(meet);
        CHECK(t, fd >= 0);
        if (i == 2)
            CHECK(t, send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL) == 18);
        else
            CHECK(t, say(fd, &hello));
        CHECK_INT(t, answer(fd, &frame), ==, 0);
        close(fd);
        fd = -1;
    }
out:
    if (fd >= 0)
        close(fd);
    meet_close(meet);
}

/* The oldest goes, and who knows the secret gets in. */
static void too_many_strangers_keep_nobody_out(struct test *t)
{
    static int fds[LIMIT_STRANGERS + 20];
    struct meet *meet = NULL;
    struct meet_party *party = NULL;
    struct meet_frame frame, hello;
    struct told told;
    size_t count = 0;

    told_init(&told);
    CHECK_OK(t, meet_open("127.0.0.1", &meet, NULL));
    CHECK_OK(t, join(meet, 9, 1, 0, meet_contact(meet), &told, &party));
    for (; count < ARRAY_SIZE(fds); count++) {
        fds[count] = dial(meet);
        CHECK(t, fds[count] >= 0);
    }
    hello = hello_to(meet, 9, 100, 101);
    CHECK(t, say(fds[count - 1], &hello));
    CHECK_INT(t, answer(fds[count - 1], &frame), ==, 1);
    CHECK_INT(t, frame.kind, ==, MEET_WELCOME);
    CHECK_INT(t, answer(fds[0], &frame), ==, 0);
out:
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    leave(party, &told, false);
    meet_close(meet);
}

/* The owner hears of it, and whoever has knocked is let in once there is one again. */
static void without_a_descriptor(struct test *t)
{
    struct meet *meet = NULL;
    struct meet_party *party = NULL;
    struct meet_frame frame, hello;
    struct rlimit before, few;
    struct told told;
    int fd = -1, next;

    told_init(&told);
    CHECK_OK(t, getrlimit(RLIMIT_NOFILE, &before));
    CHECK_OK(t, meet_open("127.0.0.1", &meet, NULL));
    CHECK_OK(t, join(meet, 9, 1, 0, meet_contact(meet), &told, &party));
    next = dup(STDIN_FILENO);
    CHECK(t, next >= 0);
    close(next);
    few = (struct rlimit){ .rlim_cur = (rlim_t)next + 1, .rlim_max = before.rlim_max };
    CHECK_OK(t, setrlimit(RLIMIT_NOFILE, &few));
    fd = dial(meet); /* takes the last one */
    CHECK_INT(t, fd, ==, next);
    CHECK(t, await(&told, &told.missed));
    CHECK_CODE(t, told.code, HVD_E_LIMIT);
    CHECK(t, strstr(told.text, "ulimit -n"));
    CHECK_OK(t, setrlimit(RLIMIT_NOFILE, &before));
    hello = hello_to(meet, 9, 100, 101);
    CHECK(t, say(fd, &hello));
    CHECK_INT(t, answer(fd, &frame), ==, 1);
    CHECK_INT(t, frame.kind, ==, MEET_WELCOME);
out:
    (void)setrlimit(RLIMIT_NOFILE, &before);
    if (fd >= 0)
        close(fd);
    leave(party, &told, false);
    meet_close(meet);
}

static void contacts(struct test *t)
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
        CHECK(t, !strstr(err.text, "0102")); /* a secret is shown to nobody */
    }
out:;
}

TESTS(NO_TORTURE(two_meet), NO_TORTURE(a_bye_is_no_death), NO_TORTURE(an_early_dialler_waits),
      NO_TORTURE(who_dials_again_is_the_same), NO_TORTURE(whom_nobody_knows_is_turned_away),
      NO_TORTURE(a_stranger_is_hung_up_on), NO_TORTURE(too_many_strangers_keep_nobody_out),
      NO_TORTURE(without_a_descriptor), CASE(contacts))
