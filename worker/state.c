/*
 * state.c: a training state as the program registers it (hvd_state_create to hvd_state_on_reset),
 * and the rules of who may call what when.
 *
 * Called by the program; commit.c and sampler.c ask state_in_train and state_goes_on before they do
 * anything. Invariant: the manifest and the parts have the same entries in the same order, and are
 * not changed once hvd_elastic_run has begun.
 */
#include "worker/state_device.h"

#include "base/mem.h"
#include "proto/entry_type.h"
#include "worker/fail.h"

#include <inttypes.h>

#define RESETS_MAX 1024
#define OWNED_MAX  1024

hvd_state *hvd_state_create(void)
{
    struct hvd_state *state = mem_zalloc(sizeof(*state));

    fail_begin();
    if (!state) {
        fail(HVD_E_NOMEM, "no memory for a state; free memory on this host");
        return NULL;
    }
    manifest_init(&state->manifest);
    return state;
}

/* Frees the state and what it owns. Does nothing while hvd_elastic_run uses the state, and in a
 * forked child. */
void hvd_state_free(hvd_state *state)
{
    if (!state || state->phase != STATE_IDLE || worker_is_fork())
        return;
    copier_stop(&state->copier);
    state_close_device(state);
    snapshot_free(state->snapshot);
    for (size_t i = 0; i < state->owned.count; i++)
        state->owned.items[i].free_object(state->owned.items[i].object);
    VEC_RELEASE(&state->owned);
    VEC_RELEASE(&state->resets);
    VEC_RELEASE(&state->parts);
    manifest_release(&state->manifest);
    mem_free(state);
}

/* Gives an object (a sampler) to the state. hvd_state_free frees it by free_object, and each commit
 * begins with a call of `commits`. */
int state_own(hvd_state *state, void *object, void (*free_object)(void *object),
              void (*commits)(void *object))
{
    int rc = VEC_RESERVE(&state->owned, 1, OWNED_MAX);

    if (rc == HVD_E_LIMIT)
        return fail(rc, "the state has more than %d samplers; create fewer samplers", OWNED_MAX);
    if (rc)
        return fail(rc, "no memory for a sampler of the state; free memory on this host");
    state->owned.items[state->owned.count++] = (struct state_owned){ object, free_object, commits };
    return 0;
}

/* Checks that entries and callbacks may be registered: HVD_E_STATE after hvd_elastic_run has
 * begun. */
static int state_open(const hvd_state *state, const char *call)
{
    if (!state)
        return fail(HVD_E_INVAL, "%s: the state is NULL; pass what hvd_state_create has returned",
                    call);
    fail_begin();
    if (worker_is_fork())
        return HVD_E_STATE;
    if (state->manifest.sealed)
        return fail(HVD_E_STATE,
                    "%s: hvd_elastic_run has begun; register all entries of the state before "
                    "hvd_elastic_run",
                    call);
    return 0;
}

/* Checks that the function of hvd.h with the name `call` is allowed now: in train, and on the
 * thread that has called hvd_elastic_run or the last hvd_elastic_next. */
int state_in_train(const hvd_state *state, const char *call)
{
    if (!state)
        return fail(HVD_E_INVAL, "%s: the state is NULL; pass what hvd_state_create has returned",
                    call);
    fail_begin();
    if (worker_is_fork())
        return HVD_E_STATE;
    if (state->phase == STATE_COPYING)
        return fail(HVD_E_STATE,
                    "%s: a commit, a restore or a check runs; call this function when the other "
                    "call has returned",
                    call);
    if (state->phase != STATE_TRAINING)
        return fail(HVD_E_STATE,
                    "%s: train does not run; call this function only in train, which "
                    "hvd_elastic_run calls, or after a hvd_elastic_next that has returned 0",
                    call);
    if (!pthread_equal(state->loop, pthread_self()))
        return fail(HVD_E_STATE,
                    "%s: this thread is not the training thread; call this function in the thread "
                    "that has called hvd_elastic_run, or the last hvd_elastic_next",
                    call);
    return 0;
}

/* Checks the same as state_in_train, and that train was not told to return: HVD_E_STATE after a
 * commit or check has returned news (a code above 0), HVD_E_REVOKED when the round is dead. */
int state_goes_on(const hvd_state *state, const char *call)
{
    int rc = state_in_train(state, call);

    if (rc)
        return rc;
    if (state->told > 0)
        return fail(HVD_E_STATE,
                    "%s: a commit or check has returned %s; return this value from train", call,
                    err_name(state->told));
    if (state->told || rounds_failed(state->worker->rounds))
        return fail(HVD_E_REVOKED, "%s: round %" PRIu64 " is dead; return HVD_E_REVOKED from train",
                    call, state->round);
    return 0;
}

/* ---- registration ---------------------------------------------------------------------------- */

/* Adds an entry of any kind: its name, size and type to the manifest, and its part (where its bytes
 * are: an address or callbacks) to state->parts. `call` is the function of hvd.h, for errors. */
static int add_entry(hvd_state *state, const char *call, const char *name, size_t bytes,
                     uint32_t kind, uint32_t type, const struct copy_part *part)
{
    struct hvd_err *err = fail_err();
    int rc = state_open(state, call);

    if (rc)
        return rc;
    if (!name)
        return fail(HVD_E_INVAL, "%s: the name of the entry is NULL; pass a name", call);
    if (VEC_RESERVE(&state->parts, 1, LIMIT_MANIFEST_ENTRIES + 1))
        return fail(HVD_E_NOMEM, "%s: no memory for the entry \"%s\"; free memory on this host",
                    call, name);
    rc = manifest_add_typed(&state->manifest, name, bytes, kind, part->save != NULL, type, err);
    if (rc)
        return err_prefix(err, rc, "%s", call);
    state->parts.items[state->parts.count++] = *part;
    return 0;
}

/* Adds an entry that is a piece of memory, of the host or of a device. `kind` is ENTRY_REPLICATED
 * or ENTRY_PER_RANK. */
static int add_memory(hvd_state *state, const char *call, const char *name, void *at, size_t bytes,
                      uint32_t kind, uint32_t type)
{
    const struct gpu_device *device = NULL;
    int rc;

    if (!at && bytes)
        return fail(HVD_E_INVAL,
                    "%s: the entry \"%s\" has %zu bytes, but its address is NULL; pass the address "
                    "of the memory",
                    call, name ? name : "", bytes);
    rc = state_open(state, call);
    if (!rc)
        rc = state_find_device(state, call, name, at, &device);
    if (!rc)
        rc = add_entry(state, call, name, bytes, kind, type,
                       &(struct copy_part){ .at = at, .on_device = device != NULL });
    if (!rc && device)
        state->device = device;
    return rc;
}

int hvd_state_add(hvd_state *state, const char *name, void *at, size_t bytes)
{
    return add_memory(state, "hvd_state_add", name, at, bytes, ENTRY_REPLICATED, ENTRY_TYPE_BYTES);
}

int hvd_state_add_per_rank(hvd_state *state, const char *name, void *at, size_t bytes)
{
    return add_memory(state, "hvd_state_add_per_rank", name, at, bytes, ENTRY_PER_RANK,
                      ENTRY_TYPE_BYTES);
}

/* Adds an entry of `count` elements of a type. The manifest keeps the type, and checkpoints are
 * written with it. */
static int add_elements(hvd_state *state, const char *call, const char *name, void *at,
                        size_t count, hvd_dtype type, uint32_t kind)
{
    uint32_t entry_type = entry_type_of(type);
    size_t bytes = entry_type_bytes(entry_type);

    if (entry_type == ENTRY_TYPE_BYTES)
        return fail(HVD_E_INVAL,
                    "%s: the entry \"%s\" gets the type %d, which does not exist; use a type of "
                    "enum hvd_dtype",
                    call, name ? name : "", (int)type);
    if (count > LIMIT_STATE_BYTES / bytes)
        return fail(
            HVD_E_LIMIT,
            "%s: the entry \"%s\" has %zu elements of %zu bytes, but a state has at most %" PRIu64
            " bytes (LIMIT_STATE_BYTES); register large entries per rank, so that each worker "
            "keeps only its part",
            call, name ? name : "", count, bytes, LIMIT_STATE_BYTES);
    return add_memory(state, call, name, at, count * bytes, kind, entry_type);
}

int hvd_state_add_array(hvd_state *state, const char *name, void *at, size_t count, hvd_dtype type)
{
    return add_elements(state, "hvd_state_add_array", name, at, count, type, ENTRY_REPLICATED);
}

int hvd_state_add_array_per_rank(hvd_state *state, const char *name, void *at, size_t count,
                                 hvd_dtype type)
{
    return add_elements(state, "hvd_state_add_array_per_rank", name, at, count, type,
                        ENTRY_PER_RANK);
}

int hvd_state_add_scalar(hvd_state *state, const char *name, void *at, hvd_dtype type)
{
    return add_elements(state, "hvd_state_add_scalar", name, at, 1, type, ENTRY_REPLICATED);
}

/* Adds an entry that the program's callbacks save and load; `room` is the most bytes that it may
 * need. */
static int add_custom(hvd_state *state, const char *call, const char *name, size_t room,
                      const struct copy_part *part, uint32_t kind)
{
    if (!part->save || !part->load)
        return fail(HVD_E_INVAL, "%s: the entry \"%s\": save or load is NULL; pass both functions",
                    call, name ? name : "");
    return add_entry(state, call, name, room, kind, ENTRY_TYPE_BYTES, part);
}

int hvd_state_add_custom(hvd_state *state, const char *name, size_t room, hvd_save_fn *save,
                         hvd_load_fn *load, void *arg)
{
    const struct copy_part part = { .save = save, .load = load, .arg = arg };

    return add_custom(state, "hvd_state_add_custom", name, room, &part, ENTRY_REPLICATED);
}

int hvd_state_add_custom_per_rank(hvd_state *state, const char *name, size_t room,
                                  hvd_save_fn *save, hvd_load_fn *load, void *arg)
{
    const struct copy_part part = { .save = save, .load = load, .arg = arg };

    return add_custom(state, "hvd_state_add_custom_per_rank", name, room, &part, ENTRY_PER_RANK);
}

/* Adds an entry of `count` numbers of 64 bits that callbacks save and load, as the progress of a
 * sampler. A checkpoint has the numbers with their type. */
int state_add_numbers(hvd_state *state, const char *call, const char *name, size_t count,
                      hvd_save_fn *save, hvd_load_fn *load, void *arg)
{
    return add_entry(state, call, name, count * sizeof(int64_t), ENTRY_REPLICATED,
                     ENTRY_TYPE_OF(HVD_INT64),
                     &(struct copy_part){ .save = save, .load = load, .arg = arg });
}

int hvd_state_on_reset(hvd_state *state, hvd_reset_fn *reset, void *arg)
{
    int rc = state_open(state, "hvd_state_on_reset");

    if (rc)
        return rc;
    if (!reset)
        return fail(HVD_E_INVAL, "hvd_state_on_reset: the callback is NULL; pass a function");
    rc = VEC_RESERVE(&state->resets, 1, RESETS_MAX);
    if (rc == HVD_E_LIMIT)
        return fail(rc, "hvd_state_on_reset: more than %d callbacks; register fewer callbacks",
                    RESETS_MAX);
    if (rc)
        return fail(rc, "hvd_state_on_reset: no memory for a callback; free memory on this host");
    state->resets.items[state->resets.count++] = (struct state_reset){ reset, arg };
    return 0;
}
