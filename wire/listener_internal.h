/*
 * listener_internal.h: the struct of a listener, which tests read and whose time limits tests
 * shorten; and the functions that make and free its socket.
 */
#ifndef WIRE_LISTENER_INTERNAL_H
#define WIRE_LISTENER_INTERNAL_H

#include "base/door.h"
#include "base/log.h"
#include "wire/listener.h"

#include <event2/event.h>

/* A socket that listens, and the file that names it. */
struct bound {
    int fd;     /* the listening socket; -1: none */
    int folder; /* descriptor of the folder of the file; -1: none */
    char *file; /* name of the file in the folder; NULL: there is no file */
    /* device and inode of the file that this process made: no other file is removed */
    dev_t device;
    ino_t inode;
};

#define BOUND_NONE         \
    (struct bound)         \
    {                      \
        -1, -1, NULL, 0, 0 \
    }

/* listener_bind.c: ret_bound is untouched on failure. */
int bound_tcp(const struct address *address, struct bound *ret_bound,
              struct hvd_err *err) MUST_CHECK;
int bound_unix(const char *name, struct bound *ret_bound, struct hvd_err *err) MUST_CHECK;
void bound_release(struct bound *bound);

struct listener {
    struct event_base *base;
    struct tls *tls; /* NULL: the listener has a Unix socket, whose peers the kernel names */
    listener_fn *accepted;
    void *arg;
    struct bound bound;
    struct event *arrival;        /* a peer waits to be accepted */
    struct event *pause;          /* timer: accepts again when it fires */
    struct door door;             /* the connections whose peers are strangers */
    int64_t greeting_us;          /* time limit from accepting to conn_greeted */
    struct log_limit turned_away; /* of the lines that say why a peer was turned away */
    struct log_limit failing;     /* of the lines that say why nothing can be accepted */
    listener_crowd_fn *crowded;   /* NULL: the owner does not want to know of crowds */
    const char *advice;           /* added to the line about a peer with another key; NULL: none */
    int64_t crowd_told_us;        /* when the owner was last told of a crowd */
    int busy;                     /* how many callbacks of the listener run */
    bool gone;     /* the owner has freed the listener: the last callback frees the memory */
    uint16_t port; /* the TCP port; 0: the listener has a Unix socket */
    char *address; /* the address or name at which it listens, for logs */
};

#endif
