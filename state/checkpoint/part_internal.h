/*
 * part_internal.h: types of elements by the names that files of checkpoints have for them.
 */
#ifndef STATE_CHECKPOINT_PART_INTERNAL_H
#define STATE_CHECKPOINT_PART_INTERNAL_H

#include "state/checkpoint/part.h"

/* Returns "F32" and so on for 1 + enum hvd_dtype; "U8" for 0, which is bytes of no known type.
 * NULL: there is no such type. */
const char *part_type_name(uint32_t type);

/* Finds the type by its name in a file; false: no type has this name. */
bool part_type_named(const char *name, uint32_t *ret_type);

/* Writes a commit as text, "12.5" for the commit with index 5 of round 12, and reads it back.
 * false: the text is not a commit; *ret_commit is unchanged. */
#define PART_COMMIT_MAX 24
const char *part_commit_text(uint64_t commit, char text[PART_COMMIT_MAX]);
bool part_commit_read(const char *text, uint64_t *ret_commit);

#endif
