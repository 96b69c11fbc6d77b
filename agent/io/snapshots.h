/*
 * snapshots.h: the memory for commits that this agent keeps: of each slot the snapshot of its
 * worker, and until that holds a whole commit the older one of another manifest.
 *
 * A snapshot outlives the worker that wrote it: whoever is started in its slot next finds it, and
 * so do those who fetch what nobody else may hold any more. Two threads share them, so what is
 * found here stays until it is put down.
 */
#ifndef AGENT_IO_SNAPSHOTS_H
#define AGENT_IO_SNAPSHOTS_H

#include "base/arena.h"
#include "state/snapshot/snapshot.h"

struct snapshots;
struct shared_snapshot;

int snapshots_create(struct snapshots **ret_snapshots, struct hvd_err *err) MUST_CHECK;
/* When all that was found has been put down. */
void snapshots_free(struct snapshots *snapshots);

/* A SNAPSHOT of the worker that runs in the slot: the descriptor (borrowed until another worker of
 * the slot asks) of the slot's snapshot if that has this shape, or of a new one. HVD_E_STATE: this
 * incarnation has asked for another one before; HVD_E_INVAL: there is no such shape; HVD_E_LIMIT,
 * HVD_E_NOMEM, HVD_E_IO: as snapshot_create. */
int snapshots_grant(struct snapshots *snapshots, uint32_t slot, uint64_t incarnation,
                    const struct snapshot_shape *shape, int *ret_fd,
                    struct hvd_err *err) MUST_CHECK;

/* The newest commit that is kept for the slot; 0: none. */
uint64_t snapshots_newest(struct snapshots *snapshots, uint32_t slot);

/* The same of all slots that have one, in the arena. HVD_E_NOMEM. */
int snapshots_kept(struct snapshots *snapshots, struct arena *arena,
                   struct msg_kept_list *ret_kept) MUST_CHECK;

/* The worker that was here has left in order, and nobody follows: what it held is kept for as long
 * as others may need to fetch it (SNAPSHOTS_LEFT_US). Until a worker asks in that slot. */
#define SNAPSHOTS_LEFT_US (10 * 60 * INT64_C(1000000))
void snapshots_left(struct snapshots *snapshots, uint32_t slot, int64_t now_us);

/* Drops what is not needed any more. */
void snapshots_tidy(struct snapshots *snapshots, int64_t now_us);

/* The one in which this commit of this manifest is whole; the one that the worker which runs there
 * was granted. NULL: there is none. To be put down. Any thread. */
struct shared_snapshot *snapshots_find(struct snapshots *snapshots, uint32_t slot,
                                       uint64_t manifest, uint64_t commit);
struct shared_snapshot *snapshots_granted(struct snapshots *snapshots, uint32_t slot,
                                          uint64_t incarnation);
struct snapshot *shared_snapshot_of(const struct shared_snapshot *shared);
void shared_snapshot_put_down(struct shared_snapshot *shared); /* NULL is fine */

#endif
