/*
 * move.c: entries of the state whose memory moves (hvd_state_move).
 *
 * Called by the program. Invariant: no copy reads an address that has changed meanwhile: the move
 * waits for the copier, and only the training thread copies otherwise.
 */
#include "worker/fail.h"
#include "worker/state_device.h"

#include <string.h>

/* Checks that an entry may move now: no run has begun, or the training thread calls and copies
 * nothing. */
static int may_move(const hvd_state *state)
{
    if (state->phase == STATE_IDLE)
        return 0;
    if ((state->phase != STATE_TRAINING && state->phase != STATE_BETWEEN) ||
        !pthread_equal(state->loop, pthread_self()))
        return fail(HVD_E_STATE,
                    "hvd_state_move: may be called only by the training thread, in train or in a "
                    "reset callback, or while no run has begun");
    return 0;
}

int hvd_state_move(hvd_state *state, const char *name, void *at)
{
    const struct gpu_device *device = NULL;
    struct copy_part *part;
    uint32_t index;
    int rc;

    fail_begin();
    if (!state || !name)
        return fail(HVD_E_INVAL, "hvd_state_move: %s is NULL; pass the state and a name",
                    state ? "the name" : "the state");
    rc = worker_is_fork() ? HVD_E_STATE : may_move(state);
    if (rc)
        return rc;
    index = names_find(&state->manifest.names, name, strlen(name));
    if (index == NAMES_NONE)
        return fail(HVD_E_NOTFOUND,
                    "hvd_state_move: the state has no entry \"%s\"; register it first", name);
    part = &state->parts.items[index];
    if (part->save || (!at && state->manifest.items[index].bytes))
        return fail(HVD_E_INVAL, "hvd_state_move: \"%s\": %s", name,
                    part->save ? "a custom entry has no place; its callbacks know where its data is"
                               : "the address is NULL; pass the new one");
    rc = state_find_device(state, "hvd_state_move", name, at, &device);
    if (!rc && part->on_device != (device != NULL))
        rc = fail(HVD_E_INVAL,
                  "hvd_state_move: \"%s\" was in the memory of %s, and the new address is in the "
                  "memory of %s; copy the data to memory of the same kind",
                  name, part->on_device ? "a GPU" : "the host", device ? "a GPU" : "the host");
    if (!rc && state->phase != STATE_IDLE)
        rc = state_fence(state, fail_err()); /* a commit may still read the old memory */
    if (rc)
        return rc;
    part->at = at;
    state->live = 0; /* whether the bytes are those of a commit is not known */
    return 0;
}
