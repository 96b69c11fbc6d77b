/*
 * stall.h: what the driver does about workers that keep other workers waiting. A log line names the
 * guilty workers (see waits.h) once in each --stall-warning interval. A guilty worker is ended
 * after --stall-shutdown. If all workers wait for each other, the round is revoked, and all of them
 * go back to their last commit.
 *
 * In three phases no worker can report a wait: in a recovery, in the first step of a round, and on
 * the way to a check (a call of hvd_state_check). In these phases the driver knows by itself which
 * workers have not come.
 */
#ifndef DRIVER_CORE_STALL_H
#define DRIVER_CORE_STALL_H

#include "driver/core/core_internal.h"

/* Handles STALLED: a worker reports that it waits. */
void stall_on_stalled(struct core *core, struct worker *worker, const struct msg *msg);

/* Handles REMARK: logs its text once, whichever worker sends it, until a worker sends another
 * text. */
void stall_on_remark(struct core *core, const struct worker *worker, const struct msg *msg);

/* Logs the warnings and makes the verdicts that are due. */
void stall_expire(struct core *core);

/* The time in which all members have to begin to train is over: ends the members that are to blame,
 * or revokes the round. */
void stall_expire_enter(struct core *core);

/* The time to come to a check is over: ends the workers that keep the others waiting. False: no
 * such worker is known, and nothing was done. */
bool stall_end_unchecked(struct core *core);

#endif
