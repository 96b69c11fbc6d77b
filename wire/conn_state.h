/*
 * conn_state.h: what the files of this folder know of a connection.
 *
 *     DIALLING ──connected──► SHAKING ──has the key──► UP ──conn_close──► LINGERING ──► GONE
 *         └── Unix: opened by the loop's next turn ────┘ │
 *                                                        └── ended: told, when all is read ──► GONE
 *
 * Nothing is freed while one of its callbacks runs: `busy` counts them, and the last one out frees
 * what is GONE. Whatever a call of the owner sets off is left to the kick, so that the loop alone
 * calls him.
 *
 * The descriptor is read and written here and not by libevent's bufferevents, because those crash
 * when memory is out while they are made (2.1.12), and would read for ever when it is out later.
 */
#ifndef WIRE_CONN_STATE_H
#define WIRE_CONN_STATE_H

#include "base/limits.h"
#include "base/list.h"
#include "proto/frame.h"
#include "wire/address.h"
#include "wire/conn.h"

#include <event2/event.h>

enum conn_phase { CONN_DIALLING, CONN_SHAKING, CONN_UP, CONN_LINGERING, CONN_GONE };

/* The handshake is over: `why` NULL when the other side has the key. */
typedef void conn_shaken_fn(void *arg, struct conn *conn, const char *why);

/* What is read and not handed on: one piece, or more where a held connection has broken. */
#define CONN_IN_MAX (1024 * 1024)

struct dial {
    struct address addresses[LIMIT_ADDRESSES];
    size_t count;
    size_t next;
    int fd;               /* being connected; -1 */
    struct event *opened; /* its descriptor can be written: connected, or not */
    char why[ERR_TEXT_MAX];
};

struct conn {
    struct list link; /* among its listener's strangers */
    int64_t since_us; /* that it is one */
    struct event_base *base;
    struct tls *tls;        /* NULL: plain */
    int fd;                 /* -1: not connected yet */
    struct ssl_st *session; /* NULL: plain, or not connected yet */
    struct event *readable;
    struct event *writable;
    struct buf in; /* what has come and is not handed on, from in_at */
    size_t in_at;
    struct buf out; /* what is unsent, from out_at */
    size_t out_at;
    struct msg_bytes lent; /* follows what is in out; not copied */
    bool crossed;          /* TLS has to write before it can read on, or the reverse */
    struct event *timer;   /* of the phase: connecting, greeting, lingering */
    struct event *kick;    /* something to do in the loop's next turn */
    struct frame_reader reader;
    const struct conn_ops *ops; /* NULL: nobody is told */
    void *arg;
    conn_shaken_fn *shaken;
    void *shaken_arg;
    struct dial *dial;
    enum conn_phase phase;
    int busy;
    bool dialled; /* `opened` is to be called */
    bool greeted, bulk;
    bool held;
    bool reading_now;
    bool ended;      /* nothing more will come */
    bool broken;     /* what is still in the input is not worth reading */
    bool above_high; /* and `drained` has not been called since */
    bool when_sent;  /* likewise, when all is sent */
    bool finished;   /* lingering: all is sent, the other side was told */
    int64_t greeting_us;
    int64_t linger_us;
    pid_t pid;
    char peer[ADDRESS_TEXT_MAX];
    char why[ERR_TEXT_MAX];
};

/* conn.c */
struct conn *conn_create(struct event_base *base, struct tls *tls) MUST_CHECK;
void conn_enter(struct conn *conn);
void conn_leave(struct conn *conn); /* may free it */
int conn_arm(struct conn *conn, int64_t us) MUST_CHECK;
void conn_disarm(struct conn *conn);
void conn_kick(struct conn *conn);
void conn_end(struct conn *conn, const char *why);   /* told when what has come is read */
void conn_break(struct conn *conn, const char *why); /* nothing more is read */
void conn_up(struct conn *conn);                     /* the bytes may flow */

/* conn_stream.c: bytes. The descriptor, which never blocks, is taken when they succeed. */
int conn_stream_plain(struct conn *conn, int fd) MUST_CHECK;
int conn_stream_tls(struct conn *conn, int fd, bool server, conn_shaken_fn *shaken,
                    void *arg) MUST_CHECK;
void conn_stream_free(struct conn *conn);
void conn_stream_go(struct conn *conn);               /* the kick's part */
int conn_stream_listen(struct conn *conn) MUST_CHECK; /* read from now on */
void conn_stream_deaf(struct conn *conn);             /* no more, for now */
void conn_stream_stop(struct conn *conn);
ssize_t conn_stream_get(struct conn *conn, void *bytes, size_t size);

/* conn_feed.c: from bytes to messages */
void conn_feed(struct conn *conn);
bool conn_has_input(const struct conn *conn);
int conn_take_in(struct conn *conn, ssize_t *ret_got) MUST_CHECK;

/* conn_dial.c */
void conn_dial_go(struct conn *conn);
void conn_dial_late(struct conn *conn);
void conn_dial_free(struct conn *conn);
void conn_tune(int fd); /* a TCP socket for small messages, that notices a dead link */

/* The other side of a Unix socket is the same user, or root. HVD_E_DENIED, HVD_E_IO. */
int conn_check_user(struct conn *conn, int fd, struct hvd_err *err) MUST_CHECK;

#endif
