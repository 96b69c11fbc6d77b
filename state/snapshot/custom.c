/*
 * custom.c: save and load callbacks of the program, with their length in front of the bytes.
 *
 * Called by copy.c for the snapshot and by slot.c for a slot. A length that was read is never
 * trusted: custom_bytes cuts it to the room, custom_load refuses it.
 */
#include "state/snapshot/custom.h"

#include <inttypes.h>
#include <string.h>

/* Returns the length that stands before the bytes of a custom entry. It may be wrong. */
uint64_t custom_length(const uint8_t *at)
{
    uint64_t length;

    memcpy(&length, at, sizeof(length));
    return length;
}

/* Returns how many bytes of a commit a custom entry uses, its length included. A wrong length
 * counts as the entry's whole room. */
uint64_t custom_bytes(const struct manifest_entry *entry, const uint8_t *at)
{
    uint64_t length = custom_length(at);

    return CUSTOM_LENGTH_BYTES + (length < entry->bytes ? length : entry->bytes);
}

/* Turns codes that only the library may give into HVD_E_STATE; all other codes of a callback
 * stay. */
static int custom_code(int code)
{
    bool reserved = code > 0 || code == HVD_E_REVOKED || code == HVD_E_LOST ||
                    code == HVD_E_TIMEOUT || code == HVD_E_MISMATCH;

    return reserved ? HVD_E_STATE : code;
}

/* Calls the save callback of an entry, which returns the number of bytes that it has written or a
 * code below 0. The length and the bytes are at `at`. */
int custom_save(const struct manifest_entry *entry, const struct copy_part *part, uint8_t *at,
                struct hvd_err *err)
{
    int64_t written = part->save(part->arg, at + CUSTOM_LENGTH_BYTES, entry->bytes);
    uint64_t length;

    /* a lower number would change its sign or its value as an int */
    if (written < INT32_MIN)
        written = HVD_E_INVAL;
    if (written < 0)
        return err_set(err, custom_code((int)written),
                       "entry \"%s\": the save function of this entry has failed with %d (%s); it "
                       "must return the number of bytes that it has written",
                       entry->name, (int)written, err_text((int)written));
    length = (uint64_t)written;
    if (length > entry->bytes)
        return err_set(err, HVD_E_LIMIT,
                       "entry \"%s\": the save function has written %" PRIu64
                       " bytes, but the entry has only %" PRIu64 " bytes; register a larger entry",
                       entry->name, length, entry->bytes);
    memcpy(at, &length, sizeof(length));
    return 0;
}

/* Calls the load callback of an entry with the bytes at `at`, which follow their length. */
int custom_load(const struct manifest_entry *entry, const struct copy_part *part, const uint8_t *at,
                struct hvd_err *err)
{
    uint64_t length = custom_length(at);
    int rc;

    if (length > entry->bytes)
        return err_set(err, HVD_E_CORRUPT,
                       "entry \"%s\" has %" PRIu64 " bytes in the commit, but this worker has "
                       "registered it with only %" PRIu64
                       " bytes; the commit is damaged: use the same "
                       "release of libhvd in all workers, or check the memory of the hosts",
                       entry->name, length, entry->bytes);
    rc = part->load(part->arg, at + CUSTOM_LENGTH_BYTES, length);
    if (rc)
        return err_set(err, custom_code(rc),
                       "entry \"%s\": its load function has failed with %d (%s); the function must "
                       "return 0 when it has loaded the bytes",
                       entry->name, rc, err_text(rc));
    return 0;
}
