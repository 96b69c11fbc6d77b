/*
 * part_internal.h: types of elements by the names that files of checkpoints have for them.
 */
#ifndef STATE_CHECKPOINT_PART_INTERNAL_H
#define STATE_CHECKPOINT_PART_INTERNAL_H

#include "state/checkpoint/part.h"

/* Returns "F32" and so on for 1 + enum hvd_dtype; "U8" for 0, which is bytes of no known type.
 * NULL: there is no such type. */
const char *part_type_name(uint32_t type);

/* false: no type has this name. */
bool part_type_named(const char *name, uint32_t *ret_type);

/* Text of a commit, "12.5", and back; *ret_commit is 0 when the text is not a commit. */
#define PART_COMMIT_MAX 24
const char *part_commit_text(uint64_t commit, char text[PART_COMMIT_MAX]);
bool part_commit_read(const char *text, uint64_t *ret_commit);

#endif
