/*
 * arena_checkpoints.h: the place of the checkpoints of an arena: its directory checkpoints/, or the
 * server of S3.
 */
#ifndef TESTS_CHAOS_ARENA_CHECKPOINTS_H
#define TESTS_CHAOS_ARENA_CHECKPOINTS_H

#include "tests/chaos/arena.h"
#include "tests/chaos/checkpoints.h"

/* The driver's --checkpoint-dir; `path` has room for it. */
const char *arena_checkpoint_dir(const struct arena *arena, char path[ARENA_PATH]);

/* Looks up the newest complete checkpoint (checkpoints.h). dead: no process of the job lives, so
 * the requests to S3 that they have left are awaited first. */
int arena_checkpoints(const struct arena *arena, bool dead, struct checkpoint_seen *ret_seen,
                      struct hvd_err *err) MUST_CHECK;

/* Counts the checkpoints, complete or not. */
int arena_count_checkpoints(const struct arena *arena, uint32_t *ret_count,
                            struct hvd_err *err) MUST_CHECK;

#endif
