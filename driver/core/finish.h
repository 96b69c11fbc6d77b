/*
 * finish.h: how a job ends. The first FINISHED closes the membership: no further round is formed,
 * and if a member dies after that, those still inside the loop are told that the job is DONE.
 */
#ifndef DRIVER_CORE_FINISH_H
#define DRIVER_CORE_FINISH_H

#include "driver/core/state.h"

void finish_on_finished(struct core *core, struct worker *worker, const struct msg *msg);

/* A member cannot go on, as others have finished: it is dismissed. */
void finish_on_recovering(struct core *core, const struct worker *worker);

/* A worker that had finished did not end with 0. */
void finish_failed_late(struct core *core, const struct worker *worker, const char *why);

/* Is there anything left to wait for? */
void finish_look(struct core *core);
void finish_expire(struct core *core);

void finish_too_few(struct core *core, const char *why);
void finish_fail(struct core *core, const char *why);
void finish_stop(struct core *core, const char *who);
void finish_replaced(struct core *core, const char *host, uint64_t term);

/* What the journal says about it, for a driver that takes over in the middle. */
void finish_restart(struct core *core);

void finish_tell_stop(struct core *core, struct core_host *host);
void finish_resume(struct core *core, struct core_host *host);

#endif
