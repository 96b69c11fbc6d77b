/*
 * test_server.c: the driver's server for agents: greeting, breaches of the protocol, and ports that
 * are taken.
 */
#include "driver/io/server.h"

#include "base/log.h"
#include "proto/catalog.h"
#include "proto/codec.h"
#include "tests/lib/loopback.h"
#include "tests/lib/wire_side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A server, the calls that its owner got, and an agent that connects to it. */
struct yard {
    struct wire wire;
    struct server *server;
    const char *address;
    int messages;
    int closed;
    uint32_t number; /* the number of the last message or end */
    enum msg_type type;
    char why[ERR_TEXT_MAX];
};

static void on_msg(void *arg, uint32_t number, const struct msg *msg)
{
    struct yard *yard = arg;

    yard->messages++;
    yard->number = number;
    yard->type = msg->type;
}

static void on_event(void *arg, struct event *event)
{
    struct yard *yard = arg;

    if (event->kind != EVENT_CLOSED)
        return; /* no case brings a crowd */
    yard->closed++;
    yard->number = event->peer;
    snprintf(yard->why, sizeof(yard->why), "%s", event->text);
}

static const struct server_ops ops = { on_msg, on_event };

static bool open_yard(struct yard *yard)
{
    struct hvd_err err;
    bool moved;

    memset(yard, 0, sizeof(*yard));
    return wire_begin(&yard->wire) &&
           !server_create(yard->wire.base, yard->wire.tls, &ops, yard, &yard->server) &&
           !server_listen(yard->server, loopback_own(), 0, &yard->address, &moved, &err);
}

static void close_yard(struct yard *yard)
{
    wire_drop(&yard->wire.client);
    server_free(yard->server);
    wire_end(&yard->wire);
}

/* An agent connects and makes its handshake. */
static bool dial(struct yard *yard)
{
    const char *const address[] = { yard->address };
    const struct msg_texts addresses = { address, 1 };
    struct wire_side *client = &yard->wire.client;

    *client = (struct wire_side){ .wire = &yard->wire };
    if (conn_dial(yard->wire.base, &addresses, yard->wire.tls, &wire_side_ops, client,
                  &client->conn, NULL))
        return false;
    WIRE_UNTIL(&yard->wire, client->opened || client->closed);
    return client->opened;
}

static bool send_hello(struct yard *yard)
{
    struct msg hello = { .type = MSG_HELLO_AGENT };

    hello.u.hello_agent = (struct msg_hello_agent){
        .minor = PROTO_MINOR, .version = "0", .job = "job", .host = "a", .agent = 1
    };
    return yard->wire.client.conn && !conn_send(yard->wire.client.conn, &hello, NULL);
}

static bool say_hello(struct yard *yard)
{
    int before = yard->messages;

    if (!send_hello(yard))
        return false;
    WIRE_UNTIL(&yard->wire, yard->messages > before);
    return yard->messages > before && yard->type == MSG_HELLO_AGENT;
}

static int answer(struct yard *yard, enum msg_type type)
{
    struct msg msg = { .type = type, .term = 1 };
    struct peer *peer = server_peer(yard->server, yard->number);
    struct buf frame;
    int rc;

    buf_init(&frame, 65536);
    if (type == MSG_WELCOME_AGENT)
        msg.u.welcome_agent = (struct msg_welcome_agent){ .minor = PROTO_MINOR, .version = "0" };
    rc = msg_encode(&msg, &frame, NULL);
    if (!rc)
        rc = peer ? peer_send(peer, type, frame.data, frame.length) : HVD_E_NOTFOUND;
    peer_release(peer);
    buf_release(&frame);
    return rc;
}

TEST_FLAGS(an_agent_is_heard_and_answered, TEST_NO_TORTURE)
{
    struct yard yard;

    CHECK(t, open_yard(&yard));
    CHECK(t, !server_has_loopback_peer(yard.server));
    CHECK(t, dial(&yard));
    CHECK(t, say_hello(&yard));
    CHECK(t, server_has_loopback_peer(yard.server));
    CHECK_OK(t, answer(&yard, MSG_WELCOME_AGENT));
    WIRE_UNTIL(&yard.wire, yard.wire.client.messages);
    CHECK_INT(t, yard.wire.client.type, ==, MSG_WELCOME_AGENT);
    CHECK_OK(t, wire_send_beat(&yard.wire.client, 1));
    WIRE_UNTIL(&yard.wire, yard.type == MSG_BEAT);
    CHECK_INT(t, yard.type, ==, MSG_BEAT);
    wire_drop(&yard.wire.client);
    WIRE_UNTIL(&yard.wire, yard.closed);
    CHECK_INT(t, yard.closed, ==, 1);
    CHECK(t, !server_has_loopback_peer(yard.server));
out:
    close_yard(&yard);
}

/* A second hello, or a message before the first: the connection ends, and the owner is told
 * once. */
TEST_FLAGS(a_peer_that_breaks_the_protocol_is_closed, TEST_NO_TORTURE)
{
    struct yard yard;

    CHECK(t, open_yard(&yard));
    CHECK(t, dial(&yard));
    CHECK_OK(t, wire_send_beat(&yard.wire.client, 1));
    WIRE_UNTIL(&yard.wire, yard.closed && yard.wire.client.closed);
    CHECK_INT(t, yard.messages, ==, 0);
    CHECK_INT(t, yard.closed, ==, 1);
    CHECK_HAS(t, yard.why, "BEAT");
    CHECK(t, dial(&yard));
    CHECK(t, say_hello(&yard));
    CHECK_OK(t, answer(&yard, MSG_WELCOME_AGENT));
    WIRE_UNTIL(&yard.wire, yard.wire.client.messages);
    CHECK(t, send_hello(&yard));
    WIRE_UNTIL(&yard.wire, yard.closed == 2);
    CHECK_INT(t, yard.closed, ==, 2);
    CHECK_INT(t, yard.messages, ==, 1);
out:
    close_yard(&yard);
}

/* The core has closed the peer: the next connection gets its number, and its late messages are
 * dropped. */
TEST_FLAGS(a_muted_peer_is_not_heard, TEST_NO_TORTURE)
{
    struct yard yard;
    struct peer *old = NULL;
    struct peer *other = NULL;
    struct conn *first = NULL;
    uint32_t number;

    CHECK(t, open_yard(&yard));
    CHECK(t, dial(&yard));
    CHECK(t, say_hello(&yard));
    number = yard.number;
    old = server_peer(yard.server, number);
    CHECK(t, old);
    server_mute(yard.server, number);
    CHECK(t, !server_peer(yard.server, number));
    CHECK_OK(t, wire_send_beat(&yard.wire.client, 1));
    first = yard.wire.client.conn; /* the first connection stays open beside the next */
    conn_own(first, &wire_side_ops, &yard.wire.server);
    yard.wire.server = (struct wire_side){ .wire = &yard.wire, .conn = first };
    CHECK(t, dial(&yard));
    CHECK(t, say_hello(&yard));
    CHECK_INT(t, yard.number, ==, number);
    CHECK_INT(t, yard.messages, ==, 2);
    other = server_peer(yard.server, number);
    CHECK(t, other && other != old);
    peer_close(old);
    WIRE_UNTIL(&yard.wire, yard.wire.server.closed);
    CHECK_INT(t, yard.wire.server.closed, ==, 1);
    CHECK_INT(t, yard.closed, ==, 0);
out:
    peer_release(old);
    peer_release(other);
    wire_drop(&yard.wire.server);
    close_yard(&yard);
}

/* A lost host that opens connections and says nothing: eight of them are held, further ones are
 * closed, and one that ends makes room. */
TEST_FLAGS(a_host_has_few_connections_without_a_welcome, TEST_NO_TORTURE)
{
    enum { HELD = 8 };
    struct wire_side sides[HELD + 1] = { { .wire = NULL } };
    const char *address[1];
    const struct msg_texts addresses = { address, 1 };
    struct yard yard;

    CHECK(t, open_yard(&yard));
    address[0] = yard.address;
    for (int i = 0; i <= HELD; i++) {
        sides[i].wire = &yard.wire;
        CHECK_OK(t, conn_dial(yard.wire.base, &addresses, yard.wire.tls, &wire_side_ops, &sides[i],
                              &sides[i].conn, NULL));
        WIRE_UNTIL(&yard.wire, sides[i].opened || sides[i].closed);
        CHECK(t, sides[i].opened);
    }
    WIRE_UNTIL(&yard.wire, sides[HELD].closed);
    CHECK_INT(t, sides[HELD].closed, ==, 1);
    for (int i = 0; i < HELD; i++)
        CHECK_INT(t, sides[i].closed, ==, 0);
    CHECK_INT(t, yard.closed, ==, 0);
    wire_drop(&sides[0]);
    WIRE_UNTIL(&yard.wire, yard.closed);
    CHECK_INT(t, yard.closed, ==, 1);
    CHECK(t, dial(&yard));
    CHECK(t, say_hello(&yard));
out:
    for (int i = 0; i <= HELD; i++)
        wire_drop(&sides[i]);
    close_yard(&yard);
}

static char said[1024];

static void keep_line(void *arg, const char *line, size_t length)
{
    (void)arg;
    snprintf(said, sizeof(said), "%.*s", (int)length, line);
}

static int64_t no_time(void)
{
    return 0;
}

TEST_FLAGS(a_taken_port_is_replaced, TEST_NO_TORTURE)
{
    static const struct log_sink sink = { keep_line, no_time, NULL };
    struct yard yard;
    struct server *second = NULL;
    struct hvd_err err = { .code = 0 };
    const char *address;
    const char *again;
    bool moved = false;
    unsigned long port;
    char taken[128];

    CHECK(t, open_yard(&yard));
    port = strtoul(strrchr(yard.address, ':') + 1, NULL, 10);
    CHECK(t, port > 0);
    CHECK_OK(t, server_create(yard.wire.base, yard.wire.tls, &ops, &yard, &second));
    log_open(&sink);
    log_set_levels("warning", NULL);
    CHECK_OK(t, server_listen(second, loopback_own(), (uint16_t)port, &address, &moved, &err));
    CHECK(t, moved);
    snprintf(taken, sizeof(taken),
             "%s:%lu is in use, perhaps by the earlier driver: agents are told another port\n",
             loopback_own(), port);
    CHECK_HAS(t, said, taken);
    CHECK(t, strcmp(address, yard.address));
    CHECK_OK(t, server_listen(second, loopback_own(), (uint16_t)port, &again, &moved, &err));
    CHECK(t, !moved);
    CHECK_TEXT(t, again, address);
    CHECK_CODE(t, server_listen(second, "192.0.2.1", 0, &again, &moved, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "192.0.2.1");
out:
    log_set_levels("info", NULL);
    log_open(NULL);
    server_free(second);
    close_yard(&yard);
}
