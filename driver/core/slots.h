/*
 * slots.h: which slots get a worker and which slots are given up: starts agents, launches workers
 * and sends workers away.
 */
#ifndef DRIVER_CORE_SLOTS_H
#define DRIVER_CORE_SLOTS_H

#include "driver/core/core_internal.h"

/* Starts agents, launches workers and sends workers away, as the hosts and settings now require. */
void slots_reconcile(struct core *core);

/* Launches workers on this host, whose agent has just connected. The function looks at no other
 * host, because many agents may come at once. */
void slots_open(struct core *core, const struct core_host *host);

/* Repeats the LAUNCH to a worker whose agent may not have got it. */
void slots_launch_again(struct core *core, const struct worker *worker);

/* The first worker has joined: from now on an exit code 0 without FINISHED is no success. */
void slots_first_joined(struct core *core);

#endif
