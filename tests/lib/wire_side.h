/*
 * wire_side.h: one loop with listeners and connections on it, and somebody at each end who notes
 * what he is told. Every wait is bounded.
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
    struct conn *conn; /* NULL when it is closed */
    int opened;
    int messages;
    int drained;
    int closed;
    uint64_t last; /* the sequence of the last BEAT */
    bool in_order; /* each BEAT was the one after the last */
    enum msg_type type;
    size_t bytes; /* of OUTPUT */
    char why[ERR_TEXT_MAX];
    void (*on_msg)(struct wire_side *side, const struct msg *msg); /* NULL, or: what it does */
};

struct wire {
    struct event_base *base;
    struct event *guard;
    struct tls *tls;
    struct listener *listener;
    struct wire_side client;
    struct wire_side server; /* the last one that came in */
    int accepted;
    bool late;
    bool starved;
    bool keep; /* the next ones that come in go to nobody */
    unsigned log_lines;
    char log[WIRE_LOG_LINES][256];
};

/* Fills in the loop and the key of the job "job". False: no memory. */
bool wire_begin(struct wire *wire);
void wire_end(struct wire *wire);

/* A listener on the loopback (TLS), or on a name (plain). */
int wire_listen(struct wire *wire) MUST_CHECK;
int wire_listen_unix(struct wire *wire, const char *name) MUST_CHECK;

/* The client dials it. */
int wire_dial(struct wire *wire, struct tls *tls) MUST_CHECK;
int wire_dial_unix(struct wire *wire, const char *name) MUST_CHECK;

/* Both ends are open, over TLS or plainly; false: they are not. */
bool wire_connect(struct wire *wire);
bool wire_connect_unix(struct wire *wire);

/* One turn of the loop; false when it has taken too long. */
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

/* A plain TCP socket that is connected to the listener; blocks. */
int wire_stranger(const struct wire *wire);

/* Lines of the log that hold the part. */
unsigned wire_logged(const struct wire *wire, const char *part);

#endif
