/*
 * finish.h: the phase from the first FINISHED to the end of the job. The first FINISHED closes the
 * membership: no further round is formed. If a member dies after that, the members that still train
 * are told DONE.
 */
#ifndef DRIVER_CORE_FINISH_H
#define DRIVER_CORE_FINISH_H

#include "driver/core/core_internal.h"

/* Handles FINISHED: the training of a worker has returned. */
void finish_on_finished(struct core *core, struct worker *worker, const struct msg *msg);

/* The deadline for the last workers has passed: members are told DONE; members that were told DONE
 * before, and have not ended, are killed. */
void finish_expire(struct core *core);

/* This driver has taken over a job that was already ending: goes on with the end. */
void finish_restart(struct core *core);

/* The agent of this host has come back while the job is FINISHING: repeats what its workers may
 * have missed. */
void finish_resume(struct core *core, struct core_host *host);

#endif
