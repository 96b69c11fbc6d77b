#include "wire/conn_state.h"

#include "proto/codec.h"
#include "wire/tls_session.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the loop may have read before its turn to hand it on comes. */
#define INPUT_HIGH_BYTES (256 * 1024)
/* libevent reads TLS in pieces of this size, and would try for ever if it had no room for one. */
#define READ_BYTES 4096

static void on_read(struct bufferevent *bev, void *arg);
static void on_write(struct bufferevent *bev, void *arg);
static void on_event(struct bufferevent *bev, short what, void *arg);

static struct evbuffer *input_of(const struct conn *conn)
{
    return bufferevent_get_input(conn->bev);
}

bool conn_has_input(const struct conn *conn)
{
    return conn->bev && evbuffer_get_length(input_of(conn)) > 0;
}

/* libevent neither closes nor frees what it is given: after a failure it would not be clear what it
 * has closed. */
static int take(struct conn *conn, int fd)
{
    if (!conn->bev)
        return HVD_E_NOMEM;
    conn->fd = fd;
    bufferevent_setcb(conn->bev, on_read, on_write, on_event, conn);
    bufferevent_setwatermark(conn->bev, EV_WRITE, CONN_LOW_BYTES, 0);
    bufferevent_setwatermark(conn->bev, EV_READ, 0, INPUT_HIGH_BYTES);
    return 0;
}

int conn_stream_plain(struct conn *conn, int fd)
{
    conn->bev = bufferevent_socket_new(conn->base, fd, BEV_OPT_DEFER_CALLBACKS);
    return take(conn, fd);
}

int conn_stream_tls(struct conn *conn, int fd, bool server, conn_shaken_fn *shaken, void *arg)
{
    SSL *session = tls_session(conn->tls, server);

    if (!session)
        return HVD_E_NOMEM;
    conn->bev = bufferevent_openssl_socket_new(
        conn->base, fd, session, server ? BUFFEREVENT_SSL_ACCEPTING : BUFFEREVENT_SSL_CONNECTING,
        BEV_OPT_DEFER_CALLBACKS);
    if (take(conn, fd)) {
        SSL_free(session);
        return HVD_E_NOMEM;
    }
    conn->session = session;
    conn->phase = CONN_SHAKING;
    conn->shaken = shaken;
    conn->shaken_arg = arg;
    return 0;
}

void conn_stream_free(struct conn *conn)
{
    if (!conn->bev)
        return;
    conn_stream_stop(conn);
    bufferevent_free(conn->bev);
    SSL_free(conn->session);
    close(conn->fd);
    conn->bev = NULL;
    conn->session = NULL;
    conn->fd = -1;
}

void conn_stream_stop(struct conn *conn)
{
    if (conn->bev)
        bufferevent_disable(conn->bev, EV_READ | EV_WRITE);
}

static bool takes_messages(const struct conn *conn)
{
    return conn->phase == CONN_UP && conn->ops && !conn->broken &&
           (!conn->held || conn->reading_now);
}

/* True: a frame, whose bytes are out of the input, so that the owner may read on from inside. */
static bool next_frame(struct conn *conn, struct frame *ret_frame)
{
    struct evbuffer *input = input_of(conn);
    size_t have;

    while ((have = evbuffer_get_contiguous_space(input)) > 0) {
        const uint8_t *at = evbuffer_pullup(input, (ssize_t)have); /* in place: it is contiguous */
        struct hvd_err err = { 0 };
        size_t left = have;
        int rc = frame_feed(&conn->reader, &at, &left, ret_frame, &err);

        evbuffer_drain(input, have - left);
        if (rc < 0)
            conn_break(conn, err.text);
        if (rc != 0)
            return rc > 0;
    }
    return false;
}

static void hand_on(struct conn *conn, const struct frame *frame)
{
    struct hvd_err err = { 0 };
    struct msg msg = { 0 };

    if (msg_decode(frame, &msg, &err)) {
        conn_break(conn, err.text);
        return;
    }
    conn->ops->msg(conn->arg, &msg);
    msg_release(&msg);
}

void conn_feed(struct conn *conn)
{
    struct frame frame;

    while (takes_messages(conn) && next_frame(conn, &frame))
        hand_on(conn, &frame);
}

/* Room for the next piece; see READ_BYTES. */
static void make_room(struct conn *conn)
{
    if (conn->phase == CONN_UP && !conn->ended && conn->tls &&
        evbuffer_expand(input_of(conn), READ_BYTES))
        conn_break(conn, err_text(HVD_E_NOMEM));
}

static void discard(struct conn *conn)
{
    struct evbuffer *input = input_of(conn);

    evbuffer_drain(input, evbuffer_get_length(input));
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct conn *conn = arg;

    (void)bev;
    conn_enter(conn);
    if (conn->phase == CONN_LINGERING)
        discard(conn);
    conn_feed(conn);
    make_room(conn);
    conn_leave(conn);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    struct conn *conn = arg;

    (void)bev;
    conn_enter(conn);
    if (conn->phase == CONN_LINGERING)
        conn_linger(conn);
    if (conn->phase == CONN_UP && conn->above_high && conn_unsent(conn) < CONN_LOW_BYTES) {
        conn->above_high = false;
        if (conn->ops && conn->ops->drained && !conn->ended)
            conn->ops->drained(conn->arg);
    }
    conn_leave(conn);
}

static const char *reason_of(const struct conn *conn, short what)
{
    unsigned long error = conn->session ? bufferevent_get_openssl_error(conn->bev) : 0;
    int number = EVUTIL_SOCKET_ERROR();

    if (what & BEV_EVENT_EOF)
        return conn->phase == CONN_SHAKING ? "it hung up during the handshake"
                                           : "the other side closed the connection";
    if (error)
        return tls_reason(error);
    return number ? strerror(number) : "the connection broke";
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct conn *conn = arg;
    const char *why = NULL;

    (void)bev;
    conn_enter(conn);
    if (!(what & BEV_EVENT_CONNECTED))
        why = reason_of(conn, what);
    else if (!tls_proved(conn->session))
        why = "it has no key of this job";
    if (conn->phase == CONN_SHAKING)
        conn->shaken(conn->shaken_arg, conn, why);
    else if (conn->phase == CONN_LINGERING)
        conn->phase = CONN_GONE;
    else if (why)
        conn_end(conn, why);
    conn_leave(conn);
}

/* Once all is out, the other side is told that nothing follows, and then heard out: what it still
 * sends would otherwise be answered with a reset, which takes what it has not read from it. */
void conn_linger(struct conn *conn)
{
    if (conn->finished)
        return;
    bufferevent_setwatermark(conn->bev, EV_WRITE, 0, 0);
    discard(conn);
    if (conn_unsent(conn) == 0) {
        conn->finished = true;
        if (conn->session)
            SSL_shutdown(conn->session);
        shutdown(conn->fd, SHUT_WR);
    }
    if (bufferevent_enable(conn->bev, EV_READ))
        conn->phase = CONN_GONE;
}

/* What the kernel has by now, so that it ends even if the other side goes on. */
static size_t waiting_bytes(const struct conn *conn)
{
    int waiting = 0;

    if (ioctl(conn->fd, FIONREAD, &waiting) || waiting < 0)
        waiting = 0;
    return (size_t)waiting + (conn->session ? (size_t)SSL_pending(conn->session) : 0);
}

static ssize_t read_some(struct conn *conn, uint8_t *bytes, size_t size)
{
    int got;

    if (!conn->session)
        return recv(conn->fd, bytes, size, MSG_DONTWAIT);
    ERR_clear_error();
    got = SSL_read(conn->session, bytes, (int)size);
    ERR_clear_error(); /* libevent meets the same end by itself */
    return got;
}

static void read_waiting(struct conn *conn)
{
    struct evbuffer *input = input_of(conn);
    size_t waiting = waiting_bytes(conn);
    uint8_t bytes[READ_BYTES];

    while (waiting > 0 && takes_messages(conn)) {
        ssize_t got = read_some(conn, bytes, waiting < sizeof(bytes) ? waiting : sizeof(bytes));
        int rc;

        if (got <= 0)
            break;
        waiting -= (size_t)got;
        evbuffer_unfreeze(input, 0);
        rc = evbuffer_add(input, bytes, (size_t)got);
        evbuffer_freeze(input, 0);
        if (rc)
            conn_break(conn, err_text(HVD_E_NOMEM));
        conn_feed(conn);
    }
}

void conn_read_now(struct conn *conn)
{
    if (conn->phase != CONN_UP || conn->reading_now)
        return;
    conn_enter(conn);
    conn->reading_now = true;
    conn_feed(conn);
    if (!conn->ended)
        read_waiting(conn);
    conn->reading_now = false;
    conn_leave(conn);
}
