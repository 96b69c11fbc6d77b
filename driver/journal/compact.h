/*
 * compact.h: makes the journal of a long job short again: what is over is removed from its store.
 */
#ifndef DRIVER_JOURNAL_COMPACT_H
#define DRIVER_JOURNAL_COMPACT_H

#include "driver/core/config.h"
#include "driver/store/store.h"

/* Replaces the journal in the store by a shorter one that says the same (driver/core/compact.h).
 * The store must be claimed, and no write may be under way. *ret_records: how many records the
 * journal has now.
 *
 * HVD_DONE: the journal is kept, because it would not become half as long, or because of the moment
 * of the job. Other codes are those of store_replace and store_replay; after a failure the journal
 * is the old one. */
int journal_compact(struct store *store, const struct core_config *config, uint64_t *ret_records,
                    struct hvd_err *err) MUST_CHECK;

#endif
