/*
 * connection.c: frames over one control connection; called by handshake.c and round.c. This file
 * does not know what the frames mean. No write ever waits: bytes that the socket does not take stay
 * in `out` until meet's thread finds the socket ready.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "collectives/meet/meet_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Makes a connection over the socket `fd` (meet_calls.h). fd is -1: the connection has no socket
 * yet, and will dial. NULL: out of memory, and `fd` is closed. */
struct meet_conn *meet_conn_create(struct meet *meet, enum meet_conn_state state, int fd)
{
    struct meet_conn *conn = mem_zalloc(sizeof(*conn));

    /* Makes room to poll one descriptor more: those of all connections, the listener and `wake`
     * are polled. */
    meet->polled.count = meet->conn_count + 2;
    if (!conn || VEC_RESERVE(&meet->polled, 1, LIMIT_WORKERS)) {
        mem_free(conn);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    conn->meet = meet;
    list_init(&conn->guest.link);
    conn->state = state;
    conn->fd = fd;
    buf_init(&conn->out, 4 * (size_t)MEET_FRAME_MAX);
    list_append(&meet->conns, &conn->place);
    meet->conn_count++;
    return conn;
}

/* Closes the socket, and forgets the bytes that were read or queued. The connection itself stays,
 * and may dial again. */
void meet_conn_hang_up(struct meet_conn *conn)
{
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
    conn->polled = 0;
    conn->in_length = 0;
    buf_clear(&conn->out);
}

/* Ends a connection and removes it from everything that refers to it. A peer may have a newer
 * connection already (meet_round_met); then the peer keeps that one. */
void meet_conn_free(struct meet_conn *conn)
{
    meet_conn_hang_up(conn);
    if (conn->peer && conn->peer->conn == conn)
        conn->peer->conn = NULL;
    door_leave(&conn->meet->door, &conn->guest);
    if (conn->state == CONN_PARKED)
        conn->meet->parked_count--;
    conn->meet->conn_count--;
    list_remove(&conn->place);
    buf_release(&conn->out);
    seal_wipe(&conn->gate, sizeof(conn->gate));
    seal_wipe(&conn->line, sizeof(conn->line));
    mem_free(conn);
}

/* Writes as many queued bytes as the socket takes now. The rest stays queued until the socket is
 * ready. */
void meet_conn_flush(struct meet_conn *conn)
{
    while (conn->out.length) {
        ssize_t sent = send(conn->fd, conn->out.data, conn->out.length, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            return;
        if (sent < 0) { /* the next read finds the end of the connection */
            buf_clear(&conn->out);
            return;
        }
        buf_consume(&conn->out, (size_t)sent);
    }
}

/* Queues a frame, and writes what the socket takes. Without memory for the frame the connection is
 * closed, which the peer notices. */
void meet_conn_say(struct meet_conn *conn, const struct meet_frame *frame)
{
    if (meet_frame_append(frame, &conn->out))
        (void)shutdown(conn->fd, SHUT_RDWR);
    else
        meet_conn_flush(conn);
}

/* Sends the frame with its proof: an HMAC of the frame with one of `keys`, by which the peer knows
 * the sender. Without memory for the proof the frame is not sent, and the connection is closed,
 * which the peer notices. */
void meet_conn_say_proved(struct meet_conn *conn, struct proof_keys *keys,
                          const struct meet_frame *frame)
{
    struct meet_frame proved = *frame;

    if (proof_make(keys, frame, proved.proof))
        (void)shutdown(conn->fd, SHUT_RDWR);
    else
        meet_conn_say(conn, &proved);
}

/* Reads bytes, and puts them after those that were read before. 1: bytes were read; 0: none have
 * come yet; -1: the connection has ended. */
int meet_conn_read(struct meet_conn *conn)
{
    ssize_t got;

    do
        got = recv(conn->fd, conn->in + conn->in_length, sizeof(conn->in) - conn->in_length, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got <= 0)
        return -1;
    conn->in_length += (size_t)got;
    return 1;
}

/* Takes the next whole frame from the bytes that were read. 1: *ret_frame is that frame; 0: the
 * frame is not complete yet; a negative code: the bytes are no frame. */
int meet_conn_next(struct meet_conn *conn, struct meet_frame *ret_frame)
{
    size_t used;
    int rc = meet_frame_read(conn->in, conn->in_length, ret_frame, &used);

    if (rc == 1) {
        conn->in_length -= used;
        memmove(conn->in, conn->in + used, conn->in_length);
    }
    return rc;
}
