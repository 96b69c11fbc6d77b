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

/* The NCCL communicator of a group. Only the owner thread (which makes the calls) uses this struct;
 * any thread may read the two atomics. */
struct coll_comm {
    _Atomic(struct comm *) comm; /* NULL: not begun yet. Set once, with the mutex locked */
    /* true: a call used the communicator, so a failure of NCCL fails the round */
    atomic_bool used;
    bool given_up;      /* true: the group cannot use NCCL in this round */
    struct hvd_err why; /* the reason for `given_up` */
    /* since when calls go through the host because the communicator is not ready yet; 0: calls do
     * not wait for the communicator */
    int64_t awaited_us;
    /* true: the operator needs no (further) message that calls go through the host */
    bool remarked;
};

/* A group, and the objects with which its members work. */
struct coll_group {
    struct group group;
    struct board *board; /* NULL: every member of the group is alone on its host */
    /* index of the board in the segment; SIZE_MAX: the group has no board there */
    size_t board_index;
    struct lane lane; /* the group's lane; size 1: none, or this member is in none */
    uint64_t number;  /* how many operations the group has begun */
    /* how many chunks were handled at the group's board, which is the number of the next chunk */
    uint64_t turn;
    const void **sources; /* scratch array: an address for each member on this host */
    struct trials trials; /* of the algorithms of an allreduce */
    struct coll_comm nccl;

    /* messages over links to all other members of the group; the first operation that needs such
     * links makes them */
    struct traffic mesh;
    struct link *mesh_link; /* the link for `mesh`; protected by the round's mutex */
    struct lane mesh_lane;  /* all members of the group, over `mesh` */

    /* messages of a group that was opened while the round runs; other groups use the traffic of
     * the round */
    struct traffic own;
    struct link *own_link; /* the link for `own`; protected by the round's mutex */

    /* of a group that its members alone have opened (circle.c): how they meet, and their link and
     * segment; NULL for every other group */
    struct coll_circle *circle;
};

#endif
