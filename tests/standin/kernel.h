/*
 * kernel.h: the operations that calls on a communicator put into a stream. Private to the stand-in
 * of NCCL.
 */
#ifndef TESTS_STANDIN_KERNEL_H
#define TESTS_STANDIN_KERNEL_H

#include "tests/standin/comm.h"

enum kind { ALLREDUCE, BROADCAST, REDUCE, ALLGATHER, REDUCESCATTER, SEND, RECV };

/* One operation. */
struct operation {
    struct operation *next;
    enum kind kind;
    const void *in; /* addresses as the caller gave them */
    void *out;
    size_t count; /* elements, as the call counts them */
    int type;
    int op; /* as in the call, before operators are looked up */
    struct reduction reduction;
    int root; /* the root, or the peer of a send or receive */
    enum standin_what fault;
    int64_t slow_us;
};

/* One launch: the operations of one group call on one communicator. */
struct kernel {
    struct kernel *next;
    struct ncclComm *comm;
    struct CUstream_st *stream;
    struct operation *first, **last;
};

/* ---- kernel.c, pairs.c ----------------------------------------------------------------------- */

void kernel_run(void *arg);
void kernel_ended(void *arg);
void kernel_free(struct kernel *kernel);
bool pairs_run(struct ncclComm *comm, struct operation *first); /* runs sends and receives */

/* The bytes that an operation reads (in) and writes (out) on this member. */
size_t operation_in(const struct operation *operation, const struct ncclComm *comm);
size_t operation_out(const struct operation *operation, const struct ncclComm *comm);

/* ---- group.c --------------------------------------------------------------------------------- */

bool group_is_open(void);
/* An abort inside a group call is deferred to the end of the group. true: it was deferred. */
bool group_defer_abort(struct ncclComm *comm);

#endif
