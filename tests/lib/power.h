/*
 * power.h: a disk that forgets, when power fails, what was not synced. It keeps the way back of
 * each change since the file, or for names the directory, was last synced; power_fail walks it,
 * as far as chance has it: of each change all, nothing or some sectors may have reached the disk.
 *
 * There is one directory. The changes are told by fault_vfs.c.
 */
#ifndef TESTS_LIB_POWER_H
#define TESTS_LIB_POWER_H

#include "base/rng.h"

/* From here on changes are kept. */
void power_on(void);
bool power_is_on(void);

/* Before the bytes [offset, offset + length) change: what is there, as far as the file goes. For a
 * truncation the length is what is cut off. Everything is copied. */
void power_note_bytes(const char *path, int64_t offset, int64_t length, const void *old,
                      size_t old_length);
void power_note_created(const char *path);
void power_note_deleted(const char *path, const void *bytes, size_t length);
void power_note_renamed(const char *from, const char *to);

void power_synced(const char *path);
void power_synced_directory(void);

/* A NULL rng: nothing that was not synced has reached the disk. The files are then what the next
 * start would find; the caller ends its process. */
void power_fail(struct rng *rng);

#endif
