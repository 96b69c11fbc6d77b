/*
 * checkpoint_ask.h: who wants a checkpoint before its time: an operator, a worker, or a job that is
 * to end.
 */
#ifndef DRIVER_CORE_CHECKPOINT_ASK_H
#define DRIVER_CORE_CHECKPOINT_ASK_H

#include "driver/core/core_internal.h"

/* How long a job that is to end waits for its last checkpoint to begin. */
#define CHECKPOINT_LAST_US (30 * TIME_S)

/* An attempt to make a checkpoint begins as soon as all members train, without waiting for its
 * interval. */
void checkpoint_hurry(struct core *core);

/* Handles EVENT_WANT_CHECKPOINT: begins an attempt as soon as all members train. The asker gets
 * its answer at the end of that attempt, or at once if it does not wait. */
void checkpoint_want(struct core *core, const struct event *event);

/* Handles PERSIST: the worker gets its answer when a checkpoint of this commit, or of a later one,
 * is complete, or when an attempt that began after the PERSIST has failed. */
void checkpoint_on_persist(struct core *core, struct worker *worker, const struct msg *msg);

/* Returns the highest commit of this round that workers have asked for; 0: none. */
uint64_t checkpoint_asked(const struct core *core, uint64_t round);
/* Members have left the round checkpoint.passed by a switch: answers the workers that wait for one
 * of its commits, since a worker that waits would never come into the next round. */
void checkpoint_refuse_passed(struct core *core);

/* True: an operator or a worker waits for a checkpoint. */
bool checkpoint_is_awaited(const struct core *core);

/* Answers all operators that have asked until `until_us`. Code 0: also all workers whose commit is
 * in the newest checkpoint, or is older; another code: also all workers that have asked until
 * `until_us`. */
void checkpoint_answer(struct core *core, int64_t until_us, int code, const char *text);

/* Handles a request (`who` says from where) to end the job. The job ends when its present state is
 * in a checkpoint, or when no such checkpoint could be made. False: the job makes no checkpoint, or
 * this is the second request; then the caller ends the job at once. */
bool checkpoint_last(struct core *core, const char *who);

/* Ends the job that waits for its last checkpoint, when that is complete (`why` NULL) or cannot be
 * made. */
void checkpoint_stop(struct core *core, const char *why);

#endif
