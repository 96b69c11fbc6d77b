/*
 * gpu_state.h: a state for tests, some of whose entries lie in memory of a (stand-in) device. What
 * is in it after a step is a function of the step, so it can be asked which one it holds.
 */
#ifndef TESTS_LIB_GPU_STATE_H
#define TESTS_LIB_GPU_STATE_H

#include "state/snapshot/slot.h"

#define GPU_STATE_ENTRIES 40

enum gpu_state_place { ON_HOST, ON_DEVICE, CUSTOM };

struct gpu_state_entry {
    struct gpu_state *state;
    uint8_t *bytes; /* as the host sees them */
    void *block;    /* of the host */
    cuda_address address;
    uint64_t room, used; /* used: of a custom one */
    int64_t save_says;   /* not 0: instead of what it writes */
    enum gpu_state_place place;
};

struct gpu_state {
    const struct gpu_device *device; /* NULL: ON_DEVICE is the host, too */
    struct ferry *ferry;
    struct manifest manifest;
    struct snapshot *snapshot;
    struct gpu_state_entry entries[GPU_STATE_ENTRIES];
    struct copy_part parts[GPU_STATE_ENTRIES];
    struct copy copy; /* of all that is live */
    size_t count;
};

/* On a device, or with the same entries in memory of the host. May be released in any case. */
int gpu_state_init(struct gpu_state *state, bool on_device) MUST_CHECK;
int gpu_state_add(struct gpu_state *state, uint64_t bytes, uint32_t kind,
                  enum gpu_state_place place) MUST_CHECK;
int gpu_state_start(struct gpu_state *state) MUST_CHECK; /* no more entries */
void gpu_state_release(struct gpu_state *state);

/* Nothing may be under way. */
void gpu_state_fill(struct gpu_state *state, uint64_t step);
bool gpu_state_holds(const struct gpu_state *state, uint64_t step, uint32_t kind);
bool gpu_state_holds_all(const struct gpu_state *state, uint64_t step);

/* Fill, and then a commit of the live memory with that number; back. */
int gpu_state_commit(struct gpu_state *state, uint64_t step, struct hvd_err *err) MUST_CHECK;
int gpu_state_restore(struct gpu_state *state, uint64_t step, struct hvd_err *err) MUST_CHECK;

#endif
