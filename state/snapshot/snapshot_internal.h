/*
 * snapshot_internal.h: the header of a snapshot, and a mapping of it into one process. Private to
 * snapshot.c and snapshot_hold.c.
 */
#ifndef STATE_SNAPSHOT_SNAPSHOT_INTERNAL_H
#define STATE_SNAPSHOT_SNAPSHOT_INTERNAL_H

#include "state/snapshot/snapshot_hold.h"

#include <stdatomic.h>

#define SNAPSHOT_PAGE    4096
#define SNAPSHOT_BUFFERS 3

/*
 * A reader copies a commit while the other process may begin to write over it. Both sides keep this
 * order, so the reader notices:
 *
 *     begin   commits[b] = 0          find      commits[b] is the wanted number
 *             (fence)                           copy bytes, look at sums
 *             bytes, sums                       (fence)
 *     end     (fence)                 find      commits[b] still is
 *             commits[b] = n
 *
 * The fences are sequentially consistent, as only such fences are in order with streaming stores,
 * which bypass the order of all other stores.
 *
 * A hold keeps the writer away from one buffer. The agent sets `held`, and then looks whether the
 * buffer still has its number; the writer sets the number to 0, and then looks at `held`. So at
 * least one of them sees the other one and steps back:
 *
 *     begin   commits[b] = 0                      hold      held = 1 + b, if it was 0
 *             held is 1 + b?                                commits[b] is still n?
 *             yes: commits[b] = n, and                      no: held = 0, and the newest
 *                  another buffer is taken                      commit is tried again
 */
struct header {
    uint64_t magic;
    uint32_t version;
    uint32_t chunk_bytes;
    struct snapshot_shape shape;
    /* the number of the commit in each buffer; 0: the buffer holds none */
    _Alignas(64) _Atomic uint64_t commits[SNAPSHOT_BUFFERS];
    /* the lowest commit that the agent wants to hold; 0: none. The writer only reads it, and sets
     * it to 0 in snapshot_take_back. */
    _Atomic uint64_t hold_from;
    _Atomic uint32_t held;   /* 1 + the index of the held buffer; 0: none */
    _Atomic uint32_t opened; /* 1 + the index of the buffer that was opened last; 0: none */
    _Atomic uint32_t bell;   /* a futex: snapshot_ring adds 1 */
};
_Static_assert(sizeof(struct header) <= SNAPSHOT_PAGE, "the header is one page");

/* The commit that this process holds; only the thread that calls snapshot_hold uses the fields. */
struct snapshot_hold {
    uint64_t from;   /* the lowest commit that is wanted; 0: no hold */
    uint64_t to;     /* the highest commit that is wanted */
    uint64_t commit; /* the commit that is held; 0: none yet */
    size_t buffer;   /* the index of the buffer with that commit */
};

struct snapshot {
    int fd;                      /* the memfd */
    struct snapshot_shape shape; /* compared with the header when the snapshot was opened */
    uint8_t *base;               /* where the file is mapped in this process */
    uint64_t size;               /* bytes of the mapping */
    struct header *header;
    /* the checksums of the chunks of each buffer; in the mapping */
    _Atomic uint64_t *sums[SNAPSHOT_BUFFERS];
    uint8_t *buffers[SNAPSHOT_BUFFERS]; /* the bytes of each buffer; in the mapping */
    /* for each chunk of a buffer: 1: this process has made sure that the chunk has memory */
    uint8_t *has_room[SNAPSHOT_BUFFERS];
    int open; /* index of the buffer that this process writes; -1: none */
    struct snapshot_hold hold;
    bool stays_mapped; /* snapshot_free leaves the memory mapped */
};

/* Returns the number of the commit in this buffer; 0: the buffer holds none. */
static inline uint64_t commit_in(const struct snapshot *snapshot, size_t buffer)
{
    return atomic_load(&snapshot->header->commits[buffer]);
}

/* Returns the index of the buffer with the newest commit that is not above `to`; 0 if there is no
 * such commit. */
static inline size_t newest_buffer_to(const struct snapshot *snapshot, uint64_t to)
{
    uint64_t best = 0;
    size_t newest = 0;

    for (size_t i = 0; i < SNAPSHOT_BUFFERS; i++) {
        uint64_t commit = commit_in(snapshot, i);

        if (commit <= best || commit > to)
            continue;
        best = commit;
        newest = i;
    }
    return newest;
}

/* Returns the index of the buffer with the newest commit; 0 if there is no commit. */
static inline size_t newest_buffer(const struct snapshot *snapshot)
{
    return newest_buffer_to(snapshot, UINT64_MAX);
}

/* snapshot_hold.c: this buffer's commit has got a new number. If the agent waits for such a commit,
 * it is held. */
void snapshot_offer(struct snapshot *snapshot, size_t buffer, uint64_t commit);

#endif
