/*
 * drain.h: slots that workers have to leave by a deadline, because an operator or the machine wants
 * it. A worker that leaves is never a failure, not even when the deadline passes. At the deadline
 * the machine is about to be taken away, so a worker that is still there is killed with SIGKILL at
 * once, without a SIGTERM before.
 *
 * This file keeps the deadlines. roster.c decides that the worker of a drained slot has to go,
 * slots.c launches no worker in such a slot, and change.c lets a member leave.
 */
#ifndef DRIVER_CORE_DRAIN_H
#define DRIVER_CORE_DRAIN_H

#include "driver/core/core_internal.h"

/* A machine gave notice, and its host is still listed this long after the deadline of the notice:
 * the machine has not gone, and its host is used again. */
#define DRAIN_NOTICE_LATE_US TIME_MIN

/* Begins a drain of one slot, or of the whole host with EVENT_WHOLE_HOST. `left_us`: the time until
 * the deadline; TIME_NEVER: no deadline. `who`: the operator or source, for the log. */
void drain_begin(struct core *core, struct core_host *host, uint32_t slot, int64_t left_us,
                 const char *who);

/* Handles NOTICE: the machine says that it will be taken away. */
void drain_on_notice(struct core *core, struct core_host *host, const struct msg_notice *notice);

/* drain_end ends the drain of a slot, or of the host with EVENT_WHOLE_HOST. drain_end_all ends the
 * drains of the host and of each of its slots. */
void drain_end(struct core *core, struct core_host *host, uint32_t slot);
void drain_end_all(struct core *core, struct core_host *host);

/* Ends the drain of a host whose machine gave notice of it. Called when the host leaves the list or
 * comes back to it: the notice was about a machine that has gone. */
void drain_end_notice(struct core *core, struct core_host *host);

/* Ends the drains of the oldest hosts that are not listed, until LIMIT_DRAINS_KEPT are left. */
void drain_forget_oldest(struct core *core);

/* Kills workers that are still in a drained slot at the deadline. Ends the drain of a host whose
 * machine gave notice and is still listed DRAIN_NOTICE_LATE_US after the deadline. */
void drain_expire(struct core *core);

#endif
