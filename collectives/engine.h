/*
 * engine.h: what a process needs for all its rounds: where its peers find it, a thread for what
 * takes time, and what its links have in common. One for a process.
 */
#ifndef COLLECTIVES_ENGINE_H
#define COLLECTIVES_ENGINE_H

#include "base/err.h"

struct coll_engine;

enum coll_carrier { COLL_BY_BEST, COLL_BY_GLOO, COLL_BY_TCP }; /* TCP: without Gloo */

struct coll_options {
    const char *host;          /* the numeric address that peers reach this machine by */
    enum coll_carrier carrier; /* the link: HVD_CPU_OPERATIONS */
    bool flat;                 /* over the link also inside a host: when a carrier was asked for */
    bool fixed_order;    /* sums in rank order: the bits depend on the size of the round alone */
    size_t fusion_bytes; /* so much of several buffers travels as one; 0: the default */
};

/* The contact is what peers need to know beyond the address, to be carried to them unread:
 * "10.0.0.7:4002/SECRET" (PROTOCOL.md, "Addresses"). */
int coll_engine_open(const struct coll_options *options, struct coll_engine **ret_engine,
                     struct hvd_err *err) MUST_CHECK;
/* After every coll of it; waits for the reaper. */
void coll_engine_close(struct coll_engine *engine);
const char *coll_engine_contact(const struct coll_engine *engine);

#endif
