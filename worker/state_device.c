/*
 * state_device.c: entries of the state in GPU memory. A commit of such entries is first a copy into
 * a slot, which is memory on the same GPU: that is fast, and only later work in the program's
 * stream waits for it, not the training loop. The copier's thread then copies the slot to the
 * snapshot (the memory of the host that keeps the commits) while the training goes on.
 * HVD_COMMIT_TO decides how many slots there are:
 *
 *     both     one: the next commit waits until this one is in the snapshot
 *     device   two: one is written while the other holds the commit before
 *     host     none: the snapshot is copied from the entries themselves, and the commit waits
 *
 * Called by commit.c, sync.c, state.c and run.c. Invariant: a slot has the number of a commit only
 * while its bytes are complete; and of two slots never the one with the newest commit is
 * overwritten.
 */
#include "worker/state_device.h"
#include "worker/fail.h"

#include "os/clock.h"

struct copy state_copy(const hvd_state *state, unsigned which)
{
    return (struct copy){ .manifest = &state->manifest,
                          .parts = state->parts.items,
                          .which = which,
                          .device_copy = state->device_copy };
}

/* Notes that a copy of the whole state begins now; timeline_events_end_copy shows the copy when the
 * copy ends. */
struct timeline_events_copy state_note_copy_begin(hvd_state *state, const char *what,
                                                  uint64_t commit)
{
    struct timeline_events_copy copy = {
        .lane = TIMELINE_STATE, .what = what, .commit = commit, .bytes = state->manifest.bytes
    };

    timeline_events_begin_copy(&state->worker->events, &copy);
    return copy;
}

/* Shows a copy of the whole state that has ended already, with its times, in this lane of the
 * timeline. */
void state_show_copy(hvd_state *state, enum timeline_lane lane, const char *what, uint64_t commit,
                     int code, int64_t begun_us, int64_t ended_us)
{
    timeline_events_copy(&state->worker->events,
                         &(struct timeline_events_copy){ .lane = lane,
                                                         .what = what,
                                                         .commit = commit,
                                                         .bytes = state->manifest.bytes,
                                                         .code = code,
                                                         .begun_us = begun_us,
                                                         .ended_us = ended_us });
}

/* ---- the device of the state ----------------------------------------------------------------- */

/* Finds the device in whose memory an entry lies; *ret_device NULL: host memory. A state may have
 * entries on one device only. */
int state_find_device(const hvd_state *state, const char *call, const char *name, const void *at,
                      const struct gpu_device **ret_device)
{
    const struct gpu_device *device;

    /* finds the CUDA driver if the process uses it; gpu_device_of then asks it */
    (void)cuda_if_used();
    device = gpu_device_of(at);
    if (device && state->device && device != state->device)
        return fail(HVD_E_INVAL,
                    "%s: the entry \"%s\" is in the memory of GPU %d (%s), and an earlier entry in "
                    "the memory of GPU %d (%s); let each process use one GPU",
                    call, name ? name : "", device->ordinal, device->name, state->device->ordinal,
                    state->device->name);
    *ret_device = device;
    return 0;
}

/* Prepares copies from and to the device of the state, once. A state without a device needs
 * nothing. */
int state_open_device(hvd_state *state, struct hvd_err *err)
{
    int rc;

    if (!state->device)
        return 0;
    rc = gpu_use_device(&state->worker->gpu, state->device, "the state", err);
    if (rc || state->device_copy)
        return rc;
    return device_copy_open(state->device, &state->device_copy, err);
}

static void free_slots(hvd_state *state)
{
    for (size_t i = 0; i < ARRAY_SIZE(state->slots); i++) {
        slot_free(state->slots[i]);
        state->slots[i] = NULL;
    }
}

/* Frees the slots and ends the copies. If the GPU does not answer, it may still write to the
 * snapshot: the memory of the snapshot then stays mapped. */
void state_close_device(hvd_state *state)
{
    free_slots(state);
    if (!device_copy_close(state->device_copy) && state->snapshot)
        snapshot_leave_mapped(state->snapshot);
}

/* Makes later copies wait for the work that the program has queued on the device so far. Without a
 * device there is nothing to wait for. */
int state_follow(hvd_state *state, struct hvd_err *err)
{
    struct CUstream_st *stream;

    if (!state->device_copy)
        return 0;
    (void)gpu_use_streamed(&state->worker->gpu, &stream);
    return device_copy_after(state->device_copy, stream, err);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Returns the slot with the newest commit; NULL: no slot holds a commit (a commit number of 0). */
struct slot *state_newest_slot(const hvd_state *state)
{
    struct slot *newest = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(state->slots); i++) {
        struct slot *slot = state->slots[i];

        if (slot && slot_commit(slot) && (!newest || slot_commit(slot) > slot_commit(newest)))
            newest = slot;
    }
    return newest;
}

struct slot *state_slot_of(const hvd_state *state, uint64_t commit)
{
    for (size_t i = 0; i < ARRAY_SIZE(state->slots); i++) {
        if (state->slots[i] && commit && slot_commit(state->slots[i]) == commit)
            return state->slots[i];
    }
    return NULL;
}

/* Takes their numbers from the slots that have this commit or a later one: those commits are not
 * found any more. */
void state_drop_slots(hvd_state *state, uint64_t commit)
{
    for (size_t i = 0; i < ARRAY_SIZE(state->slots); i++) {
        if (state->slots[i] && slot_commit(state->slots[i]) >= commit)
            slot_name(state->slots[i], 0 /* no commit */);
    }
}

/* Prepares the copy of a commit whose state has entries on a GPU: the copy waits for the work that
 * the program has queued. If there are slots, a copy of the state into one of them is queued now,
 * and *task will copy from that slot. beside is true: the training goes on meanwhile
 * (commit_live). */
int state_take(hvd_state *state, struct copier_task *task, bool beside, struct hvd_err *err)
{
    enum commit_to commit_to = state->worker->commit_to;
    const struct copy live = state_copy(state, COPY_ALL);
    int64_t now_us = clock_now_us();
    struct CUstream_st *stream;
    struct slot *slot;
    bool streamed;
    int rc = 0;

    if (!state->device_copy)
        return 0;
    /* Slots are made by the first commit only: if the GPU has no memory for them then, later
     * commits do not try again. Commits then go to the host, and the timeline shows the reason. */
    if (!state->slots_tried && commit_to != COMMIT_TO_HOST) {
        state->slots_tried = true;
        for (size_t i = 0; i < (commit_to == COMMIT_TO_DEVICE ? 2 : 1) && !rc; i++)
            rc = slot_create(&live, &state->slots[i],
                             NULL /* no text is needed: state_show_copy shows the code only */);
        if (rc) {
            free_slots(state);
            state_show_copy(state, TIMELINE_STATE, "no copy on the device for", task->commit, rc,
                            now_us, clock_now_us());
        }
    }
    /* of two slots the one that does not have the newest commit is overwritten */
    slot = state->slots[1] && state_newest_slot(state) == state->slots[0] ? state->slots[1]
                                                                          : state->slots[0];
    if (!slot)
        return state_follow(state, err);
    streamed = gpu_use_streamed(&state->worker->gpu, &stream);
    rc = slot_take(slot, &task->copy, stream, err);
    /* without a stream of the program, its next work may be in any stream, so this thread waits
     * until the GPU has made the copy */
    if (!rc && !streamed && !beside)
        rc = device_copy_await(state->device_copy, err);
    if (rc)
        return rc;
    task->slot = slot;
    task->copy = slot_copy(slot);
    /* with two slots the commit stays on the GPU, and is copied to the host when the round ends */
    if (state->slots[1])
        task->snapshot = NULL;
    return 0;
}

int state_restore_slot(hvd_state *state, const struct slot *slot, const struct copy *copy,
                       struct hvd_err *err)
{
    struct CUstream_st *stream;

    (void)gpu_use_streamed(&state->worker->gpu, &stream);
    return slot_restore(slot, copy, stream, err);
}
