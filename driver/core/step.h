/*
 * step.h: what any file of the core may request while a step is made: launches or drains of
 * workers, a new round, another step at some time, or the end of this core. core.c carries the
 * requests out.
 */
#ifndef DRIVER_CORE_STEP_H
#define DRIVER_CORE_STEP_H

#include "driver/core/core_internal.h"

/* Called when no memory is left: the actions of this step are dropped, and the core must not be
 * used again. */
void core_fail(struct core *core);

/* core_want_slots: at the end of this step slots_reconcile launches and sends away workers.
 * core_want_round: at the end of this step a round may begin or change. */
void core_want_slots(struct core *core);
void core_want_round(struct core *core);

/* Requests a step at the time at_us, because something is due then. */
void core_want_timer(struct core *core, int64_t at_us);

/* Returns the times of this step in the form that the blacklist needs. */
struct blacklist_moment core_moment(const struct core *core);

/* Moves the job to another state. The table in moves.c must have the move. */
void core_move_job(struct core *core, enum job_state to);

/* Sets a time limit: core.c kills the worker if it does not move to another state within in_us.
 * `late` is the reason that is reported. */
void worker_limit(struct core *core, struct worker *worker, int64_t in_us, const char *late);

/*
 * Returns the deadline of something that the worker has to do within in_us from since_us on.
 * PROTOCOL.md, section 7: while the worker's agent is away there is none (TIME_NEVER), because the
 * worker may not have been told, and cannot be heard. When the agent comes back, the worker has the
 * whole time again.
 */
int64_t worker_due_us(const struct worker *worker, int64_t since_us, int64_t in_us);

/* True: the agent of the worker has been connected for at least for_us. Used for time limits that
 * several workers share. */
bool worker_is_heard(const struct core *core, const struct worker *worker, int64_t for_us);

#endif
