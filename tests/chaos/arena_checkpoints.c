/*
 * arena_checkpoints.c: looks at the checkpoints of an arena, for its faults and its judge. Those in
 * S3 are copied into the directory checkpoints/ first, past the front that makes faults.
 * Invariant: no code of the product is used to find them.
 */
#include "tests/chaos/arena_checkpoints.h"

#include "tests/chaos/arena_s3.h"

#include <stdio.h>

const char *arena_checkpoint_dir(const struct arena *arena, char path[ARENA_PATH])
{
    if (arena->plan->checkpoints != PLAN_S3)
        return arena_path(arena, "checkpoints", path);
    snprintf(path, ARENA_PATH, "%s", ARENA_S3_WHERE);
    return path;
}

int arena_checkpoints(const struct arena *arena, bool dead, struct checkpoint_seen *ret_seen,
                      struct hvd_err *err)
{
    char path[ARENA_PATH];
    int rc = 0;

    arena_path(arena, "checkpoints", path);
    if (arena->plan->checkpoints == PLAN_S3)
        rc = arena_s3_copy(path, dead, err);
    return rc ? rc : checkpoints_newest(path, ret_seen, err);
}

int arena_count_checkpoints(const struct arena *arena, uint32_t *ret_count, struct hvd_err *err)
{
    char path[ARENA_PATH];
    int rc = 0;

    arena_path(arena, "checkpoints", path);
    if (arena->plan->checkpoints == PLAN_S3)
        rc = arena_s3_copy(path, false, err);
    if (!rc)
        *ret_count = checkpoints_count(path);
    return rc;
}
