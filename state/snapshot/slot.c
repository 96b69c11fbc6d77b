#include "state/snapshot/slot.h"

#include "base/mem.h"
#include "state/snapshot/custom.h"
#include "state/snapshot/places.h"
#include "state/snapshot/room.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#define DEVICE_ALIGN 256 /* as the device's own allocations; copies are fastest so */

struct slot {
    const struct manifest *manifest;
    struct ferry *ferry;
    struct copy_part *parts; /* where each entry lies here */
    cuda_address on_device;
    uint64_t device_bytes;
    uint8_t *on_host; /* of what no custom entry writes, nothing is used */
    uint64_t host_bytes;
    uint64_t commit;
};

static uint64_t round_up(uint64_t bytes, uint64_t multiple)
{
    return (bytes + multiple - 1) / multiple * multiple;
}

static cuda_address address_of(const void *at)
{
    return (cuda_address)(uintptr_t)at;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* How much of each memory it takes; what is sure to be used of the host's. */
static uint64_t measure(struct slot *slot, const struct copy *live)
{
    uint64_t used = 0;

    for (size_t i = 0; i < slot->manifest->count; i++) {
        const struct manifest_entry *entry = &slot->manifest->items[i];
        uint64_t bytes = entry->bytes + (entry->custom ? CUSTOM_LENGTH_BYTES : 0);

        if (live->parts[i].on_device) {
            slot->device_bytes += round_up(bytes, DEVICE_ALIGN);
        } else {
            slot->host_bytes += round_up(bytes, MANIFEST_ALIGN);
            used += entry->custom ? 0 : bytes;
        }
    }
    return used;
}

/* A custom entry is saved out of what was saved. */
static int64_t save_again(void *at, void *into, size_t room)
{
    uint64_t length = custom_length(at);

    if (length > room)
        return HVD_E_LIMIT;
    memcpy(into, (const uint8_t *)at + CUSTOM_LENGTH_BYTES, length);
    return (int64_t)length;
}

static void place_entries(struct slot *slot, const struct copy *live)
{
    cuda_address on_device = slot->on_device;
    uint8_t *on_host = slot->on_host;

    for (size_t i = 0; i < slot->manifest->count; i++) {
        const struct manifest_entry *entry = &slot->manifest->items[i];
        struct copy_part *part = &slot->parts[i];

        if (live->parts[i].on_device) {
            *part = (struct copy_part){ .at = (void *)(uintptr_t)on_device, .on_device = true };
            on_device += round_up(entry->bytes, DEVICE_ALIGN);
        } else if (entry->custom) {
            *part = (struct copy_part){ .save = save_again, .arg = on_host };
            on_host += round_up(entry->bytes + CUSTOM_LENGTH_BYTES, MANIFEST_ALIGN);
        } else {
            *part = (struct copy_part){ .at = on_host };
            on_host += round_up(entry->bytes, MANIFEST_ALIGN);
        }
    }
}

static int take_host(struct slot *slot, uint64_t used, struct hvd_err *err)
{
    void *at;

    if (!slot->host_bytes)
        return 0;
    at = used > room_left() ? MAP_FAILED
                            : mmap(NULL, slot->host_bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return err_set(err, HVD_E_NOMEM,
                       "no memory on the host for a copy of %" PRIu64 " bytes of the state",
                       slot->host_bytes);
    slot->on_host = at;
    (void)madvise(at, slot->host_bytes, MADV_DONTFORK);
    return 0;
}

int slot_create(const struct copy *live, struct slot **ret_slot, struct hvd_err *err)
{
    struct slot *slot = mem_zalloc(sizeof(*slot));
    int rc;

    if (!slot)
        return err_set(err, HVD_E_NOMEM, "no memory for a copy of the state");
    slot->manifest = live->manifest;
    slot->ferry = live->ferry;
    slot->parts = mem_zalloc_array(live->manifest->count, sizeof(*slot->parts));
    if (!slot->parts) {
        slot_free(slot);
        return err_set(err, HVD_E_NOMEM, "no memory for a copy of the state");
    }
    rc = take_host(slot, measure(slot, live), err);
    if (!rc && slot->device_bytes)
        rc = ferry_alloc(slot->ferry, slot->device_bytes, &slot->on_device, err);
    if (rc) {
        slot_free(slot);
        return rc;
    }
    place_entries(slot, live);
    *ret_slot = slot;
    return 0;
}

void slot_free(struct slot *slot)
{
    if (!slot)
        return;
    ferry_free(slot->ferry, slot->on_device);
    if (slot->on_host)
        munmap(slot->on_host, slot->host_bytes);
    mem_free(slot->parts);
    mem_free(slot);
}

void slot_name(struct slot *slot, uint64_t commit)
{
    slot->commit = commit;
}

uint64_t slot_commit(const struct slot *slot)
{
    return slot->commit;
}

struct copy slot_copy(const struct slot *slot)
{
    return (struct copy){
        .manifest = slot->manifest, .parts = slot->parts, .which = COPY_ALL, .ferry = slot->ferry
    };
}

/* ---- there and back -------------------------------------------------------------------------- */

/* Of the entries on the device; queued, or noted by the ferry why not. */
static int move(const struct slot *slot, const struct copy_part *to, const struct copy_part *from,
                unsigned which)
{
    int rc = 0;

    for (size_t i = 0; i < slot->manifest->count && !rc; i++) {
        const struct manifest_entry *entry = &slot->manifest->items[i];

        if (to[i].on_device && entry->bytes && which & 1U << entry->kind)
            rc =
                ferry_move(slot->ferry, address_of(to[i].at), address_of(from[i].at), entry->bytes);
    }
    return rc;
}

static int keep(const struct slot *slot, const struct copy *live, struct hvd_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < slot->manifest->count && !rc; i++) {
        const struct manifest_entry *entry = &slot->manifest->items[i];
        const struct copy_part *part = &live->parts[i];

        if (entry->custom)
            rc = custom_save(entry, part, slot->parts[i].arg, err);
        else if (!part->on_device && entry->bytes)
            memcpy(slot->parts[i].at, part->at, entry->bytes);
    }
    return rc;
}

int slot_take(struct slot *slot, const struct copy *live, struct CUstream_st *stream,
              struct hvd_err *err)
{
    struct hvd_err why;
    int rc = ferry_after(slot->ferry, stream, err);

    slot->commit = 0;
    if (rc)
        return rc;
    rc = move(slot, slot->parts, live->parts, COPY_ALL);
    if (!rc)
        rc = ferry_before(slot->ferry, stream, err);
    if (!rc)
        rc = keep(slot, live, err);
    if (rc && ferry_settle(slot->ferry, &why) && err)
        *err = why; /* then that was it */
    return rc;
}

static int give(const struct slot *slot, const struct copy *live, struct hvd_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < slot->manifest->count && !rc; i++) {
        const struct manifest_entry *entry = &slot->manifest->items[i];
        const struct copy_part *part = &live->parts[i];

        if (!(live->which & 1U << entry->kind))
            continue;
        if (entry->custom)
            rc = custom_load(entry, part, slot->parts[i].arg, err);
        else if (!part->on_device && entry->bytes)
            memcpy(part->at, slot->parts[i].at, entry->bytes);
    }
    return rc;
}

int slot_restore(const struct slot *slot, const struct copy *live, struct CUstream_st *stream,
                 struct hvd_err *err)
{
    int rc = ferry_after(slot->ferry, stream, err);
    int settled;

    if (rc)
        return rc;
    (void)move(slot, live->parts, slot->parts, live->which);
    settled = ferry_settle(slot->ferry, err);
    return settled ? settled : give(slot, live, err);
}
