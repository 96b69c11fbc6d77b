/*
 * nccl_work.h: NCCL and streams, as the members of a team use them. All waits are bounded: a member
 * whose wait runs out names it and ends.
 */
#ifndef BENCH_GPU_NCCL_WORK_H
#define BENCH_GPU_NCCL_WORK_H

#include "bench/gpu/team.h"

/* Makes a communicator of the first `ranks` members. The whole team calls this; rank 0 makes the
 * id, and a member that is not among the first `ranks` gets NULL. The time is added under that name
 * ("": it is not). The members meet first. */
struct ncclComm *work_comm(struct member *member, uint32_t ranks, const char *name);

/* Until NCCL has done in the background what it was asked for; what it has come to. */
int work_settle(struct member *member, struct ncclComm *comm);

/* Queues an allreduce of so many numbers. Does not wait for it. */
void work_allreduce(struct member *member, struct ncclComm *comm, size_t count,
                    struct CUstream_st *stream);

/* Whether all that is queued is done before so many seconds have passed. */
bool work_done(struct member *member, struct CUstream_st *stream, double seconds);

/* An allreduce of ones is as large as the communicator; and one of all numbers, as NCCL connects
 * for each of its algorithms when that is used first. */
void work_verify(struct member *member, struct ncclComm *comm, uint32_t ranks);

/* How long the abort took, in ms. */
double work_abort(struct member *member, struct ncclComm *comm);

#endif
