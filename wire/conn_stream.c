/*
 * conn_stream.c: reads and writes the bytes of a connection, after the TLS handshake. Called by
 * conn_feed.c and conn_flow.c. Invariant: no call blocks; a call that cannot go on returns
 * STREAM_LATER, and `crossed` says whether TLS waits until the socket is writable, which a read may
 * also have to wait for.
 */
#include "wire/conn_internal.h"

#include "wire/tls_session.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>

/* A silent peer is found by its lease (the driver and the agents expect a message in a given time).
 * With these values the kernel also closes the connection, soon after the lease is over. */
#define KEEPALIVE_IDLE_S     15
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_PROBES     4
#define USER_TIMEOUT_MS      30000

static void stream_set_option(int fd, int level, int option, int value)
{
    /* the calls may fail: a connection without these options is slower, and works all the same */
    (void)!setsockopt(fd, level, option, &value, sizeof(value));
}

/* Sets up a TCP socket: small messages leave at once, and the kernel finds out that a peer is dead.
 * A failure of these calls does no harm. */
void conn_tune(int fd)
{
    stream_set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    stream_set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    stream_set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    stream_set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    stream_set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    stream_set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
}

/* Returns the STREAM_ value for an OpenSSL call that did not return a count. STREAM_LATER: the call
 * must be repeated when the descriptor is ready. If TLS waits until the descriptor is writable,
 * `crossed` is set: TLS may have to write before it can read on. */
static ssize_t stream_tls_outcome(struct conn_stream *stream, int rc)
{
    switch (SSL_get_error(stream->session, rc)) {
    case SSL_ERROR_WANT_READ: return STREAM_LATER;
    case SSL_ERROR_WANT_WRITE: stream->crossed = true; return STREAM_LATER;
    case SSL_ERROR_ZERO_RETURN: return STREAM_END;
    case SSL_ERROR_SYSCALL: return errno ? STREAM_BROKEN : STREAM_END;
    default: return STREAM_BROKEN;
    }
}

/* Returns what recv or send has returned without TLS: a count of bytes (0 from recv: STREAM_END),
 * or the STREAM_ value of its error. */
static ssize_t stream_plain_outcome(ssize_t rc)
{
    if (rc >= 0)
        return rc;
    return errno == EAGAIN || errno == EINTR ? STREAM_LATER : STREAM_BROKEN;
}

/* Reads bytes without waiting, with or without TLS. Returns their number, or a STREAM_ value. */
ssize_t conn_stream_get(struct conn *conn, void *bytes, size_t size)
{
    struct conn_stream *stream = &conn->stream;
    int rc;

    errno = 0;
    if (!stream->session)
        return stream_plain_outcome(recv(stream->fd, bytes, size, MSG_DONTWAIT));
    ERR_clear_error();
    rc = SSL_read(stream->session, bytes, (int)size);
    return rc > 0 ? rc : stream_tls_outcome(stream, rc);
}

/* Writes bytes without waiting, with or without TLS. Returns their number, or a STREAM_ value. */
ssize_t conn_stream_put(struct conn *conn, const void *bytes, size_t size)
{
    struct conn_stream *stream = &conn->stream;
    int rc;

    errno = 0;
    if (!stream->session)
        return stream_plain_outcome(send(stream->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT));
    ERR_clear_error();
    rc = SSL_write(stream->session, bytes, (int)size);
    return rc > 0 ? rc : stream_tls_outcome(stream, rc);
}

/* Returns why the last call on the stream failed. OpenSSL's reason is preferred where there is one,
 * because it says whose fault the failure is. */
const char *conn_stream_reason(const struct conn *conn)
{
    int fault = errno;
    unsigned long error = conn->stream.session ? ERR_peek_error() : 0;

    if (error && ERR_GET_LIB(error) != ERR_LIB_SYS)
        return tls_reason(error);
    return fault ? strerror(fault) : "the connection broke";
}

/* Does the next step of the TLS handshake. At the end of the handshake the callback `done` is
 * called: with NULL, or with the reason of the failure. */
void conn_stream_handshake(struct conn *conn)
{
    struct conn_stream *stream = &conn->stream;
    const char *why = NULL;
    ssize_t outcome;
    bool begun = true;
    int rc;

    /* a stranger that begins its handshake counts as one that has sent something (base/door.h) */
    door_spoke(&conn->guest);
    /* The first call of a connection makes the TLS session, later calls go on with it. */
    if (!stream->session) {
        stream->session = tls_session(conn->tls, stream->serves, &conn->proved);
        begun = stream->session && SSL_set_fd(stream->session, stream->fd);
        if (begun && stream->serves)
            SSL_set_accept_state(stream->session);
        else if (begun)
            SSL_set_connect_state(stream->session);
    }
    if (!begun) {
        event_del(stream->readable);
        stream->done(stream->done_arg, conn, err_text(HVD_E_NOMEM));
        return;
    }
    errno = 0;
    ERR_clear_error();
    /* if the peer lacks the key, the handshake fails, or ends without its proof (tls_proved): both
     * become the reason `why` */
    rc = SSL_do_handshake(stream->session);
    if (rc != 1) {
        stream->crossed = false;
        outcome = stream_tls_outcome(stream, rc);
        if (outcome == STREAM_LATER && stream->serves &&
            BIO_number_read(SSL_get_rbio(stream->session)) > LIMIT_HANDSHAKE_BYTES) {
            why = "the handshake of the peer is longer than 16 KiB (LIMIT_HANDSHAKE_BYTES)";
        } else if (outcome == STREAM_LATER) {
            /* the next event of the descriptor calls this function again: `readable` is always
             * awaited, `writable` only if TLS has to write (`crossed`) */
            if (!stream->crossed || !event_add(stream->writable, NULL))
                return;
            why = err_text(HVD_E_NOMEM);
        } else if (outcome == STREAM_END) {
            why = "the peer hung up during the handshake";
        } else {
            why = conn_stream_reason(conn);
        }
    } else if (!tls_proved(stream->session)) {
        why = "the peer has no key of this job";
    }
    event_del(stream->readable); /* reading begins when an owner takes the messages */
    stream->crossed = false;
    stream->done(stream->done_arg, conn, why);
}
