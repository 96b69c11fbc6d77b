/*
 * wire_side.c: two ends of a connection in one event loop, over TLS or plain, with notes on the
 * callbacks of each end. Cases run the event loop until a callback has come.
 */
#include "tests/lib/wire_side.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "proto/codec.h"
#include "tests/lib/fault.h"
#include "tests/lib/loopback.h"
#include "wire/address.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* the first limit is for a whole case; the second is used after an allocation has failed, when an
 * event may never come */
#define LIMIT_S    60
#define STARVED_US 100000

static const uint8_t key[TLS_KEY_BYTES] = "the key of these tests, 32 bytes";
static struct wire *logging;

/* In these tests no time limit of the product that is a second or longer passes: both ends and the
 * test are one thread, so a pause of this process would end each connection. A case that is about a
 * limit sets a shorter one. */
struct timeval __real_clock_timeval(int64_t us);
struct timeval __wrap_clock_timeval(int64_t us);

struct timeval __wrap_clock_timeval(int64_t us)
{
    return __real_clock_timeval(us < TIME_S ? us : TIME_HOUR);
}

static void write_log(void *arg, const char *line, size_t length)
{
    (void)arg;
    if (logging && logging->log_lines < WIRE_LOG_LINES)
        snprintf(logging->log[logging->log_lines++], sizeof(logging->log[0]), "%.*s", (int)length,
                 line);
}

static int64_t log_time(void)
{
    return 0;
}

static void on_guard(evutil_socket_t fd, short what, void *arg)
{
    struct wire *wire = arg;

    (void)fd;
    (void)what;
    wire->late = true;
}

bool wire_begin(struct wire *wire)
{
    static const struct log_sink sink = { write_log, log_time, NULL };
    struct timeval limit = { .tv_sec = LIMIT_S };
    bool held;

    memset(wire, 0, sizeof(*wire));
    signal(SIGPIPE, SIG_IGN);
    event_set_mem_functions(mem_alloc, mem_resize, mem_free);
    logging = wire;
    log_open(&sink);
    wire->client = (struct wire_side){ .wire = wire, .in_order = true };
    wire->server = (struct wire_side){ .wire = wire, .in_order = true };
    held = fault_hold(FAULT_ALLOC, true); /* allocations of the event loop are not tested */
    wire->base = event_base_new();
    wire->guard = event_new(wire->base, -1, EV_PERSIST, on_guard, wire);
    event_add(wire->guard, &limit);
    fault_hold(FAULT_ALLOC, held);
    return !tls_create("job", key, &wire->tls, NULL);
}

void wire_drop(struct wire_side *side)
{
    conn_drop(side->conn);
    side->conn = NULL;
}

void wire_end(struct wire *wire)
{
    bool held = fault_hold(FAULT_ALLOC, true); /* the case is over */

    wire_drop(&wire->client);
    wire_drop(&wire->server);
    listener_free(wire->listener);
    if (wire->guard)
        event_free(wire->guard);
    if (wire->base) {
        /* lets closing connections hear that the other ends are gone */
        event_base_loop(wire->base, 0);
        event_base_free(wire->base);
    }
    tls_free(wire->tls);
    libevent_global_shutdown();
    logging = NULL;
    log_open(NULL);
    fault_hold(FAULT_ALLOC, held);
}

bool wire_turn(struct wire *wire)
{
    struct timeval soon = { .tv_usec = STARVED_US };

    if (fault_delivered(FAULT_ALLOC) && !wire->starved) {
        wire->starved = true;
        event_add(wire->guard, &soon);
    }
    event_base_loop(wire->base, EVLOOP_ONCE);
    return !wire->late;
}

static void opened(void *arg)
{
    struct wire_side *side = arg;

    side->opened++;
}

static void got_msg(void *arg, const struct msg *msg)
{
    struct wire_side *side = arg;

    side->messages++;
    side->type = msg->type;
    if (msg->type == MSG_BEAT) {
        side->in_order = side->in_order && msg->u.beat.sequence == side->last + 1;
        side->last = msg->u.beat.sequence;
    }
    if (msg->type == MSG_OUTPUT)
        side->bytes += msg->u.output.data.length;
    if (side->on_msg)
        side->on_msg(side, msg);
}

static void was_closed(void *arg, const char *why)
{
    struct wire_side *side = arg;

    side->closed++;
    side->conn = NULL;
    snprintf(side->why, sizeof(side->why), "%s", why);
}

static void was_drained(void *arg)
{
    struct wire_side *side = arg;

    side->drained++;
}

const struct conn_ops wire_side_ops = { opened, got_msg, was_closed, was_drained };

static void came_in(void *arg, struct conn *conn)
{
    struct wire *wire = arg;

    wire->accepted++;
    if (wire->keep || wire->server.conn) {
        conn_drop(conn);
        return;
    }
    wire->server.conn = conn;
    conn_own(conn, &wire_side_ops, &wire->server);
}

int wire_listen(struct wire *wire)
{
    return listener_tcp(wire->base, &(struct listener_place){ loopback_own(), 0, wire->tls },
                        came_in, wire, &wire->listener, NULL);
}

int wire_listen_unix(struct wire *wire, const char *name)
{
    return listener_unix(wire->base, name, came_in, wire, &wire->listener, NULL);
}

int wire_dial(struct wire *wire, struct tls *tls)
{
    const char *address = listener_address(wire->listener);
    struct msg_texts addresses = { &address, 1 };

    return conn_dial(wire->base, &addresses, tls, &wire_side_ops, &wire->client, &wire->client.conn,
                     NULL);
}

int wire_dial_unix(struct wire *wire, const char *name)
{
    return conn_dial_unix(wire->base, name, &wire_side_ops, &wire->client, &wire->client.conn,
                          NULL);
}

static bool both_open(struct wire *wire)
{
    WIRE_UNTIL(wire, (wire->server.conn && wire->client.opened) || wire->client.closed ||
                         wire->server.closed);
    return wire->client.conn && wire->server.conn;
}

bool wire_connect(struct wire *wire)
{
    return !wire_listen(wire) && !wire_dial(wire, wire->tls) && both_open(wire);
}

bool wire_connect_unix(struct wire *wire)
{
    char name[64];

    snprintf(name, sizeof(name), "@hvd-test-wire-%d", (int)getpid());
    return !wire_listen_unix(wire, name) && !wire_dial_unix(wire, name) && both_open(wire);
}

int wire_send_beat(struct wire_side *side, uint64_t sequence)
{
    struct msg msg = { .type = MSG_BEAT, .u.beat.sequence = sequence };

    return side->conn ? conn_send(side->conn, &msg, NULL) : HVD_E_LOST;
}

int wire_send_output(struct wire_side *side, size_t bytes)
{
    static const uint8_t data[LIMIT_OUTPUT_CHUNK_BYTES];
    struct msg msg = {
        .type = MSG_OUTPUT, .incarnation = 1, .u.output.data = {data, bytes}
    };

    return side->conn ? conn_send(side->conn, &msg, NULL) : HVD_E_LOST;
}

int wire_stranger(const struct wire *wire)
{
    struct address address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || address_parse(listener_address(wire->listener), &address, NULL) ||
        connect(fd, (const struct sockaddr *)&address.at, address.length))
        abort();
    return fd;
}

unsigned wire_logged(const struct wire *wire, const char *part)
{
    unsigned lines = 0;

    for (unsigned i = 0; i < wire->log_lines; i++)
        lines += strstr(wire->log[i], part) != NULL;
    return lines;
}
