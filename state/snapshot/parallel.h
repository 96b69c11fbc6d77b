/*
 * parallel.h: a loop over numbers that the caller and some threads run together. The threads block
 * all signals and have ended when the call returns.
 */
#ifndef STATE_SNAPSHOT_PARALLEL_H
#define STATE_SNAPSHOT_PARALLEL_H

#include "base/err.h"
#include "base/limits.h"

/* Handles one number. Any of the threads calls it, once for each number. A result other than 0 is a
 * failure: no further number is begun. */
typedef int parallel_fn(void *arg, uint64_t number);

/* Calls fn for every number of [first, end) on at most `threads` threads, including the caller's;
 * on fewer when threads cannot be started. threads 0: as many as this process has processors.
 * Returns 0, or the code of the lowest number that failed, and that number. */
int parallel_for(uint64_t first, uint64_t end, unsigned threads, parallel_fn *fn, void *arg,
                 uint64_t *ret_failed) MUST_CHECK;

#endif
