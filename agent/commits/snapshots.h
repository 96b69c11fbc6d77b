/*
 * snapshots.h: the memory for commits that this agent keeps. For each slot the agent keeps the
 * snapshot (the memory of the last commits) of the slot's worker. While a snapshot with a new
 * manifest (list of entries) holds no whole commit, the agent also keeps the slot's older snapshot.
 *
 * A snapshot outlives the worker that wrote the snapshot. The next worker of the slot gets the same
 * snapshot, and workers can fetch a commit from the snapshot, also when all its other holders have
 * died. Two threads share the snapshots. A snapshot that snapshots_newer, snapshots_find
 * or snapshots_granted returned is not freed before shared_snapshot_put_down.
 */
#ifndef AGENT_COMMITS_SNAPSHOTS_H
#define AGENT_COMMITS_SNAPSHOTS_H

#include "base/arena.h"
#include "state/snapshot/snapshot.h"

struct snapshots;
struct shared_snapshot;

int snapshots_create(struct snapshots **ret_snapshots, struct hvd_err *err) MUST_CHECK;
/* Called after every snapshot that was found has been put down (shared_snapshot_put_down). */
void snapshots_free(struct snapshots *snapshots);

/* Answers a SNAPSHOT message of the worker that runs in the slot. *ret_fd is the descriptor of the
 * slot's snapshot if that snapshot has this shape, else of a new snapshot. *ret_fd is borrowed
 * until another worker of the slot asks for a snapshot. HVD_E_STATE: this incarnation has asked for
 * another shape before, or a later worker has the slot; HVD_E_INVAL: the shape is not valid;
 * HVD_E_LIMIT, HVD_E_NOMEM, HVD_E_IO: for the reasons that snapshot_create has. */
int snapshots_grant(struct snapshots *snapshots, uint32_t slot, uint64_t incarnation,
                    const struct snapshot_shape *shape, int *ret_fd,
                    struct hvd_err *err) MUST_CHECK;

/* Returns the newest commit that is kept for the slot; 0: no commit is kept. */
uint64_t snapshots_newest(struct snapshots *snapshots, uint32_t slot);

/* Lists, in the arena, each slot with a kept commit and its newest commit. HVD_E_NOMEM: memory is
 * out. */
int snapshots_kept(struct snapshots *snapshots, struct arena *arena,
                   struct msg_kept_list *ret_kept) MUST_CHECK;

/* The worker of the slot has left in order, and no worker follows in the slot. The slot's snapshot
 * is kept for SNAPSHOTS_LEFT_US (10 minutes), because other agents may fetch its commit. It is kept
 * for longer if a new worker of that slot asks for a snapshot before. */
#define SNAPSHOTS_LEFT_US (10 * 60 * INT64_C(1000000))
void snapshots_left(struct snapshots *snapshots, uint32_t slot, int64_t now_us);

/* Frees the snapshots that are not needed any more: those whose time after snapshots_left is over,
 * and an older snapshot of a slot whose newer one holds a whole commit. */
void snapshots_tidy(struct snapshots *snapshots, int64_t now_us);

/* snapshots_newer returns the snapshot that was granted last for the slot.
 * snapshots_find returns the slot's snapshot in which this commit of this manifest is whole.
 * snapshots_granted returns the snapshot that this worker was granted. NULL: there is no such
 * snapshot. The caller puts the result down (shared_snapshot_put_down). Any thread may call the
 * three functions. */
struct shared_snapshot *snapshots_newer(struct snapshots *snapshots, uint32_t slot);
struct shared_snapshot *snapshots_find(struct snapshots *snapshots, uint32_t slot,
                                       uint64_t manifest, uint64_t commit);
struct shared_snapshot *snapshots_granted(struct snapshots *snapshots, uint32_t slot,
                                          uint64_t incarnation);
/* Returns the memory itself, borrowed until the caller puts `shared` down. */
struct snapshot *shared_snapshot_of(const struct shared_snapshot *shared);
/* The caller holds the snapshot no longer; the last holder frees it. `shared` may be NULL. */
void shared_snapshot_put_down(struct shared_snapshot *shared);

#endif
