#include "state/snapshot/custom.h"

#include <inttypes.h>
#include <string.h>

uint64_t custom_length(const uint8_t *at)
{
    uint64_t length;

    memcpy(&length, at, sizeof(length));
    return length;
}

uint64_t custom_bytes(const struct manifest_entry *entry, const uint8_t *at)
{
    uint64_t length = custom_length(at);

    return CUSTOM_LENGTH_BYTES + (length < entry->bytes ? length : entry->bytes);
}

static int own_code(int code)
{
    bool ours = code > 0 || code == HVD_E_REVOKED || code == HVD_E_LOST || code == HVD_E_TIMEOUT ||
                code == HVD_E_MISMATCH;

    return ours ? HVD_E_STATE : code;
}

int custom_save(const struct manifest_entry *entry, const struct copy_part *part, uint8_t *at,
                struct hvd_err *err)
{
    int64_t written = part->save(part->arg, at + CUSTOM_LENGTH_BYTES, entry->bytes);
    uint64_t length;

    if (written < INT32_MIN)
        written = HVD_E_INVAL;
    if (written < 0)
        return err_set(err, own_code((int)written),
                       "entry \"%s\": its save function has failed with %d (%s)", entry->name,
                       (int)written, err_text((int)written));
    length = (uint64_t)written;
    if (length > entry->bytes)
        return err_set(err, HVD_E_LIMIT,
                       "entry \"%s\": its save function says that it has written %" PRIu64
                       " bytes, but has room for %" PRIu64 "; give it more",
                       entry->name, length, entry->bytes);
    memcpy(at, &length, sizeof(length));
    return 0;
}

int custom_load(const struct manifest_entry *entry, const struct copy_part *part, const uint8_t *at,
                struct hvd_err *err)
{
    uint64_t length = custom_length(at);
    int rc;

    if (length > entry->bytes)
        return err_set(err, HVD_E_CORRUPT,
                       "entry \"%s\" of the commit says that it has %" PRIu64
                       " bytes, but has room for %" PRIu64,
                       entry->name, length, entry->bytes);
    rc = part->load(part->arg, at + CUSTOM_LENGTH_BYTES, length);
    if (rc)
        return err_set(err, own_code(rc), "entry \"%s\": its load function has failed with %d (%s)",
                       entry->name, rc, err_text(rc));
    return 0;
}
