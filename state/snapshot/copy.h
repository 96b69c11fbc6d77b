/*
 * copy.h: a commit made out of the live memory of a worker, and the way back.
 *
 * The bytes of a commit are a function of the state alone: what no entry has written is zero. So
 * where the replicated entries are equal, so are the checksums of their chunks, wherever the
 * entries live: those of one rank may be in device memory, and those of another in the host's. A
 * chunk that lies wholly in the unused room of custom entries is not written, and has SUM_NONE.
 */
#ifndef STATE_SNAPSHOT_COPY_H
#define STATE_SNAPSHOT_COPY_H

#include "state/manifest.h"
#include "state/snapshot/ferry.h"
#include "state/snapshot/snapshot.h"

/* Where an entry lives: one for each entry of the manifest, in its order. */
struct copy_part {
    void *at;          /* its bytes; NULL of a custom one, allowed where there are none */
    hvd_save_fn *save; /* of a custom one: called by the caller's thread, in order */
    hvd_load_fn *load;
    void *arg;
    bool on_device; /* that is memory of the ferry's device; not of a custom one */
};

/* Which entries; 1 << enum msg_entry_kind. */
#define COPY_REPLICATED 0x1u
#define COPY_PER_RANK   0x2u
#define COPY_ALL        0x3u

struct copy {
    const struct manifest *manifest; /* sealed; the snapshot has its shape */
    const struct copy_part *parts;
    unsigned which;
    unsigned threads;    /* the caller's included, at most; 0: as the machine has. Fewer when there
                          * is little to copy or none can be started. */
    struct ferry *ferry; /* NULL: all of it is in memory of the host. What the copy is to come
                          * after, ferry_after has said. */
};

/* snapshot_begin, and then these entries as they are now. The caller names the commit with
 * snapshot_end, or leaves it: then there is none. With COPY_PER_RANK what a fetch has brought
 * stays. A code of save's, or HVD_E_LIMIT (save says more than its room), HVD_E_NOMEM; HVD_E_IO: of
 * the device. The err names the entry. Nothing is under way when it returns. */
int copy_commit(struct snapshot *snapshot, const struct copy *copy, struct hvd_err *err) MUST_CHECK;

/* These entries back into the live memory, and then each custom one by its load; with their
 * checksums, which are looked at before anything goes to a device. HVD_E_NOTFOUND: there is no such
 * commit, and nothing was touched; HVD_E_CORRUPT, a code of load's, or HVD_E_IO: the live memory is
 * rubbish. The err names the entry. */
int copy_restore(const struct snapshot *snapshot, uint64_t commit, const struct copy *copy,
                 struct hvd_err *err) MUST_CHECK;

#endif
