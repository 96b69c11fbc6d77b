/*
 * call.h: one collective, as it is asked for.
 */
#ifndef COLLECTIVES_CALL_H
#define COLLECTIVES_CALL_H

#include "collectives/accord.h"

struct CUstream_st;
struct gpu_device;

struct coll_piece { /* one of several buffers that travel as one */
    const void *in;
    void *out;
    size_t count;
};

struct coll_call {
    enum coll_kind kind; /* accord.h */
    size_t group;        /* 0: all members; i: the roster's group i - 1 */
    hvd_dtype type;
    hvd_op op;
    double prescale, postscale; /* 0 stands for 1 */
    uint32_t root;              /* BROADCAST: its place in the group */
    const void *in;
    void *out; /* BROADCAST: both ways */
    size_t count;
    const size_t *counts; /* ALLGATHER, REDUCESCATTER: of each member, or NULL: count is of each;
                           * ALLTOALL: to each member, or NULL */
    const size_t *out_counts;        /* ALLTOALL with counts: from each member */
    const struct coll_piece *pieces; /* ALLREDUCE of several, instead of in, out, count */
    size_t piece_count;
    uint32_t *ret_last; /* JOIN: the rank that was the last to join */

    const struct gpu_device *device; /* whose memory all its buffers are; NULL: the host's */
    struct CUstream_st *stream;      /* what they wait for: all that is queued there; NULL: in the
                                      * default stream */
    bool streamed; /* it returns when it is queued there, else when the result is there */
};

#endif
