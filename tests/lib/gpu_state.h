/*
 * gpu_state.h: a training state for tests, with some entries in memory of a stand-in device. The
 * bytes of an entry are a function of the step, so a test can ask which step the state holds.
 */
#ifndef TESTS_LIB_GPU_STATE_H
#define TESTS_LIB_GPU_STATE_H

#include "state/snapshot/slot.h"

#define GPU_STATE_ENTRIES 40

enum gpu_state_place { ON_HOST, ON_DEVICE, CUSTOM };

struct gpu_state_entry {
    struct gpu_state *state;
    uint8_t *bytes; /* the entry's bytes at an address that the host can use */
    void *block;    /* memory of the host */
    cuda_address address;
    uint64_t room, used; /* used: bytes of a custom entry */
    int64_t save_says;   /* not 0: the save callback returns this instead of the size */
    enum gpu_state_place place;
};

struct gpu_state {
    const struct gpu_device *device; /* NULL: ON_DEVICE entries are in memory of the host */
    struct device_copy *device_copy;
    struct manifest manifest;
    struct snapshot *snapshot;
    struct gpu_state_entry entries[GPU_STATE_ENTRIES];
    struct copy_part parts[GPU_STATE_ENTRIES];
    struct copy copy; /* the copy of all entries */
    size_t count;
};

/* on_device: with a stand-in device; false: with the same entries in memory of the host. Release it
 * also after a failure. */
int gpu_state_init(struct gpu_state *state, bool on_device) MUST_CHECK;
int gpu_state_add(struct gpu_state *state, uint64_t bytes, uint32_t kind,
                  enum gpu_state_place place) MUST_CHECK;
int gpu_state_start(struct gpu_state *state) MUST_CHECK; /* ends the adding of entries */
void gpu_state_release(struct gpu_state *state);

/* No copy may be under way. */
void gpu_state_fill(struct gpu_state *state, uint64_t step);
bool gpu_state_holds(const struct gpu_state *state, uint64_t step, uint32_t kind);
bool gpu_state_holds_all(const struct gpu_state *state, uint64_t step);

/* commit: fills the entries for the step and commits them under its number; restore: copies them
 * back. */
int gpu_state_commit(struct gpu_state *state, uint64_t step, struct hvd_err *err) MUST_CHECK;
int gpu_state_restore(struct gpu_state *state, uint64_t step, struct hvd_err *err) MUST_CHECK;

#endif
