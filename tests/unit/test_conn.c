/*
 * test_conn.c: wire/conn, a connection: messages both ways, pieces of frames, rubbish, limits of a
 * greeting (the first message), output that is held back, descriptors beside a message, lingering
 * and closing.
 */
#include "wire/conn_internal.h"

#include "proto/codec.h"
#include "tests/lib/fixture.h"
#include "tests/lib/wire_side.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct wire wire;

static int fd = -1;  /* the other end of the server's connection */
static int got = -1; /* a descriptor that was received */
static struct buf frame;

static void begin_case(struct test *t)
{
    CHECK(t, wire_begin(&wire));
}

static void end_case(struct test *t)
{
    (void)t;
    if (fd >= 0)
        close(fd);
    if (got >= 0)
        close(got);
    fd = got = -1;
    buf_release(&frame);
    wire_end(&wire);
}
FIXTURE(begin_case, end_case)

TEST(carries_messages_both_ways)
{
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
}

TEST(a_plain_connection_carries_messages_too)
{
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
}

TEST(the_end_is_told)
{
    CHECK(t, wire_connect(&wire));
    CHECK_OK(t, wire_send_beat(&wire.client, 1));
    conn_close(wire.client.conn);
    wire.client.conn = NULL;
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_INT(t, wire.server.closed, ==, 1);
    CHECK_INT(t, wire.server.messages, ==, 1);
    CHECK_TEXT(t, wire.server.why, "the other side closed the connection");
}

/* Connects the server to a socket; the case has the other end, fd. */
static void open_raw_peer(struct test *t)
{
    int fds[2] = { -1, -1 };

    wire.server.conn = conn_create(wire.base, NULL);
    CHECK(t, wire.server.conn);
    CHECK_OK(t, conn_arm(wire.server.conn, wire.server.conn->greeting_us));
    CHECK(t, !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    fd = fds[0];
    CHECK_OK(t, conn_attach(wire.server.conn, fds[1]));
    conn_up(wire.server.conn);
    conn_own(wire.server.conn, &wire_side_ops, &wire.server);
}

TEST(a_frame_may_come_byte_by_byte)
{
    struct msg beat = { .type = MSG_BEAT, .u.beat.sequence = 1 };

    buf_init(&frame, 1000);
    CHECK_OK(t, msg_encode(&beat, &frame, NULL));
    open_raw_peer(t);
    for (size_t i = 0; i < frame.length; i++) {
        CHECK_INT(t, wire.server.messages, ==, 0);
        CHECK_INT(t, write(fd, frame.data + i, 1), ==, 1);
        WIRE_UNTIL(&wire, wire.server.messages || wire.server.closed ||
                              wire.server.conn->in.reader.header_have +
                                      wire.server.conn->in.reader.body.length ==
                                  i + 1);
    }
    CHECK_INT(t, wire.server.messages, ==, 1);
    CHECK_INT(t, wire.server.last, ==, 1);
}

TEST(half_a_frame_is_a_truncation)
{
    struct msg beat = { .type = MSG_BEAT, .u.beat.sequence = 1 };

    buf_init(&frame, 1000);
    CHECK_OK(t, msg_encode(&beat, &frame, NULL));
    open_raw_peer(t);
    CHECK_INT(t, write(fd, frame.data, frame.length - 1), ==, frame.length - 1);
    close(fd);
    fd = -1;
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_INT(t, wire.server.messages, ==, 0);
    CHECK_HAS(t, wire.server.why, "in the middle of a frame");
}

TEST(rubbish_ends_the_connection)
{
    open_raw_peer(t);
    CHECK_INT(t, write(fd, "GET / HTTP/1.1\r\n", 16), ==, 16);
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_HAS(t, wire.server.why, "no frame of hvd-elastic");
}

/* Before the greeting large frames and a long wait end the connection; after conn_greeted they do
 * not. */
TEST(a_greeting_has_limits)
{
    uint8_t header[FRAME_HEADER_BYTES];

    open_raw_peer(t);
    frame_write_header(header, MSG_READY, 0, LIMIT_GREETING_BODY_BYTES + 1);
    CHECK_INT(t, write(fd, header, sizeof(header)), ==, sizeof(header));
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_HAS(t, wire.server.why, "at most");
    close(fd);
    wire.server.closed = 0;
    open_raw_peer(t);
    CHECK_OK(t, conn_arm(wire.server.conn, 1000));
    WIRE_UNTIL(&wire, wire.server.closed);
    CHECK_HAS(t, wire.server.why, "did not greet in time");
    close(fd);
    wire.server.closed = 0;
    open_raw_peer(t);
    conn_greeted(wire.server.conn);
    CHECK(t, !event_pending(wire.server.conn->timer, EV_TIMEOUT, NULL));
    CHECK_INT(t, write(fd, header, sizeof(header)), ==, sizeof(header));
    WIRE_UNTIL(&wire, wire.server.closed || wire.server.conn->in.reader.header_have);
    CHECK_INT(t, wire.server.closed, ==, 0);
}

static void hold_at_once(struct wire_side *side, const struct msg *msg)
{
    (void)msg;
    conn_hold(side->conn, true);
}

/* After one message the input is held: all later messages wait, and the end too. */
TEST_FLAGS(held_input_waits, TEST_SURVIVES_ALLOC)
{
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
}

TEST_FLAGS(a_slow_reader_is_awaited, TEST_NO_TORTURE)
{
    size_t sent = 0;

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
}

TEST_FLAGS(a_peer_that_never_reads_is_given_up, TEST_NO_TORTURE)
{
    CHECK(t, wire_connect_unix(&wire));
    conn_hold(wire.server.conn, true);
    for (size_t sent = 0; sent <= LIMIT_UNSENT_BYTES + (1 << 20); sent += 60000)
        CHECK_OK(t, wire_send_output(&wire.client, 60000));
    WIRE_UNTIL(&wire, wire.client.closed);
    CHECK_HAS(t, wire.client.why, "LIMIT_UNSENT_BYTES");
}

/* Messages from before conn_close arrive, although the other side still sends. */
TEST_FLAGS(a_closed_connection_lingers, TEST_SURVIVES_ALLOC)
{
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
}

TEST_FLAGS(a_lingering_connection_ends_by_itself, TEST_SURVIVES_ALLOC)
{
    struct timeval soon = { .tv_sec = 10 };
    char byte;

    open_raw_peer(t);
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
}

/* The last messages of a dead process are there before the event loop reads them. */
TEST_FLAGS(reading_now_hears_the_last_words, TEST_NO_TORTURE)
{
    CHECK(t, wire_connect(&wire));
    for (uint64_t i = 1; i <= 2000; i++)
        CHECK_OK(t, wire_send_beat(&wire.client, i));
    conn_enter(wire.client.conn);
    conn_flow_go(wire.client.conn);
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

TEST_FLAGS(an_owner_may_end_the_connection_in_a_callback, TEST_SURVIVES_ALLOC)
{
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
}

TEST(a_descriptor_goes_beside_a_message)
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

    open_raw_peer(t);
    CHECK_OK(t, conn_send_with_fd(wire.server.conn, &beat, fd, NULL));
    CHECK_INT(t, recvmsg(fd, &message, MSG_CMSG_CLOEXEC), >, FRAME_HEADER_BYTES);
    CHECK(t, CMSG_FIRSTHDR(&message) && CMSG_FIRSTHDR(&message)->cmsg_type == SCM_RIGHTS);
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(got));
    CHECK_INT(t, fcntl(got, F_GETFD), >=, 0);
    CHECK_OK(t, wire_send_beat(&wire.server, 2));
    CHECK_CODE(t, conn_send_with_fd(wire.server.conn, &beat, fd, NULL), HVD_E_STATE);
}

/* The first two addresses cannot be reached; the third can. */
TEST_FLAGS(the_addresses_are_tried_in_turn, TEST_SURVIVES_ALLOC)
{
    const char *texts[3] = { "127.0.0.1:1", "[::1]:1" };
    const char *wrong[1] = { "host.example:80" };
    struct msg_texts addresses = { texts, 3 };
    struct msg_texts malformed = { wrong, 1 };
    struct msg_texts dead = { texts, 2 };
    struct hvd_err err;

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
}
