/*
 * slot.c: a second copy of the state, beside the live one: device entries on the device, all other
 * entries in private memory of this process.
 *
 * Called by worker/state_device.c, copier.c and commit.c. Invariant: a slot has a commit number
 * only while its bytes are those of that commit; slot_take clears the number before it writes.
 */
#include "state/snapshot/slot.h"

#include "base/mem.h"
#include "state/snapshot/custom.h"
#include "state/snapshot/memory_left.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

/* Entries on the device begin at multiples of this, as the device's own allocations do: copies are
 * fastest then. */
#define DEVICE_ALIGN 256

struct slot {
    const struct manifest *manifest;
    struct device_copy *device_copy; /* copies within the device; borrowed */
    struct copy_part *parts;         /* where each entry is in the slot */
    cuda_address on_device; /* device memory for the entries on the device; 0: there are none */
    uint64_t device_bytes;
    uint8_t *on_host; /* host memory; unwritten room of custom entries takes no memory */
    uint64_t host_bytes;
    uint64_t commit; /* the number of the commit; 0: the slot holds no commit */
};

/* Returns an address of the device, which a copy_part has as a pointer. */
static cuda_address slot_address_of(const void *at)
{
    return (cuda_address)(uintptr_t)at;
}

/* The save callback of a custom entry in a slot: copies the bytes that the program's save has
 * written. */
static int64_t save_from_slot(void *at, void *into, size_t room)
{
    uint64_t length = custom_length(at);

    if (length > room)
        return HVD_E_LIMIT;
    memcpy(into, (const uint8_t *)at + CUSTOM_LENGTH_BYTES, length);
    return (int64_t)length;
}

/* Sets where each entry lies in the slot. The device memory and the host memory of the slot are as
 * large as the sums in slot_create. */
static void place_entries(struct slot *slot, const struct copy *live)
{
    cuda_address on_device = slot->on_device;
    uint8_t *on_host = slot->on_host;

    for (size_t i = 0; i < slot->manifest->count; i++) {
        const struct manifest_entry *entry = &slot->manifest->items[i];
        struct copy_part *part = &slot->parts[i];

        if (live->parts[i].on_device) {
            *part = (struct copy_part){ .at = (void *)(uintptr_t)on_device, .on_device = true };
            on_device += manifest_round_up(entry->bytes, DEVICE_ALIGN);
        } else if (entry->custom) {
            *part = (struct copy_part){ .save = save_from_slot, .arg = on_host };
            on_host += manifest_round_up(entry->bytes + CUSTOM_LENGTH_BYTES, MANIFEST_ALIGN);
        } else {
            *part = (struct copy_part){ .at = on_host };
            on_host += manifest_round_up(entry->bytes, MANIFEST_ALIGN);
        }
    }
}

/* Creates a slot with room for the whole state. First it checks that the host has the memory. Only
 * the room of custom entries is left out of this check, because a save callback may write much less
 * than its room. */
int slot_create(const struct copy *live, struct slot **ret_slot, struct hvd_err *err)
{
    struct slot *slot = mem_zalloc(sizeof(*slot));
    uint64_t used = 0; /* bytes of the host memory that will certainly be written */
    void *at;
    int rc = 0;

    if (slot)
        slot->parts = mem_zalloc_array(live->manifest->count, sizeof(*slot->parts));
    if (!slot || !slot->parts) {
        mem_free(slot);
        return err_set(err, HVD_E_NOMEM,
                       "no memory for a copy of the state; free memory on this host");
    }
    slot->manifest = live->manifest;
    slot->device_copy = live->device_copy;
    for (size_t i = 0; i < slot->manifest->count; i++) {
        const struct manifest_entry *entry = &slot->manifest->items[i];
        uint64_t bytes = entry->bytes + (entry->custom ? CUSTOM_LENGTH_BYTES : 0);

        if (live->parts[i].on_device) {
            slot->device_bytes += manifest_round_up(bytes, DEVICE_ALIGN);
        } else {
            slot->host_bytes += manifest_round_up(bytes, MANIFEST_ALIGN);
            used += entry->custom ? 0 : bytes;
        }
    }
    if (slot->host_bytes) {
        at = used > memory_left() ? MAP_FAILED
                                  : mmap(NULL, slot->host_bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at != MAP_FAILED) {
            slot->on_host = at;
            (void)madvise(at, slot->host_bytes, MADV_DONTFORK);
        } else {
            rc = err_set(err, HVD_E_NOMEM,
                         "no memory on the host for a copy of %" PRIu64
                         " bytes of the state; free memory on this host",
                         slot->host_bytes);
        }
    }
    if (!rc && slot->device_bytes)
        rc = device_copy_alloc(slot->device_copy, slot->device_bytes, &slot->on_device, err);
    if (rc) {
        slot_free(slot);
        return rc;
    }
    place_entries(slot, live);
    *ret_slot = slot;
    return 0;
}

/* Frees the slot with its memory. No copy from or to it may be running. */
void slot_free(struct slot *slot)
{
    if (!slot)
        return;
    device_copy_free(slot->device_copy, slot->on_device);
    if (slot->on_host)
        munmap(slot->on_host, slot->host_bytes);
    mem_free(slot->parts);
    mem_free(slot);
}

/* Sets the number of the commit that the slot now holds, once its copies on the device are done. */
void slot_name(struct slot *slot, uint64_t commit)
{
    slot->commit = commit;
}

uint64_t slot_commit(const struct slot *slot)
{
    return slot->commit;
}

/* Describes the slot as a state in memory, so that copy_commit can make a commit of it. */
struct copy slot_copy(const struct slot *slot)
{
    return (struct copy){ .manifest = slot->manifest,
                          .parts = slot->parts,
                          .which = COPY_ALL,
                          .device_copy = slot->device_copy };
}

/* Queues copies of all device entries whose kinds are in `which`. An error is returned, and the
 * device_copy keeps it too. */
static int move_on_device(const struct slot *slot, const struct copy_part *to,
                          const struct copy_part *from, unsigned which)
{
    int rc = 0;

    for (size_t i = 0; i < slot->manifest->count && !rc; i++) {
        const struct manifest_entry *entry = &slot->manifest->items[i];

        if (to[i].on_device && entry->bytes && which & 1U << entry->kind)
            rc = device_copy_move(slot->device_copy, slot_address_of(to[i].at),
                                  slot_address_of(from[i].at), entry->bytes);
    }
    return rc;
}

/* Copies the live state into the slot, after the work that is in the stream now; later work in the
 * stream waits. The slot has no number until slot_name: the device may still copy. */
int slot_take(struct slot *slot, const struct copy *live, struct CUstream_st *stream,
              struct hvd_err *err)
{
    struct hvd_err why;
    int rc = device_copy_after(slot->device_copy, stream, err);

    slot->commit = 0;
    if (rc)
        return rc;
    rc = move_on_device(slot, slot->parts, live->parts, COPY_ALL);
    if (!rc)
        rc = device_copy_before(slot->device_copy, stream, err);
    /* The entries in host memory are copied while the device works. */
    for (size_t i = 0; i < slot->manifest->count && !rc; i++) {
        const struct manifest_entry *entry = &slot->manifest->items[i];
        const struct copy_part *part = &live->parts[i];

        if (entry->custom)
            rc = custom_save(entry, part, slot->parts[i].arg, err);
        else if (!part->on_device && entry->bytes)
            memcpy(slot->parts[i].at, part->at, entry->bytes);
    }
    if (rc && device_copy_settle(slot->device_copy, &why) && err)
        *err = why; /* the device has failed first, so its error is the cause */
    return rc;
}

/* Copies the entries of the kinds live->which from the slot to the live state. The copy has ended
 * when this function returns. */
int slot_restore(const struct slot *slot, const struct copy *live, struct CUstream_st *stream,
                 struct hvd_err *err)
{
    int rc = device_copy_after(slot->device_copy, stream, err);

    if (rc)
        return rc;
    /* device_copy_settle returns an error of this call, too. */
    (void)move_on_device(slot, live->parts, slot->parts, live->which);
    rc = device_copy_settle(slot->device_copy, err);
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
