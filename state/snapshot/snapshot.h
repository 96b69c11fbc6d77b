/*
 * snapshot.h: memory for the commits of one worker, which outlives the worker: a memfd of the agent
 * that worker and agent map. The worker writes; the agent reads and serves commits to other agents.
 *
 *     header page | sums of buffers 0, 1, 2 | buffer 0 | buffer 1 | buffer 2
 *
 * The worker writes into two buffers by turns. The third buffer takes memory only when the agent
 * holds a commit, because a checkpoint is written from it: then the worker writes into the other
 * two.
 *
 * A buffer whose commit number is 0 holds no commit: the number is 0 from before the first byte of
 * a commit is written until after the last byte. So a writer may die on any line. The size of the
 * file is sealed, so neither side can make the other one fault. The contents of the header are
 * compared with what the reader knows, and never followed as offsets.
 */
#ifndef STATE_SNAPSHOT_SNAPSHOT_H
#define STATE_SNAPSHOT_SNAPSHOT_H

#include "base/err.h"
#include "base/limits.h"
#include "proto/msg.h"

struct snapshot_shape {
    uint64_t manifest; /* digest of the manifest */
    uint64_t
        replicated_bytes; /* bytes of the replicated entries, a multiple of STATE_CHUNK_BYTES */
    uint64_t bytes;       /* bytes of a commit, a multiple of STATE_CHUNK_BYTES */
};

struct snapshot; /* a mapping of the memory into one process */

/* Called by the agent: creates a snapshot without commits. HVD_E_LIMIT, HVD_E_NOMEM, HVD_E_IO: the
 * err says which limit of this machine is too low. */
int snapshot_create(const struct snapshot_shape *shape, struct snapshot **ret_snapshot,
                    struct hvd_err *err) MUST_CHECK;

/* Called by the worker: maps a snapshot. Takes over the descriptor, also on failure. HVD_E_CORRUPT:
 * the file is not a snapshot, or it is for another shape. */
int snapshot_open(int fd, const struct snapshot_shape *shape, struct snapshot **ret_snapshot,
                  struct hvd_err *err) MUST_CHECK;
void snapshot_free(struct snapshot *snapshot);
/* Makes snapshot_free leave the memory mapped, because a device may still write to it. */
void snapshot_leave_mapped(struct snapshot *snapshot);

int snapshot_fd(const struct snapshot *snapshot); /* the descriptor of the memory; borrowed */
const struct snapshot_shape *snapshot_shape(const struct snapshot *snapshot);

/* ---- reading: any process, any time ---------------------------------------------------------- */

/* Returns the number of the newest commit; 0: the snapshot holds no commit. */
uint64_t snapshot_newest(const struct snapshot *snapshot);

/* Lists the two newest commits, the newest first, each with the checksum of its replicated part.
 * Returns the number of commits in the list. */
size_t snapshot_held(const struct snapshot *snapshot, struct msg_held ret_held[2]);

/* snapshot_find returns the bytes of a commit (NULL: the snapshot does not hold it);
 * snapshot_chunk_sum returns the checksum of one chunk. The writer may begin to overwrite the
 * commit at any time. Therefore call snapshot_find once more after reading, and trust the bytes and
 * checksums only if the commit is still there. */
const uint8_t *snapshot_find(const struct snapshot *snapshot, uint64_t commit);
uint64_t snapshot_chunk_sum(const struct snapshot *snapshot, uint64_t commit, uint64_t chunk);

/* ---- writing: one writer at a time ---- */

/* Opens a buffer that has neither the newest commit nor a held one, and returns it. The commit in
 * that buffer is lost. Until they are written, the bytes and checksums in the buffer stay as they
 * are. A second call before snapshot_end opens the same buffer, also in another process. */
uint8_t *snapshot_begin(struct snapshot *snapshot);

/* Gets memory for a chunk of the open buffer before the chunk is written: a lack of memory is then
 * HVD_E_NOMEM here, and not a signal at the first write. Any thread may make this call, for chunks
 * in any order; a second call for a chunk costs nothing. */
int snapshot_take_room(struct snapshot *snapshot, uint64_t chunk) MUST_CHECK;
/* true: snapshot_take_room has succeeded for the chunk. */
bool snapshot_has_room(const struct snapshot *snapshot, uint64_t chunk);
/* Returns how many bytes of the open buffer have memory. */
uint64_t snapshot_room(const struct snapshot *snapshot);
/* Sets the checksum of a chunk of the open buffer, after its bytes were written. */
void snapshot_set_sum(struct snapshot *snapshot, uint64_t chunk, uint64_t sum);
/* Returns the checksum of a chunk of the open buffer. */
uint64_t snapshot_sum(const struct snapshot *snapshot, uint64_t chunk);
/* Notes that the open buffer now holds all of this commit, and closes the buffer. */
void snapshot_end(struct snapshot *snapshot, uint64_t commit);

/* Forgets this commit; nothing happens if the snapshot does not hold it. */
void snapshot_drop(struct snapshot *snapshot, uint64_t commit);

/* Gives the newest commit a higher number. */
void snapshot_rename(struct snapshot *snapshot, uint64_t commit);

#endif
