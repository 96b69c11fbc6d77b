#include "wire/conn_state.h"

#include "wire/tls_session.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* At most this at a time, so that one connection does not keep the others waiting. */
#define WRITE_BYTES     (256 * 1024)
#define BULK_READ_BYTES (256 * 1024)
/* A buffer larger than this is given back once all is sent. */
#define KEPT_OUT_BYTES (16 * 1024)

/* What reading and writing say beside a count. */
#define STREAM_END    0
#define STREAM_LATER  (-1)
#define STREAM_BROKEN (-2)

static void on_readable(evutil_socket_t fd, short what, void *arg);
static void on_writable(evutil_socket_t fd, short what, void *arg);

static int take(struct conn *conn, int fd)
{
    conn->readable = event_new(conn->base, fd, EV_READ | EV_PERSIST, on_readable, conn);
    conn->writable = event_new(conn->base, fd, EV_WRITE, on_writable, conn);
    if (!conn->readable || !conn->writable || event_add(conn->readable, NULL)) {
        conn_stream_free(conn);
        return HVD_E_NOMEM;
    }
    conn->fd = fd;
    return 0;
}

int conn_stream_plain(struct conn *conn, int fd)
{
    return take(conn, fd);
}

int conn_stream_tls(struct conn *conn, int fd, bool server, conn_shaken_fn *shaken, void *arg)
{
    conn->session = tls_session(conn->tls, server);
    if (!conn->session)
        return HVD_E_NOMEM;
    if (!SSL_set_fd(conn->session, fd) || take(conn, fd)) {
        conn_stream_free(conn);
        return HVD_E_NOMEM;
    }
    if (server)
        SSL_set_accept_state(conn->session);
    else
        SSL_set_connect_state(conn->session);
    conn->phase = CONN_SHAKING;
    conn->shaken = shaken;
    conn->shaken_arg = arg;
    conn_kick(conn);
    return 0;
}

void conn_stream_free(struct conn *conn)
{
    if (conn->readable)
        event_free(conn->readable);
    if (conn->writable)
        event_free(conn->writable);
    SSL_free(conn->session);
    if (conn->fd >= 0)
        close(conn->fd);
    conn->readable = NULL;
    conn->writable = NULL;
    conn->session = NULL;
    conn->fd = -1;
}

int conn_stream_listen(struct conn *conn)
{
    return event_add(conn->readable, NULL) ? HVD_E_NOMEM : 0;
}

void conn_stream_deaf(struct conn *conn)
{
    event_del(conn->readable);
}

void conn_stream_stop(struct conn *conn)
{
    if (conn->readable)
        event_del(conn->readable);
    if (conn->writable)
        event_del(conn->writable);
}

/* To be called again when the descriptor can be written; the loop may be out of memory. */
static void wait_writable(struct conn *conn)
{
    if (event_add(conn->writable, NULL))
        conn_break(conn, err_text(HVD_E_NOMEM));
}

/* What OpenSSL said of the last call that did not return a count. */
static ssize_t tls_outcome(struct conn *conn, int rc)
{
    switch (SSL_get_error(conn->session, rc)) {
    case SSL_ERROR_WANT_READ: return STREAM_LATER;
    case SSL_ERROR_WANT_WRITE: conn->crossed = true; return STREAM_LATER;
    case SSL_ERROR_ZERO_RETURN: return STREAM_END;
    case SSL_ERROR_SYSCALL: return errno ? STREAM_BROKEN : STREAM_END;
    default: return STREAM_BROKEN;
    }
}

static ssize_t plain_outcome(ssize_t rc)
{
    if (rc >= 0)
        return rc;
    return errno == EAGAIN || errno == EINTR ? STREAM_LATER : STREAM_BROKEN;
}

ssize_t conn_stream_get(struct conn *conn, void *bytes, size_t size)
{
    int rc;

    errno = 0;
    if (!conn->session)
        return plain_outcome(recv(conn->fd, bytes, size, MSG_DONTWAIT));
    ERR_clear_error();
    rc = SSL_read(conn->session, bytes, (int)size);
    return rc > 0 ? rc : tls_outcome(conn, rc);
}

static ssize_t put(struct conn *conn, const void *bytes, size_t size)
{
    int rc;

    errno = 0;
    if (!conn->session)
        return plain_outcome(send(conn->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT));
    ERR_clear_error();
    rc = SSL_write(conn->session, bytes, (int)size);
    if (rc > 0)
        return rc;
    return tls_outcome(conn, rc);
}

/* Before anything is called that changes errno or the library's errors. */
static const char *reason(const struct conn *conn)
{
    int number = errno;
    unsigned long error = conn->session ? ERR_peek_error() : 0;

    if (error && ERR_GET_LIB(error) != ERR_LIB_SYS)
        return tls_reason(error);
    return number ? strerror(number) : "the connection broke";
}

static void shake(struct conn *conn)
{
    const char *why = NULL;
    ssize_t outcome;
    int rc;

    errno = 0;
    ERR_clear_error();
    rc = SSL_do_handshake(conn->session);
    if (rc != 1) {
        conn->crossed = false;
        outcome = tls_outcome(conn, rc);
        if (outcome == STREAM_LATER) {
            if (!conn->crossed || !event_add(conn->writable, NULL))
                return;
            why = err_text(HVD_E_NOMEM);
        } else if (outcome == STREAM_END) {
            why = "it hung up during the handshake";
        } else {
            why = reason(conn);
        }
    } else if (!tls_proved(conn->session)) {
        why = "it has no key of this job";
    }
    conn_stream_deaf(conn); /* until somebody takes what it says */
    conn->crossed = false;
    conn->shaken(conn->shaken_arg, conn, why);
}

/* What has come is kept for the owner, also when it was held, for there will be no other time. */
static void broke(struct conn *conn, const char *why)
{
    ssize_t got = 1;

    while (got > 0 && conn->phase == CONN_UP)
        if (conn_take_in(conn, &got))
            break;
    conn_end(conn, why);
}

static void discard(struct conn *conn)
{
    buf_clear(&conn->in);
    conn->in_at = 0;
}

/* Without waiting for the loop: what TLS has in its hands, and of a connection with much to come
 * also what the kernel has, for a while. */
static bool reads_on(const struct conn *conn, size_t budget)
{
    if (conn->phase == CONN_GONE || conn->ended || conn->held || !conn->session)
        return false;
    return SSL_pending(conn->session) > 0 || (conn->bulk && budget > 0);
}

static void read_in(struct conn *conn)
{
    size_t budget = BULK_READ_BYTES;
    ssize_t got;

    do {
        if (conn_take_in(conn, &got)) {
            conn_break(conn, err_text(HVD_E_NOMEM));
            return;
        }
        if (got == STREAM_END || got == STREAM_BROKEN)
            broke(conn, got == STREAM_END ? "the other side closed the connection" : reason(conn));
        if (conn->phase == CONN_LINGERING)
            discard(conn);
        conn_feed(conn);
        if (got > 0)
            budget -= (size_t)got < budget ? (size_t)got : budget;
    } while (got > 0 && reads_on(conn, budget));
    if (conn->crossed && !conn->ended)
        wait_writable(conn);
}

/* Once all is out, the other side is told that nothing follows, and then heard out: what it still
 * sends would otherwise be answered with a reset, which takes what it has not read from it. */
static void finish(struct conn *conn)
{
    conn->finished = true;
    if (conn->session)
        SSL_shutdown(conn->session);
    shutdown(conn->fd, SHUT_WR);
}

static void all_sent(struct conn *conn)
{
    conn->out_at = 0;
    if (conn->out.capacity > KEPT_OUT_BYTES)
        buf_release(&conn->out);
    else
        buf_clear(&conn->out);
    if (conn->phase == CONN_LINGERING && !conn->finished)
        finish(conn);
}

static void tell_drained(struct conn *conn)
{
    bool low = conn->above_high && conn_unsent(conn) < CONN_LOW_BYTES;
    bool all = conn->when_sent && conn_unsent(conn) == 0;

    if (conn->phase != CONN_UP || (!low && !all))
        return;
    conn->above_high = conn->above_high && !low;
    conn->when_sent = conn->when_sent && !all;
    if (conn->ops && conn->ops->drained)
        conn->ops->drained(conn->arg);
}

/* Some of what is unsent, its own bytes first. */
static ssize_t put_some(struct conn *conn, size_t most)
{
    size_t own = conn->out.length - conn->out_at;
    size_t left = own ? own : conn->lent.length;
    ssize_t sent = put(conn, own ? (const void *)(conn->out.data + conn->out_at) : conn->lent.at,
                       left < most ? left : most);

    if (sent <= 0)
        return sent;
    if (own) {
        conn->out_at += (size_t)sent;
    } else {
        conn->lent.at += sent;
        conn->lent.length -= (size_t)sent;
    }
    return sent;
}

static void write_out(struct conn *conn)
{
    size_t budget = WRITE_BYTES;
    ssize_t sent = 1;

    while (sent > 0 && budget > 0 && conn_unsent(conn) > 0) {
        sent = put_some(conn, budget);
        if (sent > 0)
            budget -= (size_t)sent;
    }
    if (sent == STREAM_END || sent == STREAM_BROKEN) {
        broke(conn, sent == STREAM_END ? "the other side closed the connection" : reason(conn));
        return;
    }
    if (conn_unsent(conn) > 0)
        wait_writable(conn);
    else
        all_sent(conn);
    tell_drained(conn);
}

void conn_when_sent(struct conn *conn)
{
    if (conn->phase != CONN_UP || conn->ended)
        return;
    conn->when_sent = true;
    wait_writable(conn);
}

static bool flows(const struct conn *conn)
{
    return (conn->phase == CONN_UP || conn->phase == CONN_LINGERING) && !conn->ended;
}

void conn_stream_go(struct conn *conn)
{
    if (conn->phase == CONN_SHAKING && !conn->ended)
        shake(conn);
    else if (flows(conn) && !event_pending(conn->writable, EV_WRITE, NULL))
        write_out(conn);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;

    (void)fd;
    (void)what;
    conn_enter(conn);
    if (conn->phase == CONN_SHAKING)
        shake(conn);
    else if (flows(conn))
        read_in(conn);
    conn_leave(conn);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;

    (void)fd;
    (void)what;
    conn_enter(conn);
    if (conn->phase == CONN_SHAKING)
        shake(conn);
    if (conn->phase == CONN_UP && conn->crossed && !conn->held) {
        conn->crossed = false;
        read_in(conn);
    }
    if (flows(conn))
        write_out(conn);
    conn_leave(conn);
}
