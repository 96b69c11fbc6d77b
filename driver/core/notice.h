/*
 * notice.h: counts the notices of machines, and how each ended. A notice is honoured when the host
 * has no worker left before its deadline, and no member of a round was lost there. A notice is a
 * drain: drain.c begins and ends it.
 */
#ifndef DRIVER_CORE_NOTICE_H
#define DRIVER_CORE_NOTICE_H

#include "driver/core/core_internal.h"

/* A machine gave notice that its host goes away in left_us (TIME_NEVER: not known): the notice is
 * counted from now on. A repeated notice for the same drain only fills in a deadline that was not
 * known. */
void notice_open(struct core_host *host, int64_t left_us);

/* A member of the current round was lost on this host, before it could leave. */
void notice_lost(struct core_host *host);

/* Ends the notice if the host has no worker any more. No notice is open: nothing happens. */
void notice_settle(struct core *core, struct core_host *host);

/* The host is used again while it still has workers: the notice counts neither as honoured nor as
 * not honoured. */
void notice_drop(struct core_host *host);

/* Restores the counts of a NOTICE record of the journal. False: the record is impossible. */
bool notice_replay(struct core *core, const struct journal_record *record) MUST_CHECK;

/* Fills the fields of a NOTICE record with the counts so far. */
void notice_record(const struct core *core, struct journal_record *record);

#endif
