/*
 * checkpoints.h: checkpoints of a small state for tests. All values follow from the commit, so a
 * checkpoint that is read shows whether its bytes are those of its commit.
 *
 *     "weights"  replicated, F32, checkpoints_weights numbers; by default CHECKPOINTS_WEIGHTS, more
 *                than a chunk
 *     "step"     replicated, I64, 1 number: the commit
 *     "notes"    replicated, bytes of no type, CHECKPOINTS_NOTES
 *     "sampler"  replicated, custom, I64, room for 64 bytes, of which 11 are used
 *     "mine"     per rank, I32, 3 numbers
 */
#ifndef TESTS_LIB_CHECKPOINTS_H
#define TESTS_LIB_CHECKPOINTS_H

#include "state/checkpoint/manifest.h"

#define CHECKPOINTS_WEIGHTS (300 * 1024)
#define CHECKPOINTS_NOTES   999
#define CHECKPOINTS_RANKS   2

/* How many numbers the entry "weights" has. A test whose subject is not the bytes of the entries
 * takes fewer, at most CHECKPOINTS_WEIGHTS. */
extern size_t checkpoints_weights;

/* Writes the files of a checkpoint without its manifest: two files of replicated entries, and one
 * for each rank. Their names contain `attempt`. */
int checkpoints_write_parts(struct checkpoint_store *storage, uint64_t commit, unsigned attempt,
                            struct checkpoint_manifest *ret, struct hvd_err *err);

/* The same, with manifest.json and COMPLETE. */
int checkpoints_write(struct checkpoint_store *storage, uint64_t commit, struct hvd_err *err);

/* Replaces the first `old` in the manifest of the checkpoint in this folder of a directory, and
 * gives COMPLETE the checksum of the changed manifest. Aborts the test if there is no `old`. */
void checkpoints_change(const char *folder, const char *old, const char *new_text);

/* Reads all entries of the checkpoint. 0: all values are those of its commit; HVD_E_MISMATCH: one
 * is not; or the failure of the reader. */
int checkpoints_check(struct checkpoint_store *storage, const struct checkpoint_manifest *manifest,
                      struct hvd_err *err);

#endif
