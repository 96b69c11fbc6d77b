/*
 * wire_side.h: an event loop with a listener and a connection, and at each end an owner that notes
 * the callbacks that it gets. Every wait is bounded.
 */
#ifndef TESTS_LIB_WIRE_SIDE_H
#define TESTS_LIB_WIRE_SIDE_H

#include "tests/lib/test.h"
#include "wire/listener.h"

#include <event2/event.h>

#define WIRE_LOG_LINES 64

/* One end of a connection. */
struct wire_side {
    struct wire *wire;
    struct conn *conn; /* NULL: it is closed */
    int opened;
    int messages;
    int drained;
    int closed;
    uint64_t last; /* the sequence number of the last BEAT */
    bool in_order; /* true: each BEAT had the number after that of the one before */
    enum msg_type type;
    size_t bytes; /* bytes of OUTPUT received */
    char why[ERR_TEXT_MAX];
    /* called for each message; may be NULL */
    void (*on_msg)(struct wire_side *side, const struct msg *msg);
};

struct wire {
    struct event_base *base;
    struct event *guard;
    struct tls *tls;
    struct listener *listener;
    struct wire_side client;
    struct wire_side server; /* the newest connection that was accepted */
    int accepted;
    bool late;
    bool starved;
    bool keep; /* true: connections that are accepted from now on get no owner */
    unsigned log_lines;
    char log[WIRE_LOG_LINES][256];
};

/* Makes the event loop and the key of a job with the name "job". false: no memory. */
bool wire_begin(struct wire *wire);
void wire_end(struct wire *wire);

/* Listens on the loopback address (TLS), or on a Unix socket with this name (plain). */
int wire_listen(struct wire *wire) MUST_CHECK;
int wire_listen_unix(struct wire *wire, const char *name) MUST_CHECK;

/* The client dials the listener. */
int wire_dial(struct wire *wire, struct tls *tls) MUST_CHECK;
int wire_dial_unix(struct wire *wire, const char *name) MUST_CHECK;

/* Dials and waits until both ends are open, over TLS or plain; false: they do not open. */
bool wire_connect(struct wire *wire);
bool wire_connect_unix(struct wire *wire);

/* Runs one iteration of the event loop; false: the waits have taken too long. */
bool wire_turn(struct wire *wire);
#define WIRE_UNTIL(wire, condition)             \
    do {                                        \
        while (!(condition) && wire_turn(wire)) \
            ;                                   \
    } while (0)

extern const struct conn_ops wire_side_ops;
void wire_drop(struct wire_side *side);

int wire_send_beat(struct wire_side *side, uint64_t sequence) MUST_CHECK;
int wire_send_output(struct wire_side *side, size_t bytes) MUST_CHECK;

/* Connects a plain TCP socket to the listener, and blocks meanwhile. */
int wire_stranger(const struct wire *wire);

/* The number of lines of the log that contain the part. */
unsigned wire_logged(const struct wire *wire, const char *part);

#endif
