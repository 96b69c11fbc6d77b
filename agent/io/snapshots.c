#include "agent/io/snapshots.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "base/vec.h"

#include <pthread.h>
#include <stdatomic.h>

struct shared_snapshot {
    struct snapshot *snapshot;
    atomic_uint holders;
};

struct slot {
    struct shared_snapshot *newer; /* that of the last worker that asked; NULL */
    struct shared_snapshot *older; /* of another shape, until the newer holds something; NULL */
    uint64_t incarnation;          /* who was granted the newer one */
    int64_t drop_at_us;            /* its worker has left: when nobody needs it any more */
};

struct snapshots {
    pthread_mutex_t mutex;
    struct VEC(struct slot) slots; /* by number */
};

/* ---- sharing --------------------------------------------------------------------------------- */

static struct shared_snapshot *take(struct shared_snapshot *shared)
{
    atomic_fetch_add(&shared->holders, 1);
    return shared;
}

void shared_snapshot_put_down(struct shared_snapshot *shared)
{
    if (!shared || atomic_fetch_sub(&shared->holders, 1) > 1)
        return;
    snapshot_free(shared->snapshot);
    mem_free(shared);
}

struct snapshot *shared_snapshot_of(const struct shared_snapshot *shared)
{
    return shared->snapshot;
}

static void drop(struct shared_snapshot **shared)
{
    shared_snapshot_put_down(*shared);
    *shared = NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct slot *slot_at(struct snapshots *snapshots, uint32_t slot)
{
    return slot < snapshots->slots.count ? &snapshots->slots.items[slot] : NULL;
}

static int make_room(struct snapshots *snapshots, uint32_t slot)
{
    while (slot >= snapshots->slots.count) {
        int rc = VEC_RESERVE(&snapshots->slots, 1, LIMIT_SLOTS_PER_HOST);

        if (rc)
            return rc;
        snapshots->slots.items[snapshots->slots.count++] =
            (struct slot){ .drop_at_us = TIME_NEVER };
    }
    return 0;
}

static uint64_t newest_of(const struct shared_snapshot *shared)
{
    return shared ? snapshot_newest(shared->snapshot) : 0;
}

/* As soon as there is something newer that is whole, nobody goes back to the older one. */
static void drop_outdated(struct slot *slot)
{
    if (slot->older && newest_of(slot->newer))
        drop(&slot->older);
}

static void tidy_slot(struct slot *slot, int64_t now_us)
{
    drop_outdated(slot);
    if (now_us < slot->drop_at_us)
        return;
    drop(&slot->older);
    drop(&slot->newer);
    slot->drop_at_us = TIME_NEVER;
}

int snapshots_create(struct snapshots **ret_snapshots, struct hvd_err *err)
{
    struct snapshots *snapshots = mem_zalloc(sizeof(*snapshots));

    if (!snapshots)
        return err_set(err, HVD_E_NOMEM, "no memory for the table of snapshots");
    if (pthread_mutex_init(&snapshots->mutex, NULL)) {
        mem_free(snapshots);
        return err_set(err, HVD_E_NOMEM, "no memory for a lock");
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
        drop(&slot->older);
        drop(&slot->newer);
    }
    VEC_RELEASE(&snapshots->slots);
    pthread_mutex_destroy(&snapshots->mutex);
    mem_free(snapshots);
}

/* ---- granting -------------------------------------------------------------------------------- */

static int check_shape(const struct snapshot_shape *shape, struct hvd_err *err)
{
    if (!shape->manifest)
        return err_set(err, HVD_E_INVAL, "a snapshot without a manifest");
    if (shape->bytes % STATE_CHUNK_BYTES || shape->replicated_bytes % STATE_CHUNK_BYTES)
        return err_set(err, HVD_E_INVAL, "a snapshot whose size is no multiple of %d bytes",
                       STATE_CHUNK_BYTES);
    if (shape->replicated_bytes > shape->bytes)
        return err_set(err, HVD_E_INVAL, "a snapshot of less than its replicated part");
    if (shape->bytes > LIMIT_STATE_BYTES)
        return err_set(err, HVD_E_LIMIT, "a state of more than %llu bytes (LIMIT_STATE_BYTES)",
                       (unsigned long long)LIMIT_STATE_BYTES);
    return 0;
}

static bool has_shape(const struct shared_snapshot *shared, const struct snapshot_shape *shape)
{
    const struct snapshot_shape *has = snapshot_shape(shared->snapshot);

    return has->manifest == shape->manifest && has->bytes == shape->bytes &&
           has->replicated_bytes == shape->replicated_bytes;
}

static int make_shared(const struct snapshot_shape *shape, struct shared_snapshot **ret_shared,
                       struct hvd_err *err)
{
    struct shared_snapshot *shared = mem_zalloc(sizeof(*shared));
    int rc;

    if (!shared)
        return err_set(err, HVD_E_NOMEM, "no memory for a snapshot");
    rc = snapshot_create(shape, &shared->snapshot, err);
    if (rc) {
        mem_free(shared);
        return rc;
    }
    atomic_init(&shared->holders, 1);
    *ret_shared = shared;
    return 0;
}

/* The older one of a slot is what somebody may still want to fetch: the newest that is whole. */
static int replace(struct slot *slot, const struct snapshot_shape *shape, struct hvd_err *err)
{
    struct shared_snapshot *shared = NULL;
    int rc;

    if (slot->newer && !newest_of(slot->newer))
        drop(&slot->newer);
    rc = make_shared(shape, &shared, err);
    if (rc)
        return rc;
    if (slot->newer) {
        drop(&slot->older);
        slot->older = slot->newer;
    }
    slot->newer = shared;
    return 0;
}

/* A manifest that was the slot's before is that again. */
static void swap_back(struct slot *slot, const struct snapshot_shape *shape)
{
    if (!slot->older || has_shape(slot->newer, shape) || !has_shape(slot->older, shape))
        return;
    drop(&slot->newer);
    slot->newer = slot->older;
    slot->older = NULL;
}

static int grant(struct slot *slot, uint64_t incarnation, const struct snapshot_shape *shape,
                 int *ret_fd, struct hvd_err *err)
{
    int rc = 0;

    drop_outdated(slot);
    if (incarnation < slot->incarnation)
        return err_set(err, HVD_E_STATE, "a later worker runs in its slot");
    if (slot->incarnation == incarnation && slot->newer && !has_shape(slot->newer, shape))
        return err_set(err, HVD_E_STATE,
                       "it was granted a snapshot of another manifest; a worker's "
                       "state stays as it is");
    if (slot->newer)
        swap_back(slot, shape);
    if (!slot->newer || !has_shape(slot->newer, shape))
        rc = replace(slot, shape, err);
    if (rc)
        return rc;
    ASSERT(slot->newer);
    slot->incarnation = incarnation;
    slot->drop_at_us = TIME_NEVER;
    *ret_fd = snapshot_fd(slot->newer->snapshot);
    return 0;
}

int snapshots_grant(struct snapshots *snapshots, uint32_t slot, uint64_t incarnation,
                    const struct snapshot_shape *shape, int *ret_fd, struct hvd_err *err)
{
    int rc = check_shape(shape, err);

    if (rc)
        return rc;
    pthread_mutex_lock(&snapshots->mutex);
    rc = make_room(snapshots, slot);
    if (rc)
        err_set(err, rc, "slot %u: no memory for its snapshot", slot);
    else
        rc = grant(&snapshots->slots.items[slot], incarnation, shape, ret_fd, err);
    pthread_mutex_unlock(&snapshots->mutex);
    return rc;
}

/* ---- looking --------------------------------------------------------------------------------- */

static uint64_t newest_in(const struct slot *slot)
{
    uint64_t newer = newest_of(slot->newer);
    uint64_t older = newest_of(slot->older);

    return newer > older ? newer : older;
}

uint64_t snapshots_newest(struct snapshots *snapshots, uint32_t slot)
{
    uint64_t newest = 0;

    pthread_mutex_lock(&snapshots->mutex);
    if (slot_at(snapshots, slot))
        newest = newest_in(slot_at(snapshots, slot));
    pthread_mutex_unlock(&snapshots->mutex);
    return newest;
}

int snapshots_kept(struct snapshots *snapshots, struct arena *arena, struct msg_kept_list *ret_kept)
{
    struct msg_kept *items;
    size_t count = 0;

    pthread_mutex_lock(&snapshots->mutex);
    items = arena_alloc_array(arena, snapshots->slots.count, sizeof(*items));
    for (uint32_t i = 0; items && i < snapshots->slots.count; i++) {
        uint64_t newest = newest_in(&snapshots->slots.items[i]);

        if (newest)
            items[count++] = (struct msg_kept){ .slot = i, .commit = newest };
    }
    pthread_mutex_unlock(&snapshots->mutex);
    if (!items)
        return HVD_E_NOMEM;
    *ret_kept = (struct msg_kept_list){ items, count };
    return 0;
}

void snapshots_left(struct snapshots *snapshots, uint32_t slot, int64_t now_us)
{
    pthread_mutex_lock(&snapshots->mutex);
    if (slot_at(snapshots, slot))
        slot_at(snapshots, slot)->drop_at_us = time_add(now_us, SNAPSHOTS_LEFT_US);
    pthread_mutex_unlock(&snapshots->mutex);
}

void snapshots_tidy(struct snapshots *snapshots, int64_t now_us)
{
    struct slot *slot;

    pthread_mutex_lock(&snapshots->mutex);
    VEC_EACH (slot, &snapshots->slots)
        tidy_slot(slot, now_us);
    pthread_mutex_unlock(&snapshots->mutex);
}

static bool holds(const struct shared_snapshot *shared, uint64_t manifest, uint64_t commit)
{
    return shared && snapshot_shape(shared->snapshot)->manifest == manifest &&
           snapshot_find(shared->snapshot, commit);
}

struct shared_snapshot *snapshots_find(struct snapshots *snapshots, uint32_t slot,
                                       uint64_t manifest, uint64_t commit)
{
    struct shared_snapshot *found = NULL;
    const struct slot *at;

    if (!commit)
        return NULL;
    pthread_mutex_lock(&snapshots->mutex);
    at = slot_at(snapshots, slot);
    if (at && holds(at->newer, manifest, commit))
        found = take(at->newer);
    else if (at && holds(at->older, manifest, commit))
        found = take(at->older);
    pthread_mutex_unlock(&snapshots->mutex);
    return found;
}

struct shared_snapshot *snapshots_granted(struct snapshots *snapshots, uint32_t slot,
                                          uint64_t incarnation)
{
    struct shared_snapshot *found = NULL;
    const struct slot *at;

    pthread_mutex_lock(&snapshots->mutex);
    at = slot_at(snapshots, slot);
    if (at && at->newer && at->incarnation == incarnation)
        found = take(at->newer);
    pthread_mutex_unlock(&snapshots->mutex);
    return found;
}
