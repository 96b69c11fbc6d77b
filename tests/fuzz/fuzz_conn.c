/*
 * fuzz_conn.c: what a peer that has the job's key may send. The input says how the owner of the
 * connection behaves, and then what comes through the socket. The bytes come in pieces; between the
 * pieces the owner holds, continues, reads at once, answers, greets, or closes inside a callback.
 */
#include "base/panic.h"
#include "wire/conn_internal.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

struct owner {
    struct conn *conn;
    uint8_t habit;
    int closed;
};

static void got_msg(void *arg, const struct msg *msg)
{
    struct owner *owner = arg;

    ASSERT(!owner->closed && owner->conn);
    if (owner->habit & 0x1)
        conn_hold(owner->conn, true);
    if (owner->habit & 0x2)
        ASSERT(!conn_send(owner->conn, msg, NULL));
    if (owner->habit & 0x4)
        conn_read_now(owner->conn);
    if ((owner->habit & 0x8) && owner->conn) {
        conn_close(owner->conn);
        owner->conn = NULL;
    }
}

static void was_closed(void *arg, const char *why)
{
    struct owner *owner = arg;

    ASSERT(!owner->closed && owner->conn && why[0]);
    owner->closed = 1;
    owner->conn = NULL;
}

static const struct conn_ops ops = { NULL, got_msg, was_closed, NULL };

/* true: the connection has taken the other end of the socket. */
static bool begin(struct event_base *base, struct owner *owner, int fd)
{
    owner->conn = conn_create(base, NULL);
    ASSERT(owner->conn && !conn_attach(owner->conn, fd));
    owner->conn->linger_us = 1000;
    if (owner->habit & 0x10)
        conn_greeted(owner->conn);
    if (owner->habit & 0x20)
        conn_bulk(owner->conn);
    conn_up(owner->conn);
    conn_own(owner->conn, &ops, owner);
    return true;
}

/* Sends the bytes in pieces of a length that the input chooses; the owner acts between the
 * pieces. */
static void feed(struct event_base *base, struct owner *owner, int fd, const uint8_t *data,
                 size_t size)
{
    size_t step = (size_t)(owner->habit >> 5) * 37 + 1;

    for (size_t at = 0; at < size; at += step) {
        size_t length = size - at < step ? size - at : step;

        if (send(fd, data + at, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break;
        event_base_loop(base, EVLOOP_NONBLOCK);
        if (owner->conn && (owner->habit & 0x1))
            conn_hold(owner->conn, false);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct event_base *base;
    struct owner owner = { 0 };
    int fds[2];

    if (size < 1)
        return 0;
    if (!base) {
        signal(SIGPIPE, SIG_IGN);
        base = event_base_new();
        ASSERT(base);
    }
    owner.habit = data[0];
    ASSERT(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
    begin(base, &owner, fds[1]);
    feed(base, &owner, fds[0], data + 1, size - 1);
    close(fds[0]);
    for (int i = 0; i < 8 && owner.conn; i++) {
        conn_hold(owner.conn, false);
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    conn_drop(owner.conn);
    event_base_loop(base, 0); /* lets closing connections end */
    return 0;
}
