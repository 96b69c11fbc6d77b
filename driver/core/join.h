/*
 * join.h: which workers join the next round, and whether the job may have another round.
 */
#ifndef DRIVER_CORE_JOIN_H
#define DRIVER_CORE_JOIN_H

#include "driver/core/core_internal.h"

/* Appends READY workers to the members of core->next, in the order of the listed hosts. */
void join_add_joiners(struct core *core);

/* True: one more round is allowed. False: --reset-limit forbids it, and the job ends. */
bool join_allowed(struct core *core);

#endif
