/*
 * call.h: one call of a collective, as the training program asks for it.
 */
#ifndef COLLECTIVES_CALL_H
#define COLLECTIVES_CALL_H

#include "collectives/fingerprint.h"

struct CUstream_st;
struct gpu_device;

struct coll_piece { /* one of several buffers that are reduced in one operation */
    const void *in;
    void *out;
    size_t count;
};

/* Where the result of a ragged operation goes. `counts` must stay until the call has ended. */
struct coll_received {
    /* returns `bytes` bytes of memory for the result: on the GPU if the call's `in` is there, else
     * on the host. NULL: pool_alloc allocates the memory on the host. */
    void *(*memory)(void *arg, size_t bytes);
    void *arg;
    size_t *counts; /* one entry for each member: gets how many numbers came from that member */
    /* gets the address of the received numbers, in the order of the members; NULL: no numbers
     * came */
    void *data;
};

struct coll_ranks { /* a group's ranks in rising order; count 0: this member is in no group */
    const uint32_t *items;
    uint32_t count;
};

/* A group that is opened while the round runs. */
struct coll_opening {
    struct coll_ranks
        ranks;     /* the ranks of this member's group; count 0: this member is in no group */
    uint32_t most; /* the size of the largest group that the call opens; equal on all members */
    uint64_t hash; /* hash of everything that must be equal on all members */
    size_t group;  /* CLOSE: the group's number */
};

struct coll_call {
    enum coll_kind kind; /* one of enum coll_kind (fingerprint.h) */
    size_t group;        /* 0: all members; i > 0: the group i - 1 of the roster */
    hvd_dtype type;
    hvd_op op;
    double prescale, postscale; /* 0 counts as 1 */
    uint32_t root; /* BROADCAST, REDUCE, GATHER, SCATTER: the root's index in the group */
    const void *in;
    void *out; /* BROADCAST: both input and output */
    size_t count;
    /* ALLGATHER: how many numbers each member gives. REDUCESCATTER: how many numbers each member
     * gets. ALLTOALL: how many numbers we give to each member. NULL: `count` for each. */
    const size_t *counts;
    /* ALLTOALL with counts: how many numbers each member sends to us */
    const size_t *out_counts;
    /* ALLTOALL with counts: given[i * size + k] numbers go from member i to member k. NULL: the
     * members do not know each other's counts yet. */
    const uint64_t *given;
    /* ALLGATHER_RAGGED, ALLTOALL_RAGGED: where the result goes. ALLGATHER_RAGGED gives `count`
     * numbers; ALLTOALL_RAGGED gives counts[i] numbers to member i. */
    struct coll_received *received;
    /* OPEN, CLOSE: the group. All members of the round make the call, with `group` 0. */
    struct coll_opening *opening;
    /* ALLREDUCE or BROADCAST of several buffers: used instead of `in`, `out` and `count` */
    const struct coll_piece *pieces;
    size_t piece_count;
    /* how many started requests the pieces come from, at most FINGERPRINT_FUSED_MAX; 0: the pieces
     * come from no request */
    uint32_t fused;
    uint64_t tag; /* the program's tag, which all members compare; 0: no tag */
    /* the call that the fingerprint describes, if a call of another kind carries that call out;
     * NULL: the fingerprint describes the call itself */
    const struct coll_call *shown;
    uint32_t *ret_last; /* JOIN: the rank that was the last to join */

    /* the GPU whose memory holds all buffers; NULL: they are in host memory */
    const struct gpu_device *device;
    /* the call runs after all work queued in this stream; NULL: the default stream */
    struct CUstream_st *stream;
    bool by_host;  /* true: a call on memory of a GPU goes through the host, never through NCCL */
    bool streamed; /* true: the call returns when it is queued; false: when its result is ready */
};

#endif
