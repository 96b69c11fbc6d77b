/*
 * lease.h: the silence of agents. Each agent sends a message at least once in each heartbeat
 * interval. An agent that is silent for a whole lease is counted as dead with all its workers. The
 * exception is a silence of all agents at once: then this machine itself may be cut off.
 */
#ifndef DRIVER_CORE_LEASE_H
#define DRIVER_CORE_LEASE_H

#include "driver/core/core_internal.h"

/* A message of any agent has come: not all agents are silent any more. */
void lease_heard(struct core *core);

/* Sends heartbeats to agents that were told nothing else in this interval. */
void lease_beat(struct core *core);

/* Handles EVENT_CROWDED: strangers (clients without a key of the job) crowd the port that agents
 * dial. */
void lease_on_crowd(struct core *core);

/* Judges all agents whose lease has run out: an agent counts as dead, or the driver waits for
 * it. */
void lease_expire(struct core *core);

#endif
