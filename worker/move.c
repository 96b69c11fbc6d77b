/*
 * move.c: entries of the state whose memory moves (hvd_state_move).
 *
 * Called by the program. Invariant: no copy reads an address that changes meanwhile: the move waits
 * for the copier's thread, and all other copies are made by the training thread, which makes this
 * call.
 */
#include "worker/fail.h"
#include "worker/state_device.h"

#include <string.h>

/* Notes the new address of an entry. All checks come first: on failure the old address stays. */
int hvd_state_move(hvd_state *state, const char *name, void *at)
{
    const struct gpu_device *device = NULL;
    struct copy_part *part;
    uint32_t index;
    int rc;

    fail_begin();
    if (!state || !name)
        return fail(HVD_E_INVAL,
                    "hvd_state_move: the argument %s is NULL; pass the state and a name",
                    state ? "name" : "state");
    if (worker_is_fork())
        return HVD_E_STATE;
    /* An entry may move before a run, or at any time at which the training thread makes this call
     * and is in no copy. */
    if (state->phase != STATE_IDLE &&
        ((state->phase != STATE_TRAINING && state->phase != STATE_BETWEEN) ||
         !pthread_equal(state->loop, pthread_self())))
        return fail(
            HVD_E_STATE,
            "hvd_state_move: this thread is not the training thread, or train does not run; call "
            "hvd_state_move in train, in a reset callback, or before hvd_elastic_run");
    index = names_find(&state->manifest.names, name, strlen(name));
    if (index == NAMES_NONE)
        return fail(HVD_E_NOTFOUND,
                    "hvd_state_move: the state has no entry \"%s\"; register the entry first",
                    name);
    part = &state->parts.items[index];
    if (part->save || (!at && state->manifest.items[index].bytes))
        return fail(HVD_E_INVAL, "hvd_state_move: the entry \"%s\" %s", name,
                    part->save ? "has callbacks, so it has no address that could move; let the "
                                 "callbacks use the new memory"
                               : "gets the address NULL; pass the new address");
    rc = state_find_device(state, "hvd_state_move", name, at, &device);
    if (!rc && part->on_device != (device != NULL))
        rc = fail(HVD_E_INVAL,
                  "hvd_state_move: the entry \"%s\" was in the memory of %s, and the new address "
                  "is in the memory of %s; pass an address of the same kind of memory",
                  name, part->on_device ? "a GPU" : "the host", device ? "a GPU" : "the host");
    if (!rc && state->phase != STATE_IDLE)
        rc = state_fence(state, fail_err()); /* a commit may still read the old memory */
    if (rc)
        return rc;
    part->at = at;
    /* the program may have changed the bytes, so no commit counts as equal to them */
    state->live = 0;
    return 0;
}
