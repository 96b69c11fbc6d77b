/*
 * snapshot_hold.c: the agent holds one commit of a snapshot while the worker writes others. Called
 * by the agent's checkpoint thread, and by the worker when a commit gets its number. Invariant:
 * `held` is set to 0 only by the agent, or by a writer that takes the held buffer back. So a hold
 * that the agent has seen stays until then, also if the worker dies.
 *
 * A worker that has read hold_from just before the agent ended the hold may still mark a commit.
 * The next hold finds that mark and removes it; until then the worker uses the third buffer.
 */
#include "base/time.h"
#include "state/snapshot/snapshot_internal.h"
#include "state/sum.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How often the agent looks again when the worker makes commits faster than the agent looks. */
#define HOLD_TRIES 8

/* Returns the bell: a counter in the shared memory that changes when snapshot_ring is called. */
uint32_t snapshot_bell(const struct snapshot *snapshot)
{
    return atomic_load(&snapshot->header->bell);
}

/* Rings the bell: wakes the threads, of both processes, that wait in snapshot_await_bell. */
void snapshot_ring(struct snapshot *snapshot)
{
    atomic_fetch_add(&snapshot->header->bell, 1);
    (void)syscall(SYS_futex, &snapshot->header->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Waits until the bell is no longer `bell`, or longest_us have passed; it may return early. */
void snapshot_await_bell(const struct snapshot *snapshot, uint32_t bell, int64_t longest_us)
{
    const struct timespec longest = { .tv_sec = longest_us / TIME_S,
                                      .tv_nsec = longest_us % TIME_S * 1000 };

    (void)syscall(SYS_futex, &snapshot->header->bell, FUTEX_WAIT, bell, &longest, NULL, 0);
}

/* Called by the writer when the buffer's commit has got its number. If the agent waits for this
 * commit (hold_from), the writer marks it as held for the agent. If a commit is held already, the
 * bell rings all the same: the agent lets the worker end this commit before it reads on. */
void snapshot_offer(struct snapshot *snapshot, size_t buffer, uint64_t commit)
{
    struct header *header = snapshot->header;
    uint64_t from = atomic_load(&header->hold_from);
    uint32_t held = atomic_load(&header->held);

    if (held || (from && commit >= from &&
                 atomic_compare_exchange_strong(&header->held, &held, (uint32_t)buffer + 1)))
        snapshot_ring(snapshot);
}

/* true: a buffer was opened and has no commit yet: a worker writes it, or died while it wrote. */
bool snapshot_is_open(const struct snapshot *snapshot)
{
    uint32_t opened = atomic_load(&snapshot->header->opened);

    return opened >= 1 && opened <= SNAPSHOT_BUFFERS && !commit_in(snapshot, opened - 1);
}

/* Begins to hold the first commit whose number is at least `from`: the newest one at once, if its
 * number allows it, or else a later one, which the worker marks. */
void snapshot_hold(struct snapshot *snapshot, uint64_t from)
{
    snapshot_hold_end(snapshot);
    snapshot->hold.from = from ? from : 1;
    snapshot->hold.to = UINT64_MAX;
    atomic_store(&snapshot->header->hold_from, snapshot->hold.from);
    (void)snapshot_hold_commit(snapshot);
}

/* Begins to hold this commit and no other. hold_from stays 0, so the worker marks nothing: its next
 * commits have other numbers. */
void snapshot_hold_only(struct snapshot *snapshot, uint64_t commit)
{
    snapshot_hold_end(snapshot);
    snapshot->hold.from = snapshot->hold.to = commit;
    (void)snapshot_hold_commit(snapshot);
}

/* Looks for the commit that the worker has marked, or marks the newest one of those that are
 * wanted. A mark on any other commit is from the time before this hold. */
uint64_t snapshot_hold_commit(struct snapshot *snapshot)
{
    struct header *header = snapshot->header;
    struct snapshot_hold *hold = &snapshot->hold;

    for (int i = 0; i < HOLD_TRIES && hold->from && !hold->commit; i++) {
        uint32_t held = atomic_load(&header->held);
        size_t buffer = held ? held - 1 : newest_buffer_to(snapshot, hold->to);
        uint64_t commit = buffer < SNAPSHOT_BUFFERS ? commit_in(snapshot, buffer) : 0;

        if (!held && (!commit || commit < hold->from || commit > hold->to))
            break;
        if (!held && !atomic_compare_exchange_strong(&header->held, &held, (uint32_t)buffer + 1))
            continue; /* the worker has marked a commit meanwhile */
        if (commit && commit >= hold->from && commit <= hold->to &&
            commit_in(snapshot, buffer) == commit) {
            hold->commit = commit;
            hold->buffer = buffer;
        } else {
            atomic_store(&header->held, 0);
        }
    }
    return hold->commit;
}

/* Returns the bytes of the held commit; NULL: no commit is held yet. */
const uint8_t *snapshot_hold_bytes(const struct snapshot *snapshot)
{
    return snapshot->hold.commit ? snapshot->buffers[snapshot->hold.buffer] : NULL;
}

/* Returns the checksum of a chunk of the held commit; SUM_NONE: no commit is held, or the chunk was
 * never written. */
uint64_t snapshot_hold_sum(const struct snapshot *snapshot, uint64_t chunk)
{
    if (!snapshot->hold.commit || chunk >= snapshot->shape.bytes / STATE_CHUNK_BYTES)
        return SUM_NONE;
    return atomic_load(&snapshot->sums[snapshot->hold.buffer][chunk]);
}

/* true: the hold has not been taken back by the worker. A reader asks after it has read the
 * commit. */
bool snapshot_hold_stands(const struct snapshot *snapshot)
{
    atomic_thread_fence(memory_order_seq_cst); /* after all reads of the commit */
    return snapshot->hold.commit &&
           atomic_load(&snapshot->header->held) == snapshot->hold.buffer + 1;
}

/* Ends the hold: the worker may write into the buffer again. */
void snapshot_hold_end(struct snapshot *snapshot)
{
    atomic_store(&snapshot->header->hold_from, 0);
    atomic_store(&snapshot->header->held, 0);
    snapshot->hold = (struct snapshot_hold){ 0 };
}

/* Called by the writer when it has no memory for another buffer: takes the held buffer back, so
 * that the training goes on without the checkpoint. The number of the held commit becomes 0 before
 * `held` does, so the next snapshot_begin opens this buffer. false: no commit is held, or the
 * newest one is, which a recovery may need. */
bool snapshot_take_back(struct snapshot *snapshot)
{
    struct header *header = snapshot->header;
    uint32_t held = atomic_load(&header->held);

    if (!held || held > SNAPSHOT_BUFFERS || held - 1 == newest_buffer(snapshot))
        return false;
    atomic_store(&header->hold_from, 0);
    atomic_store(&header->commits[held - 1], 0);
    atomic_store(&header->opened, held);
    atomic_store(&header->held, 0);
    snapshot_ring(snapshot);
    return true;
}
