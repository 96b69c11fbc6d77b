/*
 * power.h: a simulated power failure: the disk forgets what was not synced. For each change since
 * the last sync of the file (for names: of the directory), the old contents are kept. power_fail
 * puts old contents back: of each change all, nothing or some sectors may have reached the disk, as
 * the random generator says.
 *
 * All files are in one directory. fault_vfs.c reports the changes.
 */
#ifndef TESTS_LIB_POWER_H
#define TESTS_LIB_POWER_H

#include "base/rng.h"

/* From here on old contents are kept. */
void power_on(void);
bool power_is_on(void);

/* Call it before the bytes [offset, offset + length) change; `old` is what the file has there, up
 * to its end. For a truncation length is the number of bytes that are cut off. Everything is
 * copied. */
void power_note_bytes(const char *path, int64_t offset, int64_t length, const void *old,
                      size_t old_length);
void power_note_created(const char *path);
void power_note_deleted(const char *path, const void *bytes, size_t length);
void power_note_renamed(const char *from, const char *to);

void power_synced(const char *path);
void power_synced_directory(void);

/* rng NULL: no change that was not synced has reached the disk. After the call the files are what
 * the next start would find; the caller must end its process. */
void power_fail(struct rng *rng);

#endif
