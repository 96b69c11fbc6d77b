/*
 * listener_state.h: what a test may look at and shorten.
 */
#ifndef WIRE_LISTENER_STATE_H
#define WIRE_LISTENER_STATE_H

#include "base/list.h"
#include "base/log.h"
#include "wire/listener.h"
#include "wire/listener_bind.h"

#include <event2/event.h>

struct listener {
    struct event_base *base;
    struct tls *tls; /* NULL: a Unix socket */
    listener_fn *accepted;
    void *arg;
    struct bound bound;
    struct event *arrival;
    struct event *pause;   /* until it accepts again */
    struct list strangers; /* the oldest first */
    size_t stranger_count;
    size_t strangers_max;
    int64_t greeting_us; /* from accepting to conn_greeted */
    struct log_limit turned_away;
    struct log_limit failing;
    int busy;
    bool gone;
    uint16_t port;
    char *address;
};

#endif
