/*
 * spread.h: a row of pieces of work, done by the caller and some threads beside it, which are gone
 * when it returns. Their signals are blocked.
 */
#ifndef STATE_SNAPSHOT_SPREAD_H
#define STATE_SNAPSHOT_SPREAD_H

#include "base/err.h"
#include "base/limits.h"

/* Called by any of them for one number; not 0: it has failed, and no others are begun. */
typedef int spread_fn(void *arg, uint64_t number);

/* Every number of [first, end), by at most that many threads, the caller's included; by fewer when
 * they cannot be started. 0: by as many as this process may use at the same time. Returns 0 or the
 * code of the lowest number that has failed, and which that is. */
int spread(uint64_t first, uint64_t end, unsigned threads, spread_fn *fn, void *arg,
           uint64_t *ret_failed) MUST_CHECK;

#endif
