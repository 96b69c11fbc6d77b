/*
 * drain.h: seats that are to be given up by a deadline, because an operator or the machine says so.
 * Leaving is never a failure, not even when the deadline passes: then the machine is about to be
 * taken away, so whoever is still there is killed at once, without a SIGTERM before.
 *
 * This file keeps the deadlines. That a drained seat has to be given up is decided in roster.c,
 * that nothing is launched in it in seats.c, and how a member leaves in change.c.
 */
#ifndef DRIVER_CORE_DRAIN_H
#define DRIVER_CORE_DRAIN_H

#include "driver/core/state.h"

/* A machine that is still listed so long after it was to go has not gone: it is used again. */
#define DRAIN_NOTICE_LATE_US TIME_MIN

/* Of a slot, or of all with EVENT_WHOLE_HOST; left_us may be TIME_NEVER. */
void drain_begin(struct core *core, struct core_host *host, uint32_t slot, int64_t left_us,
                 const char *who);

/* Of all of it, because the machine says that it will be taken away. */
void drain_notice(struct core *core, struct core_host *host, int64_t left_us, const char *who);

/* Takes it back; the second of the host and of every slot of it. */
void drain_end(struct core *core, struct core_host *host, uint32_t slot);
void drain_end_all(struct core *core, struct core_host *host);

/* Kills who is still in a seat whose time is up, and forgets notices that have not come true. */
void drain_expire(struct core *core);

#endif
