/*
 * coll_group.h: a group of a round, with the objects that its members work with. Group 0 has all
 * members; the other groups were made by hvd_group_create, or opened in the round (opened.c).
 * group.h says on which host each member is.
 */
#ifndef COLLECTIVES_COLL_GROUP_H
#define COLLECTIVES_COLL_GROUP_H

#include "collectives/algorithms.h"
#include "collectives/group.h"
#include "collectives/lane/lane.h"
#include "collectives/shm/board.h"

#include <stdatomic.h>

struct coll_circle;

/* The NCCL communicator of a group. Only the owner thread uses it; any thread may read the two
 * atomics. */
struct coll_comm {
    _Atomic(struct comm *) comm; /* NULL: not begun yet. Set once, with the mutex locked */
    /* true: a call used the communicator, so a failure of NCCL fails the round */
    atomic_bool used;
    bool given_up;      /* true: the group cannot use NCCL in this round */
    struct hvd_err why; /* the reason for `given_up` */
    /* since this time calls go through the host because the communicator is not ready; 0: calls use
     * the communicator */
    int64_t awaited_us;
    /* true: no message to the operator about calls through the host is needed any more */
    bool remarked;
};

/* A group, and the objects that its members work with. */
struct coll_group {
    struct group group;
    struct board *board; /* NULL: every member of the group is alone on its host */
    /* index of the board in the segment; SIZE_MAX: the group has no board there */
    size_t board_index;
    struct lane lane; /* size 1: the group has no lane, or this member is in none */
    uint64_t number;  /* number of operations of the group so far */
    /* number of chunks on the group's board so far, which is the number of the next chunk */
    uint64_t turn;
    const void **sources; /* scratch array: one address for each member on this host */
    struct trials trials;
    struct coll_comm nccl;

    /* traffic over links to all other members of the group; made by the first operation that needs
     * it */
    struct traffic mesh;
    struct link *mesh_link; /* protected by the round's mutex */
    struct lane mesh_lane;

    /* the traffic of a group that was opened while the round runs; other groups use the traffic of
     * the round */
    struct traffic own;
    struct link *own_link; /* protected by the round's mutex */

    /* of a group that its members alone have opened (circle.c): where they meet, and what they
     * make there; NULL for every other group */
    struct coll_circle *circle;
};

#endif
