/*
 * change.h: from a running round to the next, without losing a step.
 *
 *     RUNNING ──PREPARE──► PREPARING ──all PREPARED: PENDING──► PENDING ──all AT──► RUNNING (next)
 *
 * Nobody stops while the next round's connections are made. Then each worker says at which check it
 * is, and all leave the loop at the same one, the first that nobody has reached. Until SWITCH_AT is
 * told the change can be abandoned, and nothing has happened.
 */
#ifndef DRIVER_CORE_CHANGE_H
#define DRIVER_CORE_CHANGE_H

#include "driver/core/state.h"

/* Begins a change if somebody has come or has to go, and the round runs. */
void change_look(struct core *core);
void change_abandon(struct core *core, const char *why);
void change_expire(struct core *core);

/* PREPARE of a round: the next, or the current one for those that may not have it. */
struct msg *change_prepare_msg(struct core *core, const struct round *round);
struct msg *change_pending_msg(struct core *core);
struct msg *change_switch_msg(struct core *core);
struct msg *change_abandon_msg(struct core *core, const char *why);

void change_on_prepared(struct core *core, struct worker *worker, const struct msg *msg);
void change_on_at(struct core *core, struct worker *worker, const struct msg *msg);

#endif
