/*
 * coll_channel.h: a channel, as channel.c and the files that free and fail rounds share it.
 */
#ifndef COLLECTIVES_COLL_CHANNEL_H
#define COLLECTIVES_COLL_CHANNEL_H

#include "collectives/coll_circle.h"
#include "collectives/coll_group.h"

/* The two members are a group, which meets in a circle of its own (circle.c). On one host they
 * share a board, otherwise they have a link. */
struct coll_channel {
    struct coll_group group;
    struct coll_circle circle;
    uint32_t peer; /* its rank */
    bool sends;    /* true: this member sends, and `peer` receives */

    /* for a thread that watches: the transfer in progress, or NULL; its number; bytes so far */
    _Atomic(const char *) operation;
    atomic_uint_fast64_t number, progress;
};

#endif
