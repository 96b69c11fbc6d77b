/*
 * cost.h: what a change of the membership costs, by phase. The phases are: the time for which the
 * members had stood still when the driver came to know of a silent member; the time until the next
 * round is agreed on; and then the longest time that any member needed to build its connections, to
 * get the state, and to make its first step.
 */
#ifndef DRIVER_CORE_COST_H
#define DRIVER_CORE_COST_H

#include "driver/core/core_internal.h"

/* Notes the time at which a change begins to be prepared while the round runs. */
void cost_prepare(struct core *core);

/* The current round is revoked; its members have made no step since `since_us`. If some of its
 * members had not begun to train, the pause counts from the end of the round before, because since
 * then the members have not all trained. */
void cost_lost(struct core *core, int64_t since_us);

/* core->current begins: its costs count from now on. */
void cost_begin(struct core *core);

/* cost_entered: takes the costs that this member has measured. cost_end: the last member has
 * entered, so the costs of the change are complete and kept. */
void cost_entered(struct core *core, const struct worker *worker, const struct msg_entered *costs);
void cost_end(struct core *core);

/* Returns a text for the log line which says that all members train: " (recovery 31ms: agree 2ms,
 * rebuild 11ms, state 6ms, first step 12ms)", and sets the same in its facts. Returns "" when this
 * driver has not seen the beginning of the change. */
const char *cost_text(struct core *core, struct facts *facts);

#endif
