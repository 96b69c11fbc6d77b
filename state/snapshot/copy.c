/*
 * copy.c: makes a commit from live memory (copy_commit), and restores live memory from a commit
 * (copy_restore).
 *
 * Called by worker/copier.c and worker/commit.c. Both directions go over the same chunks, in
 * several threads; each chunk is done by one thread. Invariant: a chunk has a checksum only while
 * its bytes are those of the checksum, so a process that dies in the middle leaves no chunk that
 * looks complete. Entries in device memory go through struct device_copy: copied ahead to the
 * snapshot in a commit, and from the snapshot, after its checksum was verified, in a restore.
 */
#include "state/snapshot/copy.h"

#include "base/panic.h"
#include "proto/commit.h"
#include "state/snapshot/copy_layout.h"
#include "state/snapshot/custom.h"
#include "state/snapshot/memory_left.h"
#include "state/snapshot/parallel.h"
#include "state/snapshot/snapshot_hold.h"
#include "state/snapshot/stream.h"

#include <inttypes.h>
#include <string.h>

/* The fewest chunks for one thread: with fewer chunks, starting the thread costs more than it
 * gains. */
#define CHUNKS_PER_THREAD 4

/* A copy of at most this many chunks may stay in the caches. */
#define CACHED_CHUNKS 4

/* chunks of one piece that a GPU copies at a time */
#define PIECE_CHUNKS (DEVICE_COPY_PIECE_BYTES / STATE_CHUNK_BYTES)
/* most chunks that are pinned by one call */
#define PIN_CHUNKS (DEVICE_COPY_PIN_BYTES / STATE_CHUNK_BYTES)
_Static_assert(PIN_CHUNKS % PIECE_CHUNKS == 0, "no piece is in two pinned ranges");

/* A commit or a restore that is running, as all its threads see it. */
struct copy_task {
    const struct copy *copy;
    struct device_copy *device_copy; /* NULL: no entry is in device memory */
    struct snapshot *writes;         /* the snapshot that a commit writes; NULL in a restore */
    const struct snapshot *reads;
    uint64_t commit; /* in a restore: the number of the commit */
    uint8_t *target; /* in a commit: the open buffer of the snapshot */
    struct copy_layout layout;
    uint64_t first; /* the first chunk to copy (`first`), and the chunk after the last (`end`) */
    uint64_t end;
    bool much; /* true: the copy is larger than the caches */
};

/* Prepares a task for the entries whose kinds are in copy->which; `first` and `end` are the chunks
 * in which these entries lie. */
static int copy_task_init(struct copy_task *task, const struct copy *copy,
                          const struct snapshot *snapshot)
{
    const struct manifest *manifest = copy->manifest;
    const struct snapshot_shape *shape = snapshot_shape(snapshot);

    ASSERT(manifest->sealed && shape->manifest == manifest->digest &&
           shape->bytes == manifest->bytes &&
           shape->replicated_bytes == manifest->replicated_bytes);
    *task = (struct copy_task){ .copy = copy, .device_copy = copy->device_copy, .reads = snapshot };
    task->first =
        copy->which & COPY_REPLICATED ? 0 : manifest->replicated_bytes / STATE_CHUNK_BYTES;
    task->end = (copy->which & COPY_PER_RANK ? manifest->bytes : manifest->replicated_bytes) /
                STATE_CHUNK_BYTES;
    task->much = task->end - task->first > CACHED_CHUNKS;
    return copy_layout_init(&task->layout, copy, copy->which);
}

/* Returns the offset in a commit at which a chunk begins. */
static uint64_t copy_begin_of(uint64_t chunk)
{
    return chunk * STATE_CHUNK_BYTES;
}

/* Returns the index of the first entry that may have bytes in the chunk. */
static size_t first_item(const struct copy_task *task, uint64_t chunk)
{
    return copy_layout_first(&task->layout, copy_begin_of(chunk));
}

/* Finds the next piece of an entry in this chunk, from the entry *at on; false: there is none. */
static bool next_piece(const struct copy_task *task, uint64_t chunk, size_t *at,
                       struct layout_piece *ret_piece)
{
    return copy_layout_next(&task->layout, copy_begin_of(chunk), copy_begin_of(chunk + 1), at,
                            ret_piece);
}

/* true: an entry of this chunk lies in the memory of a GPU; other entries of the chunk may lie in
 * host memory. */
static bool chunk_has_device_part(const struct copy_task *task, uint64_t chunk)
{
    return task->device_copy &&
           copy_layout_on_device(&task->layout, copy_begin_of(chunk), copy_begin_of(chunk + 1));
}

/* Returns the address of a piece in the memory of a GPU. */
static cuda_address copy_address_of(const struct layout_piece *piece)
{
    return (cuda_address)(uintptr_t)layout_piece_live(piece);
}

/* Returns the name of an entry in this chunk, for an error text. */
static const char *entry_name(const struct copy_task *task, uint64_t chunk)
{
    size_t at = first_item(task, chunk);
    struct layout_piece piece;

    return next_piece(task, chunk, &at, &piece) ? piece.item->entry->name : "";
}

/* Calls `work` for each chunk of the task, on several threads. Returns 0, or the code of the lowest
 * chunk that failed; *ret_failed is this chunk. */
static int copy_parallel(struct copy_task *task, parallel_fn *work, uint64_t *ret_failed)
{
    uint64_t most = (task->end - task->first) / CHUNKS_PER_THREAD;
    unsigned threads = task->copy->threads;

    if (most <= 1)
        threads = 1;
    else if (threads > most || (threads == 0 && most < LIMIT_COPY_THREADS))
        threads = threads ? (unsigned)most : 0;
    return parallel_for(task->first, task->end, threads, work, task, ret_failed);
}

/* ---- used by commits and restores with entries on a GPU -------------------------------------- */

/* Pins all memory that is copied between this buffer and a device, once for each buffer, because
 * pinning takes as long as many copies. Whole chunks are pinned, so that no page is in two ranges.
 * A range has at most PIN_CHUNKS, because the driver blocks other callers while it pins. */
static int pin_buffer(const struct copy_task *task, uint8_t *buffer)
{
    uint64_t chunks = task->copy->manifest->bytes / STATE_CHUNK_BYTES;
    uint64_t from = 0;
    struct copy_layout all;

    if (!device_copy_meets(task->device_copy, buffer))
        return 0;
    if (copy_layout_init(&all, task->copy, COPY_ALL))
        return HVD_E_NOMEM;
    all.bytes = buffer;
    for (uint64_t i = 0; i <= chunks; i++) {
        bool goes_on =
            i < chunks && copy_layout_on_device(&all, copy_begin_of(i), copy_begin_of(i + 1));

        if (goes_on && i % PIN_CHUNKS)
            continue;
        if (i > from)
            device_copy_pin(task->device_copy, buffer + copy_begin_of(from),
                            copy_begin_of(i - from));
        from = goes_on ? i : i + 1;
    }
    copy_layout_release(&all);
    return 0;
}

/* Waits for the device, and returns the error of the device or 0. If the task has failed too (rc),
 * the error names the entry of the failed chunk. */
static int settle_device(const struct copy_task *task, int rc, uint64_t failed, struct hvd_err *err)
{
    int settled = task->device_copy ? device_copy_settle(task->device_copy, err) : 0;

    return settled && rc ? err_prefix(err, settled, "entry \"%s\"", entry_name(task, failed))
                         : settled;
}

/* ---- commit ---------------------------------------------------------------------------------- */

/* Writes zeros between the entries of a chunk, and adds them to its checksum. */
static void fill_zero(uint8_t *at, uint64_t bytes, struct sum *sum)
{
    if (bytes == 0)
        return;
    memset(at, 0, bytes);
    sum_add(sum, at, bytes);
}

/* Writes one chunk of a commit and its checksum. A piece is the part of an entry in this chunk.
 * Between the pieces the chunk is zero. A chunk without pieces is not written and has SUM_NONE. */
static int commit_chunk(void *task_at, uint64_t chunk)
{
    struct copy_task *task = task_at;
    size_t at = first_item(task, chunk);
    uint64_t done = copy_begin_of(chunk);
    struct layout_piece piece;
    struct sum sum;
    int rc;

    snapshot_set_sum(task->writes, chunk, SUM_NONE);
    if (!next_piece(task, chunk, &at, &piece))
        return 0;
    rc = snapshot_take_room(task->writes, chunk);
    if (!rc && chunk_has_device_part(task, chunk))
        rc = device_copy_landed(task->device_copy, chunk / PIECE_CHUNKS);
    if (rc)
        return rc;
    sum_begin(&sum);
    do {
        uint8_t *to = task->target + piece.from;

        fill_zero(task->target + done, piece.from - done, &sum);
        done = piece.to;
        /* The bytes of custom entries and of device entries are in the chunk already. */
        if (piece.item->entry->custom || piece.item->part->on_device)
            sum_add(&sum, to, piece.to - piece.from);
        else
            stream_copy(to, layout_piece_live(&piece), piece.to - piece.from, task->much, &sum);
    } while (next_piece(task, chunk, &at, &piece));
    fill_zero(task->target + done, copy_begin_of(chunk + 1) - done, &sum);
    snapshot_set_sum(task->writes, chunk, sum_end(&sum));
    return 0;
}

/* Saves the custom entries, and checks that the machine has the memory that this commit still
 * needs, because Linux promises more memory than it has. Once all chunks of the buffer have memory,
 * nothing is checked. */
static int prepare_commit(const struct copy_task *task, struct hvd_err *err)
{
    uint64_t needed = 0;
    uint64_t present;
    uint64_t left;
    bool all = true;
    int rc = 0;

    for (size_t i = 0; i < task->layout.count && !rc; i++) {
        const struct layout_item *item = &task->layout.items[i];
        const struct manifest_entry *entry = item->entry;
        uint64_t last =
            (entry->offset + CUSTOM_LENGTH_BYTES + entry->bytes - 1) / STATE_CHUNK_BYTES;

        if (!entry->custom)
            continue;
        /* The callback writes into the open buffer itself. Before that, the chunks that it may
         * write lose their old checksums. */
        for (uint64_t chunk = entry->offset / STATE_CHUNK_BYTES; chunk <= last; chunk++)
            snapshot_set_sum(task->writes, chunk, SUM_NONE);
        rc = custom_save(entry, item->part, task->target + entry->offset, err);
    }
    if (rc)
        return rc;
    for (uint64_t i = task->first; i < task->end; i++) {
        size_t at = first_item(task, i);
        struct layout_piece piece;

        if (next_piece(task, i, &at, &piece)) {
            needed += STATE_CHUNK_BYTES;
            all = all && snapshot_has_room(task->writes, i);
        }
    }
    if (all)
        return 0;
    present = snapshot_room(task->writes);
    left = needed > present ? memory_left() : UINT64_MAX;
    if (needed > present && needed - present > left)
        return err_set(
            err, HVD_E_NOMEM,
            "this machine has %" PRIu64 " MiB of memory left, and a commit needs %" PRIu64
            " MiB; two commits are kept for each worker, so run fewer workers on this machine",
            left >> 20, (needed - present) >> 20);
    return 0;
}

/* A parallel_fn: prepares a chunk into which the device writes. After this the device may write at
 * any time, so the chunk needs memory now, and must have no checksum. */
static int prepare_device_chunk(void *task_at, uint64_t chunk)
{
    struct copy_task *task = task_at;

    if (!chunk_has_device_part(task, chunk))
        return 0;
    snapshot_set_sum(task->writes, chunk, SUM_NONE);
    return snapshot_take_room(task->writes, chunk);
}

/* A device_copy_queue_fn: queues the copies of all device entries in piece `number` of the
 * commit. */
static int queue_piece(void *task_at, uint64_t number)
{
    const struct copy_task *task = task_at;
    uint64_t from = number * DEVICE_COPY_PIECE_BYTES;
    size_t at = copy_layout_first(&task->layout, from);
    struct layout_piece piece;
    int rc = 0;

    while (!rc &&
           copy_layout_next(&task->layout, from, from + DEVICE_COPY_PIECE_BYTES, &at, &piece)) {
        if (piece.item->part->on_device)
            rc = device_copy_to_host(task->device_copy, task->target + piece.from,
                                     copy_address_of(&piece), piece.to - piece.from);
    }
    return rc;
}

/* Opens a buffer of the snapshot and copies the state into it. Entries on a GPU are copied to the
 * buffer in the background, while threads compute the checksums of the chunks that have arrived. If
 * both the GPU and a chunk report an error, the GPU's error is returned, because it is probably the
 * cause. */
static int copy_into_buffer(struct snapshot *snapshot, const struct copy *copy, struct hvd_err *err)
{
    struct copy_task task;
    uint64_t failed;
    int settled;
    int rc = copy_task_init(&task, copy, snapshot);

    if (rc)
        return err_set(err, rc, "no memory for the tables of a commit; free memory on this host");
    failed = task.first;
    task.writes = snapshot;
    task.target = snapshot_begin(snapshot);
    task.layout.bytes = task.target;
    rc = prepare_commit(&task, err);
    if (rc)
        goto done;
    if (task.device_copy) { /* start the copies from the device */
        rc = copy_parallel(&task, prepare_device_chunk, &failed);
        if (!rc)
            rc = pin_buffer(&task, task.target);
        if (!rc)
            rc =
                device_copy_begin(task.device_copy, task.first / PIECE_CHUNKS,
                                  (task.end + PIECE_CHUNKS - 1) / PIECE_CHUNKS, queue_piece, &task);
    }
    if (!rc)
        rc = copy_parallel(&task, commit_chunk, &failed);
    settled = settle_device(&task, rc, failed, err);
    if (settled)
        rc = settled;
    else if (rc)
        err_set(
            err, rc,
            "entry \"%s\": this machine has no memory left for a commit of %" PRIu64
            " bytes; two commits are kept for each worker, so run fewer workers on this machine",
            entry_name(&task, failed), copy->manifest->bytes);

done:
    copy_layout_release(&task.layout);
    return rc;
}

/* Makes a commit; the caller completes it with snapshot_end. While the agent holds a commit for a
 * checkpoint, a third buffer is written. If there is no memory for that buffer, the worker takes
 * the held buffer back: then the checkpoint fails, but the training goes on. A commit of the
 * per-rank entries alone must use the buffer into which the replicated entries were fetched, so it
 * cannot change to another one. */
int copy_commit(struct snapshot *snapshot, const struct copy *copy, struct hvd_err *err)
{
    int rc = copy_into_buffer(snapshot, copy, err);

    if (rc == HVD_E_NOMEM && copy->which == COPY_ALL && snapshot_take_back(snapshot))
        rc = copy_into_buffer(snapshot, copy, err);
    return rc;
}

/* ---- restore --------------------------------------------------------------------------------- */

/* Adds a range of the commit's bytes to the checksum. */
static void sum_range(const struct copy_task *task, uint64_t from, uint64_t to, struct sum *sum)
{
    if (to > from)
        sum_add(sum, task->layout.bytes + from, to - from);
}

/* Copies one chunk of a commit to live memory. HVD_E_CORRUPT: its checksum is wrong or missing.
 * Custom entries are only verified here: their callbacks load them when all chunks are done. */
static int restore_chunk(void *task_at, uint64_t chunk)
{
    const struct copy_task *task = task_at;
    uint64_t expected = snapshot_chunk_sum(task->reads, task->commit, chunk);
    uint64_t done = copy_begin_of(chunk);
    size_t at = first_item(task, chunk);
    struct layout_piece piece;
    struct sum sum;
    int rc = 0;

    if (!next_piece(task, chunk, &at, &piece))
        return 0;
    if (expected == SUM_NONE)
        return HVD_E_CORRUPT;
    if (chunk_has_device_part(task, chunk)) {
        /* The checksum is verified before the first byte is sent to the device. */
        if (sum_of(task->layout.bytes + done, STATE_CHUNK_BYTES) != expected)
            return HVD_E_CORRUPT;
        do {
            const uint8_t *from = task->layout.bytes + piece.from;
            uint64_t bytes = piece.to - piece.from;

            if (piece.item->part->on_device)
                rc = device_copy_to_device(task->device_copy, copy_address_of(&piece), from, bytes);
            else if (!piece.item->entry->custom)
                memcpy(layout_piece_live(&piece), from, bytes);
        } while (!rc && next_piece(task, chunk, &at, &piece));
        return rc;
    }
    /* The checksum is computed from the bytes while they are copied, so it belongs to the copied
     * bytes. */
    sum_begin(&sum);
    do {
        sum_range(task, done, piece.from, &sum);
        done = piece.to;
        if (piece.item->entry->custom)
            sum_range(task, piece.from, piece.to, &sum);
        else
            stream_copy(layout_piece_live(&piece), task->layout.bytes + piece.from,
                        piece.to - piece.from, task->much, &sum);
    } while (next_piece(task, chunk, &at, &piece));
    sum_range(task, done, copy_begin_of(chunk + 1), &sum);
    return sum_end(&sum) == expected ? 0 : HVD_E_CORRUPT;
}

/* Copies a commit to live memory, and then lets the callbacks load the custom entries. After a
 * failure live memory is undefined, unless the snapshot has no such commit. */
int copy_restore(const struct snapshot *snapshot, uint64_t commit, const struct copy *copy,
                 struct hvd_err *err)
{
    struct copy_task task;
    uint64_t failed;
    int settled;
    int rc = copy_task_init(&task, copy, snapshot);

    if (rc)
        return err_set(err, rc, "no memory for the tables of a restore; free memory on this host");
    failed = task.first;
    task.commit = commit;
    task.layout.bytes = snapshot_find(snapshot, commit);
    if (!task.layout.bytes)
        rc = err_set(err, HVD_E_NOTFOUND,
                     "the snapshot of this worker does not have commit %" PRIu64 ".%" PRIu32,
                     COMMIT_ROUND_OF(commit), COMMIT_PLACE_OF(commit));
    else if (task.device_copy && pin_buffer(&task, (uint8_t *)(uintptr_t)task.layout.bytes))
        rc = err_set(err, HVD_E_NOMEM,
                     "no memory for the tables of a restore; free memory on this host");
    if (rc)
        goto done;
    rc = copy_parallel(&task, restore_chunk, &failed);
    settled = settle_device(&task, rc, failed, err);
    if (settled)
        rc = settled;
    else if (rc)
        err_set(err, rc,
                "entry \"%s\" of commit %" PRIu64 ".%" PRIu32 ": the checksum of chunk %" PRIu64
                " is wrong; the program changed the entry during the commit, or memory has failed",
                entry_name(&task, failed), COMMIT_ROUND_OF(commit), COMMIT_PLACE_OF(commit),
                failed);
    /* Custom entries read their bytes out of the snapshot, after all checksums were verified. */
    for (size_t i = 0; i < task.layout.count && !rc; i++) {
        const struct layout_item *item = &task.layout.items[i];

        if (item->entry->custom)
            rc = custom_load(item->entry, item->part, task.layout.bytes + item->entry->offset, err);
    }

done:
    copy_layout_release(&task.layout);
    return rc;
}
