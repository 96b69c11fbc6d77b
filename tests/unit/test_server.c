#include "driver/io/server.h"

#include "base/log.h"
#include "proto/catalog.h"
#include "proto/codec.h"
#include "tests/lib/wire_side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A server, what it told its owner, and an agent that dials it. */
struct yard {
    struct wire wire;
    struct server *server;
    const char *address;
    int messages;
    int closed;
    uint32_t number; /* of the last message, or end */
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

static void on_closed(void *arg, uint32_t number, const char *why)
{
    struct yard *yard = arg;

    yard->closed++;
    yard->number = number;
    snprintf(yard->why, sizeof(yard->why), "%s", why);
}

static const struct server_ops ops = { on_msg, on_closed };

static bool open_yard(struct yard *yard)
{
    struct hvd_err err;
    bool moved;

    memset(yard, 0, sizeof(*yard));
    return wire_begin(&yard->wire) &&
           !server_create(yard->wire.base, yard->wire.tls, &ops, yard, &yard->server) &&
           !server_listen(yard->server, "127.0.0.1", 0, &yard->address, &moved, &err);
}

static void close_yard(struct yard *yard)
{
    wire_drop(&yard->wire.client);
    server_free(yard->server);
    wire_end(&yard->wire);
}

/* An agent comes, by its handshake. */
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

static bool say(struct yard *yard, const struct msg *msg)
{
    return yard->wire.client.conn && !conn_send(yard->wire.client.conn, msg, NULL);
}

static bool send_hello(struct yard *yard)
{
    struct msg hello = { .type = MSG_HELLO_AGENT };

    hello.u.hello_agent = (struct msg_hello_agent){
        .minor = PROTO_MINOR, .version = "0", .job = "job", .host = "a", .agent = 1
    };
    return say(yard, &hello);
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

static void an_agent_is_heard_and_answered(struct test *t)
{
    struct yard yard;

    CHECK(t, open_yard(&yard));
    CHECK(t, !server_has_inside(yard.server));
    CHECK(t, dial(&yard));
    CHECK(t, say_hello(&yard));
    CHECK(t, server_has_inside(yard.server));
    CHECK_OK(t, answer(&yard, MSG_WELCOME_AGENT));
    WIRE_UNTIL(&yard.wire, yard.wire.client.messages);
    CHECK_INT(t, yard.wire.client.type, ==, MSG_WELCOME_AGENT);
    CHECK_OK(t, wire_send_beat(&yard.wire.client, 1));
    WIRE_UNTIL(&yard.wire, yard.type == MSG_BEAT);
    CHECK_INT(t, yard.type, ==, MSG_BEAT);
    wire_drop(&yard.wire.client);
    WIRE_UNTIL(&yard.wire, yard.closed);
    CHECK_INT(t, yard.closed, ==, 1);
    CHECK(t, !server_has_inside(yard.server));
out:
    close_yard(&yard);
}

/* A second hello, or anything before the first: the connection ends, and the owner learns it once.
 */
static void who_breaks_the_rules_is_closed(struct test *t)
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

/* The core asked for its end: its number goes to the next one, and what it still says to nobody. */
static void who_is_muted_is_not_heard(struct test *t)
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
    first = yard.wire.client.conn; /* goes on beside the next one */
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

static char said[1024];

static void keep_line(void *arg, const char *line, size_t length)
{
    (void)arg;
    snprintf(said, sizeof(said), "%.*s", (int)length, line);
}

static int64_t no_time(void *arg)
{
    (void)arg;
    return 0;
}

static void a_port_that_is_taken_is_another(struct test *t)
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
    CHECK_OK(t, server_listen(second, "127.0.0.1", (uint16_t)port, &address, &moved, &err));
    CHECK(t, moved);
    snprintf(taken, sizeof(taken),
             "127.0.0.1:%lu is taken by another program: agents are told another port\n", port);
    CHECK_HAS(t, said, taken);
    CHECK(t, strcmp(address, yard.address));
    CHECK_OK(t, server_listen(second, "127.0.0.1", (uint16_t)port, &again, &moved, &err));
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

TESTS(CASE_FLAGS(an_agent_is_heard_and_answered, TEST_NO_TORTURE),
      CASE_FLAGS(who_breaks_the_rules_is_closed, TEST_NO_TORTURE),
      CASE_FLAGS(who_is_muted_is_not_heard, TEST_NO_TORTURE),
      CASE_FLAGS(a_port_that_is_taken_is_another, TEST_NO_TORTURE))
