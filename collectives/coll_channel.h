/*
 * coll_channel.h: a channel (channel.h), for channel.c and for the files that free and fail rounds.
 */
#ifndef COLLECTIVES_COLL_CHANNEL_H
#define COLLECTIVES_COLL_CHANNEL_H

#include "collectives/coll_circle.h"
#include "collectives/coll_group.h"

/* A channel. Its two members are a group, which meets in a circle of its own (circle.c). On one
 * host they share a board, otherwise they have a link. */
struct coll_channel {
    struct coll_group group;
    struct coll_circle circle;
    uint32_t peer; /* the rank of the other member */
    bool sends;    /* true: this member sends, and `peer` receives */

    /* for a thread that watches: the name of the transfer in progress (NULL: none), its number, and
     * how many bytes were moved so far */
    _Atomic(const char *) operation;
    atomic_uint_fast64_t number, progress;
};

#endif
