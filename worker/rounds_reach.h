/*
 * rounds_reach.h: what a joiner does before its first round: it looks whether the state of the
 * members can be fetched, at a time when a failure does not stop the members, which still train.
 */
#ifndef WORKER_ROUNDS_REACH_H
#define WORKER_ROUNDS_REACH_H

#include "worker/rounds.h"

/* A callback that checks whether the agent can reach the workers and agents that have the state.
 * The connecting thread calls it when it has connected the collectives of a round that this worker
 * joins. The function may wait; its result becomes the result of the preparation. */
typedef int rounds_reach_fn(void *arg, const struct msg *prepare, struct hvd_err *err);
void rounds_use_reach(struct rounds *rounds, rounds_reach_fn *reach);

#endif
