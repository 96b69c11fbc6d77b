/*
 * recovery.h: forms the rounds that begin with a commit: the first round, when np workers are
 * READY, and each round after a revoked round, when all survivors have said RECOVERING.
 */
#ifndef DRIVER_CORE_RECOVERY_H
#define DRIVER_CORE_RECOVERY_H

#include "driver/core/core_internal.h"

/* Begins the first round (recovery_look_first) or the round after a revoked round (recovery_look),
 * if enough workers and a commit to resume from are there. */
void recovery_look_first(struct core *core);
void recovery_look(struct core *core);

/* Handles RECOVERING: a member has stopped, and says which commits it holds. */
void recovery_on_recovering(struct core *core, struct worker *worker, const struct msg *msg);

#endif
