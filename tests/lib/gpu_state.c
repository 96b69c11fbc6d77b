/*
 * gpu_state.c: a training state with entries in device memory, in host memory and in both, filled
 * with bytes that follow from their place, so that a commit or a restore can be verified.
 */
#include "tests/lib/gpu_state.h"

#include "base/mem.h"
#include "tests/lib/fake_gpu.h"

#include <stdio.h>
#include <string.h>

static int64_t save(void *arg, void *into, size_t room)
{
    const struct gpu_state_entry *entry = arg;

    if (entry->save_says)
        return entry->save_says;
    if (entry->used > room)
        return HVD_E_LIMIT;
    memcpy(into, entry->bytes, entry->used);
    return (int64_t)entry->used;
}

static int load(void *arg, const void *from, size_t bytes)
{
    struct gpu_state_entry *entry = arg;

    entry->used = bytes;
    memcpy(entry->bytes, from, bytes);
    return 0;
}

int gpu_state_init(struct gpu_state *state, bool on_device)
{
    int rc = 0;

    *state = (struct gpu_state){ .count = 0 };
    manifest_init(&state->manifest);
    if (on_device) {
        const struct cuda *cuda;

        fake_gpu_use(1);
        rc = cuda_open(&cuda, NULL);
        if (!rc)
            rc = gpu_device_get(0, &state->device, NULL);
        if (!rc)
            rc = device_copy_open(state->device, &state->device_copy, NULL);
    }
    state->copy = (struct copy){ .manifest = &state->manifest,
                                 .parts = state->parts,
                                 .which = COPY_ALL,
                                 .threads = 1,
                                 .device_copy = state->device_copy };
    return rc;
}

/* ---- entries --------------------------------------------------------------------------------- */

static int take_device(struct gpu_state *state, struct gpu_state_entry *entry)
{
    int code = 0;

    if (gpu_enter(state->device, NULL))
        return HVD_E_IO;
    if (entry->room)
        code = state->device->cuda->memory_alloc(&entry->address, entry->room);
    gpu_leave(state->device);
    if (!code && entry->room)
        entry->bytes = fake_gpu_memory((void *)(uintptr_t)entry->address);
    return code ? HVD_E_NOMEM : 0;
}

static int take_host(struct gpu_state *state, struct gpu_state_entry *entry)
{
    entry->block = mem_zalloc(entry->room + 64);
    if (!entry->block)
        return HVD_E_NOMEM;
    /* an address that is not aligned */
    entry->bytes = (uint8_t *)entry->block + state->count * 7 % 64;
    return 0;
}

static struct copy_part part_of(struct gpu_state_entry *entry)
{
    if (entry->place == CUSTOM)
        return (struct copy_part){ .save = save, .load = load, .arg = entry };
    if (entry->place == ON_DEVICE)
        return (struct copy_part){ .at = (void *)(uintptr_t)entry->address, .on_device = true };
    return (struct copy_part){ .at = entry->bytes };
}

int gpu_state_add(struct gpu_state *state, uint64_t bytes, uint32_t kind,
                  enum gpu_state_place place)
{
    struct gpu_state_entry *entry = &state->entries[state->count];
    char name[16];
    int rc;

    if (place == ON_DEVICE && !state->device)
        place = ON_HOST;
    snprintf(name, sizeof(name), "entry %zu", state->count);
    rc = manifest_add(&state->manifest, name, bytes, kind, place == CUSTOM, NULL);
    *entry = (struct gpu_state_entry){
        .state = state, .room = bytes, .used = place == CUSTOM ? bytes / 2 : bytes, .place = place
    };
    if (!rc)
        rc = place == ON_DEVICE ? take_device(state, entry) : take_host(state, entry);
    if (!rc)
        state->parts[state->count++] = part_of(entry);
    return rc;
}

int gpu_state_start(struct gpu_state *state)
{
    struct snapshot_shape shape;

    manifest_seal(&state->manifest);
    shape = (struct snapshot_shape){ state->manifest.digest, state->manifest.replicated_bytes,
                                     state->manifest.bytes };
    return snapshot_create(&shape, &state->snapshot, NULL);
}

void gpu_state_release(struct gpu_state *state)
{
    for (size_t i = 0; i < GPU_STATE_ENTRIES; i++) {
        if (state->device_copy)
            device_copy_free(state->device_copy, state->entries[i].address);
        mem_free(state->entries[i].block);
    }
    if (!device_copy_close(state->device_copy) && state->snapshot)
        snapshot_leave_mapped(state->snapshot);
    snapshot_free(state->snapshot);
    manifest_release(&state->manifest);
}

/* ---- contents -------------------------------------------------------------------------------- */

/* The i-th eight bytes of an entry after this step. */
static uint64_t word_at(size_t entry, uint64_t step, uint64_t i)
{
    return (i + 1) * UINT64_C(0x9e3779b97f4a7c15) + step * 0x10001 + entry;
}

static uint64_t word_bytes(const struct gpu_state_entry *entry, uint64_t from)
{
    return entry->used - from < sizeof(uint64_t) ? entry->used - from : sizeof(uint64_t);
}

void gpu_state_fill(struct gpu_state *state, uint64_t step)
{
    for (size_t i = 0; i < state->count; i++) {
        struct gpu_state_entry *entry = &state->entries[i];

        for (uint64_t k = 0; k < entry->used; k += sizeof(uint64_t)) {
            uint64_t word = word_at(i, step, k / sizeof(word));

            memcpy(entry->bytes + k, &word, word_bytes(entry, k));
        }
    }
}

static bool entry_holds(const struct gpu_state *state, size_t i, uint64_t step)
{
    const struct gpu_state_entry *entry = &state->entries[i];

    for (uint64_t k = 0; k < entry->used; k += sizeof(uint64_t)) {
        uint64_t word = word_at(i, step, k / sizeof(word));

        if (memcmp(entry->bytes + k, &word, word_bytes(entry, k)) != 0)
            return false;
    }
    return true;
}

bool gpu_state_holds(const struct gpu_state *state, uint64_t step, uint32_t kind)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->manifest.items[i].kind == kind && !entry_holds(state, i, step))
            return false;
    return true;
}

bool gpu_state_holds_all(const struct gpu_state *state, uint64_t step)
{
    return gpu_state_holds(state, step, ENTRY_REPLICATED) &&
           gpu_state_holds(state, step, ENTRY_PER_RANK);
}

/* ---- commit and restore ---------------------------------------------------------------------- */

int gpu_state_commit(struct gpu_state *state, uint64_t step, struct hvd_err *err)
{
    int rc = state->device_copy ? device_copy_after(state->device_copy, NULL, err) : 0;

    gpu_state_fill(state, step);
    if (!rc)
        rc = copy_commit(state->snapshot, &state->copy, err);
    if (!rc)
        snapshot_end(state->snapshot, step);
    return rc;
}

int gpu_state_restore(struct gpu_state *state, uint64_t step, struct hvd_err *err)
{
    int rc = state->device_copy ? device_copy_after(state->device_copy, NULL, err) : 0;

    return rc ? rc : copy_restore(state->snapshot, step, &state->copy, err);
}
