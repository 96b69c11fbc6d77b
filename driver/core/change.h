/*
 * change.h: the way from a running round to the next without losing a step of training.
 *
 *     RUNNING ──PREPARE──► PREPARING ──all PREPARED: PENDING──► PENDING
 *     PENDING ──all NEXT_CHECK──► RUNNING (next)
 *
 * All members train on while the connections of the next round are made. Then each member says at
 * which check it is, and all members leave the training loop at the same check: the first one that
 * no member has reached. Until the driver sends SWITCH_AT, a change can be abandoned without any
 * effect.
 */
#ifndef DRIVER_CORE_CHANGE_H
#define DRIVER_CORE_CHANGE_H

#include "driver/core/core_internal.h"

/* Begins a change if all members train and a worker joins or has to go. */
void change_look(struct core *core);

/* The deadline of a change has passed: gives the change up. */
void change_expire(struct core *core);

/* These functions handle the messages PREPARED and NEXT_CHECK of a worker. */
void change_on_prepared(struct core *core, struct worker *worker, const struct msg *msg);
void change_on_next_check(struct core *core, struct worker *worker, const struct msg *msg);

#endif
