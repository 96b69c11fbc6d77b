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
     * on the host. `memory` is NULL: pool_alloc allocates the memory on the host. */
    void *(*memory)(void *arg, size_t bytes);
    void *arg;
    size_t *counts; /* one entry for each member: gets how many numbers came from that member */
    /* gets the address of the received numbers, in the order of the members that sent them; NULL:
     * no numbers came */
    void *data;
};

struct coll_ranks { /* a group's ranks in rising order; count 0: this member is in no group */
    const uint32_t *items;
    uint32_t count;
};

/* The group of a call of COLL_OPEN or COLL_CLOSE, which all members of the round make. */
struct coll_opening {
    struct coll_ranks ranks; /* OPEN: this member's group; count 0: it is in none */
    uint32_t most; /* size of the largest group that the call opens; equal on all members */
    uint64_t hash; /* hash of everything that must be equal on all members */
    size_t group;  /* CLOSE: the number of the group */
};

struct coll_call {
    enum coll_kind kind; /* one of enum coll_kind (fingerprint.h) */
    size_t group;        /* 0: all members; i > 0: groups[i - 1] of struct coll_roster */
    hvd_dtype type;
    hvd_op op;
    double prescale, postscale; /* 0 counts as 1 */
    uint32_t root; /* BROADCAST, REDUCE, GATHER, SCATTER: the root's index in the group */
    const void *in;
    void *out;    /* the result; in a BROADCAST the root's numbers are here too */
    size_t count; /* how many numbers; if each member has a part: how many this one's part has */
    /* ALLGATHER: how many numbers each member gives. REDUCESCATTER: how many numbers each member
     * gets. ALLTOALL: how many numbers we give to each member. NULL: `count` for each. */
    const size_t *counts;
    /* ALLTOALL with counts: how many numbers each member gives to us */
    const size_t *out_counts;
    /* ALLTOALL with counts: member i gives given[i * size + k] numbers to member k. NULL: the
     * members do not know each other's counts yet. */
    const uint64_t *given;
    /* ALLGATHER_RAGGED, ALLTOALL_RAGGED: where the result goes. In an ALLGATHER_RAGGED this member
     * gives `count` numbers; in an ALLTOALL_RAGGED it gives counts[i] numbers to member i. */
    struct coll_received *received;
    /* OPEN, CLOSE: the group to open or close. All members make this call, with `group` 0. */
    struct coll_opening *opening;
    /* ALLREDUCE, BROADCAST: several buffers in one operation, instead of `in`, `out` and `count` */
    const struct coll_piece *pieces;
    size_t piece_count;
    /* how many requests of the program the pieces come from, at most FINGERPRINT_FUSED_MAX; 0: they
     * come from one call */
    uint32_t fused;
    uint64_t tag; /* the program's tag, which all members compare; 0: no tag */
    /* a call that is carried out as one of another kind (a reduce as a reducescatter, say): the
     * call of the program, which the fingerprint describes. NULL: the fingerprint describes this
     * call */
    const struct coll_call *shown;
    uint32_t *ret_last; /* JOIN: the rank that was the last to join */

    /* the GPU whose memory holds all buffers; NULL: they are in host memory */
    const struct gpu_device *device;
    /* the call is run after all work queued in this stream so far; NULL: in the default stream */
    struct CUstream_st *stream;
    bool by_host;  /* true: a call on memory of a GPU goes through the host, never through NCCL */
    bool streamed; /* true: the call returns when it is queued; false: when its result is ready */
};

#endif
