/*
 * snapshot_hold.h: the agent holds one commit of a snapshot, for a checkpoint, while the worker
 * writes others. One thread of the agent makes these calls. They never wait, except for
 * snapshot_await_bell, and the worker never waits for them.
 */
#ifndef STATE_SNAPSHOT_SNAPSHOT_HOLD_H
#define STATE_SNAPSHOT_SNAPSHOT_HOLD_H

#include "state/snapshot/snapshot.h"

/* Holds the first commit whose number is `from` or higher; 0: the newest one. The newest commit
 * that is there now is held at once, if its number allows it; otherwise the worker marks the commit
 * at its end. An earlier hold ends. */
void snapshot_hold(struct snapshot *snapshot, uint64_t from);

/* Holds this commit and no other, if it is there now. An earlier hold ends. */
void snapshot_hold_only(struct snapshot *snapshot, uint64_t commit);

/* Returns the number that the held commit had when the hold began; 0: there is none yet. */
uint64_t snapshot_hold_commit(struct snapshot *snapshot);

/* snapshot_hold_bytes returns the bytes of the held commit, snapshot_hold_sum the checksum of one
 * chunk. The bytes stay until the hold ends, with one exception: a worker that has no memory for
 * another commit takes the buffer back. So a reader calls snapshot_hold_stands after reading;
 * false: the bytes that were read may be of another commit. */
const uint8_t *snapshot_hold_bytes(const struct snapshot *snapshot);
uint64_t snapshot_hold_sum(const struct snapshot *snapshot, uint64_t chunk);
bool snapshot_hold_stands(const struct snapshot *snapshot);
/* Ends the hold: the worker may write into the buffer again. */
void snapshot_hold_end(struct snapshot *snapshot);

/* true: a worker writes a commit, or has ended before the commit was whole. When the commit is
 * whole and another one is held, the bell rings. */
bool snapshot_is_open(const struct snapshot *snapshot);

/* The bell is a counter in the shared memory with which the agent waits for the worker: it reads
 * the bell, looks at all that it waits for, and then waits until the bell has changed.
 * snapshot_await_bell may return early. snapshot_ring changes the bell; any thread may call it. */
uint32_t snapshot_bell(const struct snapshot *snapshot);
void snapshot_await_bell(const struct snapshot *snapshot, uint32_t bell, int64_t longest_us);
void snapshot_ring(struct snapshot *snapshot);

/* Called by the writer, which has no memory for the open buffer: ends the agent's hold, and the
 * next snapshot_begin opens the buffer that was held. false: no commit is held, or the held commit
 * is the newest one. */
bool snapshot_take_back(struct snapshot *snapshot);

#endif
