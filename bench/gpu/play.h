/*
 * play.h: NCCL and streams, as the members of a team use them. All waits are bounded: who waits in
 * vain says so and ends.
 */
#ifndef BENCH_GPU_PLAY_H
#define BENCH_GPU_PLAY_H

#include "bench/gpu/team.h"

/* All members of `ranks` call this, rank 0 of them first of all makes the id; everybody of the team
 * must know of it, so all call it, and who is not of them gets NULL. Under that name it adds how
 * long it took ("" : not). The members meet before it. */
struct ncclComm *play_comm(struct member *member, uint32_t ranks, const char *name);

/* Until NCCL has done in the background what it was asked for; what it has come to. */
int play_settle(struct member *member, struct ncclComm *comm);

/* Queues an allreduce of so many numbers. Does not wait for it. */
void play_allreduce(struct member *member, struct ncclComm *comm, size_t count,
                    struct CUstream_st *stream);

/* Whether all that is queued is done before so many seconds have passed. */
bool play_done(struct member *member, struct CUstream_st *stream, double seconds);

/* An allreduce of ones is as large as the communicator; and one of all numbers, as NCCL connects
 * for each of its algorithms when that is used first. */
void play_verify(struct member *member, struct ncclComm *comm, uint32_t ranks);

/* How long the abort took, in ms. */
double play_abort(struct member *member, struct ncclComm *comm);

#endif
