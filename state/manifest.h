/*
 * manifest.h: what a state is made of, and where each part lies in a commit.
 *
 *     0            replicated_bytes                                bytes
 *     | replicated entries | pad to a chunk | entries of this rank | pad
 *
 * in the order in which they were added, each aligned to 64 bytes. A custom entry takes 8 bytes
 * more: before what it has written comes how much that is.
 */
#ifndef STATE_MANIFEST_H
#define STATE_MANIFEST_H

#include "base/limits.h"
#include "base/names.h"
#include "base/vec.h"
#include "proto/msg.h"

#define MANIFEST_ALIGN 64

struct manifest_entry {
    const char *name;
    uint64_t bytes;  /* as the caller gave them; of a custom entry its room */
    uint64_t offset; /* in a commit; once sealed */
    uint32_t kind;   /* enum msg_entry_kind */
    bool custom;
};

struct manifest {
    struct VEC(struct manifest_entry);
    struct names names;
    struct arena memory;
    bool sealed;
    uint64_t replicated_bytes; /* once sealed: a multiple of STATE_CHUNK_BYTES, as is bytes */
    uint64_t bytes;
    uint64_t digest; /* of names, kinds, sizes, order; never 0 */
};

void manifest_init(struct manifest *manifest);
void manifest_release(struct manifest *manifest);

/* The name is copied. HVD_E_STATE: sealed; HVD_E_INVAL, HVD_E_EXISTS, HVD_E_LIMIT, HVD_E_NOMEM. */
int manifest_add(struct manifest *manifest, const char *name, uint64_t bytes, uint32_t kind,
                 bool custom, struct hvd_err *err) MUST_CHECK;

/* From now on it stays as it is, and offsets, sizes and digest are there. Again: nothing. */
void manifest_seal(struct manifest *manifest);

/* The entries as READY says them; they live as long as the arena and the manifest. A custom entry
 * counts with its room. */
int manifest_entries(const struct manifest *manifest, struct arena *arena,
                     struct msg_entry_list *ret_entries) MUST_CHECK;

#endif
