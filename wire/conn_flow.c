/*
 * conn_flow.c: the events of a connection: its descriptor is readable or writable, a time limit has
 * passed, or work was left by a call of the owner (the kick). Called by libevent; conn_dial.c and
 * listener.c create connections here. Invariant: each callback runs between conn_enter and
 * conn_leave, so an owner may drop the connection inside.
 */
#include "wire/conn_internal.h"

#include "base/mem.h"
#include "base/panic.h"
#include "wire/tls_session.h"

#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

/* The most bytes that are written or read at a time, so that one connection does not delay the
 * others. */
#define WRITE_BYTES     (256 * 1024)
#define BULK_READ_BYTES (256 * 1024)
/* A buffer for unsent bytes that has grown beyond this size is freed when all its bytes are
 * sent. */
#define KEPT_OUT_BYTES (16 * 1024)

/* true: bytes may be read and written. A lingering connection counts too: it sends its unsent
 * bytes, and throws its input away. */
static bool flow_is_open(const struct conn *conn)
{
    return (conn->phase == CONN_UP || conn->phase == CONN_LINGERING) && !conn->ended;
}

/* Asks the event loop for a call when the descriptor is writable. On failure there is no memory,
 * and the connection breaks. */
static void flow_wait_writable(struct conn *conn)
{
    if (event_add(conn->stream.writable, NULL))
        conn_break(conn, err_text(HVD_E_NOMEM));
}

/* Called when a read or a write has met the end of the stream or an error (`outcome`): ends the
 * connection. The input that the kernel still has is read now, also while reading is held, because
 * it cannot be read later. */
static void flow_broke(struct conn *conn, ssize_t outcome)
{
    const char *why =
        outcome == STREAM_END ? "the other side closed the connection" : conn_stream_reason(conn);
    ssize_t got = 1; /* so that the loop begins */

    while (got > 0 && conn->phase == CONN_UP)
        if (conn_take_in(conn, &got)) /* no memory: the rest of the input is lost */
            break;
    conn_end(conn, why);
}

/* Reads input and hands its messages on; called when the descriptor is readable. */
static void flow_read(struct conn *conn)
{
    size_t budget = BULK_READ_BYTES;
    ssize_t got;
    bool more;

    do {
        if (conn_take_in(conn, &got)) {
            conn_break(conn, err_text(HVD_E_NOMEM));
            return;
        }
        if (got == STREAM_END || got == STREAM_BROKEN)
            flow_broke(conn, got);
        if (conn->phase == CONN_LINGERING) { /* while lingering, input is read and thrown away */
            buf_clear(&conn->in.bytes);
            conn->in.at = 0;
        }
        conn_feed(conn);
        if (got > 0)
            budget -= (size_t)got < budget ? (size_t)got : budget;
        /* The loop reads on without the event loop if TLS holds bytes already, for which no event
         * comes; on a bulk connection also while the kernel has bytes, up to the budget. */
        more = got > 0 && conn->phase != CONN_GONE && !conn->ended && !conn->in.held &&
               conn->stream.session &&
               (SSL_pending(conn->stream.session) > 0 || (conn->in.bulk && budget > 0));
    } while (more);
    /* TLS has to write before it can read on: flow_on_ready goes on when the descriptor is writable
     */
    if (conn->stream.crossed && !conn->ended)
        flow_wait_writable(conn);
}

/* Writes unsent bytes until all are sent or the descriptor takes no more. */
static void flow_write(struct conn *conn)
{
    struct conn_out *out = &conn->out;
    size_t budget = WRITE_BYTES;
    ssize_t sent = 1;
    bool low, all;

    while (sent > 0 && budget > 0 && conn_unsent(conn) > 0) {
        /* first the bytes in the connection's own queue, then those that the owner has lent
         * (conn_send_lent) */
        size_t own_bytes = out->bytes.length - out->at;
        const void *bytes = own_bytes ? (const void *)(out->bytes.data + out->at) : out->lent.at;
        size_t unsent = own_bytes ? own_bytes : out->lent.length;

        sent = conn_stream_put(conn, bytes, unsent < budget ? unsent : budget);
        if (sent <= 0)
            break;
        budget -= (size_t)sent;
        if (own_bytes) {
            out->at += (size_t)sent;
        } else {
            out->lent.at += sent;
            out->lent.length -= (size_t)sent;
        }
    }
    if (sent == STREAM_END || sent == STREAM_BROKEN) {
        flow_broke(conn, sent);
        return;
    }
    if (conn_unsent(conn) > 0) {
        flow_wait_writable(conn);
    } else {
        out->at = 0;
        if (out->bytes.capacity > KEPT_OUT_BYTES)
            buf_release(&out->bytes);
        else
            buf_clear(&out->bytes);
        /* Tells the peer that nothing follows, but does not close the socket yet: the kernel would
         * answer further input of the peer with a reset, and the peer would lose bytes that it has
         * not read yet. */
        if (conn->phase == CONN_LINGERING && !out->finished) {
            out->finished = true;
            if (conn->stream.session)
                SSL_shutdown(conn->stream.session);
            shutdown(conn->stream.fd, SHUT_WR);
        }
    }

    /* Calls `drained` when the unsent bytes have fallen below the low mark, or when all are sent
     * and the owner has asked for that (conn_when_sent). */
    low = out->above_high && conn_unsent(conn) < CONN_LOW_BYTES;
    all = out->when_sent && conn_unsent(conn) == 0;
    if (conn->phase != CONN_UP || (!low && !all))
        return;
    out->above_high = out->above_high && !low;
    out->when_sent = out->when_sent && !all;
    if (conn->ops && conn->ops->drained)
        conn->ops->drained(conn->arg);
}

size_t conn_unsent(const struct conn *conn)
{
    return conn->out.bytes.length - conn->out.at + conn->out.lent.length;
}

/* Asks for a call of `drained`. The event loop makes it when the descriptor is writable and no byte
 * is unsent, also if no byte is unsent now. */
void conn_when_sent(struct conn *conn)
{
    if (conn->phase != CONN_UP || conn->ended)
        return;
    conn->out.when_sent = true;
    flow_wait_writable(conn);
}

/* Called when the descriptor is readable or writable; each is an event of its own. Input is read
 * while the owner wants messages, or while a lingering connection waits for the peer's end. TLS may
 * have to write before it can read on (`crossed`): then the writable event continues the
 * reading. */
static void flow_on_ready(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;

    (void)fd;
    conn_enter(conn);
    if (conn->phase == CONN_HANDSHAKE)
        conn_stream_handshake(conn);
    else if ((what & EV_READ) && flow_is_open(conn))
        flow_read(conn);
    if ((what & EV_WRITE) && conn->phase == CONN_UP && conn->stream.crossed && !conn->in.held) {
        conn->stream.crossed = false;
        flow_read(conn);
    }
    if ((what & EV_WRITE) && flow_is_open(conn))
        flow_write(conn);
    conn_leave(conn);
}

/* Called by the kick: goes on with the handshake, or writes what a call of the owner has queued. If
 * the writable event is pending already, that event writes. */
void conn_flow_go(struct conn *conn)
{
    if (conn->phase == CONN_HANDSHAKE && !conn->ended)
        conn_stream_handshake(conn);
    else if (flow_is_open(conn) && !event_pending(conn->stream.writable, EV_WRITE, NULL))
        flow_write(conn);
}

/* Handles the kick, an event that is due at once: does the work that a call of the owner has
 * left, and calls the owner's `closed` when the connection has ended. */
static void flow_on_kick(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;
    const struct conn_ops *ops;

    (void)fd;
    (void)what;
    conn_enter(conn);
    if (conn->phase == CONN_DIALLING && !conn->dial && !conn->ended)
        conn_up(conn); /* a Unix socket is connected and needs no handshake */
    conn_flow_go(conn);
    conn_feed(conn);

    /* `closed` is called when the owner has got all input that came before the end. */
    ops = conn->ops;
    if (ops && conn->ended &&
        (conn->broken || conn->phase != CONN_UP || (!conn->in.held && !conn_has_input(conn)))) {
        /* PROTOCOL.md, F4: the stream must not end inside a frame; if it does, that is the
         * reason */
        if (!conn->broken && frame_reader_midway(&conn->in.reader))
            snprintf(conn->why, sizeof(conn->why), "the stream ended in the middle of a frame");
        conn->ops = NULL;
        conn->phase = CONN_GONE;
        ops->closed(conn->arg, conn->why);
    }
    conn_leave(conn);
}

/* Called when the time limit of the connection's phase has passed: the limit for the handshake, for
 * the greeting, or for lingering. */
static void flow_on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;

    (void)fd;
    (void)what;
    conn_enter(conn);
    if (conn->phase == CONN_HANDSHAKE)
        conn->stream.done(conn->stream.done_arg, conn,
                          "the peer did not end the handshake in time");
    else if (conn->phase == CONN_UP)
        conn_break(conn, "the peer did not greet in time");
    else
        conn->phase = CONN_GONE;
    conn_leave(conn);
}

/* Makes a connection that has no socket and no owner yet. `tls` NULL: it will carry plain bytes.
 * Returns NULL if no memory is left. */
struct conn *conn_create(struct event_base *base, struct tls *tls)
{
    struct conn *conn = mem_zalloc(sizeof(*conn));
    struct sigaction action;

    /* SIGPIPE must be ignored or handled: a broken pipe must be an error here, not the end of the
     * program. */
    ASSERT(!sigaction(SIGPIPE, NULL, &action) && action.sa_handler != SIG_DFL);
    if (!conn)
        return NULL;
    conn->base = base;
    conn->tls = tls;
    conn->stream.fd = -1;
    list_init(&conn->guest.link);
    conn->greeting_us = LIMIT_GREETING_US;
    conn->linger_us = CONN_LINGER_US;
    frame_reader_init(&conn->in.reader, LIMIT_GREETING_BODY_BYTES);
    buf_init(&conn->in.bytes, CONN_IN_MAX);
    buf_init(&conn->out.bytes, LIMIT_UNSENT_BYTES);
    conn->timer = event_new(base, -1, 0, flow_on_timer, conn);
    conn->kick = event_new(base, -1, 0, flow_on_kick, conn);
    if (conn->timer && conn->kick)
        return conn;
    conn_drop(conn);
    return NULL;
}

/* Gives a connected descriptor to the connection, which owns it on success. HVD_E_NOMEM: the caller
 * still owns it. */
int conn_attach(struct conn *conn, int fd)
{
    struct conn_stream *stream = &conn->stream;

    stream->readable = event_new(conn->base, fd, EV_READ | EV_PERSIST, flow_on_ready, conn);
    stream->writable = event_new(conn->base, fd, EV_WRITE, flow_on_ready, conn);
    if (!stream->readable || !stream->writable || event_add(stream->readable, NULL)) {
        conn_release_stream(conn);
        return HVD_E_NOMEM;
    }
    stream->fd = fd;
    return 0;
}

/* Does what conn_attach does, and begins the handshake: a client in the next iteration, a server
 * when the first bytes have come, so that a silent stranger costs no TLS session. `server` true:
 * this side is the server. `done` is called at the end of the handshake. */
int conn_attach_tls(struct conn *conn, int fd, bool server, conn_handshake_fn *done, void *arg)
{
    struct conn_stream *stream = &conn->stream;

    if (conn_attach(conn, fd))
        return HVD_E_NOMEM;
    conn->phase = CONN_HANDSHAKE;
    stream->serves = server;
    stream->done = done;
    stream->done_arg = arg;
    if (!server)
        conn_kick(conn);
    return 0;
}

/* Gives the connection to an owner, whose callbacks are called from now on. `arg` is passed to
 * them. */
void conn_own(struct conn *conn, const struct conn_ops *ops, void *arg)
{
    conn->ops = ops;
    conn->arg = arg;
    conn_kick(conn); /* handles input that came while there was no owner */
}
