/*
 * calls.h: what a coll_call is in calls of NCCL. Whoever makes the call plans it, in memory that is
 * not the caller's; the hand issues it, when the caller may be gone already.
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
    int peer; /* or root */
    const void *in;
    void *out;
    size_t count;
};

#define CALLS_FEW 8

struct calls {
    const char *name; /* for people: "allreduce" */
    int type, op;     /* as NCCL numbers them; op: once it is made, if it is scaled */
    bool scaled, op_made;
    uint64_t factor; /* the bytes of one number of the type */
    struct step *steps;
    size_t count, room;
    struct step few[CALLS_FEW]; /* steps points here while they are enough */
};

void calls_init(struct calls *calls);
void calls_release(struct calls *calls);

/* What the member of this rank among so many does; what was planned before is forgotten. count 0:
 * nothing. HVD_E_NOMEM. */
int calls_plan(struct calls *calls, const struct coll_call *call, uint32_t rank,
               uint32_t size) MUST_CHECK;

/* All in one launch. What NCCL says: it may be in progress. */
int calls_issue(struct calls *calls, const struct nccl *nccl, struct ncclComm *comm,
                struct CUstream_st *stream) MUST_CHECK;

/* Once they are launched. */
int calls_forget_op(struct calls *calls, const struct nccl *nccl, struct ncclComm *comm) MUST_CHECK;

#endif
