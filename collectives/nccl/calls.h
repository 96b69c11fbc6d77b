/*
 * calls.h: a coll_call (one operation) as calls of NCCL. The caller's thread plans the calls, in
 * memory that does not belong to the caller, because the NCCL thread may issue them after the
 * caller has returned.
 */
#ifndef COLLECTIVES_NCCL_CALLS_H
#define COLLECTIVES_NCCL_CALLS_H

#include "collectives/coll.h"
#include "gpu/nccl.h"

enum step_kind {
    STEP_ALLREDUCE,
    STEP_BROADCAST,
    STEP_REDUCE,
    STEP_ALLGATHER,
    STEP_REDUCESCATTER,
    STEP_SEND,
    STEP_RECEIVE,
};

struct step { /* one call of NCCL */
    enum step_kind kind;
    int peer; /* the peer's or the root's rank */
    const void *in;
    void *out;
    size_t count;
};

#define CALLS_FEW 8 /* so many steps need no allocated memory */

struct calls {
    const char *name; /* the name for errors: "allreduce" */
    /* NCCL's numbers of the element type and of the op. `scaled` is true: `op` is an op that is
     * made for the scale, and is valid only while `op_made` is true */
    int type, op;
    size_t unit; /* how many of `type` one number is: 1; its bytes, for a type that NCCL lacks */
    bool scaled, op_made;
    uint64_t factor;    /* the scale factor, as the bytes of one number of `type` */
    struct step *steps; /* the plan, in the order of issue */
    size_t count, room;
    struct step few[CALLS_FEW]; /* `steps` points here while the array is large enough */
};

void calls_init(struct calls *calls);
void calls_release(struct calls *calls);

/* Plans the NCCL calls of the member with this rank in a group of this size; replaces the earlier
 * plan. calls->count is 0 afterwards: there is nothing to do. HVD_E_NOMEM: no memory is left. */
int calls_plan(struct calls *calls, const struct coll_call *call, uint32_t rank,
               uint32_t size) MUST_CHECK;

/* Issues all planned calls as one group of NCCL, which is one launch. Returns NCCL's code, which
 * may be NCCL_IN_PROGRESS. */
int calls_issue(struct calls *calls, const struct nccl *nccl, struct ncclComm *comm,
                struct CUstream_st *stream) MUST_CHECK;

/* Destroys the op that calls_issue has made for a scale; called after the launch. Returns
 * NCCL's code. */
int calls_forget_op(struct calls *calls, const struct nccl *nccl, struct ncclComm *comm) MUST_CHECK;

#endif
