/*
 * arena_folder.h: the files of an arena that are not a program's: see arena.h for what lies there.
 */
#ifndef TESTS_CHAOS_ARENA_FOLDER_H
#define TESTS_CHAOS_ARENA_FOLDER_H

#include "tests/chaos/arena.h"

/* The folder, with the discovery script in a good mood, in $TMPDIR. */
int arena_folder_make(struct arena *arena, struct hvd_err *err) MUST_CHECK;
void arena_folder_remove(const struct arena *arena);

#endif
