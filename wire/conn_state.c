/*
 * conn_state.c: the life of a connection: its phases, its end, its memory. Called by all other
 * files of conn.h (README.md has their order). Invariants: a connection that has ended stays ended,
 * and the event loop calls `closed` once; the last callback that returns frees the connection.
 */
#include "wire/conn_internal.h"

#include "base/mem.h"
#include "os/clock.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void state_free_event(struct event **event)
{
    if (*event)
        event_free(*event);
    *event = NULL;
}

/* Frees the TLS session before its descriptor, because SSL_free may still use the descriptor. */
void conn_release_stream(struct conn *conn)
{
    struct conn_stream *stream = &conn->stream;

    state_free_event(&stream->readable);
    state_free_event(&stream->writable);
    SSL_free(stream->session);
    if (stream->fd >= 0)
        close(stream->fd);
    stream->session = NULL;
    stream->fd = -1;
}

/* Frees the dial: the attempts to connect, with their events and socket; a connection that does not
 * dial is left as it is. */
void conn_release_dial(struct conn *conn)
{
    struct dial *dial = conn->dial;

    if (!dial)
        return;
    state_free_event(&dial->opened);
    state_free_event(&dial->attempt);
    state_free_event(&dial->late);
    if (dial->fd >= 0)
        close(dial->fd);
    mem_free(dial);
    conn->dial = NULL;
}

/* Frees the connection. Called only when none of its callbacks runs. */
static void state_free_all(struct conn *conn)
{
    conn_release_dial(conn);
    conn_release_stream(conn);
    state_free_event(&conn->timer);
    state_free_event(&conn->kick);
    frame_reader_release(&conn->in.reader);
    buf_release(&conn->in.bytes);
    buf_release(&conn->out.bytes);
    mem_free(conn);
}

/* Stands at the beginning of each callback of the connection: `busy` keeps it from being freed
 * meanwhile. */
void conn_enter(struct conn *conn)
{
    conn->busy++;
}

/* Stands at the end of each callback of the connection: the last one frees a connection that is
 * GONE. */
void conn_leave(struct conn *conn)
{
    if (--conn->busy == 0 && conn->phase == CONN_GONE)
        state_free_all(conn);
}

/* Makes the kick due: an event by which the event loop, in its next iteration, does the work that
 * a call of the owner has left. Several kicks before that iteration count as one. */
void conn_kick(struct conn *conn)
{
    event_active(conn->kick, EV_TIMEOUT, 0);
}

/* Starts the timer of the present phase; flow_on_timer is called after `us` microseconds. */
int conn_arm(struct conn *conn, int64_t us)
{
    const struct timeval wait = clock_timeval(us);

    return event_add(conn->timer, &wait) ? HVD_E_NOMEM : 0;
}

/* Lets the event loop read and write no more. The descriptor stays open until the connection is
 * freed. */
static void state_stop_stream(struct conn *conn)
{
    if (conn->stream.readable)
        event_del(conn->stream.readable);
    if (conn->stream.writable)
        event_del(conn->stream.writable);
}

/* Notes that no more input comes, and why. Of several calls only the first one's reason reaches the
 * owner. The kick, an event that is due at once, calls the owner's callback `closed` when the owner
 * has got all input. */
void conn_end(struct conn *conn, const char *why)
{
    if (conn->ended)
        return;
    conn->ended = true;
    if (conn->phase == CONN_LINGERING)
        conn->phase = CONN_GONE; /* the kick frees the connection, if no callback does so before */
    snprintf(conn->why, sizeof(conn->why), "%s", why);
    state_stop_stream(conn);
    event_del(conn->timer);
    conn_kick(conn);
}

/* PROTOCOL.md, F3, V4: breaks the connection, because the rest of the input has no meaning. The
 * owner gets no further message; its callback `closed` follows. */
void conn_break(struct conn *conn, const char *why)
{
    if (!conn->broken && conn->ended)
        /* the stream has ended, and an error was found in the input that is left: this error is the
         * reason that the owner gets */
        snprintf(conn->why, sizeof(conn->why), "%s", why);
    conn->broken = true;
    conn_end(conn, why);
    conn_kick(conn);
}

/* Begins to read messages, because the connection and its handshake are complete. On the side that
 * has dialled it also calls the owner's `opened`, and starts the time limit of the greeting
 * (PROTOCOL.md, "Greeting"). The listener has started that limit for an accepted connection when it
 * was accepted. */
void conn_up(struct conn *conn)
{
    conn->phase = CONN_UP;
    if (!conn->in.held && event_add(conn->stream.readable, NULL))
        conn_break(conn, err_text(HVD_E_NOMEM));
    /* `ended`: conn_break was called above. The owner of an accepted connection gets no `opened`.
     */
    if (!conn->dialled || conn->ended)
        return;
    if (!conn->greeted && conn_arm(conn, conn->greeting_us))
        conn_break(conn, err_text(HVD_E_NOMEM));
    else
        conn->ops->opened(conn->arg);
}

/* Ends a connection at once; no callback follows. Inside a callback of this connection the function
 * only marks the connection, which is freed when the callback returns. */
void conn_drop(struct conn *conn)
{
    if (!conn)
        return;
    conn->ops = NULL;
    conn->phase = CONN_GONE;
    state_stop_stream(conn);
    if (conn->busy == 0)
        state_free_all(conn);
}

/* Called for a connected Unix socket: refuses a peer whose user is neither ours nor root, and notes
 * the peer's pid. The kernel reports both. */
int conn_check_user(struct conn *conn, int fd, struct hvd_err *err)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
        return err_set(err, HVD_E_IO, "the user of the peer's process cannot be read: %s",
                       strerror(errno));
    snprintf(conn->peer, sizeof(conn->peer), "pid %d", (int)peer.pid);
    conn->pid = peer.pid;
    if (peer.uid != geteuid() && peer.uid != 0)
        return err_set(err, HVD_E_DENIED,
                       "process %d is of user %u; only processes of user %u may connect",
                       (int)peer.pid, (unsigned)peer.uid, (unsigned)geteuid());
    return 0;
}
