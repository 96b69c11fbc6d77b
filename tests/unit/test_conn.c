#include "wire/conn_state.h"

#include "proto/codec.h"
#include "tests/lib/wire_side.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct wire wire;

static void carries_messages_both_ways(struct test *t)
{
    CHECK(t, wire_begin(&wire));
    CHECK(t, wire_connect(&wire));
    for (uint64_t i = 1; i <= 100; i++) {
        CHECK_OK(t, wire_send_beat(&wire.client, i));
        CHECK_OK(t, wire_send_beat(&wire.server, i));
    }
    WIRE_UNTIL(&wire, (wire.server.messages == 100 && wire.client.messages == 100) ||
                          wire.server.closed || wire.client.closed);
    CHECK_INT(t, wire.server.messages, ==, 100);
    CHECK_INT(t, wire.client.messages, ==, 100);
    CHECK(t, wire.server.in_order && wire.client.in_order);
    CHECK_INT(t, wire.client.opened, ==, 1);
    CHECK_INT(t, wire.server.opened, ==, 0);
out:
    wire_end(&wire);
}

static void a_plain_one_does_too(struct test *t)
{
    CHECK(t, wire_begin(&wire));
    CHECK(t, wire_connect_unix(&wire));
    for (uint64_t i = 1; i <= 100; i++) {
        CHECK_OK(t, wire_send_beat(&wire.client, i));
        CHECK_OK(t, wire_send_beat(&wire.server, i));
    }
    WIRE_UNTIL(&wire, (wire.server.messages == 100 && wire.client.messages == 100) ||
                          wire.server.closed || wire.client.closed);
    CHECK_INT(t, wire.server.messages, ==, 100);
    CHECK_INT(t, wire.client.messages, ==, 100);
    CHECK(t, wire.server.in_order && wire.client.in_order);
out:
    wire_end(&wire);
}

static void the_end_is_told(struct test *t)
{
    CHECK(t, wire_begin(&wire));
    CHECK(t, wire_connect(&wire));
    CHECK_OK(t, wire_send_beat(&wire.client, 1));
    conn_close(wire.client.conn);
    wire.client.conn = NULL;
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_INT(t, wire.server.closed, ==, 1);
    CHECK_INT(t, wire.server.messages, ==, 1);
    CHECK_TEXT(t, wire.server.why, "the other side closed the connection");
out:
    wire_end(&wire);
}

/* The server's end over a socket of which the case has the other end. */
static int raw_peer(struct test *t)
{
    int fds[2] = { -1, -1 };
    struct conn *conn = NULL;

    CHECK(t, !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    conn = conn_create(wire.base, NULL);
    CHECK(t, conn);
    CHECK_OK(t, conn_arm(conn, conn->greeting_us));
    CHECK_OK(t, conn_stream_plain(conn, fds[1]));
    fds[1] = -1;
    conn_up(conn);
    wire.server.conn = conn;
    conn_own(conn, &wire_side_ops, &wire.server);
    return fds[0];
out:
    conn_drop(conn);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return -1;
}

static void a_frame_may_come_byte_by_byte(struct test *t)
{
    struct msg beat = { .type = MSG_BEAT, .u.beat.sequence = 1 };
    struct buf frame;
    int fd = -1;

    buf_init(&frame, 1000);
    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, msg_encode(&beat, &frame, NULL));
    fd = raw_peer(t);
    CHECK(t, fd >= 0);
    for (size_t i = 0; i < frame.length; i++) {
        CHECK_INT(t, wire.server.messages, ==, 0);
        CHECK_INT(t, write(fd, frame.data + i, 1), ==, 1);
        WIRE_UNTIL(&wire, wire.server.messages || wire.server.closed ||
                              wire.server.conn->reader.header_have +
                                      wire.server.conn->reader.body.length ==
                                  i + 1);
    }
    CHECK_INT(t, wire.server.messages, ==, 1);
    CHECK_INT(t, wire.server.last, ==, 1);
out:
    if (fd >= 0)
        close(fd);
    buf_release(&frame);
    wire_end(&wire);
}

static void half_a_frame_is_a_truncation(struct test *t)
{
    struct msg beat = { .type = MSG_BEAT, .u.beat.sequence = 1 };
    struct buf frame;
    int fd = -1;

    buf_init(&frame, 1000);
    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, msg_encode(&beat, &frame, NULL));
    fd = raw_peer(t);
    CHECK(t, fd >= 0);
    CHECK_INT(t, write(fd, frame.data, frame.length - 1), ==, frame.length - 1);
    close(fd);
    fd = -1;
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_INT(t, wire.server.messages, ==, 0);
    CHECK_HAS(t, wire.server.why, "in the middle of a frame");
out:
    if (fd >= 0)
        close(fd);
    buf_release(&frame);
    wire_end(&wire);
}

static void rubbish_ends_it(struct test *t)
{
    int fd = -1;

    CHECK(t, wire_begin(&wire));
    fd = raw_peer(t);
    CHECK(t, fd >= 0);
    CHECK_INT(t, write(fd, "GET / HTTP/1.1\r\n", 16), ==, 16);
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_HAS(t, wire.server.why, "not a frame of hvd-elastic");
out:
    if (fd >= 0)
        close(fd);
    wire_end(&wire);
}

static void a_greeting_has_limits(struct test *t)
{
    uint8_t header[FRAME_HEADER_BYTES];
    int fd = -1;

    CHECK(t, wire_begin(&wire));
    fd = raw_peer(t);
    CHECK(t, fd >= 0);
    frame_write_header(header, MSG_READY, 0, LIMIT_GREETING_BODY_BYTES + 1);
    CHECK_INT(t, write(fd, header, sizeof(header)), ==, sizeof(header));
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_HAS(t, wire.server.why, "at most");
    close(fd);
    wire.server.closed = 0;
    fd = raw_peer(t);
    CHECK(t, fd >= 0);
    CHECK_OK(t, conn_arm(wire.server.conn, 1000));
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_HAS(t, wire.server.why, "no greeting in time");
    close(fd);
    wire.server.closed = 0;
    fd = raw_peer(t);
    CHECK(t, fd >= 0);
    conn_greeted(wire.server.conn);
    CHECK(t, !event_pending(wire.server.conn->timer, EV_TIMEOUT, NULL));
    CHECK_INT(t, write(fd, header, sizeof(header)), ==, sizeof(header));
    WIRE_UNTIL(&wire, wire.server.closed || wire.server.conn->reader.header_have);
    CHECK_INT(t, wire.server.closed, ==, 0);
out:
    if (fd >= 0)
        close(fd);
    wire_end(&wire);
}

static void hold_at_once(struct wire_side *side, const struct msg *msg)
{
    (void)msg;
    conn_hold(side->conn, true);
}

/* One message, then the hold; what is there and what comes waits, the end too. */
static void what_is_held_waits(struct test *t)
{
    CHECK(t, wire_begin(&wire));
    CHECK(t, wire_connect(&wire));
    wire.server.on_msg = hold_at_once;
    for (uint64_t i = 1; i <= 3; i++)
        CHECK_OK(t, wire_send_beat(&wire.client, i));
    WIRE_UNTIL(&wire, wire.server.messages || wire.server.closed);
    CHECK_INT(t, wire.server.messages, ==, 1);
    wire_drop(&wire.client);
    event_base_loop(wire.base, EVLOOP_NONBLOCK);
    CHECK_INT(t, wire.server.messages, ==, 1);
    conn_hold(wire.server.conn, false);
    CHECK_INT(t, wire.server.messages, ==, 1);
    WIRE_UNTIL(&wire, wire.server.messages == 2 || wire.server.closed);
    CHECK_INT(t, wire.server.closed, ==, 0);
    wire.server.on_msg = NULL;
    conn_hold(wire.server.conn, false);
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_INT(t, wire.server.messages, ==, 3);
    CHECK(t, wire.server.in_order);
out:
    wire_end(&wire);
}

static void one_that_does_not_read_is_waited_for(struct test *t)
{
    size_t sent = 0;

    CHECK(t, wire_begin(&wire));
    CHECK(t, wire_connect(&wire));
    conn_hold(wire.server.conn, true);
    while (conn_unsent(wire.client.conn) <= CONN_HIGH_BYTES) {
        CHECK_OK(t, wire_send_output(&wire.client, 60000));
        sent += 60000;
        event_base_loop(wire.base, EVLOOP_NONBLOCK);
    }
    CHECK_INT(t, wire.client.drained, ==, 0);
    conn_hold(wire.server.conn, false);
    WIRE_UNTIL(&wire, wire.client.drained || wire.client.closed || wire.server.closed);
    CHECK_INT(t, wire.client.drained, ==, 1);
    CHECK_INT(t, conn_unsent(wire.client.conn), <, CONN_LOW_BYTES);
    WIRE_UNTIL(&wire, wire.server.bytes == sent || wire.client.closed || wire.server.closed);
    CHECK_INT(t, wire.server.bytes, ==, sent);
    CHECK_INT(t, wire.client.drained, ==, 1);
out:
    wire_end(&wire);
}

static void one_that_never_reads_is_given_up(struct test *t)
{
    CHECK(t, wire_begin(&wire));
    CHECK(t, wire_connect_unix(&wire));
    conn_hold(wire.server.conn, true);
    for (size_t sent = 0; sent <= LIMIT_UNSENT_BYTES + (1 << 20); sent += 60000)
        CHECK_OK(t, wire_send_output(&wire.client, 60000));
    WIRE_UNTIL(&wire, wire.client.closed);
    CHECK_HAS(t, wire.client.why, "LIMIT_UNSENT_BYTES");
out:
    wire_end(&wire);
}

/* What was sent before conn_close arrives, though the other side is still sending itself. */
static void a_closed_one_lingers(struct test *t)
{
    CHECK(t, wire_begin(&wire));
    CHECK(t, wire_connect(&wire));
    for (int i = 0; i < 50; i++)
        CHECK_OK(t, wire_send_output(&wire.client, 60000));
    for (uint64_t i = 1; i <= 50; i++)
        CHECK_OK(t, wire_send_beat(&wire.server, i));
    conn_close(wire.client.conn);
    wire.client.conn = NULL;
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_INT(t, wire.server.bytes, ==, 50 * 60000);
    CHECK_TEXT(t, wire.server.why, "the other side closed the connection");
    CHECK_INT(t, wire.client.messages, ==, 0);
    CHECK_INT(t, wire.client.closed, ==, 0);
out:
    wire_end(&wire);
}

static void a_lingering_one_ends_by_itself(struct test *t)
{
    struct timeval soon = { .tv_sec = 10 };
    char byte;
    int fd = -1;

    CHECK(t, wire_begin(&wire));
    fd = raw_peer(t);
    CHECK(t, fd >= 0);
    CHECK(t, !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
    wire.server.conn->linger_us = 1000;
    conn_hold(wire.server.conn, true);
    for (int i = 0; i < 20; i++)
        CHECK_OK(t, wire_send_output(&wire.server, 60000));
    conn_close(wire.server.conn);
    wire.server.conn = NULL;
    event_del(wire.guard);
    event_base_loop(wire.base, 0); /* until nothing is left */
    CHECK_INT(t, write(fd, "x", 1), ==, -1);
    while (read(fd, &byte, 1) == 1)
        ;
out:
    if (fd >= 0)
        close(fd);
    wire_end(&wire);
}

/* The last words of one that has died are there before the loop gets to them. */
static void reading_now_hears_the_last_words(struct test *t)
{
    CHECK(t, wire_begin(&wire));
    CHECK(t, wire_connect(&wire));
    for (uint64_t i = 1; i <= 2000; i++)
        CHECK_OK(t, wire_send_beat(&wire.client, i));
    conn_enter(wire.client.conn);
    conn_stream_go(wire.client.conn);
    conn_leave(wire.client.conn);
    CHECK_INT(t, conn_unsent(wire.client.conn), ==, 0);
    wire_drop(&wire.client);
    conn_hold(wire.server.conn, true);
    conn_read_now(wire.server.conn);
    CHECK_INT(t, wire.server.messages, ==, 2000);
    CHECK(t, wire.server.in_order);
    CHECK_INT(t, wire.server.closed, ==, 0);
    conn_hold(wire.server.conn, false);
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_INT(t, wire.server.messages, ==, 2000);
out:
    wire_end(&wire);
}

static void drop_it(struct wire_side *side, const struct msg *msg)
{
    (void)msg;
    wire_drop(side);
}

static void close_it(struct wire_side *side, const struct msg *msg)
{
    (void)msg;
    conn_close(side->conn);
    side->conn = NULL;
}

static void an_owner_may_end_it_from_inside(struct test *t)
{
    CHECK(t, wire_begin(&wire));
    CHECK(t, wire_connect(&wire));
    wire.server.on_msg = drop_it;
    for (uint64_t i = 1; i <= 3; i++)
        CHECK_OK(t, wire_send_beat(&wire.client, i));
    WIRE_UNTIL(&wire, wire.client.closed);
    CHECK_INT(t, wire.server.messages, ==, 1);
    wire.server.on_msg = close_it;
    CHECK_OK(t, wire_dial(&wire, wire.tls));
    wire.client.opened = 0;
    wire.client.closed = 0;
    WIRE_UNTIL(&wire, (wire.client.opened && wire.server.conn) || wire.client.closed);
    CHECK_OK(t, wire_send_beat(&wire.client, 1));
    CHECK_OK(t, wire_send_beat(&wire.client, 2));
    WIRE_UNTIL(&wire, wire.client.closed);
    CHECK_INT(t, wire.server.messages, ==, 2);
    CHECK_INT(t, wire.server.closed, ==, 0);
out:
    wire_end(&wire);
}

static void a_descriptor_goes_beside_a_message(struct test *t)
{
    struct msg beat = { .type = MSG_BEAT, .u.beat.sequence = 1 };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    char bytes[200];
    struct iovec part = { bytes, sizeof(bytes) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.space,
                              .msg_controllen = sizeof(control.space) };
    int got = -1;
    int fd = -1;

    CHECK(t, wire_begin(&wire));
    fd = raw_peer(t);
    CHECK(t, fd >= 0);
    CHECK_OK(t, conn_send_with_fd(wire.server.conn, &beat, fd, NULL));
    CHECK_INT(t, recvmsg(fd, &message, MSG_CMSG_CLOEXEC), >, FRAME_HEADER_BYTES);
    CHECK(t, CMSG_FIRSTHDR(&message) && CMSG_FIRSTHDR(&message)->cmsg_type == SCM_RIGHTS);
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(got));
    CHECK_INT(t, fcntl(got, F_GETFD), >=, 0);
    CHECK_OK(t, wire_send_beat(&wire.server, 2));
    CHECK_CODE(t, conn_send_with_fd(wire.server.conn, &beat, fd, NULL), HVD_E_STATE);
out:
    if (got >= 0)
        close(got);
    if (fd >= 0)
        close(fd);
    wire_end(&wire);
}

/* The first two cannot be reached, the third is the one. */
static void the_addresses_are_tried_in_turn(struct test *t)
{
    const char *texts[3] = { "127.0.0.1:1", "[::1]:1" };
    const char *wrong[1] = { "host.example:80" };
    struct msg_texts addresses = { texts, 3 };
    struct msg_texts malformed = { wrong, 1 };
    struct msg_texts dead = { texts, 2 };
    struct hvd_err err;

    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, wire_listen(&wire));
    texts[2] = listener_address(wire.listener);
    CHECK_CODE(t,
               conn_dial(wire.base, &malformed, wire.tls, &wire_side_ops, &wire.client,
                         &wire.client.conn, &err),
               HVD_E_INVAL);
    CHECK_HAS(t, err.text, "host.example");
    CHECK_OK(t, conn_dial(wire.base, &addresses, wire.tls, &wire_side_ops, &wire.client,
                          &wire.client.conn, NULL));
    CHECK_INT(t, wire.client.opened, ==, 0);
    WIRE_UNTIL(&wire, (wire.client.opened && wire.server.conn) || wire.client.closed);
    CHECK_INT(t, wire.client.opened, ==, 1);
    CHECK_TEXT(t, conn_peer(wire.client.conn), texts[2]);
    wire_drop(&wire.client);
    CHECK_OK(t, conn_dial(wire.base, &dead, wire.tls, &wire_side_ops, &wire.client,
                          &wire.client.conn, NULL));
    WIRE_UNTIL(&wire, wire.client.closed);
    CHECK_HAS(t, wire.client.why, "127.0.0.1:1: Connection refused; [::1]:1: ");
out:
    wire_end(&wire);
}

TESTS(CASE(carries_messages_both_ways), CASE(a_plain_one_does_too), CASE(the_end_is_told),
      CASE(a_frame_may_come_byte_by_byte), CASE(half_a_frame_is_a_truncation),
      CASE(rubbish_ends_it), CASE(a_greeting_has_limits),
      CASE_FLAGS(what_is_held_waits, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(one_that_does_not_read_is_waited_for, TEST_NO_TORTURE),
      CASE_FLAGS(one_that_never_reads_is_given_up, TEST_NO_TORTURE),
      CASE_FLAGS(a_closed_one_lingers, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(a_lingering_one_ends_by_itself, TEST_SURVIVES_ALLOC),
      CASE_FLAGS(reading_now_hears_the_last_words, TEST_NO_TORTURE),
      CASE_FLAGS(an_owner_may_end_it_from_inside, TEST_SURVIVES_ALLOC),
      CASE(a_descriptor_goes_beside_a_message),
      CASE_FLAGS(the_addresses_are_tried_in_turn, TEST_SURVIVES_ALLOC))
