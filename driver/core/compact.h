/*
 * compact.h: a journal that says the same in fewer records. Most records of a long job are over:
 * workers that have ended, rounds that were left. A JOURNAL_BASE stands for all of them.
 */
#ifndef DRIVER_CORE_COMPACT_H
#define DRIVER_CORE_COMPACT_H

#include "base/arena.h"
#include "driver/core/core.h"

/* Cap of the memory in which core_compact writes the texts of records that the core does not hold
 * as such: the digits of values, and ids of tokens. */
#define COMPACT_BYTES                                              \
    (8 * (size_t)LIMIT_STORE_BYTES + 256 * (size_t)LIMIT_WORKERS + \
     64 * (size_t)LIMIT_REPORTS * LIMIT_REPORT_POINTS)

/* Called for each record of the shorter journal. `record` is valid until the core and the memory of
 * core_compact are freed. A return value other than 0 ends core_compact, which returns the same
 * value. */
typedef int compact_record_fn(void *arg, const struct journal_record *record);

/* Called instead of the start, when the whole journal was replayed (core_replay): calls `each` for
 * each record of a shorter journal; a new core that replays these records has the same state as
 * this core. Returns the first value other than 0 of `each`; HVD_E_NOMEM; or HVD_DONE: a journal of
 * this moment is kept as it is, because the job has not trained yet, is ending, or has failures
 * that are not judged. `memory` is for texts; the caller makes it with the cap COMPACT_BYTES. */
int core_compact(const struct core *core, struct arena *memory, compact_record_fn *each, void *arg);

#endif
