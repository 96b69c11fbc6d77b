/*
 * seats.h: which seats are to be taken and which are to be given up: agents are started, workers
 * launched and sent away.
 */
#ifndef DRIVER_CORE_SEATS_H
#define DRIVER_CORE_SEATS_H

#include "driver/core/state.h"

void seats_look(struct core *core);

/* The same for a host whose agent has come, and for nothing else: many may come at once. */
void seats_open(struct core *core, const struct core_host *host);

/* The LAUNCH of a worker that may not have got it. */
void seats_launch_again(struct core *core, const struct worker *worker);

/* Somebody has joined: no exit code alone is a success any more. */
void seats_first_joined(struct core *core);

void seats_on_launched(struct core *core, struct worker *worker);
void seats_on_launch_failed(struct core *core, struct worker *worker, const struct msg *msg);
void seats_on_ready(struct core *core, struct worker *worker, const struct msg *msg);
void seats_on_left(struct core *core, struct worker *worker);

#endif
