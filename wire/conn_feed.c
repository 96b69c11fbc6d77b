/*
 * conn_feed.c: makes messages from bytes (PROTOCOL.md, section 2). Called by conn_flow.c for input,
 * and by the owner through conn_read_now. Invariant: a frame's bytes are removed from the input
 * before its message is handed on, so the owner may call conn_read_now from inside its callback.
 */
#include "wire/conn_internal.h"

#include "proto/codec.h"

#include <sys/ioctl.h>

/* the bytes of one read: as many as a TLS record holds at most */
#define READ_BYTES (16 * 1024)

/* true: input has come that was not handed on yet, or a whole frame waits in the reader. */
bool conn_has_input(const struct conn *conn)
{
    return conn->in.bytes.length > conn->in.at || frame_reader_is_whole(&conn->in.reader);
}

/* true: the owner wants messages now: the connection is up and not broken, and reading is not held
 * (conn_read_now reads all the same). */
static bool feed_goes_on(const struct conn *conn)
{
    return conn->phase == CONN_UP && conn->ops && !conn->broken &&
           (!conn->in.held || conn->in.reading_now);
}

/* PROTOCOL.md, F3: tells a peer that greets with another major version why its connection ends: the
 * peer finds another version in the header of this REFUSED, too. The bytes are written at once,
 * because the connection breaks next. */
static void feed_refuse_version(struct conn *conn, const char *why)
{
    const struct msg msg = {
        .type = MSG_REFUSED, .u.refused = {HVD_E_VERSION, why}
    };
    struct buf frame;

    if (conn->greeted || conn->dialled || conn->ended || conn_unsent(conn))
        return;
    buf_init(&frame, FRAME_HEADER_BYTES + LIMIT_GREETING_BODY_BYTES);
    if (!msg_encode(&msg, &frame, NULL))
        (void)conn_stream_put(conn, frame.data, frame.length);
    buf_release(&frame);
}

/* Decodes the frames that have arrived as a whole, and gives their messages to the owner of the
 * connection, until the rest is no whole frame, or the owner holds or closes the connection. */
void conn_feed(struct conn *conn)
{
    struct conn_in *in = &conn->in;

    while (feed_goes_on(conn) && conn_has_input(conn)) {
        const uint8_t *at = (const uint8_t *)buf_text(&in->bytes) + in->at;
        size_t unread = in->bytes.length - in->at;
        struct hvd_err err = { 0 };
        struct msg msg = { 0 };
        struct frame frame;
        int rc = frame_feed(&in->reader, &at, &unread, &frame, &err);

        in->at = in->bytes.length - unread;
        /* an idle connection keeps no buffer: there may be thousands */
        if (!conn_has_input(conn)) {
            buf_release(&in->bytes);
            in->at = 0;
        }
        /* PROTOCOL.md, F3: the connection is broken, because it is not known where the next frame
         * begins */
        if (rc == HVD_E_VERSION)
            feed_refuse_version(conn, err.text);
        if (rc < 0)
            conn_break(conn, err.text);
        if (rc <= 0) /* 0: the frame is not complete yet */
            return;
        /* PROTOCOL.md, V4: a body that cannot be decoded breaks the connection */
        if (msg_decode_in_place(&frame, &msg, &err)) {
            conn_break(conn, err.text);
            return;
        }
        conn->ops->msg(conn->arg, &msg);
        msg_release(&msg);
    }
}

/* Reads once from the stream. *ret_got: the number of bytes, or a STREAM_ value. HVD_E_NOMEM: there
 * was no memory for the bytes, and none were read. */
int conn_take_in(struct conn *conn, ssize_t *ret_got)
{
    struct conn_in *in = &conn->in;
    uint8_t *body = NULL;
    size_t room;
    int rc;

    /* The rest of a large body is read directly into the body's memory. */
    if (in->bulk && !conn_has_input(conn))
        body = frame_body_room(&in->reader, READ_BYTES, &room);
    if (body) {
        *ret_got = conn_stream_get(conn, body, room);
        if (*ret_got > 0)
            frame_body_add(&in->reader, (size_t)*ret_got);
        return 0;
    }
    rc = buf_reserve(&in->bytes, READ_BYTES);
    if (rc)
        return rc;
    room = in->bytes.capacity - in->bytes.length - 1; /* one byte is kept for the buffer's NUL */
    *ret_got = conn_stream_get(conn, in->bytes.data + in->bytes.length,
                               room < READ_BYTES ? room : READ_BYTES);
    if (*ret_got > 0)
        in->bytes.length += (size_t)*ret_got;
    in->bytes.data[in->bytes.length] = '\0';
    return 0;
}

/* Called by an owner whose peer has died: hands on the messages that the peer sent before its
 * death, also while reading is held. */
void conn_read_now(struct conn *conn)
{
    int waiting = 0;
    ssize_t got;

    /* reading_now: the owner calls this function from inside its own callback */
    if (conn->phase != CONN_UP || conn->in.reading_now)
        return;
    conn_enter(conn);
    conn->in.reading_now = true;
    /* Only the bytes that the kernel has now are read, so that this loop ends even if the other
     * side sends on. */
    if (conn->ended || ioctl(conn->stream.fd, FIONREAD, &waiting))
        waiting = 0;
    conn_feed(conn);
    while (waiting > 0 && feed_goes_on(conn)) {
        if (conn_take_in(conn, &got)) {
            conn_break(conn, err_text(HVD_E_NOMEM));
            break;
        }
        if (got <= 0)
            break; /* the end of the stream or an error; the event loop will see it, too */
        waiting -= got < waiting ? (int)got : waiting;
        conn_feed(conn);
    }
    conn->in.reading_now = false;
    conn_leave(conn);
}
