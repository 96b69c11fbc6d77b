/*
 * reach.h: finds out where a host is: whether the host is this machine, and which address of this
 * machine the host can dial. Names are looked up on other threads, because a lookup may take long.
 */
#ifndef DRIVER_LAUNCH_REACH_H
#define DRIVER_LAUNCH_REACH_H

#include "base/err.h"

struct event_base;
struct reach;

#define REACH_ADDRESS_MAX 64

struct reach_answer {
    bool local;  /* true: the host is this machine */
    bool inside; /* true: `source` is a loopback address, which only this machine can dial */
    /* The address of this machine, as a numeric text, at which the host can dial it. */
    char source[REACH_ADDRESS_MAX];
};

/* The callback with the answer to one question (reach_ask). After a failure `answer` is NULL, and
 * `why` is the reason. */
typedef void reach_fn(void *arg, const char *host, const struct reach_answer *answer,
                      const char *why);

/* Creates a reach. `interfaces`: the names of --network-interface, of which one must have the
 * address `source`, even for a loopback host (see route.h); NULL: any interface may have it. Names
 * that do not exist are an error. */
int reach_create(struct event_base *base, const char *interfaces, reach_fn *answered, void *arg,
                 struct reach **ret_reach, struct hvd_err *err) MUST_CHECK;
void reach_free(struct reach *reach);

/* Asks where the host is. The answer comes later, from the event loop; the callback may free the
 * reach. Each question gets one answer, in any order. Returns 0 or HVD_E_NOMEM. */
int reach_ask(struct reach *reach, const char *host);

#endif
