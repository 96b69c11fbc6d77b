/*
 * rounds_reach.h: what a joiner does before its first round: it looks whether the state of the
 * members can be fetched, while trouble on the way still costs the members nothing.
 */
#ifndef WORKER_ROUNDS_REACH_H
#define WORKER_ROUNDS_REACH_H

#include "worker/rounds.h"

/* Checks that the agent can reach the holders of the state. The connecting thread calls it when
 * it has connected the collectives of a round that this worker joins. The function may wait; its
 * result becomes the result of the preparation. */
typedef int rounds_reach_fn(void *arg, const struct msg *prepare, struct hvd_err *err);
void rounds_use_reach(struct rounds *rounds, rounds_reach_fn *reach);

#endif
