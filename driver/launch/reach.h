/*
 * reach.h: finds out where a host is: whether the host is this machine, and which address of this
 * machine the host can dial. Names are looked up on a thread, because a lookup may take long.
 */
#ifndef DRIVER_LAUNCH_REACH_H
#define DRIVER_LAUNCH_REACH_H

#include "base/err.h"

struct event_base;
struct reach;

#define REACH_ADDRESS_MAX 64

struct reach_answer {
    bool local;  /* the host is this machine */
    bool inside; /* only this machine can dial `source` */
    /* The numeric address of this machine on the route to the host. */
    char source[REACH_ADDRESS_MAX];
};

/* The callback for one question. `answer` is NULL after a failure; then `why` says the reason. */
typedef void reach_fn(void *arg, const char *host, const struct reach_answer *answer,
                      const char *why);

/* Creates a reach. `interfaces`: one of these interfaces must have the address `source`, even for a
 * loopback host (see route.h); NULL: any interface may have it. The names are checked. */
int reach_create(struct event_base *base, const char *interfaces, reach_fn *answered, void *arg,
                 struct reach **ret_reach, struct hvd_err *err) MUST_CHECK;
void reach_free(struct reach *reach);

/* Asks where the host is. The answer comes later, from the event loop; the callback may free the
 * reach. Each question gets one answer, in any order. Returns 0 or HVD_E_NOMEM. */
int reach_ask(struct reach *reach, const char *host);

#endif
