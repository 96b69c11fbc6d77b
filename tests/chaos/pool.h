/*
 * pool.h: what the faults of the whole pool and of the checkpoints' place have in common.
 */
#ifndef TESTS_CHAOS_POOL_H
#define TESTS_CHAOS_POOL_H

#include "tests/chaos/fault.h"

/* Kills all processes with commits, of the machines that are here now, and looks up the newest
 * complete checkpoint, for the judge. driver_too: the driver and its parent are killed first.
 * HVD_DONE: the pool was lost already in this fault. */
int pool_lose(struct chaos *chaos, bool driver_too, struct hvd_err *err) MUST_CHECK;

/* Begins to follow the log, and sets how long the place of the checkpoints fails. */
int pool_store_begin(struct chaos *chaos, struct hvd_err *err) MUST_CHECK;

/* Ends the fault by `calm`, which returns 0 or an errno, and waits for a complete checkpoint.
 * Before that the failure must be told, with the place and this remedy, and the training must go
 * on. remedy NULL: nothing has to be told. */
int pool_store_end(struct chaos *chaos, const char *remedy, int (*calm)(struct chaos *),
                   struct hvd_err *err) MUST_CHECK;

#endif
