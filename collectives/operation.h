/*
 * operation.h: an operation in progress, as run.c hands it to the file that does it.
 *
 *     run.c: is it allowed? ──► allreduce.c, ...: in what chunks? ──► stages.c or a lane
 *                                                                        └──► opening.c
 */
#ifndef COLLECTIVES_OPERATION_H
#define COLLECTIVES_OPERATION_H

#include "collectives/coll_inside.h"
#include "collectives/shm/pool.h"

struct operation {
    struct coll *coll;
    struct coll_group *group;
    const struct coll_call *call; /* of one that has joined: without buffers */
    struct accord accord;         /* ours; of one that has joined, what it has learnt */
    bool joined;
    uint64_t turn;               /* of the board's memory: of the first chunk */
    uint64_t joins;              /* bit per seat below 64: see operation_gives */
    uint32_t givers;             /* members on this host that have not joined */
    struct pool_locator in, out; /* bytes 0: the others cannot read them */
    bool on_lane;                /* its lane has been opened */

    size_t bytes;  /* ALLREDUCE: so much of */
    uint32_t ways; /* so many, of which one is taken: ways.h */
    bool tries;
    int64_t begun_us; /* if it tries */
};

/* What a member says to the others on its board. */
struct said {
    struct accord accord;
    struct pool_locator in, out;
};

/* run.c: so many lanes take part, the first ones. Depends on what all members know alone. */
uint32_t operation_lanes(const struct operation *operation);

/* opening.c. What all members mean is held together: HVD_E_MISMATCH if it differs. With a board it
 * is a step of it. HVD_DONE: all have joined, and *ret_last was the last. */
int operation_open(struct operation *operation, uint32_t *ret_last) MUST_CHECK;
bool operation_gives(const struct operation *operation, uint32_t seat); /* it has not joined */

/* Opens the lane of this member, if it has not been; first: see lane_open_with; NULL. */
int operation_open_lane(struct operation *operation, const void *first, size_t length) MUST_CHECK;

/* stages.c. An operation in chunks over a board, in two or three stages, each of them a step behind
 * the one before. NULL: it has no such stage. */
struct stages {
    size_t chunks;
    void (*in)(void *arg, size_t chunk, uint64_t turn);    /* to our stage */
    int (*middle)(void *arg, size_t chunk, uint64_t turn); /* from all stages to the result */
    void (*out)(void *arg, size_t chunk, uint64_t turn);   /* from there */
    void *arg;
};
int stages_run(struct operation *operation, const struct stages *stages) MUST_CHECK;
/* The same in parts: the first chunk goes in, a step (that of the opening), the rest. */
void stages_begin(const struct operation *operation, const struct stages *stages);
int stages_go_on(struct operation *operation, const struct stages *stages) MUST_CHECK;

/* Before a step after anything that went along a lane: what a link has not sent yet moves only
 * while we are in it, and peers of those who wait here for us may wait for it. */
int operation_settle(const struct operation *operation) MUST_CHECK;

/* What is dealt out among several: the one at `place` of `count` gets *ret_length from the returned
 * place on. In whole cache lines where it can be. */
size_t share_of(size_t length, size_t bytes, uint32_t place, uint32_t count, size_t *ret_length);

/* run.c: sums are in the order of ranks also between hosts. */
bool operation_is_ordered(const struct operation *operation);

/* run.c: one that another needs first, by all its members. */
int operation_before(struct operation *operation, const struct coll_call *call) MUST_CHECK;

/* run.c: a whole operation of our own, by all members of the group. */
int operation_inside(struct coll *coll, struct coll_group *group,
                     const struct coll_call *call) MUST_CHECK;

/* run.c: the opening of a call on memory of a device; with it each member says something, and all
 * get the sum. Who has joined says nothing. */
#define OPERATION_VOTES 3
int operation_vote(struct coll *coll, struct coll_group *group, const struct coll_call *call,
                   const int32_t own[OPERATION_VOTES],
                   int32_t ret_sums[OPERATION_VOTES]) MUST_CHECK;

/* mesh.c: the group's mesh_lane has all its members, each connected to each. */
int operation_mesh(struct operation *operation) MUST_CHECK;

/* direct.c: an allreduce of memory that others can read. Offered before the opening; when all have,
 * it is done so; when some have, all know it. */
enum direct_extent { DIRECT_NONE, DIRECT_SOME, DIRECT_ALL };
void direct_offer(struct operation *operation);
enum direct_extent direct_offered(const struct operation *operation);
int direct_run(struct operation *operation, const struct reduction *how) MUST_CHECK;

/* The files of each kind; codes are for coll_run, which knows more. */
int allreduce_run(struct operation *operation) MUST_CHECK;
int allreduce_go_on(struct operation *operation) MUST_CHECK; /* one that has joined */
uint32_t allreduce_lanes(const struct operation *operation);
void allreduce_choose(struct operation *operation); /* its way */
bool allreduce_note(struct operation *operation);   /* true: all have been tried */
/* Its lane is opened together with its first step. */
bool allreduce_opens_late(const struct operation *operation);
int broadcast_run(struct operation *operation) MUST_CHECK;
int allgather_run(struct operation *operation) MUST_CHECK;
int reducescatter_run(struct operation *operation) MUST_CHECK;
int alltoall_run(struct operation *operation) MUST_CHECK;
/* What one gives is what the other expects, of all pairs: HVD_E_MISMATCH. An operation of its own,
 * by all members; ret_most: of any two. */
int alltoall_agree(struct coll *coll, struct coll_group *group, const struct coll_call *call,
                   size_t *ret_most) MUST_CHECK;
int barrier_run(struct operation *operation) MUST_CHECK;
int barrier_go_on(struct operation *operation) MUST_CHECK;

#endif
