/*
 * custom.h: what a custom entry writes: 8 bytes that say how much, and so many bytes. It may be
 * less than its room.
 */
#ifndef STATE_SNAPSHOT_CUSTOM_H
#define STATE_SNAPSHOT_CUSTOM_H

#include "state/snapshot/copy.h"

#define CUSTOM_LENGTH_BYTES sizeof(uint64_t)

/* How much was written: with the length, and without it. What that says beyond the room is not
 * followed. */
uint64_t custom_bytes(const struct manifest_entry *entry, const uint8_t *at);
uint64_t custom_length(const uint8_t *at); /* as it says */

/* A code of the program's, as its own: what says something about the round, and news, are not a
 * program's to say, and whoever believed them would try again for ever. HVD_E_LIMIT: save says that
 * it has written more than there is room for. The err names the entry. */
int custom_save(const struct manifest_entry *entry, const struct copy_part *part, uint8_t *at,
                struct hvd_err *err) MUST_CHECK;
/* HVD_E_CORRUPT: the length makes no sense. */
int custom_load(const struct manifest_entry *entry, const struct copy_part *part, const uint8_t *at,
                struct hvd_err *err) MUST_CHECK;

#endif
