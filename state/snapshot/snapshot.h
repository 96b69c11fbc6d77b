/*
 * snapshot.h: memory for two commits of one worker, which outlives it: a memfd of the agent that
 * worker and agent map. The worker writes, the agent looks and serves.
 *
 *     header page | sums of buffer 0 | sums of buffer 1 | buffer 0 | buffer 1
 *
 * A buffer whose commit is 0 holds nothing: that is what it says from before the first byte is
 * written until after the last. So a writer may die on any line. The size is sealed: neither side
 * can be made to fault by the other. What the file says of itself is held against what the reader
 * knows; nothing in it is followed as an offset.
 */
#ifndef STATE_SNAPSHOT_SNAPSHOT_H
#define STATE_SNAPSHOT_SNAPSHOT_H

#include "base/err.h"
#include "base/limits.h"
#include "proto/msg.h"

struct snapshot_shape {
    uint64_t manifest;         /* digest */
    uint64_t replicated_bytes; /* multiples of STATE_CHUNK_BYTES */
    uint64_t bytes;
};

struct snapshot; /* one mapping of it, by one process */

/* The agent's: a new one, empty. HVD_E_LIMIT, HVD_E_NOMEM, HVD_E_IO: the err says which limit of
 * this machine stands in the way. */
int snapshot_create(const struct snapshot_shape *shape, struct snapshot **ret_snapshot,
                    struct hvd_err *err) MUST_CHECK;

/* The worker's: of a descriptor that is given, whatever comes of it. HVD_E_CORRUPT: it has another
 * shape than expected, or is no snapshot. */
int snapshot_open(int fd, const struct snapshot_shape *shape, struct snapshot **ret_snapshot,
                  struct hvd_err *err) MUST_CHECK;
void snapshot_free(struct snapshot *snapshot);
void snapshot_leave_mapped(struct snapshot *snapshot); /* it may be written to when it is freed */

int snapshot_fd(const struct snapshot *snapshot); /* borrowed */
const struct snapshot_shape *snapshot_shape(const struct snapshot *snapshot);

/* ---- reading: any process, any time --------------------------------------------------------- */

/* The newest commit that is whole; 0: none. */
uint64_t snapshot_newest(const struct snapshot *snapshot);

/* Those that are whole, the newest first, each with the checksum of its replicated part. */
size_t snapshot_held(const struct snapshot *snapshot, struct msg_held ret_held[2]);

/* The bytes of a whole commit; NULL: it is not here. They may be written over by the writer at any
 * time: ask again afterwards, and believe the sum of a chunk only then. */
const uint8_t *snapshot_find(const struct snapshot *snapshot, uint64_t commit);
uint64_t snapshot_chunk_sum(const struct snapshot *snapshot, uint64_t commit, uint64_t chunk);

/* ---- writing: one at a time ------------------------------------------------------------------ */

/* Opens the buffer that does not hold the newest commit; what it held is gone. Its bytes, and its
 * sums as far as they were of whole chunks, are left as they are. */
uint8_t *snapshot_begin(struct snapshot *snapshot);

/* Memory for a chunk of the open buffer, before it is written: HVD_E_NOMEM in place of the signal
 * that may come where the kernel does not promise more than it has. Chunks in any order, by any
 * thread; costs nothing the second time. */
int snapshot_take_room(struct snapshot *snapshot, uint64_t chunk) MUST_CHECK;
bool snapshot_has_room(const struct snapshot *snapshot, uint64_t chunk); /* by the above */
uint64_t snapshot_room(const struct snapshot *snapshot); /* bytes of it that anybody has written */
void snapshot_set_sum(struct snapshot *snapshot, uint64_t chunk, uint64_t sum);
uint64_t snapshot_sum(const struct snapshot *snapshot, uint64_t chunk); /* of the open buffer */
void snapshot_end(struct snapshot *snapshot,
                  uint64_t commit); /* it is whole, and has this number */

/* This commit is not here any more; nothing when it is not. */
void snapshot_drop(struct snapshot *snapshot, uint64_t commit);

/* The newest commit gets a higher number: the same bytes under another name. */
void snapshot_rename(struct snapshot *snapshot, uint64_t commit);

#endif
