/*
 * conn_dial.c: connects: over TCP one address after the other, each attempt with a handshake and
 * a time limit; to a Unix socket at once. Called by owners through conn.h. Invariant: a failed
 * attempt leaves nothing but its reason, and the owner gets the reasons when the last address has
 * failed.
 */
#include "wire/conn_internal.h"

#include "base/mem.h"
#include "base/panic.h"
#include "os/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Ends the attempt at one address: notes why it failed, and makes the attempt at the next address
 * due. When no address is left, the callback `closed` gets the reasons of all addresses. */
static void dial_failed(struct conn *conn, const char *why)
{
    struct dial *dial = conn->dial;
    size_t noted = strlen(dial->why);

    conn_release_stream(conn);
    event_del(dial->late);
    if (dial->opened)
        event_free(dial->opened);
    dial->opened = NULL;
    if (dial->fd >= 0)
        close(dial->fd);
    dial->fd = -1;
    conn->phase = CONN_DIALLING;
    snprintf(dial->why + noted, sizeof(dial->why) - noted, "%s%s: %s", noted ? "; " : "",
             conn->peer, why);
    if (dial->next < dial->count)
        event_active(dial->attempt, EV_TIMEOUT, 0);
    else
        conn_end(conn, dial->why);
}

/* Called after the handshake. `why` NULL: the peer has the key; the other addresses are then not
 * tried, and the connection is up. Otherwise `why` says why this address failed. */
static void dial_on_handshake(void *arg, struct conn *conn, const char *why)
{
    (void)arg;
    if (why) {
        dial_failed(conn, why);
        return;
    }
    conn_release_dial(conn);
    conn_up(conn);
}

/* Called when connect() has succeeded or failed, or when the time limit of the attempt has passed
 * (EV_TIMEOUT). A connected socket goes on with the handshake. */
static void dial_on_answer(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;
    struct dial *dial = conn->dial;
    socklen_t length = sizeof(int);
    int fault = 0;

    conn_enter(conn);
    if (what & EV_TIMEOUT) {
        dial_failed(conn, conn->phase == CONN_HANDSHAKE
                              ? "the peer did not end the handshake in time"
                              : "the peer did not answer in time");
        conn_leave(conn);
        return;
    }
    event_free(dial->opened);
    dial->opened = NULL;
    /* SO_ERROR is the errno of the connect() that ran in the background; 0: it has succeeded */
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &length))
        fault = errno;
    if (fault) {
        dial_failed(conn, strerror(fault));
    } else {
        conn_tune(fd);
        /* false: this side is the client; on success the connection owns the descriptor */
        if (conn_attach_tls(conn, fd, false, dial_on_handshake, NULL))
            dial_failed(conn, err_text(HVD_E_NOMEM));
        else
            dial->fd = -1;
    }
    conn_leave(conn);
}

/* Dials the next address. One time limit covers its connection and its handshake together. */
static void dial_on_attempt(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval limit = clock_timeval(CONN_DIAL_US);
    struct conn *conn = arg;
    struct dial *dial = conn->dial;
    const struct address *address = &dial->addresses[dial->next++];
    int fault = 0;

    (void)fd;
    (void)what;
    conn_enter(conn);
    address_show(address, conn->peer);
    dial->fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (dial->fd < 0 ||
        (connect(dial->fd, (const struct sockaddr *)&address->at, address->length) &&
         errno != EINPROGRESS))
        fault = errno;
    if (!fault) {
        dial->opened = event_new(conn->base, dial->fd, EV_WRITE, dial_on_answer, conn);
        if (!dial->opened || event_add(dial->opened, NULL) || event_add(dial->late, &limit))
            fault = ENOMEM;
    }
    if (fault)
        dial_failed(conn, strerror(fault));
    conn_leave(conn);
}

/* Checks all addresses and makes the first attempt due; the attempts run in the event loop.
 * *ret_conn is not open yet: the callback `opened` or `closed` follows. */
int conn_dial(struct event_base *base, const struct msg_texts *addresses, struct tls *tls,
              const struct conn_ops *ops, void *arg, struct conn **ret_conn, struct hvd_err *err)
{
    struct dial *dial = NULL;
    struct conn *conn;
    int rc = 0;

    ASSERT(tls);
    conn = conn_create(base, tls);
    if (conn)
        dial = conn->dial = mem_zalloc(sizeof(*dial));
    if (dial) {
        dial->fd = -1;
        dial->attempt = event_new(base, -1, 0, dial_on_attempt, conn);
        dial->late = event_new(base, -1, 0, dial_on_answer, conn);
    }
    if (!dial || !dial->attempt || !dial->late) {
        conn_drop(conn);
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    }
    if (addresses->count == 0)
        rc = err_set(err, HVD_E_INVAL,
                     "the list of addresses to connect to is empty; give at least one address");
    else if (addresses->count > LIMIT_ADDRESSES)
        rc = err_set(
            err, HVD_E_LIMIT,
            "a list of %zu addresses is too long; give at most %d addresses (LIMIT_ADDRESSES)",
            addresses->count, LIMIT_ADDRESSES);
    for (size_t i = 0; !rc && i < addresses->count; i++)
        rc = address_parse(addresses->items[i], &dial->addresses[i], err);
    if (rc) {
        conn_drop(conn);
        return rc;
    }
    dial->count = addresses->count;
    /* the name of the peer in logs, until the first attempt begins */
    address_show(&dial->addresses[0], conn->peer);
    conn->dialled = true;
    conn_own(conn, ops, arg);
    event_active(dial->attempt, EV_TIMEOUT, 0);
    *ret_conn = conn;
    return 0;
}

/* Connects to a Unix socket and checks the user of the process that listens there. The callback
 * `opened` follows. */
int conn_dial_unix(struct event_base *base, const char *name, const struct conn_ops *ops, void *arg,
                   struct conn **ret_conn, struct hvd_err *err)
{
    struct conn *conn = conn_create(base, NULL);
    struct address address;
    int by_fd = -1;
    int fd = -1;
    int rc;

    if (!conn)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    /* a Unix socket connects at once or not at all; the callback `opened` comes in the loop's next
     * iteration */
    rc = address_unix(name, &address, &by_fd, err);
    if (!rc) {
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *)&address.at, address.length))
            rc = err_set(err, address_code(errno), "%s: %s", name,
                         errno == ECONNREFUSED ? "no process listens at this socket"
                                               : strerror(errno));
    }
    if (by_fd >= 0)
        close(by_fd);
    if (!rc)
        rc = conn_check_user(conn, fd, err);
    if (!rc && conn_attach(conn, fd))
        rc = err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    if (rc) {
        if (fd >= 0)
            close(fd);
        conn_drop(conn);
        return rc;
    }
    conn->dialled = true;
    conn_own(conn, ops, arg);
    *ret_conn = conn;
    return 0;
}
