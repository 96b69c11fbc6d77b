/*
 * calls.h: a coll_call as calls of NCCL. The caller's thread plans the calls, in memory that does
 * not belong to the caller, because the NCCL thread may issue them after the caller has returned.
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

struct step {
    enum step_kind kind;
    int peer; /* the peer's or the root's rank */
    const void *in;
    void *out;
    size_t count;
};

#define CALLS_FEW 8

struct calls {
    const char *name; /* the name for errors: "allreduce" */
    /* NCCL's numbers of the element type and the reduction; if `scaled` is true, `op` is valid only
     * while `op_made` is true */
    int type, op;
    size_t unit; /* how many of that type one element is: 1; bytes, for a type that NCCL lacks */
    bool scaled, op_made;
    uint64_t factor; /* the scale factor, as the bytes of one number of the type */
    struct step *steps;
    size_t count, room;
    struct step few[CALLS_FEW]; /* `steps` points here while the array is large enough */
};

void calls_init(struct calls *calls);
void calls_release(struct calls *calls);

/* Plans the calls of the member `rank` of a group of this size; replaces the earlier plan. If
 * calls->count is 0 afterwards, there is nothing to do. HVD_E_NOMEM: no memory is left. */
int calls_plan(struct calls *calls, const struct coll_call *call, uint32_t rank,
               uint32_t size) MUST_CHECK;

/* Issues all calls as one group of NCCL, which is one launch. Returns NCCL's code, which may be "in
 * progress". */
int calls_issue(struct calls *calls, const struct nccl *nccl, struct ncclComm *comm,
                struct CUstream_st *stream) MUST_CHECK;

/* Destroys the op that was created for a scale; called after the launch. */
int calls_forget_op(struct calls *calls, const struct nccl *nccl, struct ncclComm *comm) MUST_CHECK;

#endif
