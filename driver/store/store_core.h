/*
 * store_core.h: replays a store into a core, which then knows what earlier drivers of the job knew.
 */
#ifndef DRIVER_STORE_STORE_CORE_H
#define DRIVER_STORE_STORE_CORE_H

#include "driver/core/core.h"
#include "driver/store/store.h"

/* store_replay_core gives the core each record of the journal, store_blacklist_core each record of
 * the blacklist. *ret_records: how many records of the journal were read, also after a failure.
 * Codes are those of store_replay and core_replay. */
int store_replay_core(struct store *store, struct core *core, uint64_t *ret_records,
                      struct hvd_err *err) MUST_CHECK;
int store_blacklist_core(struct store *store, struct core *core, struct hvd_err *err) MUST_CHECK;

#endif
