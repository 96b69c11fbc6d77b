/*
 * custom.h: how a commit stores a custom entry: a length of 8 bytes, then the bytes that the save
 * callback has written, which may be fewer than the entry's room.
 */
#ifndef STATE_SNAPSHOT_CUSTOM_H
#define STATE_SNAPSHOT_CUSTOM_H

#include "state/snapshot/copy.h"

#define CUSTOM_LENGTH_BYTES sizeof(uint64_t)

/* Returns how many bytes of the commit the entry uses, with the 8 bytes of the length. The result
 * is never more than the entry's room and 8 bytes, even when the stored length is wrong. */
uint64_t custom_bytes(const struct manifest_entry *entry, const uint8_t *at);
uint64_t custom_length(const uint8_t *at); /* returns the stored length, unchecked */

/*
 * Call the program's save or load callback. A negative code of the callback is returned.
 * Exceptions: news and codes about a round (for example HVD_E_REVOKED) become HVD_E_STATE, because
 * a callback must not return them: the library would act on them and repeat the round for ever. The
 * err names the entry.
 *
 * custom_save also returns HVD_E_LIMIT: the callback claims to have written more than the room.
 * custom_load also returns HVD_E_CORRUPT: the stored length is larger than the room.
 */
int custom_save(const struct manifest_entry *entry, const struct copy_part *part, uint8_t *at,
                struct hvd_err *err) MUST_CHECK;
int custom_load(const struct manifest_entry *entry, const struct copy_part *part, const uint8_t *at,
                struct hvd_err *err) MUST_CHECK;

#endif
