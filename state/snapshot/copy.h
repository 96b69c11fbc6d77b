/*
 * copy.h: makes a commit from a worker's live memory, and restores live memory from a commit.
 *
 * The bytes of a commit depend on the state alone: bytes that no entry has written are zero. So if
 * the replicated entries of two ranks are equal, the checksums of their chunks are equal too, also
 * when one rank has its entries in device memory and the other rank in host memory. A chunk that
 * lies wholly in the unused room of custom entries is not written and has the checksum SUM_NONE.
 */
#ifndef STATE_SNAPSHOT_COPY_H
#define STATE_SNAPSHOT_COPY_H

#include "state/manifest.h"
#include "state/snapshot/device_copy.h"
#include "state/snapshot/snapshot.h"

/* Where an entry lies in live memory. There is one part for each entry of the manifest, in the same
 * order. */
struct copy_part {
    void *at; /* address of the entry's bytes; NULL: a custom entry, or an entry of 0 bytes */
    /* The save callback of a custom entry. copy_commit calls it on its caller's thread, entry by
     * entry. */
    hvd_save_fn *save;
    hvd_load_fn *load; /* the load callback of a custom entry, which copy_restore calls */
    void *arg;         /* the argument of both callbacks */
    bool on_device;    /* true: `at` is device memory; never true for a custom entry */
};

/* Sets of kinds of entries, made of bits 1 << enum msg_entry_kind. */
#define COPY_REPLICATED 0x1u
#define COPY_PER_RANK   0x2u
#define COPY_ALL        0x3u

struct copy {
    const struct manifest *manifest; /* sealed; the snapshot has the same sizes */
    const struct copy_part *parts;   /* one for each entry of the manifest */
    unsigned which;                  /* a set of COPY_...: the kinds of entries to copy */
    /* most threads to use, with the caller's thread; 0: as many as this process has processors */
    unsigned threads;
    struct device_copy *device_copy; /* NULL: no entry is in device memory */
};

/* Opens a buffer of the snapshot (snapshot_begin) and copies the entries as they are now; entries
 * on a device are copied after the work that the last device_copy_after has named. The caller then
 * completes the commit with snapshot_end; until then the commit does not exist. With COPY_PER_RANK
 * alone, the function keeps the replicated bytes that a fetch has put into the buffer. Errors: a
 * code of a save callback; HVD_E_LIMIT: a save callback claims more bytes than its entry's room;
 * HVD_E_NOMEM; HVD_E_IO: the device fails. The err names the entry. When copy_commit returns, no
 * copy is still running. */
int copy_commit(struct snapshot *snapshot, const struct copy *copy, struct hvd_err *err) MUST_CHECK;

/* Copies the entries of the commit to live memory, then calls the load callback of each custom
 * entry. All checksums are verified before the first byte goes to a device. HVD_E_NOTFOUND: there
 * is no such commit, and live memory is unchanged; HVD_E_CORRUPT, a code of a load callback, or
 * HVD_E_IO: live memory is undefined. The err names the entry. */
int copy_restore(const struct snapshot *snapshot, uint64_t commit, const struct copy *copy,
                 struct hvd_err *err) MUST_CHECK;

#endif
