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

/* Called when the handshake is over. `why` NULL: the other side has proved that it has the key;
 * else the reason of the failure. */
typedef void conn_handshake_fn(void *arg, struct conn *conn, const char *why);

/* The most bytes of input that may wait to be handed on to the owner. Usually only the bytes of one
 * read wait; more wait on a connection that has ended while its reading was held. */
#define CONN_IN_MAX (1024 * 1024)

/* conn_stream_get and conn_stream_put return a count of bytes, or one of these. */
#define STREAM_END    0
#define STREAM_LATER  (-1)
#define STREAM_BROKEN (-2)

struct conn_stream {
    int fd; /* the socket; -1: not connected yet */
    /* TLS; NULL: the connection carries plain bytes, or the handshake has not begun */
    struct ssl_st *session;
    bool serves; /* this side is the server of the handshake */
    struct event *readable;
    struct event *writable;
    /* TLS waits until the socket is writable, also if it was reading: the writable event goes on */
    bool crossed;
    conn_handshake_fn *done; /* called when the handshake is over */
    void *done_arg;
};

struct conn_in {
    struct buf bytes; /* input from index `at` on is not handed on yet */
    size_t at;
    struct frame_reader reader;
    bool held;        /* the owner wants no messages now (conn_hold) */
    bool bulk;        /* many large frames are expected (conn_bulk) */
    bool reading_now; /* conn_read_now runs: messages are handed on although reading is held */
};

struct conn_out {
    struct buf bytes; /* bytes from index `at` on are unsent */
    size_t at;
    struct msg_bytes lent; /* borrowed data that is sent after `bytes` */
    /* unsent bytes were above CONN_HIGH_BYTES, and `drained` has not been called since */
    bool above_high;
    bool when_sent; /* `drained` has to be called when no byte is unsent */
    /* while lingering: all bytes are sent, and this side of the stream is shut down */
    bool finished;
};

struct dial {
    struct address addresses[LIMIT_ADDRESSES];
    size_t count;
    size_t next;           /* index of the address that the next attempt dials */
    int fd;                /* the socket that is being connected; -1: none */
    struct event *opened;  /* event: `fd` is writable, so connect() has succeeded or failed */
    struct event *attempt; /* event, due at once: dials the next address */
    struct event *late; /* timer of the attempt: connect() and the handshake have taken too long */
    char why[ERR_TEXT_MAX];
};

struct conn {
    /* place among the strangers of its listener, until the peer has proved its key */
    struct door_guest guest;
    struct event_base *base;
    struct tls *tls; /* the keys; NULL: plain bytes */
    /* the owner's callbacks; NULL: there is no owner, and no callback is made */
    const struct conn_ops *ops;
    void *arg;
    enum conn_phase phase;
    int busy;
    struct conn_stream stream;
    struct tls_peer proved; /* valid after the handshake of a connection that was accepted */
    struct conn_in in;
    struct conn_out out;
    struct dial *dial;
    struct event *timer; /* timeout of the phase: handshake, greeting, lingering */
    /* due at once when a call of the owner has left work to the event loop */
    struct event *kick;
    /* this side has dialled the peer, so `opened` is called when the connection is up */
    bool dialled;
    bool greeted;
    bool ended;  /* no further input comes: the peer or an error has ended the stream */
    bool broken; /* input that has not been handed on is dropped */
    int64_t greeting_us;
    int64_t linger_us;
    pid_t pid;
    char peer[ADDRESS_TEXT_MAX];
    char why[ERR_TEXT_MAX];
};

#include "wire/conn_calls.h"

#endif
