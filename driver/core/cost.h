/*
 * cost.h: what a change of the membership costs, by phase: how long until the next round is agreed
 * on, and then the longest time that any member needed to build its connections, to get the state,
 * and to make its first step.
 */
#ifndef DRIVER_CORE_COST_H
#define DRIVER_CORE_COST_H

#include "driver/core/state.h"

/* A round is revoked. If the one before had come to nothing too, nobody has trained since. */
void cost_lost(struct core *core);

/* core->current begins. */
void cost_begin(struct core *core);

/* What it cost this member; and, when it is the last one, all of them. */
void cost_entered(struct core *core, const struct worker *worker, const struct msg_entered *costs);
void cost_end(struct core *core);

/* "round 2: all 3 train (recovery 31ms: agree 2ms, rebuild 11ms, state 6ms, first step 12ms)", to
 * be said; the part in parentheses is left out when this driver was not there from the beginning.
 */
const char *cost_text(struct core *core);

#endif
