/*
 * conn_internal.h: what the files behind conn.h share. These files call each other downwards only,
 * in the order of README.md.
 *
 *     DIALLING ──connected──► HANDSHAKE ──has the key──► UP ──conn_close──► LINGERING ──► GONE
 *         └─── Unix: in the next iteration of the loop ──┘│
 *                                                         └─ ended: told, all is read ──► GONE
 *
 * Nothing is freed while one of its callbacks runs: `busy` counts them, and the last one frees a
 * connection that is GONE. The effects of an owner's call are left to the kick, an event that is
 * due at once, so that the event loop alone calls the owner.
 *
 * The descriptor is read and written here and not by libevent's bufferevents, because those crash
 * when no memory is left while they are made (2.1.12), and would read for ever when no memory is
 * left later.
 */
#ifndef WIRE_CONN_INTERNAL_H
#define WIRE_CONN_INTERNAL_H

#include "base/door.h"
#include "base/limits.h"
#include "base/list.h"
#include "proto/frame.h"
#include "wire/address.h"
#include "wire/conn.h"

#include <event2/event.h>

enum conn_phase { CONN_DIALLING, CONN_HANDSHAKE, CONN_UP, CONN_LINGERING, CONN_GONE };

/* Called when the handshake is over. `why` is NULL when the other side has the key. */
typedef void conn_handshake_fn(void *arg, struct conn *conn, const char *why);

/* The most bytes of input that are not handed on yet. Usually they are those of one read; they are
 * more on a connection that has ended while its reading was held. */
#define CONN_IN_MAX (1024 * 1024)

/* conn_stream_get and conn_stream_put return a count of bytes, or one of these. */
#define STREAM_END    0
#define STREAM_LATER  (-1)
#define STREAM_BROKEN (-2)

struct conn_stream {
    int fd;                 /* -1: not connected yet */
    struct ssl_st *session; /* NULL: plain, or the handshake has not begun */
    bool serves;            /* this side is the server of the handshake */
    struct event *readable;
    struct event *writable;
    /* TLS has to write before it can read on, or to read before it can write on */
    bool crossed;
    conn_handshake_fn *done; /* called when the handshake is over */
    void *done_arg;
};

struct conn_in {
    struct buf bytes; /* input from index `at` on is not handed on yet */
    size_t at;
    struct frame_reader reader;
    bool held;
    bool bulk;
    bool reading_now;
};

struct conn_out {
    struct buf bytes; /* bytes from index `at` on are unsent */
    size_t at;
    struct msg_bytes lent; /* borrowed data that is sent after `bytes` */
    /* unsent bytes were above CONN_HIGH_BYTES, and `drained` has not been called since */
    bool above_high;
    bool when_sent; /* `drained` has to be called when all is sent */
    bool finished;  /* while lingering: all is sent, and the peer was told the end */
};

struct dial {
    struct address addresses[LIMIT_ADDRESSES];
    size_t count;
    size_t next;
    int fd;                /* socket that is being connected; -1: none */
    struct event *opened;  /* fd became writable: connected, or failed */
    struct event *attempt; /* due at once: dial the next address */
    struct event *late;    /* timeout: no answer, or no handshake in time */
    char why[ERR_TEXT_MAX];
};

struct conn {
    struct door_guest guest; /* while it is a stranger to its listener */
    struct event_base *base;
    struct tls *tls;            /* NULL: plain */
    const struct conn_ops *ops; /* NULL: no owner, and no callback */
    void *arg;
    enum conn_phase phase;
    int busy;
    struct conn_stream stream;
    struct tls_peer proved; /* valid after the handshake of a connection that was accepted */
    struct conn_in in;
    struct conn_out out;
    struct dial *dial;
    struct event *timer; /* timeout of the phase: handshake, greeting, lingering */
    /* an event for the next iteration of the loop: work that an owner's call has left */
    struct event *kick;
    bool dialled; /* this side has dialled: `opened` has to be called */
    bool greeted;
    bool ended;  /* the peer has ended the stream: no further input */
    bool broken; /* the input that is left is dropped */
    int64_t greeting_us;
    int64_t linger_us;
    pid_t pid;
    char peer[ADDRESS_TEXT_MAX];
    char why[ERR_TEXT_MAX];
};

#include "wire/conn_calls.h"

#endif
