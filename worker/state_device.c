/*
 * state_device.c: entries in device memory. A commit of them is first of all a copy on the device,
 * into a slot; that takes as long as reading and writing them there. What the program queues in its
 * stream waits for it, the loop does not, and the copier brings it to the snapshot beside the
 * training.
 *
 *     both     one slot: the next commit waits until this one is in the snapshot
 *     device   two: one is written while the other holds the commit before
 *     host     none: the snapshot is written out of the live memory, and the commit waits for that
 */
#include "worker/fail.h"
#include "worker/state_inside.h"

#include "os/clock.h"

/* ---- which device ---------------------------------------------------------------------------- */

int state_find_device(const hvd_state *state, const char *call, const char *name, const void *at,
                      const struct gpu_device **ret_device)
{
    const struct gpu_device *device;

    (void)cuda_if_used();
    device = gpu_device_of(at);
    if (device && state->device && device != state->device)
        return fail(HVD_E_INVAL,
                    "%s: \"%s\" is in memory of GPU %d (%s), and an entry before it in that of GPU "
                    "%d (%s); let each process use one",
                    call, name ? name : "", device->ordinal, device->name, state->device->ordinal,
                    state->device->name);
    *ret_device = device;
    return 0;
}

int state_open_device(hvd_state *state, struct hvd_err *err)
{
    int rc;

    if (!state->device)
        return 0;
    rc = gpu_use_device(&state->worker->gpu, state->device, "the state", err);
    return rc || state->ferry ? rc : ferry_open(state->device, &state->ferry, err);
}

static void free_slots(hvd_state *state)
{
    for (size_t i = 0; i < ARRAY_SIZE(state->slots); i++) {
        slot_free(state->slots[i]);
        state->slots[i] = NULL;
    }
}

void state_close_device(hvd_state *state)
{
    free_slots(state);
    if (!ferry_close(state->ferry) && state->snapshot)
        snapshot_leave_mapped(state->snapshot);
}

/* ---- the program's stream -------------------------------------------------------------------- */

/* Where the program queues what changes its state. false: it has not said so; then that is whatever
 * stream it likes, which the NULL stream is only sure to come after where it is a blocking one. */
static bool has_stream(const hvd_state *state, struct CUstream_st **ret_stream)
{
    return gpu_use_streamed(&state->worker->gpu, ret_stream);
}

int state_follow(hvd_state *state, struct hvd_err *err)
{
    struct CUstream_st *stream;

    if (!state->ferry)
        return 0;
    (void)has_stream(state, &stream);
    return ferry_after(state->ferry, stream, err);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Once: a device that has no room now is not asked again in the middle of a training. Then commits
 * go to the host, which is seen in the timeline. */
static void make_slots(hvd_state *state, uint64_t commit)
{
    const struct copy live = state_copy(state, COPY_ALL);
    size_t count = state->worker->commit_to == COMMIT_TO_DEVICE ? 2 : 1;
    int64_t now_us = clock_now_us();
    int rc = 0;

    if (state->slots_tried || state->worker->commit_to == COMMIT_TO_HOST)
        return;
    state->slots_tried = true;
    for (size_t i = 0; i < count && !rc; i++)
        rc = slot_create(&live, &state->slots[i], NULL);
    if (!rc)
        return;
    free_slots(state);
    shown_copy(&state->worker->shown, &(struct shown_copy){ .what = "no copy on the device for",
                                                            .commit = commit,
                                                            .bytes = state->manifest.bytes,
                                                            .code = rc,
                                                            .begun_us = now_us,
                                                            .ended_us = clock_now_us() });
}

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

void state_drop_slots(hvd_state *state, uint64_t commit)
{
    for (size_t i = 0; i < ARRAY_SIZE(state->slots); i++) {
        if (state->slots[i] && slot_commit(state->slots[i]) >= commit)
            slot_name(state->slots[i], 0);
    }
}

/* The one that is written next: not the one that holds the newest, if there are two. */
static struct slot *next_slot(const hvd_state *state)
{
    struct slot *newest = state_newest_slot(state);

    return state->slots[1] && newest == state->slots[0] ? state->slots[1] : state->slots[0];
}

int state_take(hvd_state *state, struct copier_job *job, bool beside, struct hvd_err *err)
{
    struct CUstream_st *stream;
    struct slot *slot;
    bool said;
    int rc;

    if (!state->ferry)
        return 0;
    make_slots(state, job->commit);
    slot = next_slot(state);
    if (!slot)
        return state_follow(state, err);
    said = has_stream(state, &stream);
    rc = slot_take(slot, &job->copy, stream, err);
    if (!rc && !said && !beside)
        rc = ferry_await(state->ferry, err);
    if (rc)
        return rc;
    job->slot = slot;
    job->copy = slot_copy(slot);
    if (state->slots[1])
        job->snapshot = NULL;
    return 0;
}

int state_restore_slot(hvd_state *state, const struct slot *slot, const struct copy *copy,
                       struct hvd_err *err)
{
    struct CUstream_st *stream;

    (void)has_stream(state, &stream);
    return slot_restore(slot, copy, stream, err);
}
