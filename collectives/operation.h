/*
 * operation.h: one operation in progress (one collective call on all members of a group). Each kind
 * of operation has a file of its own; the picture says which file calls which.
 *
 *     dispatch.c ──► allreduce.c, broadcast.c, ... ──► stages.c, or a lane
 *                     └──► opening.c: compares what all members run
 */
#ifndef COLLECTIVES_OPERATION_H
#define COLLECTIVES_OPERATION_H

#include "collectives/coll_internal.h"
#include "collectives/shm/pool.h"

struct operation {
    struct coll *coll;
    struct coll_group *group;
    /* the program's call; for a rank that has joined (hvd_join): a call without buffers */
    const struct coll_call *call;
    /* the fingerprint of our operation; for a rank that has joined: that of the other members'
     * operation */
    struct fingerprint fingerprint;
    bool joined;     /* true: this rank has joined */
    uint64_t turn;   /* the number of the operation's first chunk on the board */
    uint64_t joins;  /* bit i is 1: the member with index i on our host has joined (i < 64) */
    uint32_t givers; /* number of members on this host that have not joined */
    /* where the other members of this host find our buffers, which are in memory of hvd_alloc;
     * `bytes` is 0: they cannot read the buffer */
    struct pool_locator in, out;
    bool on_lane; /* true: this member has opened the lane for this operation */

    /* ALLREDUCE: the fields below are for the trials of algorithms (algorithms.h). */
    size_t bytes;        /* the size of the numbers in their own type */
    uint32_t algorithms; /* how many algorithms are tried */
    bool tries;          /* true: this operation is a trial */
    int64_t begun_us;    /* when a trial began; valid during a trial */
};

/* The record that a member writes at the board to open an operation. A worker with an older libhvd
 * writes 0 to the last field. */
struct board_opening {
    struct fingerprint fingerprint;
    struct pool_locator in, out;
    int64_t arrived_us; /* when the member made the call, for the timeline; 0: unknown */
};

/* ---- operation.c ---- */

/* Prepares the next operation of the group. */
struct operation operation_make(struct coll *coll, struct coll_group *group,
                                const struct coll_call *call);
/* Returns what the fingerprint says of the counts of a call: one number. */
uint64_t operation_count(const struct coll_group *group, const struct coll_call *call);

/* true: --fixed-order is given, and the operation has several hosts; so numbers are added in the
 * order of ranks. */
bool operation_is_ordered(const struct operation *operation);

/* Waits until the messages that the link has begun are sent and received. Called before each
 * board step that follows a message along a lane. The link moves bytes only while a thread is in
 * one of its operations, so a member that waits at the board sends nothing. Without this call,
 * another host could wait for our bytes while this member waits, at the board, for a member of this
 * host that waits for that other host. */
int operation_settle(const struct operation *operation) MUST_CHECK;

/* Returns memory for the operation in progress; NULL: out of memory. The memory that an earlier
 * call has returned is no longer valid. */
void *coll_scratch(struct coll *coll, size_t bytes);

/* Divides `length` items of `element_bytes` each among `count` members. Returns where the share of
 * member `index` begins; *ret_length: its length. Shares are whole cache lines where possible. */
size_t share_of(size_t length, size_t element_bytes, uint32_t index, uint32_t count,
                size_t *ret_length);

/* ---- opening.c ---- */

/* Opens the operation: compares the fingerprints of all members. If the group has a board, the
 * comparison takes one step of the board. 0: all members run the same operation. HVD_E_MISMATCH:
 * the fingerprints differ. HVD_DONE: all members have called hvd_join; *ret_last: the rank that
 * called it last. */
int operation_open(struct operation *operation, uint32_t *ret_last) MUST_CHECK;

/* Waits until the round ends, and returns HVD_E_REVOKED. Called when another member has said that
 * it makes no further call (COLL_END): no operation can run without that member. */
int operation_await_end(struct coll *coll) MUST_CHECK;
/* true: the member with this index on our host gives numbers, that is, has not joined. */
bool operation_gives(const struct operation *operation, uint32_t local);
/* Returns what that member has written at the board to open this operation. */
const struct board_opening *operation_opening(const struct operation *operation, uint32_t local);

/* Opens the lane of this member, unless it is open already. first: the bytes that the first step
 * would send, which the opening message then carries (lane_open_with); may be NULL. */
int operation_open_lane(struct operation *operation, const void *first, size_t length) MUST_CHECK;

/* ---- stages.c: an operation in chunks over a board, in two or three stages ---- */

struct stages { /* of an operation; a function may be NULL: there is no such stage */
    size_t chunks;
    /* copies a chunk of the input to our stage memory on the board */
    void (*in)(void *arg, size_t chunk, uint64_t turn);
    /* reduces the stage memories of all members to the result on the board */
    int (*middle)(void *arg, size_t chunk, uint64_t turn);
    void (*out)(void *arg, size_t chunk, uint64_t turn); /* copies the result to the output */
    void *arg;
};
int stages_run(struct operation *operation, const struct stages *stages) MUST_CHECK;
/* stages_begin and stages_go_on do what stages_run does, in two parts. stages_begin copies the
 * first chunk to our stage memory; then the caller makes a step of the board (the step of the
 * opening); stages_go_on does the rest. So the first chunk needs no step of its own. */
void stages_begin(const struct operation *operation, const struct stages *stages);
int stages_go_on(struct operation *operation, const struct stages *stages) MUST_CHECK;

#endif
