/*
 * pace.h: how far the workers are, as the heartbeats of their agents say (Pulse in hvd.proto): the
 * newest commit of each worker, when its agent last heard it, and the commits of the job in the
 * last seconds. All of it is shown to operators, and nothing is decided by it: an agent may lie.
 */
#ifndef DRIVER_CORE_PACE_H
#define DRIVER_CORE_PACE_H

#include "driver/core/core_internal.h"

/* Takes the pulses of a heartbeat of this host's agent, as far as authority.c believes them. */
void pace_on_beat(struct core *core, struct core_host *host, const struct msg_beat *beat);

/* The agent of the worker has seen its end: until now the worker was heard. */
void pace_heard(const struct core *core, struct worker *worker);

/* True: a worker that was heard before was not heard for so long that operators are told. */
bool pace_is_silent(const struct core *core, const struct worker *worker);

/* True: the worker trains, and for so long that operators are told, another member has had at least
 * two commits more. */
bool pace_is_behind(const struct core *core, const struct worker *worker);

/* Returns what the log says of a member that makes fewer commits than others: ": " and a sentence;
 * "": no member does. Called when members wait for each other. */
const char *pace_difference(struct core *core);

/* Returns the number of commits that were made in the last *ret_us microseconds, which begin with
 * the current round or 10 to 20 s ago; *ret_us 0: not known. */
uint64_t pace_commits(const struct core *core, int64_t *ret_us);

#endif
