#include "wire/conn.h"

#include "tests/lib/wire_side.h"

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

TESTS(CASE(carries_messages_both_ways), CASE(a_plain_one_does_too), CASE(the_end_is_told))
