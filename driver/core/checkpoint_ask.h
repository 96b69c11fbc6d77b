/*
 * checkpoint_ask.h: who wants a checkpoint before its time: an operator, or a job that is to end.
 */
#ifndef DRIVER_CORE_CHECKPOINT_ASK_H
#define DRIVER_CORE_CHECKPOINT_ASK_H

#include "driver/core/core_internal.h"

/* How long a job that is to end waits for its last checkpoint to begin. */
#define CHECKPOINT_LAST_US (30 * TIME_S)

/* An attempt begins as soon as it can. */
void checkpoint_hurry(struct core *core);

/* Handles EVENT_WANT_CHECKPOINT: begins an attempt as soon as all members train. The asker gets
 * its answer at the end of that attempt, or at once if it does not wait. */
void checkpoint_want(struct core *core, const struct event *event);

/* Answers all askers that have asked until `until_us`. */
void checkpoint_answer(struct core *core, int64_t until_us, int code, const char *text);

/* A request by `who` to end the job: it ends when the present state is in a checkpoint, or cannot
 * be brought there. False: no checkpoint can be made, or this is the second request; the caller
 * ends the job. */
bool checkpoint_last(struct core *core, const char *who);

/* Ends the job that waits for its last checkpoint, when that is complete (`why` NULL) or cannot be
 * made. */
void checkpoint_stop(struct core *core, const char *why);

#endif
