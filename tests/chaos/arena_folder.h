/*
 * arena_folder.h: the folder of the job under attack, with its discovery script.
 */
#ifndef TESTS_CHAOS_ARENA_FOLDER_H
#define TESTS_CHAOS_ARENA_FOLDER_H

#include "tests/chaos/arena.h"

/* Makes the folder in $TMPDIR, with the discovery script, whose mood is NULL. */
int arena_folder_make(struct arena *arena, struct hvd_err *err) MUST_CHECK;
void arena_folder_remove(const struct arena *arena);

#endif
