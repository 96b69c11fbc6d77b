/*
 * prune.h: which checkpoints of a directory are removed. The newest complete one never is.
 */
#ifndef DRIVER_CHECKPOINT_PRUNE_H
#define DRIVER_CHECKPOINT_PRUNE_H

#include "state/checkpoint/manifest.h"

/*
 * Keeps the `keep` (at least 1) newest complete checkpoints, and removes the rest:
 *
 *     complete checkpoints, and damaged ones, that are older than these;
 *     folders without COMPLETE that are older than the newest complete checkpoint;
 *     with `all_incomplete`, which says that no attempt to make a checkpoint is under way, all
 *     folders without COMPLETE, and unfinished objects of the directory;
 *     files that no manifest names, in the kept folders, but for the newest one, in which an
 *     attempt may be under way.
 *
 * `note` (may be NULL) gets a line for each removal and for each folder that cannot be removed; the
 * function goes on after such a failure. *ret_removed is how many folders were removed, *ret_kept
 * how many complete checkpoints stay; both may be NULL, and are set in any case. Returns 0, or the
 * first failure: the storage cannot be listed, or a folder cannot be removed.
 */
typedef void prune_note_fn(void *arg, const char *text);
int prune_checkpoints(struct checkpoint_store *store, uint64_t keep, bool all_incomplete,
                      prune_note_fn *note, void *arg, size_t *ret_removed, size_t *ret_kept,
                      struct hvd_err *err) MUST_CHECK;

#endif
