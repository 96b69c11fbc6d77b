#include "wire/conn_state.h"

#include "base/mem.h"
#include "base/panic.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A link that has gone silent is found by leases; these make the kernel give up soon after. */
#define KEEPALIVE_IDLE_S     15
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_PROBES     4
#define USER_TIMEOUT_MS      30000

static void set_option(int fd, int level, int option, int value)
{
    /* none of them is needed for anything but speed and tidiness */
    (void)!setsockopt(fd, level, option, &value, sizeof(value));
}

void conn_tune(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
}

int conn_check_user(struct conn *conn, int fd, struct hvd_err *err)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
        return err_set(err, HVD_E_IO, "the other side's user: %s", strerror(errno));
    snprintf(conn->peer, sizeof(conn->peer), "pid %d", (int)peer.pid);
    conn->pid = peer.pid;
    if (peer.uid != geteuid() && peer.uid != 0)
        return err_set(err, HVD_E_DENIED, "pid %d is user %u's; only user %u may come in",
                       (int)peer.pid, (unsigned)peer.uid, (unsigned)geteuid());
    return 0;
}

/* Ends the attempt at one address. */
static void hang_up(struct conn *conn)
{
    struct dial *dial = conn->dial;

    conn_stream_free(conn);
    conn_disarm(conn);
    if (dial->opened)
        event_free(dial->opened);
    dial->opened = NULL;
    if (dial->fd >= 0)
        close(dial->fd);
    dial->fd = -1;
    conn->phase = CONN_DIALLING;
}

void conn_dial_free(struct conn *conn)
{
    if (!conn->dial)
        return;
    hang_up(conn);
    mem_free(conn->dial);
    conn->dial = NULL;
}

/* The next address has its turn; the reasons are gathered for the last. */
static void failed(struct conn *conn, const char *why)
{
    struct dial *dial = conn->dial;
    size_t said = strlen(dial->why);

    hang_up(conn);
    snprintf(dial->why + said, sizeof(dial->why) - said, "%s%s: %s", said ? "; " : "", conn->peer,
             why);
    if (dial->next < dial->count)
        conn_kick(conn);
    else
        conn_end(conn, dial->why);
}

void conn_dial_late(struct conn *conn)
{
    failed(conn, conn->phase == CONN_SHAKING ? "no handshake in time" : "no answer in time");
}

static void shaken(void *arg, struct conn *conn, const char *why)
{
    (void)arg;
    if (why) {
        failed(conn, why);
        return;
    }
    mem_free(conn->dial);
    conn->dial = NULL;
    conn_disarm(conn);
    conn_up(conn);
}

static void on_opened(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;
    struct dial *dial = conn->dial;
    socklen_t length = sizeof(int);
    int number = 0;

    (void)what;
    conn_enter(conn);
    event_free(dial->opened);
    dial->opened = NULL;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &length))
        number = errno;
    if (number) {
        failed(conn, strerror(number));
    } else {
        conn_tune(fd);
        if (conn_stream_tls(conn, fd, false, shaken, NULL))
            failed(conn, err_text(HVD_E_NOMEM));
        else
            dial->fd = -1;
    }
    conn_leave(conn);
}

static int start_connecting(struct conn *conn, const struct address *address)
{
    struct dial *dial = conn->dial;

    dial->fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (dial->fd < 0)
        return errno;
    if (connect(dial->fd, (const struct sockaddr *)&address->at, address->length) &&
        errno != EINPROGRESS)
        return errno;
    dial->opened = event_new(conn->base, dial->fd, EV_WRITE, on_opened, conn);
    if (!dial->opened || event_add(dial->opened, NULL) || conn_arm(conn, CONN_DIAL_US))
        return ENOMEM;
    return 0;
}

void conn_dial_go(struct conn *conn)
{
    struct dial *dial = conn->dial;
    const struct address *address;
    int number;

    if (!dial) { /* a Unix socket is connected already */
        conn_up(conn);
        return;
    }
    if (dial->opened || dial->next == dial->count)
        return;
    address = &dial->addresses[dial->next++];
    address_show(address, conn->peer);
    number = start_connecting(conn, address);
    if (number)
        failed(conn, strerror(number));
}

static int read_addresses(const struct msg_texts *texts, struct dial *dial, struct hvd_err *err)
{
    if (texts->count == 0)
        return err_set(err, HVD_E_INVAL, "no address to dial");
    if (texts->count > LIMIT_ADDRESSES)
        return err_set(err, HVD_E_LIMIT, "%zu addresses; at most %d (LIMIT_ADDRESSES)",
                       texts->count, LIMIT_ADDRESSES);
    for (size_t i = 0; i < texts->count; i++) {
        int rc = address_parse(texts->items[i], &dial->addresses[i], err);

        if (rc)
            return rc;
    }
    dial->count = texts->count;
    return 0;
}

int conn_dial(struct event_base *base, const struct msg_texts *addresses, struct tls *tls,
              const struct conn_ops *ops, void *arg, struct conn **ret_conn, struct hvd_err *err)
{
    struct conn *conn;
    int rc;

    ASSERT(tls);
    conn = conn_create(base, tls);
    if (conn)
        conn->dial = mem_zalloc(sizeof(*conn->dial));
    if (!conn || !conn->dial) {
        conn_drop(conn);
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    }
    conn->dial->fd = -1;
    conn->dialled = true;
    rc = read_addresses(addresses, conn->dial, err);
    if (rc) {
        conn_drop(conn);
        return rc;
    }
    address_show(&conn->dial->addresses[0], conn->peer);
    conn_own(conn, ops, arg);
    *ret_conn = conn;
    return 0;
}

/* A connected descriptor, or a negative code. */
static int connect_unix(const char *name, struct hvd_err *err)
{
    struct address address;
    int by_fd = -1;
    int rc = address_unix(name, &address, &by_fd, err);
    int fd;

    if (rc)
        return rc;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address.at, address.length)) {
        rc = address_code(errno);
        err_set(err, rc, "%s: %s", name,
                errno == ECONNREFUSED ? "nobody listens there" : strerror(errno));
        if (fd >= 0)
            close(fd);
        fd = rc;
    }
    if (by_fd >= 0)
        close(by_fd);
    return fd;
}

int conn_dial_unix(struct event_base *base, const char *name, const struct conn_ops *ops, void *arg,
                   struct conn **ret_conn, struct hvd_err *err)
{
    struct conn *conn = conn_create(base, NULL);
    int fd = -1;
    int rc;

    if (!conn)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    fd = connect_unix(name, err);
    rc = fd < 0 ? fd : conn_check_user(conn, fd, err);
    if (!rc && conn_stream_plain(conn, fd))
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
