/*
 * compact.h: a journal that says the same in fewer records. Most records of a long job are over:
 * workers that have ended, rounds that were left. A JOURNAL_BASE stands for all of them.
 */
#ifndef DRIVER_CORE_COMPACT_H
#define DRIVER_CORE_COMPACT_H

#include "driver/core/core.h"

/* The record is valid until the core is freed. Another value than 0 ends core_compact. */
typedef int compact_record_fn(void *arg, const struct journal_record *record);

/* Called instead of the start, when the whole journal was replayed (core_replay): calls `each` for
 * each record of a shorter journal; a new core that replays these records has the same state as
 * this core. Returns the first value other than 0 of `each`, or HVD_DONE: a journal of this moment
 * is kept as it is, because the job has not trained yet, is ending, or has failures that are not
 * judged. */
int core_compact(const struct core *core, compact_record_fn *each, void *arg);

#endif
