#include "wire/conn_state.h"

#include "proto/codec.h"

#include <sys/ioctl.h>

/* As much as TLS has in one record. */
#define READ_BYTES (16 * 1024)

bool conn_has_input(const struct conn *conn)
{
    return conn->in.length > conn->in_at || frame_reader_is_whole(&conn->reader);
}

static bool takes_messages(const struct conn *conn)
{
    return conn->phase == CONN_UP && conn->ops && !conn->broken &&
           (!conn->held || conn->reading_now);
}

/* True: a frame, whose bytes are out of the input, so that the owner may read on from inside. */
static bool next_frame(struct conn *conn, struct frame *ret_frame)
{
    const uint8_t *at = (const uint8_t *)buf_text(&conn->in) + conn->in_at;
    size_t left = conn->in.length - conn->in_at;
    struct hvd_err err = { 0 };
    int rc = frame_feed(&conn->reader, &at, &left, ret_frame, &err);

    conn->in_at = conn->in.length - left;
    if (!conn_has_input(conn)) { /* thousands of idle connections keep nothing */
        buf_release(&conn->in);
        conn->in_at = 0;
    }
    if (rc < 0)
        conn_break(conn, err.text);
    return rc > 0;
}

static void hand_on(struct conn *conn, const struct frame *frame)
{
    struct hvd_err err = { 0 };
    struct msg msg = { 0 };

    if (msg_decode_in_place(frame, &msg, &err)) {
        conn_break(conn, err.text);
        return;
    }
    conn->ops->msg(conn->arg, &msg);
    msg_release(&msg);
}

void conn_feed(struct conn *conn)
{
    struct frame frame;

    while (takes_messages(conn) && conn_has_input(conn) && next_frame(conn, &frame))
        hand_on(conn, &frame);
}

/* The rest of a large body is read to where it belongs. */
static bool take_in_body(struct conn *conn, ssize_t *ret_got)
{
    size_t room;
    uint8_t *at = conn->bulk && !conn_has_input(conn)
                      ? frame_body_room(&conn->reader, READ_BYTES, &room)
                      : NULL;

    if (!at)
        return false;
    *ret_got = conn_stream_get(conn, at, room);
    if (*ret_got > 0)
        frame_body_add(&conn->reader, (size_t)*ret_got);
    return true;
}

int conn_take_in(struct conn *conn, ssize_t *ret_got)
{
    size_t room;
    int rc;

    if (take_in_body(conn, ret_got))
        return 0;
    rc = buf_reserve(&conn->in, READ_BYTES);
    if (rc)
        return rc;
    room = conn->in.capacity - conn->in.length - 1; /* it ends in a NUL */
    *ret_got = conn_stream_get(conn, conn->in.data + conn->in.length,
                               room < READ_BYTES ? room : READ_BYTES);
    if (*ret_got > 0)
        conn->in.length += (size_t)*ret_got;
    conn->in.data[conn->in.length] = '\0';
    return 0;
}

/* What the kernel has by now, so that it ends even if the other side goes on. */
static size_t waiting_bytes(const struct conn *conn)
{
    int waiting = 0;

    if (ioctl(conn->fd, FIONREAD, &waiting) || waiting < 0)
        return 0;
    return (size_t)waiting;
}

void conn_read_now(struct conn *conn)
{
    size_t waiting;
    ssize_t got;

    if (conn->phase != CONN_UP || conn->reading_now)
        return;
    conn_enter(conn);
    conn->reading_now = true;
    waiting = conn->ended ? 0 : waiting_bytes(conn);
    conn_feed(conn);
    while (waiting > 0 && takes_messages(conn)) {
        if (conn_take_in(conn, &got)) {
            conn_break(conn, err_text(HVD_E_NOMEM));
            break;
        }
        if (got <= 0)
            break; /* the end, or what broke it: the loop meets it too */
        waiting -= (size_t)got < waiting ? (size_t)got : waiting;
        conn_feed(conn);
    }
    conn->reading_now = false;
    conn_leave(conn);
}
