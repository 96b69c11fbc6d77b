/*
 * snapshots.c: the snapshots of this host's slots. Two threads call this file: the agent's loop,
 * which grants snapshots to workers, and the thread that serves and fetches commits. Invariants: a
 * slot has at most two snapshots, and one of them holds the slot's newest whole commit; the last
 * holder of a snapshot frees the snapshot.
 */
#include "agent/commits/snapshots.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "base/vec.h"

#include <pthread.h>
#include <stdatomic.h>

struct shared_snapshot {
    struct snapshot *snapshot;
    atomic_uint holders; /* the table, and each caller that has found the snapshot */
};

struct slot {
    struct shared_snapshot *newer; /* the snapshot that was granted last; NULL: none */
    /* a snapshot with another shape (manifest and sizes), kept until `newer` holds a commit; NULL:
     * none */
    struct shared_snapshot *older;
    uint64_t incarnation; /* incarnation of the worker that `newer` was granted to */
    /* when the snapshots of a worker that has left are dropped; TIME_NEVER: they are kept */
    int64_t drop_at_us;
};

struct snapshots {
    pthread_mutex_t mutex;
    struct VEC(struct slot) slots; /* indexed by slot number */
};

/* Adds a holder to a snapshot of the table. Called under the mutex: while it is held, the table
 * itself is a holder, so the snapshot cannot be freed at the same time. */
static struct shared_snapshot *snapshots_take(struct shared_snapshot *shared)
{
    atomic_fetch_add(&shared->holders, 1);
    return shared;
}

/* One holder uses the snapshot no longer: the last one frees it. */
void shared_snapshot_put_down(struct shared_snapshot *shared)
{
    if (!shared || atomic_fetch_sub(&shared->holders, 1) > 1)
        return;
    snapshot_free(shared->snapshot);
    mem_free(shared);
}

/* Returns the memory of the snapshot, borrowed while the caller is a holder of `shared`. */
struct snapshot *shared_snapshot_of(const struct shared_snapshot *shared)
{
    return shared->snapshot;
}

/* The table holds this snapshot no longer; a caller that has found it may still use it. */
static void snapshots_drop(struct shared_snapshot **shared)
{
    shared_snapshot_put_down(*shared);
    *shared = NULL;
}

/* Returns the entry of a slot; NULL: no worker of that slot has asked for a snapshot. */
static struct slot *snapshots_slot(struct snapshots *snapshots, uint32_t slot)
{
    return slot < snapshots->slots.count ? &snapshots->slots.items[slot] : NULL;
}

/* Returns the newest whole commit in a snapshot, which may be NULL; 0: none. */
static uint64_t snapshots_newest_of(const struct shared_snapshot *shared)
{
    return shared ? snapshot_newest(shared->snapshot) : 0;
}

/* Drops the older snapshot when the newer snapshot holds a whole commit: no recovery goes back to
 * the older snapshot then. */
static void snapshots_drop_outdated(struct slot *slot)
{
    if (slot->older && snapshots_newest_of(slot->newer))
        snapshots_drop(&slot->older);
}

int snapshots_create(struct snapshots **ret_snapshots, struct hvd_err *err)
{
    struct snapshots *snapshots = mem_zalloc(sizeof(*snapshots));

    if (!snapshots)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the table of snapshots; free memory on this host");
    if (pthread_mutex_init(&snapshots->mutex, NULL)) {
        mem_free(snapshots);
        return err_set(
            err, HVD_E_NOMEM,
            "no memory for the lock of the table of snapshots; free memory on this host");
    }
    *ret_snapshots = snapshots;
    return 0;
}

void snapshots_free(struct snapshots *snapshots)
{
    struct slot *slot;

    if (!snapshots)
        return;
    VEC_EACH (slot, &snapshots->slots) {
        snapshots_drop(&slot->older);
        snapshots_drop(&slot->newer);
    }
    VEC_RELEASE(&snapshots->slots);
    pthread_mutex_destroy(&snapshots->mutex);
    mem_free(snapshots);
}

/* true: the snapshot was made for this manifest (list of entries) and these sizes. */
static bool snapshots_have_shape(const struct shared_snapshot *shared,
                                 const struct snapshot_shape *shape)
{
    const struct snapshot_shape *has = snapshot_shape(shared->snapshot);

    return has->manifest == shape->manifest && has->bytes == shape->bytes &&
           has->replicated_bytes == shape->replicated_bytes;
}

/* Gives a worker the snapshot of its slot. PROTOCOL.md, SNAPSHOT: a snapshot of the same manifest
 * (list of entries) is granted again, with its commits; otherwise a new snapshot is made, and the
 * older snapshot stays until the new one holds a whole commit. Called under the mutex. */
static int snapshots_grant_slot(struct slot *slot, uint64_t incarnation,
                                const struct snapshot_shape *shape, int *ret_fd,
                                struct hvd_err *err)
{
    struct shared_snapshot *made;
    int rc;

    snapshots_drop_outdated(slot);
    if (incarnation < slot->incarnation)
        return err_set(err, HVD_E_STATE,
                       "a later worker has taken this worker's slot, so this worker must end");
    if (slot->incarnation == incarnation && slot->newer &&
        !snapshots_have_shape(slot->newer, shape))
        return err_set(err, HVD_E_STATE,
                       "this worker already has a snapshot of a state with other entries; register "
                       "the same entries before each call of hvd_elastic_run");
    /* The worker is back at the manifest of the older snapshot: the two snapshots change roles. */
    if (slot->newer && slot->older && !snapshots_have_shape(slot->newer, shape) &&
        snapshots_have_shape(slot->older, shape)) {
        snapshots_drop(&slot->newer);
        slot->newer = slot->older;
        slot->older = NULL;
    }
    if (!slot->newer || !snapshots_have_shape(slot->newer, shape)) {
        /* A snapshot without a whole commit is dropped first, to free its memory for the new one.
         * No commit is lost by that, also if snapshot_create then fails. */
        if (slot->newer && !snapshots_newest_of(slot->newer))
            snapshots_drop(&slot->newer);
        made = mem_zalloc(sizeof(*made));
        if (!made)
            return err_set(err, HVD_E_NOMEM,
                           "no memory for the snapshot of a worker; free memory on this host");
        rc = snapshot_create(shape, &made->snapshot, err);
        if (rc) {
            mem_free(made);
            return rc;
        }
        atomic_init(&made->holders, 1);
        /* slot->newer holds a whole commit here, or is NULL. A peer may still fetch that commit, so
         * its snapshot is kept as the older one. */
        if (slot->newer) {
            snapshots_drop(&slot->older);
            slot->older = slot->newer;
        }
        slot->newer = made;
    }
    ASSERT(slot->newer);
    slot->incarnation = incarnation;
    slot->drop_at_us = TIME_NEVER;
    *ret_fd = snapshot_fd(slot->newer->snapshot);
    return 0;
}

/* Answers the SNAPSHOT message of the worker in this slot: gives the descriptor of shared memory
 * for that worker's commits. Makes the entries of the table up to this slot first. */
int snapshots_grant(struct snapshots *snapshots, uint32_t slot, uint64_t incarnation,
                    const struct snapshot_shape *shape, int *ret_fd, struct hvd_err *err)
{
    int rc = 0;

    if (!shape->manifest)
        return err_set(err, HVD_E_INVAL,
                       "the worker asks for a snapshot without a manifest (the list of its "
                       "entries); the agent and libhvd must be of the same release");
    if (shape->bytes % STATE_CHUNK_BYTES || shape->replicated_bytes % STATE_CHUNK_BYTES)
        return err_set(err, HVD_E_INVAL,
                       "the worker asks for a snapshot whose size is no multiple of %d bytes; "
                       "the agent and libhvd must be of the same release",
                       STATE_CHUNK_BYTES);
    if (shape->replicated_bytes > shape->bytes)
        return err_set(err, HVD_E_INVAL,
                       "the worker asks for a snapshot that is smaller than its replicated part; "
                       "the agent and libhvd must be of the same release");
    if (shape->bytes > LIMIT_STATE_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "slot %u: the worker's state has %llu bytes, but at most %llu are possible "
                       "(LIMIT_STATE_BYTES); register large entries per rank, so that each worker "
                       "keeps only its part",
                       slot, (unsigned long long)shape->bytes,
                       (unsigned long long)LIMIT_STATE_BYTES);

    pthread_mutex_lock(&snapshots->mutex);
    while (!rc && slot >= snapshots->slots.count) {
        rc = VEC_RESERVE(&snapshots->slots, 1, LIMIT_SLOTS_PER_HOST);
        if (!rc)
            snapshots->slots.items[snapshots->slots.count++] =
                (struct slot){ .drop_at_us = TIME_NEVER };
    }
    if (rc)
        err_set(err, rc,
                rc == HVD_E_LIMIT ? "slot %u: a host has at most %d slots; list fewer slots"
                                  : "slot %u: no memory for the snapshots of this host (at most %d "
                                    "slots); free memory on this host",
                slot, LIMIT_SLOTS_PER_HOST);
    else
        rc = snapshots_grant_slot(&snapshots->slots.items[slot], incarnation, shape, ret_fd, err);
    pthread_mutex_unlock(&snapshots->mutex);
    return rc;
}

/* Returns the newest whole commit in the two snapshots of a slot; 0: none. */
static uint64_t snapshots_newest_in(const struct slot *slot)
{
    uint64_t newer = snapshots_newest_of(slot->newer);
    uint64_t older = snapshots_newest_of(slot->older);

    return newer > older ? newer : older;
}

/* Returns the newest whole commit that is kept for the slot; 0: none. */
uint64_t snapshots_newest(struct snapshots *snapshots, uint32_t slot)
{
    uint64_t newest = 0;

    pthread_mutex_lock(&snapshots->mutex);
    if (snapshots_slot(snapshots, slot))
        newest = snapshots_newest_in(snapshots_slot(snapshots, slot));
    pthread_mutex_unlock(&snapshots->mutex);
    return newest;
}

/* Lists the newest kept commit of each slot, for the HELLO_AGENT that greets a driver. */
int snapshots_kept(struct snapshots *snapshots, struct arena *arena, struct msg_kept_list *ret_kept)
{
    struct msg_kept *items;
    size_t count = 0;

    pthread_mutex_lock(&snapshots->mutex);
    items = arena_alloc_array(arena, snapshots->slots.count, sizeof(*items));
    for (uint32_t i = 0; items && i < snapshots->slots.count; i++) {
        uint64_t newest = snapshots_newest_in(&snapshots->slots.items[i]);

        if (newest)
            items[count++] = (struct msg_kept){ .slot = i, .commit = newest };
    }
    pthread_mutex_unlock(&snapshots->mutex);
    if (!items)
        return HVD_E_NOMEM;
    *ret_kept = (struct msg_kept_list){ items, count };
    return 0;
}

/* The worker of the slot has left in order: its snapshots are dropped after SNAPSHOTS_LEFT_US. */
void snapshots_left(struct snapshots *snapshots, uint32_t slot, int64_t now_us)
{
    pthread_mutex_lock(&snapshots->mutex);
    if (snapshots_slot(snapshots, slot))
        snapshots_slot(snapshots, slot)->drop_at_us = time_add(now_us, SNAPSHOTS_LEFT_US);
    pthread_mutex_unlock(&snapshots->mutex);
}

/* Frees outdated snapshots, and those of workers that have left. `drop_at_us` is set only when a
 * worker has left and its slot has got no new worker. */
void snapshots_tidy(struct snapshots *snapshots, int64_t now_us)
{
    struct slot *slot;

    pthread_mutex_lock(&snapshots->mutex);
    VEC_EACH (slot, &snapshots->slots) {
        snapshots_drop_outdated(slot);
        if (now_us < slot->drop_at_us)
            continue;
        snapshots_drop(&slot->older);
        snapshots_drop(&slot->newer);
        slot->drop_at_us = TIME_NEVER;
    }
    pthread_mutex_unlock(&snapshots->mutex);
}

/* true: this snapshot, which may be NULL, has this manifest and holds this whole commit. */
static bool snapshots_hold(const struct shared_snapshot *shared, uint64_t manifest, uint64_t commit)
{
    return shared && snapshot_shape(shared->snapshot)->manifest == manifest &&
           snapshot_find(shared->snapshot, commit);
}

/* Returns the slot's snapshot that holds this commit; NULL: none. The caller puts the snapshot
 * down. Both snapshots are searched: when the manifest has changed, the older snapshot may hold the
 * commit. */
struct shared_snapshot *snapshots_find(struct snapshots *snapshots, uint32_t slot,
                                       uint64_t manifest, uint64_t commit)
{
    struct shared_snapshot *found = NULL;
    const struct slot *at;

    if (!commit)
        return NULL;
    pthread_mutex_lock(&snapshots->mutex);
    at = snapshots_slot(snapshots, slot);
    if (at && snapshots_hold(at->newer, manifest, commit))
        found = snapshots_take(at->newer);
    else if (at && snapshots_hold(at->older, manifest, commit))
        found = snapshots_take(at->older);
    pthread_mutex_unlock(&snapshots->mutex);
    return found;
}

/* Returns the snapshot of the newest manifest of this slot, which the caller puts down; NULL: no
 * worker of the slot has asked for one. */
struct shared_snapshot *snapshots_newer(struct snapshots *snapshots, uint32_t slot)
{
    struct shared_snapshot *found = NULL;
    const struct slot *at;

    pthread_mutex_lock(&snapshots->mutex);
    at = snapshots_slot(snapshots, slot);
    if (at && at->newer)
        found = snapshots_take(at->newer);
    pthread_mutex_unlock(&snapshots->mutex);
    return found;
}

/* Returns the snapshot into which this worker writes its commits, which the caller puts down; NULL:
 * the worker has not asked for one. */
struct shared_snapshot *snapshots_granted(struct snapshots *snapshots, uint32_t slot,
                                          uint64_t incarnation)
{
    struct shared_snapshot *found = NULL;
    const struct slot *at;

    pthread_mutex_lock(&snapshots->mutex);
    at = snapshots_slot(snapshots, slot);
    if (at && at->newer && at->incarnation == incarnation)
        found = snapshots_take(at->newer);
    pthread_mutex_unlock(&snapshots->mutex);
    return found;
}
