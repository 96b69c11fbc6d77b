/*
 * listener.c: accepts connections, and hands each one to its owner when the other side has proved
 * that it may come in. Until then the other side is a stranger, and base/door.h decides how many
 * strangers there may be. Called by its owner, and by libevent when peers arrive. Invariants:
 * accepting stops only when the process has no descriptors or memory, never because of strangers; a
 * listener that is freed inside `accepted` is freed after that callback returns.
 */
#include "wire/listener_internal.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/source.h"
#include "wire/conn_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTED_AT_ONCE 64
/* How long nothing is accepted after a failure that found no descriptor or memory free. */
#define PAUSE_US (100 * TIME_MS)
/* At most LOG_BURST lines about strangers are logged in this time. */
#define LOG_WINDOW_US (10 * TIME_S)
/* The owner is told that strangers crowd the listener at most once in this time. */
#define CROWD_US  (1 * TIME_S)
#define LOG_BURST 10

/* Closes the connections of strangers (peers that have not proved yet who they are), and frees the
 * listener. Connections that were handed over stay open. */
static void listener_destroy(struct listener *listener)
{
    LIST_EACH_SAFE (it, after, &listener->door.guests) {
        struct door_guest *guest = CONTAINER_OF(it, struct door_guest, link);

        door_leave(&listener->door, guest);
        conn_drop(CONTAINER_OF(guest, struct conn, guest));
    }
    if (listener->arrival)
        event_free(listener->arrival);
    if (listener->pause)
        event_free(listener->pause);
    bound_release(&listener->bound);
    mem_free(listener->address);
    mem_free(listener);
}

/* Called at the end of each callback that may call the owner: frees the listener if the owner has
 * freed it inside the callback. */
static void listener_leave(struct listener *listener)
{
    if (--listener->busy == 0 && listener->gone)
        listener_destroy(listener);
}

/* Logs a line about a peer, unless `limit` does not let it through; the next line that is logged
 * then says how many lines were not. */
static void listener_note(struct log_limit *limit, const char *peer, const char *why)
{
    unsigned held;

    if (!log_limit_pass(limit, clock_now_us(), &held))
        return;
    if (held)
        log_warning(NET, "%s: %s; %u more lines like this were not shown", peer, why, held);
    else
        log_warning(NET, "%s: %s", peer, why);
}

/* Logs why a peer was turned away, at most LOG_BURST lines in LOG_WINDOW_US, so that an attack does
 * not fill the log. */
static void listener_turn_away(struct listener *listener, const char *peer, const char *why)
{
    bool advise = listener->advice && !strcmp(why, TLS_OTHER_KEY);
    char line[2 * ERR_TEXT_MAX];

    snprintf(line, sizeof(line), "turned away, %s%s%s", why, advise ? ": " : "",
             advise ? listener->advice : "");
    listener_note(&listener->turned_away, peer, line);
}

/* Accepts nothing for PAUSE_US. When there is no memory for the timer, accepting goes on: nothing
 * could end the pause. */
static void listener_pause(struct listener *listener)
{
    const struct timeval wait = clock_timeval(PAUSE_US);

    if (!event_add(listener->pause, &wait))
        event_del(listener->arrival);
}

/* Closes the stranger that the door has chosen (base/door.h), and returns true. Exception: the door
 * has chosen it as one that has sent nothing, but its bytes wait in the kernel. In that case the
 * stranger counts from now on as one that has sent something, and false is returned: the caller
 * asks the door again. */
static bool listener_close_stranger(struct listener *listener, struct door_guest *guest,
                                    int64_t now_us)
{
    struct conn *conn = CONTAINER_OF(guest, struct conn, guest);

    if (!guest->spoke && source_has_spoken(conn->stream.fd)) {
        door_spoke(guest);
        return false;
    }
    door_turn_away(&listener->door, guest, now_us);
    conn_drop(conn);
    return true;
}

/* Closes strangers until there is a place for a new one from this source, and reports which source
 * crowds the listener: in the log at most once in LOG_WINDOW_US, to the owner at most once in
 * CROWD_US. */
static void listener_make_room(struct listener *listener, uint64_t source)
{
    int64_t now_us = clock_now_us();
    char from[SOURCE_TEXT_MAX];
    struct door_report report;
    struct door_guest *guest;
    bool crowded = false;

    while ((guest = door_next_leaver(&listener->door, source)) != NULL)
        crowded |= listener_close_stranger(listener, guest, now_us);
    if (!crowded)
        return;
    if (door_report(&listener->door, now_us, LOG_WINDOW_US, &report))
        log_warning(NET,
                    "%s: crowded by connections that have not proved the job's key: %" PRIu64
                    " of these connections were closed to make room, most from %s, which holds %zu "
                    "of %zu connections; peers that have the key are still accepted; close the "
                    "port to that address",
                    listener->address, report.turned_away, source_show(report.source, from),
                    report.guests, listener->door.places);
    if (listener->crowded && now_us - listener->crowd_told_us >= CROWD_US) {
        listener->crowd_told_us = now_us;
        listener->crowded(listener->arg);
    }
}

/* Called after the handshake. `why` NULL: the stranger has the key, and the connection is handed
 * over to the owner; else the stranger is turned away for this reason. */
static void listener_on_handshake(void *arg, struct conn *conn, const char *why)
{
    struct listener *listener = arg;

    door_leave(&listener->door, &conn->guest);
    if (why) {
        listener_turn_away(listener, conn->peer, why);
        conn_drop(conn);
        return;
    }
    listener->busy++; /* the callback may free the listener: listener_leave frees it then */
    conn_up(conn);
    listener->accepted(listener->arg, conn);
    listener_leave(listener);
}

/* Makes a connection from an accepted descriptor, or closes it. Over TCP the peer is a stranger
 * until its handshake is done; on a Unix socket the kernel tells the peer's user at once. */
static void listener_welcome(struct listener *listener, int fd, const struct address *from)
{
    struct conn *conn = conn_create(listener->base, listener->tls);
    struct hvd_err err;
    int rc = HVD_E_NOMEM;

    if (conn && !conn_arm(conn, listener->greeting_us)) {
        if (listener->tls) {
            listener_make_room(listener, source_of(&from->at));
            address_show(from, conn->peer);
            conn_tune(fd);
            /* true: this side is the server of the handshake */
            rc = conn_attach_tls(conn, fd, true, listener_on_handshake, listener);
        } else {
            rc = conn_check_user(conn, fd, &err);
            if (rc)
                listener_turn_away(listener, listener->address, err.text);
            else
                rc = conn_attach(conn, fd);
        }
    }
    if (rc) {
        if (rc == HVD_E_NOMEM)
            listener_note(&listener->failing, listener->address,
                          "no memory for a connection, which was closed; free memory on this host");
        conn_drop(conn);
        close(fd);
    } else if (listener->tls) {
        door_enter(&listener->door, &conn->guest, source_of(&from->at));
    } else {
        conn_up(conn);
        listener->accepted(listener->arg, conn);
    }
}

/* Called when an accept has failed. If a peer waits and this process has no descriptor for it, a
 * stranger is closed, and true is returned: the caller accepts again. The door chooses the stranger
 * (base/door.h): first those that have sent nothing, later those in their handshake. If there is no
 * stranger, nothing is accepted for PAUSE_US. false: the caller stops accepting for now. */
static bool listener_retries(struct listener *listener, int fault)
{
    struct door_guest *guest;
    char why[ERR_TEXT_MAX];

    if (!source_is_starved(listener->bound.fd,
                           fault)) /* no peer waits, or `fault` is another error */
        return false;
    while ((guest = door_any_leaver(&listener->door)) != NULL)
        if (listener_close_stranger(listener, guest, clock_now_us()))
            return true;
    snprintf(why, sizeof(why), "no connection can be accepted: %s; the next try is in %d ms",
             strerror(fault), (int)(PAUSE_US / TIME_MS));
    listener_note(&listener->failing, listener->address, why);
    listener_pause(listener);
    return false;
}

/* Called when peers have arrived, or when the pause is over (EV_TIMEOUT). Accepts a few peers at a
 * time, so that many arrivals do not delay the open connections. */
static void listener_on_event(evutil_socket_t socket, short what, void *arg)
{
    struct listener *listener = arg;

    (void)socket;
    if (what & EV_TIMEOUT) { /* the pause is over; without memory for `arrival` it begins again */
        if (event_add(listener->arrival, NULL))
            listener_pause(listener);
        return;
    }
    listener->busy++;
    for (int i = 0; i < ACCEPTED_AT_ONCE && !listener->gone; i++) {
        struct address from = { .length = sizeof(from.at) };
        int fd;

        fd = accept4(listener->bound.fd, (struct sockaddr *)&from.at, &from.length,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            listener_welcome(listener, fd, &from);
        } else if (errno != ECONNABORTED && errno != EINTR && errno != EPROTO) {
            /* No peer waits, or no descriptor is free for it. The three errors above concern one
             * peer that has gone again before it was accepted: the loop accepts the next one. */
            if (!listener_retries(listener, errno))
                break;
        }
    }
    listener_leave(listener);
}

/* Makes the listener of a bound socket and starts to accept peers. The listener owns the socket; on
 * failure the socket is closed. `with` has the fields that differ between the kinds of listeners:
 * base, owner, socket, and tls (NULL: a Unix socket). */
static int listener_start(const struct listener *with, const char *address,
                          struct listener **ret_listener, struct hvd_err *err)
{
    struct listener *listener = mem_zalloc(sizeof(*listener));
    struct bound bound = with->bound;

    if (!listener) {
        bound_release(&bound);
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    }
    *listener = *with;
    door_init(&listener->door, LIMIT_STRANGERS, LIMIT_STRANGERS_EACH);
    listener->greeting_us = LIMIT_GREETING_US;
    listener->turned_away = (struct log_limit){ .window_us = LOG_WINDOW_US, .burst = LOG_BURST };
    listener->failing = (struct log_limit){ .window_us = LOG_WINDOW_US, .burst = 1 };
    listener->address = mem_strdup(address);
    listener->pause = event_new(listener->base, -1, 0, listener_on_event, listener);
    listener->arrival =
        event_new(listener->base, bound.fd, EV_READ | EV_PERSIST, listener_on_event, listener);
    if (!listener->address || !listener->pause || !listener->arrival ||
        event_add(listener->arrival, NULL)) {
        listener_destroy(listener);
        return err_set(err, HVD_E_NOMEM, "%s: %s", address, err_text(HVD_E_NOMEM));
    }
    *ret_listener = listener;
    return 0;
}

/* Listens on a TCP port. The kernel chooses the port if `port` is 0, so the address is read
 * back. */
int listener_tcp(struct event_base *base, const struct listener_place *place, listener_fn *accepted,
                 void *arg, struct listener **ret_listener, struct hvd_err *err)
{
    struct listener with = { .base = base, .tls = place->tls, .accepted = accepted, .arg = arg };
    struct address address;
    char text[ADDRESS_TEXT_MAX];
    int rc = address_make(place->host, strlen(place->host), place->port, &address, err);

    if (!rc)
        rc = bound_tcp(&address, &with.bound, err);
    if (rc)
        return rc;
    address.length = sizeof(address.at);
    if (getsockname(with.bound.fd, (struct sockaddr *)&address.at, &address.length)) {
        rc = err_set(err, HVD_E_IO, "%s: %s", place->host, strerror(errno));
        bound_release(&with.bound);
        return rc;
    }
    with.port = address_port(&address);
    return listener_start(&with, address_show(&address, text), ret_listener, err);
}

int listener_unix(struct event_base *base, const char *name, listener_fn *accepted, void *arg,
                  struct listener **ret_listener, struct hvd_err *err)
{
    struct listener with = { .base = base, .accepted = accepted, .arg = arg };
    int rc = bound_unix(name, &with.bound, err);

    return rc ? rc : listener_start(&with, name, ret_listener, err);
}

void listener_watch_crowd(struct listener *listener, listener_crowd_fn *crowded)
{
    listener->crowded = crowded;
}

void listener_advise(struct listener *listener, const char *advice)
{
    listener->advice = advice;
}

/* Frees the listener, or marks it to be freed when its running callback returns (`busy`). */
void listener_free(struct listener *listener)
{
    if (!listener)
        return;
    listener->gone = true;
    if (listener->busy == 0)
        listener_destroy(listener);
}

const char *listener_address(const struct listener *listener)
{
    return listener->address;
}

uint16_t listener_port(const struct listener *listener)
{
    return listener->port;
}
