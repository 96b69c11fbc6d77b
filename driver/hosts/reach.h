/*
 * reach.h: where a host is: whether it is this machine, and which of our addresses it would dial.
 * Names are looked up on a thread, as that may take long.
 */
#ifndef DRIVER_HOSTS_REACH_H
#define DRIVER_HOSTS_REACH_H

#include "base/err.h"

struct event_base;
struct reach;

#define REACH_ADDRESS_MAX 64

struct reach_answer {
    bool local;                     /* the name is an address of this machine */
    bool inside;                    /* what dials the source: nobody but this machine */
    char source[REACH_ADDRESS_MAX]; /* ours, numeric, on the way to it */
};

/* answer is NULL when there is none: why */
typedef void reach_fn(void *arg, const char *host, const struct reach_answer *answer,
                      const char *why);

/* interface: NULL, or the one whose address is the source ("eth0"), of a loopback host too; checked
 * here. */
int reach_create(struct event_base *base, const char *interface, reach_fn *answered, void *arg,
                 struct reach **ret_reach, struct hvd_err *err) MUST_CHECK;
void reach_free(struct reach *reach);

/* Answered later, from the loop, where the reach may be freed; once for each ask, and not always in
 * their order. 0 or HVD_E_NOMEM. */
int reach_ask(struct reach *reach, const char *host);

#endif
