#include "wire/conn_state.h"

#include "base/mem.h"
#include "base/panic.h"
#include "proto/codec.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void destroy(struct conn *conn)
{
    list_remove(&conn->link);
    conn_dial_free(conn);
    conn_stream_free(conn);
    if (conn->timer)
        event_free(conn->timer);
    if (conn->kick)
        event_free(conn->kick);
    frame_reader_release(&conn->reader);
    buf_release(&conn->in);
    buf_release(&conn->out);
    mem_free(conn);
}

void conn_enter(struct conn *conn)
{
    conn->busy++;
}

void conn_leave(struct conn *conn)
{
    if (--conn->busy == 0 && conn->phase == CONN_GONE)
        destroy(conn);
}

void conn_kick(struct conn *conn)
{
    event_active(conn->kick, EV_TIMEOUT, 0);
}

int conn_arm(struct conn *conn, int64_t us)
{
    struct timeval wait = { .tv_sec = us / 1000000, .tv_usec = us % 1000000 };

    return event_add(conn->timer, &wait) ? HVD_E_NOMEM : 0;
}

void conn_disarm(struct conn *conn)
{
    event_del(conn->timer);
}

void conn_end(struct conn *conn, const char *why)
{
    if (conn->ended)
        return;
    conn->ended = true;
    if (conn->phase == CONN_LINGERING)
        conn->phase = CONN_GONE; /* freed by the kick, if not before */
    snprintf(conn->why, sizeof(conn->why), "%s", why);
    conn_stream_stop(conn);
    conn_disarm(conn);
    conn_kick(conn);
}

void conn_break(struct conn *conn, const char *why)
{
    if (!conn->broken && conn->ended)
        snprintf(conn->why, sizeof(conn->why), "%s", why); /* in what came before the end */
    conn->broken = true;
    conn_end(conn, why);
    conn_kick(conn);
}

static bool can_tell(const struct conn *conn)
{
    return conn->ops && conn->ended &&
           (conn->broken || conn->phase != CONN_UP || (!conn->held && !conn_has_input(conn)));
}

static void tell_closed(struct conn *conn)
{
    const struct conn_ops *ops = conn->ops;

    if (!conn->broken && frame_reader_midway(&conn->reader))
        snprintf(conn->why, sizeof(conn->why), "the stream ended in the middle of a frame");
    conn->ops = NULL;
    conn->phase = CONN_GONE;
    ops->closed(conn->arg, conn->why);
}

static void on_kick(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;

    (void)fd;
    (void)what;
    conn_enter(conn);
    if (conn->phase == CONN_DIALLING && !conn->ended)
        conn_dial_go(conn);
    conn_stream_go(conn);
    conn_feed(conn);
    if (can_tell(conn))
        tell_closed(conn);
    conn_leave(conn);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;

    (void)fd;
    (void)what;
    conn_enter(conn);
    if (conn->dial)
        conn_dial_late(conn);
    else if (conn->phase == CONN_SHAKING)
        conn->shaken(conn->shaken_arg, conn, "no handshake in time");
    else if (conn->phase == CONN_UP)
        conn_break(conn, "no greeting in time");
    else
        conn->phase = CONN_GONE;
    conn_leave(conn);
}

/* A broken pipe must be an error here, not the end of the program. */
static bool sigpipe_is_ignored(void)
{
    struct sigaction action;

    return !sigaction(SIGPIPE, NULL, &action) && action.sa_handler != SIG_DFL;
}

struct conn *conn_create(struct event_base *base, struct tls *tls)
{
    struct conn *conn = mem_zalloc(sizeof(*conn));

    ASSERT(sigpipe_is_ignored());
    if (!conn)
        return NULL;
    conn->base = base;
    conn->tls = tls;
    conn->fd = -1;
    list_init(&conn->link);
    conn->greeting_us = LIMIT_GREETING_US;
    conn->linger_us = CONN_LINGER_US;
    frame_reader_init(&conn->reader, LIMIT_GREETING_BODY_BYTES);
    buf_init(&conn->in, CONN_IN_MAX);
    buf_init(&conn->out, LIMIT_UNSENT_BYTES);
    conn->timer = event_new(base, -1, 0, on_timer, conn);
    conn->kick = event_new(base, -1, 0, on_kick, conn);
    if (conn->timer && conn->kick)
        return conn;
    destroy(conn);
    return NULL;
}

void conn_up(struct conn *conn)
{
    conn->phase = CONN_UP;
    if (!conn->held && conn_stream_listen(conn))
        conn_break(conn, err_text(HVD_E_NOMEM));
    if (!conn->dialled || conn->ended)
        return;
    if (!conn->greeted && conn_arm(conn, conn->greeting_us))
        conn_break(conn, err_text(HVD_E_NOMEM));
    else
        conn->ops->opened(conn->arg);
}

void conn_own(struct conn *conn, const struct conn_ops *ops, void *arg)
{
    conn->ops = ops;
    conn->arg = arg;
    conn_kick(conn); /* for what came while nobody was told */
}

void conn_greeted(struct conn *conn)
{
    conn->greeted = true;
    frame_reader_set_max(&conn->reader, LIMIT_FRAME_BODY_BYTES);
    if (conn->phase == CONN_UP)
        conn_disarm(conn);
}

size_t conn_unsent(const struct conn *conn)
{
    return conn->out.length - conn->out_at + conn->lent.length;
}

void conn_bulk(struct conn *conn)
{
    conn->bulk = true;
    frame_reader_keep(&conn->reader);
}

/* What was lent is copied after all, so that something can follow it. */
static int take_lent(struct conn *conn)
{
    int rc = conn->lent.length ? buf_append(&conn->out, conn->lent.at, conn->lent.length) : 0;

    if (!rc)
        conn->lent = (struct msg_bytes){ NULL, 0 };
    return rc;
}

int conn_send_frame(struct conn *conn, const void *frame, size_t length)
{
    int rc;

    if (conn->phase != CONN_UP || conn->ended)
        return 0;
    if (conn->out_at > conn->out.length / 2) { /* what is sent makes room, but seldom */
        buf_consume(&conn->out, conn->out_at);
        conn->out_at = 0;
    }
    rc = take_lent(conn);
    if (!rc)
        rc = buf_append(&conn->out, frame, length);
    if (rc == HVD_E_LIMIT) {
        conn_break(conn, "it does not read what it is sent (LIMIT_UNSENT_BYTES)");
        return 0;
    }
    if (rc)
        return rc;
    if (conn_unsent(conn) > CONN_HIGH_BYTES)
        conn->above_high = true;
    conn_kick(conn); /* together with what else is sent in this turn */
    return 0;
}

int conn_send(struct conn *conn, const struct msg *msg, struct hvd_err *err)
{
    struct buf frame;
    int rc;

    buf_init(&frame, FRAME_HEADER_BYTES + LIMIT_FRAME_BODY_BYTES);
    rc = msg_encode(msg, &frame, err);
    if (!rc) {
        rc = conn_send_frame(conn, frame.data, frame.length);
        if (rc)
            err_set(err, rc, "%s", err_text(rc));
    }
    buf_release(&frame);
    return rc;
}

int conn_send_lent(struct conn *conn, const struct msg *msg, struct hvd_err *err)
{
    int rc;

    if (conn->lent.length)
        return err_set(err, HVD_E_STATE, "%s: what was lent to it before is not out", conn->peer);
    if (conn->phase != CONN_UP || conn->ended)
        return 0;
    rc = msg_encode_before_data(msg, &conn->out, err);
    if (rc)
        return rc;
    conn->lent = msg->u.chunk.data;
    conn->when_sent = true;
    conn_kick(conn);
    return 0;
}

/* Bytes sent; 0 when it is lost with its connection, whose end the loop will tell. */
static ssize_t send_beside(int socket, const struct buf *frame, int fd)
{
    struct iovec part = { .iov_base = frame->data, .iov_len = frame->length };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { .space = { 0 } };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.space,
                              .msg_controllen = sizeof(control.space) };
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int conn_send_with_fd(struct conn *conn, const struct msg *msg, int fd, struct hvd_err *err)
{
    struct buf frame;
    ssize_t sent;
    int rc;

    if (conn->tls || conn_unsent(conn) > 0)
        return err_set(err, HVD_E_STATE, "a descriptor goes over a plain connection that is idle");
    if (conn->phase != CONN_UP || conn->ended)
        return 0;
    buf_init(&frame, FRAME_HEADER_BYTES + LIMIT_FRAME_BODY_BYTES);
    rc = msg_encode(msg, &frame, err);
    if (rc)
        goto out;
    sent = send_beside(conn->fd, &frame, fd);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        rc = err_set(err, HVD_E_BUSY, "%s does not read", conn->peer);
    else if (sent < 0 && (errno == ENOMEM || errno == ENOBUFS || errno == ETOOMANYREFS))
        rc = err_set(err, HVD_E_NOMEM, "%s: %s", conn->peer, strerror(errno));
    else if (sent > 0 && (size_t)sent < frame.length) {
        /* the descriptor is on its way; a frame that stops here could not be taken back */
        if (conn_send_frame(conn, frame.data + sent, frame.length - (size_t)sent))
            conn_break(conn, err_text(HVD_E_NOMEM));
    }
out:
    buf_release(&frame);
    return rc;
}

void conn_hold(struct conn *conn, bool hold)
{
    if (conn->held == hold)
        return;
    conn->held = hold;
    if (conn->phase != CONN_UP)
        return;
    if (hold)
        conn_stream_deaf(conn);
    else if (!conn->ended && conn_stream_listen(conn))
        conn_break(conn, err_text(HVD_E_NOMEM));
    conn_kick(conn);
}

void conn_drop(struct conn *conn)
{
    if (!conn)
        return;
    conn->ops = NULL;
    conn->phase = CONN_GONE;
    conn_stream_stop(conn);
    if (conn->busy == 0)
        destroy(conn);
}

void conn_close(struct conn *conn)
{
    if (!conn)
        return;
    if (conn->phase != CONN_UP || conn->ended || take_lent(conn) ||
        conn_arm(conn, conn->linger_us)) {
        conn_drop(conn);
        return;
    }
    conn->ops = NULL;
    conn->phase = CONN_LINGERING;
    conn_kick(conn);
    if (conn_stream_listen(conn))
        conn_drop(conn);
}

const char *conn_peer(const struct conn *conn)
{
    return conn->peer;
}

int conn_local_host(const struct conn *conn, char text[ADDRESS_TEXT_MAX])
{
    struct address address = { .length = sizeof(address.at) };

    if (conn->phase != CONN_UP || conn->pid ||
        getsockname(conn->fd, (struct sockaddr *)&address.at, &address.length))
        return HVD_E_STATE;
    address_show_host(&address, text);
    return 0;
}

pid_t conn_peer_pid(const struct conn *conn)
{
    return conn->pid;
}
