/*
 * saved.c: the entries of a state in host memory, for save.c and load.c.
 *
 * Called on the thread of the program. Invariant: while a callback of the program runs the state is
 * in STATE_COPYING, so the callback cannot begin another copy; and no copy of a device is in
 * progress when saved_take or saved_give returns.
 */
#include "worker/saved.h"

#include "state/snapshot/custom.h"
#include "state/snapshot/memory_left.h"
#include "worker/fail.h"
#include "worker/requests.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

/* Checks that hvd_state_save or hvd_state_load (`call`) may run now: before a run, or in train. In
 * train it then waits for a commit that is being copied. */
int saved_begin(hvd_state *state, const char *call, const char *path)
{
    int rc;

    if (!state || !path || !path[0])
        return fail(HVD_E_INVAL, "%s: %s; pass a state and the path of a directory", call,
                    state ? "the path is empty" : "the state is NULL");
    fail_begin();
    if (worker_is_fork())
        return HVD_E_STATE;
    if (!state->manifest.count)
        return fail(HVD_E_INVAL, "%s: the state has no entries; add entries first", call);
    if (state->phase == STATE_IDLE)
        return 0;
    rc = state_goes_on(state, call);
    if (rc)
        return rc;
    requests_flush(state->worker->rounds);
    return state_fence(state, fail_err());
}

/* Returns the code with which a function of hvd.h ends, and puts its name before the text of a
 * failure. Codes about a round (HVD_E_REVOKED ...) become HVD_E_IO, because the library would act
 * on such a code if train returned it. */
int saved_end(const char *call, int code)
{
    bool reserved = code == HVD_E_REVOKED || code == HVD_E_LOST || code == HVD_E_TIMEOUT ||
                    code == HVD_E_MISMATCH;

    return code ? err_prefix(fail_err(), reserved ? HVD_E_IO : code, "%s", call) : 0;
}

/* Lists the entries, and maps host memory for custom entries and those on a GPU. A custom entry may
 * have much more room than it uses, and only pages that are written take memory: so its memory is
 * mapped, but not reserved. */
int saved_init(struct saved *saved, hvd_state *state, struct hvd_err *err)
{
    const struct manifest_entry *entry;
    int rc = 0;

    *saved = (struct saved){ .state = state, .device_copy = state->device_copy };
    if (VEC_RESERVE(saved, state->manifest.count, LIMIT_MANIFEST_ENTRIES))
        return err_set(err, HVD_E_NOMEM,
                       "no memory for a list of %zu entries; free memory on this host",
                       state->manifest.count);
    if (state->device && !saved->device_copy) {
        rc = device_copy_open(state->device, &saved->opened, err);
        saved->device_copy = saved->opened;
    }
    VEC_EACH (entry, &state->manifest) {
        const struct copy_part *part = &state->parts.items[saved->count];
        struct saved_entry *one = &saved->items[saved->count++];
        size_t bytes = entry->bytes + (entry->custom ? CUSTOM_LENGTH_BYTES : 0);
        void *at = MAP_FAILED;

        *one = (struct saved_entry){
            .entry = entry, .part = part, .at = part->at, .bytes = entry->bytes
        };
        if (rc || !bytes || (!entry->custom && !part->on_device))
            continue;
        if (entry->custom || bytes <= memory_left())
            at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) {
            rc = err_set(err, HVD_E_NOMEM,
                         "entry \"%s\": the host has no memory for a copy of its %zu bytes; run "
                         "fewer workers on this machine",
                         entry->name, bytes);
            continue;
        }
        one->memory = at;
        one->memory_bytes = bytes;
        one->at = (uint8_t *)at + (entry->custom ? CUSTOM_LENGTH_BYTES : 0);
    }
    if (rc)
        saved_release(saved);
    return rc;
}

/* Frees the host memory of the entries. If the GPU does not answer, it may still write there: that
 * memory stays mapped. */
void saved_release(struct saved *saved)
{
    struct saved_entry *one;
    /* false: the GPU does not answer, and may still write to the memory, which then stays mapped */
    bool quiet = device_copy_close(saved->opened);

    VEC_EACH (one, saved) {
        if (one->memory && (quiet || !one->part->on_device))
            munmap(one->memory, one->memory_bytes);
    }
    VEC_RELEASE(saved);
}

/* Makes the copies of entries on a GPU wait for the work that the program has queued there so
 * far. */
static int saved_follow(const struct saved *saved, struct hvd_err *err)
{
    struct CUstream_st *stream = NULL;

    if (hvd_is_initialized())
        (void)gpu_use_streamed(&worker_get()->gpu, &stream);
    return device_copy_after(saved->device_copy, stream, err);
}

/* A device_copy_queue_fn: queues the copy of one entry, whose index is `piece`, from the GPU to
 * host memory. Entries in host memory need no copy. */
static int saved_queue(void *arg, uint64_t piece)
{
    const struct saved *saved = arg;
    const struct saved_entry *one = &saved->items[piece];

    if (!one->part->on_device || !one->bytes)
        return 0;
    return device_copy_to_host(saved->device_copy, one->at, (cuda_address)(uintptr_t)one->part->at,
                               one->bytes);
}

/* Copies the live state into host memory: entries on a GPU by a copy of the GPU, custom entries by
 * their save functions. Called for hvd_state_save. */
int saved_take(struct saved *saved, struct hvd_err *err)
{
    hvd_state *state = saved->state;
    enum state_phase phase = state->phase;
    struct saved_entry *one;
    int settled = 0;
    int rc = 0;

    if (state->device) {
        rc = saved_follow(saved, err);
        if (!rc)
            rc = device_copy_begin(saved->device_copy, 0, saved->count, saved_queue, saved);
        for (size_t i = 0; !rc && i < saved->count; i++)
            rc = device_copy_landed(saved->device_copy, i);
        settled = device_copy_settle(saved->device_copy, err);
    }
    /* In train a collective may have been ended early: its results are undefined, and must not be
     * saved. */
    if (!rc && !settled && state->device && phase != STATE_IDLE)
        rc = rounds_judge(state->worker->rounds, err);
    rc = settled ? settled : rc;
    /* the objects of the state, such as samplers, write down their progress as for a commit */
    for (size_t i = 0; i < state->owned.count; i++)
        state->owned.items[i].commits(state->owned.items[i].object);
    state->phase = STATE_COPYING;
    VEC_EACH (one, saved) {
        if (rc || !one->entry->custom)
            continue;
        rc = custom_save(one->entry, one->part, one->memory, err);
        if (!rc)
            one->bytes = custom_length(one->memory);
    }
    state->phase = phase;
    return rc;
}

/* Writes the saved entries back to the live state: those on a GPU by a copy of the device, custom
 * ones by their load functions. When the function returns, no copy runs any more. After a failure
 * some entries may have been written and others not. */
int saved_give(struct saved *saved, struct hvd_err *err)
{
    hvd_state *state = saved->state;
    enum state_phase phase = state->phase;
    struct saved_entry *one;
    int settled = 0;
    int rc = state->device ? saved_follow(saved, err) : 0;

    VEC_EACH (one, saved) {
        if (!rc && one->part->on_device && one->bytes && !one->left_out)
            rc = device_copy_to_device(saved->device_copy, (cuda_address)(uintptr_t)one->part->at,
                                       one->at, one->bytes);
    }
    if (state->device)
        settled = device_copy_settle(saved->device_copy, err);
    rc = settled ? settled : rc;
    state->phase = STATE_COPYING;
    VEC_EACH (one, saved) {
        if (rc || !one->entry->custom || one->left_out)
            continue;
        memcpy(one->memory, &one->bytes, CUSTOM_LENGTH_BYTES);
        rc = custom_load(one->entry, one->part, one->memory, err);
    }
    state->phase = phase;
    return rc;
}
