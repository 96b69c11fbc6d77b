#include "wire/listener_state.h"

#include "base/mem.h"
#include "os/clock.h"
#include "wire/conn_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTED_PER_TURN 64
/* How long nothing is accepted after the process ran out of descriptors or memory. */
#define PAUSE_US (100 * INT64_C(1000))
/* A stranger that has had this long makes room when there are too many. */
#define STRANGER_US   (1 * INT64_C(1000000))
#define LOG_WINDOW_US (10 * INT64_C(1000000))
#define LOG_BURST     10

static void destroy(struct listener *listener)
{
    LIST_EACH_SAFE (it, after, &listener->strangers)
        conn_drop(CONTAINER_OF(it, struct conn, link));
    if (listener->arrival)
        event_free(listener->arrival);
    if (listener->pause)
        event_free(listener->pause);
    bound_release(&listener->bound);
    mem_free(listener->address);
    mem_free(listener);
}

static void leave(struct listener *listener)
{
    if (--listener->busy == 0 && listener->gone)
        destroy(listener);
}

static void note(struct log_limit *limit, const char *peer, const char *why)
{
    unsigned held;

    if (!log_limit_pass(limit, clock_now_us(), &held))
        return;
    if (held)
        log_warning(NET, "%s: %s; %u more like it were not shown", peer, why, held);
    else
        log_warning(NET, "%s: %s", peer, why);
}

static void turn_away(struct listener *listener, const char *peer, const char *why)
{
    char said[ERR_TEXT_MAX + 16];

    snprintf(said, sizeof(said), "turned away, %s", why);
    note(&listener->turned_away, peer, said);
}

/* Without memory for the timer it goes on at once. */
static void pause_for(struct listener *listener, int64_t us)
{
    struct timeval wait = { .tv_sec = us / 1000000, .tv_usec = us % 1000000 };

    if (!event_add(listener->pause, &wait))
        event_del(listener->arrival);
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
    struct listener *listener = arg;

    (void)fd;
    (void)what;
    if (event_add(listener->arrival, NULL))
        pause_for(listener, PAUSE_US);
}

static void no_stranger(struct listener *listener, struct conn *conn)
{
    list_remove(&conn->link);
    listener->stranger_count--;
    if (event_pending(listener->pause, EV_TIMEOUT, NULL))
        event_active(listener->pause, EV_TIMEOUT, 0);
}

static void on_shaken(void *arg, struct conn *conn, const char *why)
{
    struct listener *listener = arg;

    no_stranger(listener, conn);
    if (why) {
        turn_away(listener, conn->peer, why);
        conn_drop(conn);
        return;
    }
    listener->busy++;
    conn_up(conn);
    listener->accepted(listener->arg, conn);
    leave(listener);
}

/* Each takes the descriptor when it returns 0. */
static int welcome_tcp(struct listener *listener, struct conn *conn, int fd)
{
    int rc;

    conn_tune(fd);
    rc = conn_stream_tls(conn, fd, true, on_shaken, listener);
    if (rc)
        return rc;
    conn->since_us = clock_now_us();
    list_append(&listener->strangers, &conn->link);
    listener->stranger_count++;
    return 0;
}

static int welcome_unix(struct listener *listener, struct conn *conn, int fd)
{
    struct hvd_err err;
    int rc = conn_check_user(conn, fd, &err);

    if (rc) {
        turn_away(listener, listener->address, err.text);
        return rc;
    }
    rc = conn_stream_plain(conn, fd);
    if (rc)
        return rc;
    conn_up(conn);
    listener->accepted(listener->arg, conn);
    return 0;
}

static void welcome(struct listener *listener, int fd, const struct address *from)
{
    struct conn *conn = conn_create(listener->base, listener->tls);
    int rc = HVD_E_NOMEM;

    if (conn && !conn_arm(conn, listener->greeting_us)) {
        if (listener->tls)
            address_show(from, conn->peer);
        rc = listener->tls ? welcome_tcp(listener, conn, fd) : welcome_unix(listener, conn, fd);
    }
    if (!rc)
        return;
    if (rc == HVD_E_NOMEM)
        note(&listener->failing, listener->address, "no memory for a connection; it was closed");
    conn_drop(conn);
    close(fd);
}

/* True: there is room for one more. The backlog keeps the others, so that many who come at the same
 * time are not refused; but a few that never say anything cannot keep everybody waiting. */
static bool has_room(struct listener *listener)
{
    struct conn *oldest;
    int64_t had_us;

    if (listener->stranger_count < listener->strangers_max)
        return true;
    oldest = CONTAINER_OF(listener->strangers.next, struct conn, link);
    had_us = clock_now_us() - oldest->since_us;
    if (had_us < STRANGER_US) {
        pause_for(listener, STRANGER_US - had_us);
        return false;
    }
    turn_away(listener, oldest->peer, "no handshake, and others are waiting");
    no_stranger(listener, oldest);
    conn_drop(oldest);
    return true;
}

/* False: there is nobody else now. */
static bool accept_one(struct listener *listener)
{
    struct address from = { .length = sizeof(from.at) };
    int fd = accept4(listener->bound.fd, (struct sockaddr *)&from.at, &from.length,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0) {
        welcome(listener, fd, &from);
        return true;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        char why[ERR_TEXT_MAX];

        snprintf(why, sizeof(why), "accepting: %s; again in 100ms", strerror(errno));
        note(&listener->failing, listener->address, why);
        pause_for(listener, PAUSE_US);
        return false;
    }
    /* one that has gone again is no reason to leave the others waiting */
    return errno == ECONNABORTED || errno == EINTR || errno == EPROTO;
}

static void on_arrival(evutil_socket_t fd, short what, void *arg)
{
    struct listener *listener = arg;

    (void)fd;
    (void)what;
    listener->busy++;
    for (int i = 0; i < ACCEPTED_PER_TURN && !listener->gone; i++)
        if (!has_room(listener) || !accept_one(listener))
            break;
    leave(listener);
}

static struct listener *create(struct event_base *base, struct tls *tls, listener_fn *accepted,
                               void *arg)
{
    struct listener *listener = mem_zalloc(sizeof(*listener));

    if (!listener)
        return NULL;
    listener->base = base;
    listener->tls = tls;
    listener->accepted = accepted;
    listener->arg = arg;
    listener->bound = BOUND_NONE;
    listener->strangers_max = LIMIT_STRANGERS;
    listener->greeting_us = LIMIT_GREETING_US;
    listener->turned_away = (struct log_limit){ .window_us = LOG_WINDOW_US, .burst = LOG_BURST };
    listener->failing = (struct log_limit){ .window_us = LOG_WINDOW_US, .burst = 1 };
    list_init(&listener->strangers);
    return listener;
}

static int start(struct listener *listener, const char *address, struct hvd_err *err)
{
    listener->address = mem_strdup(address);
    listener->pause = event_new(listener->base, -1, 0, on_pause_over, listener);
    listener->arrival =
        event_new(listener->base, listener->bound.fd, EV_READ | EV_PERSIST, on_arrival, listener);
    if (!listener->address || !listener->pause || !listener->arrival ||
        event_add(listener->arrival, NULL))
        return err_set(err, HVD_E_NOMEM, "%s: %s", address, err_text(HVD_E_NOMEM));
    return 0;
}

static int bind_tcp(struct listener *listener, const char *host, uint16_t port, struct hvd_err *err)
{
    struct address address;
    char text[ADDRESS_TEXT_MAX];
    int rc = address_make(host, port, &address, err);

    if (!rc)
        rc = bound_tcp(&address, &listener->bound, err);
    if (rc)
        return rc;
    address.length = sizeof(address.at);
    if (getsockname(listener->bound.fd, (struct sockaddr *)&address.at, &address.length))
        return err_set(err, HVD_E_IO, "%s: %s", host, strerror(errno));
    listener->port = address_port(&address);
    return start(listener, address_show(&address, text), err);
}

int listener_tcp(struct event_base *base, const char *address, uint16_t port, struct tls *tls,
                 listener_fn *accepted, void *arg, struct listener **ret_listener,
                 struct hvd_err *err)
{
    struct listener *listener = create(base, tls, accepted, arg);
    int rc;

    if (!listener)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    rc = bind_tcp(listener, address, port, err);
    if (rc)
        destroy(listener);
    else
        *ret_listener = listener;
    return rc;
}

int listener_unix(struct event_base *base, const char *name, listener_fn *accepted, void *arg,
                  struct listener **ret_listener, struct hvd_err *err)
{
    struct listener *listener = create(base, NULL, accepted, arg);
    int rc;

    if (!listener)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    rc = bound_unix(name, &listener->bound, err);
    if (!rc)
        rc = start(listener, name, err);
    if (rc)
        destroy(listener);
    else
        *ret_listener = listener;
    return rc;
}

void listener_free(struct listener *listener)
{
    if (!listener)
        return;
    listener->gone = true;
    if (listener->busy == 0)
        destroy(listener);
}

const char *listener_address(const struct listener *listener)
{
    return listener->address;
}

uint16_t listener_port(const struct listener *listener)
{
    return listener->port;
}
