/*
 * conn.c: the functions that the owner of a connection calls: send, hold, close. Invariant: none of
 * these calls runs a callback of the owner. Work that needs callbacks is left to the kick, an event
 * that the event loop handles in its next iteration.
 */
#include "wire/conn_internal.h"

#include "proto/codec.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Called when the greeting is over: larger bodies are read (PROTOCOL.md, F2: before the end of the
 * greeting only short ones are), and the time limit of the greeting ends. */
void conn_greeted(struct conn *conn)
{
    conn->greeted = true;
    frame_reader_set_max(&conn->in.reader, LIMIT_FRAME_BODY_BYTES);
    if (conn->phase == CONN_UP)
        event_del(conn->timer);
}

/* Called by owners that receive commits: `bulk` makes each read take more bytes, `keeps` keeps the
 * memory of a large body for the next frame. */
void conn_bulk(struct conn *conn)
{
    conn->in.bulk = true;
    conn->in.reader.keeps = true;
}

/* Copies the bytes that conn_send_lent has borrowed from their owner into the connection's own
 * queue: more bytes are to follow them, or their owner wants to free them. HVD_E_NOMEM,
 * HVD_E_LIMIT: the bytes stay borrowed. */
static int conn_take_lent(struct conn *conn)
{
    int rc = conn->out.lent.length
                 ? buf_append(&conn->out.bytes, conn->out.lent.at, conn->out.lent.length)
                 : 0;

    if (!rc)
        conn->out.lent = (struct msg_bytes){ NULL, 0 };
    return rc;
}

/* Queues bytes that are encoded already. A message for a connection that is not open, or is ending,
 * is lost: the call returns 0, and the owner learns of the end by `closed`. */
int conn_send_frame(struct conn *conn, const void *frame, size_t length)
{
    char why[80];
    int rc;

    if (conn->phase != CONN_UP || conn->ended)
        return 0;
    /* sent bytes stay at the front of the buffer until they fill more than half of it; then they
     * are removed, so that few bytes are moved */
    if (conn->out.at > conn->out.bytes.length / 2) {
        buf_consume(&conn->out.bytes, conn->out.at);
        conn->out.at = 0;
    }
    rc = conn_take_lent(conn);
    if (!rc)
        rc = buf_append(&conn->out.bytes, frame, length);
    if (rc == HVD_E_LIMIT) {
        snprintf(why, sizeof(why),
                 "the peer does not read: more than %d MiB (LIMIT_UNSENT_BYTES) wait to be sent",
                 LIMIT_UNSENT_BYTES >> 20);
        conn_break(conn, why);
        return 0;
    }
    if (rc)
        return rc;
    if (conn_unsent(conn) > CONN_HIGH_BYTES)
        conn->out.above_high = true;
    /* the bytes are sent in the next iteration, together with all bytes of this iteration */
    conn_kick(conn);
    return 0;
}

/* Encodes the message into a buffer of its own. A sender with many receivers encodes once and calls
 * conn_send_frame. */
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

/* Sends a message with a large body, without a copy of that body: it is used for commits, which
 * are gigabytes in a snapshot. The caller lends the bytes of the body until they are sent
 * (`drained`); only the part of the message before them is copied. */
int conn_send_lent(struct conn *conn, const struct msg *msg, struct hvd_err *err)
{
    int rc;

    if (conn->out.lent.length)
        return err_set(err, HVD_E_STATE, "%s: the payload of an earlier call is still being sent",
                       conn->peer);
    if (conn->phase != CONN_UP || conn->ended)
        return 0;
    rc = msg_encode_before_data(msg, &conn->out.bytes, err);
    if (rc)
        return rc;
    conn->out.lent = msg->u.chunk.data;
    conn->out.when_sent = true;
    conn_kick(conn);
    return 0;
}

/* Sends a message together with a descriptor, as one call of sendmsg. HVD_E_BUSY: the socket takes
 * no bytes now, so the caller must try again. */
int conn_send_with_fd(struct conn *conn, const struct msg *msg, int fd, struct hvd_err *err)
{
    struct buf frame;
    struct iovec part;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { .space = { 0 } };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.space,
                              .msg_controllen = sizeof(control.space) };
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    ssize_t sent;
    int rc;

    if (conn->tls || conn_unsent(conn) > 0)
        return err_set(err, HVD_E_STATE,
                       "a descriptor was sent over a connection that uses TLS or has unsent bytes, "
                       "which is a bug of hvd-elastic; please report it");
    if (conn->phase != CONN_UP || conn->ended)
        return 0;
    buf_init(&frame, FRAME_HEADER_BYTES + LIMIT_FRAME_BODY_BYTES);
    rc = msg_encode(msg, &frame, err);
    if (rc)
        goto out;
    part = (struct iovec){ .iov_base = frame.data, .iov_len = frame.length };
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
    sent = sendmsg(conn->stream.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        rc = err_set(err, HVD_E_BUSY,
                     "%s: the peer does not read, so no more bytes can be sent now", conn->peer);
    else if (sent < 0 && (errno == ENOMEM || errno == ENOBUFS || errno == ETOOMANYREFS))
        rc = err_set(err, HVD_E_NOMEM, "%s: %s", conn->peer, strerror(errno));
    else if (sent > 0 && (size_t)sent < frame.length) {
        /* the descriptor and a part of the frame are sent, and cannot be taken back: the rest of
         * the frame must follow */
        if (conn_send_frame(conn, frame.data + sent, frame.length - (size_t)sent))
            conn_break(conn, err_text(HVD_E_NOMEM));
    }
    /* After any other failure of sendmsg the connection is broken, and the event loop will call
     * `closed`. This call returns 0, as it does for each message that is lost with its
     * connection. */
out:
    buf_release(&frame);
    return rc;
}

/* hold true: stops the reading of messages; false: reads on. While reading is held the kernel's
 * buffers fill, and then the peer cannot send any more. A connection that is not up yet only keeps
 * the wish: conn_up obeys it. */
void conn_hold(struct conn *conn, bool hold)
{
    if (conn->in.held == hold)
        return;
    conn->in.held = hold;
    if (conn->phase != CONN_UP)
        return;
    if (hold)
        event_del(conn->stream.readable);
    else if (!conn->ended && event_add(conn->stream.readable, NULL))
        conn_break(conn, err_text(HVD_E_NOMEM));
    /* After hold false: the kick hands on the input that was read before the hold and not handed
     * on, and calls `closed` if the stream has ended meanwhile. After hold true the kick does no
     * harm. */
    conn_kick(conn);
}

/* Called by an owner that needs the connection no more: no callback follows. Bytes that were
 * queued, or lent by conn_send_lent, are still sent (the phase CONN_LINGERING), for at most
 * linger_us. If the connection is not open, or no memory is left for the lent bytes or the timer,
 * it is closed at once. */
void conn_close(struct conn *conn)
{
    if (!conn)
        return;
    if (conn->phase != CONN_UP || conn->ended || conn_take_lent(conn) ||
        conn_arm(conn, conn->linger_us)) {
        conn_drop(conn);
        return;
    }
    conn->ops = NULL;
    conn->phase = CONN_LINGERING;
    conn_kick(conn);
    /* reading goes on, also after a hold: the input is thrown away until the peer has closed its
     * side */
    if (event_add(conn->stream.readable, NULL))
        conn_drop(conn);
}

const struct tls_peer *conn_proved(const struct conn *conn)
{
    return &conn->proved;
}

const char *conn_peer(const struct conn *conn)
{
    return conn->peer;
}

/* Writes the address of this end of an open TCP connection, without its port. `pid` is set on Unix
 * sockets only, which have no such address. */
int conn_local_host(const struct conn *conn, char text[ADDRESS_TEXT_MAX])
{
    struct address address = { .length = sizeof(address.at) };

    if (conn->phase != CONN_UP || conn->pid ||
        getsockname(conn->stream.fd, (struct sockaddr *)&address.at, &address.length))
        return HVD_E_STATE;
    address_show_host(&address, text);
    return 0;
}

pid_t conn_peer_pid(const struct conn *conn)
{
    return conn->pid;
}
