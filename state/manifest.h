/*
 * manifest.h: the entries of a state, and where each of them lies in a commit:
 *
 *     0            replicated_bytes                                bytes
 *     | replicated entries | pad to a chunk | entries of this rank | pad
 *
 * in the order in which they were added, each aligned to 64 bytes. A custom entry takes 8 bytes
 * more, for the length of the bytes that its save callback has written.
 */
#ifndef STATE_MANIFEST_H
#define STATE_MANIFEST_H

#include "base/limits.h"
#include "base/names.h"
#include "base/vec.h"
#include "proto/msg.h"

#define MANIFEST_ALIGN 64

/* Returns the least multiple of `multiple` that is not below `bytes`. */
static inline uint64_t manifest_round_up(uint64_t bytes, uint64_t multiple)
{
    return (bytes + multiple - 1) / multiple * multiple;
}

struct manifest_entry {
    const char *name;
    /* the size that the program gave: of a custom entry the most bytes that its save callback may
     * write */
    uint64_t bytes;
    uint64_t offset; /* offset in a commit; valid after manifest_seal */
    uint32_t kind;   /* an enum msg_entry_kind */
    uint32_t type;   /* proto/entry_type.h; 0: bytes of no known type */
    bool custom;     /* true: callbacks of the program save and load the entry */
};

struct manifest {
    struct VEC(struct manifest_entry);
    struct names names;
    struct arena memory;
    bool sealed; /* no entry can be added any more */
    /* both sizes are multiples of STATE_CHUNK_BYTES; valid after manifest_seal */
    uint64_t replicated_bytes;
    uint64_t bytes; /* size of a commit, replicated entries included */
    /* digest of the entries' names, kinds, sizes, types and order; never 0. An entry without a type
     * adds the same to it as in earlier releases, which knew no types. */
    uint64_t digest;
};

void manifest_init(struct manifest *manifest);
void manifest_release(struct manifest *manifest);

/* Adds an entry; the name is copied. HVD_E_STATE: the manifest is sealed; HVD_E_INVAL,
 * HVD_E_EXISTS, HVD_E_LIMIT, HVD_E_NOMEM. manifest_add_typed: the elements of the entry have a
 * known type, and `bytes` is a multiple of its size. */
int manifest_add(struct manifest *manifest, const char *name, uint64_t bytes, uint32_t kind,
                 bool custom, struct hvd_err *err) MUST_CHECK;
int manifest_add_typed(struct manifest *manifest, const char *name, uint64_t bytes, uint32_t kind,
                       bool custom, uint32_t type, struct hvd_err *err) MUST_CHECK;

/* Seals the manifest: afterwards no entry can be added, and offsets, sizes and digest are valid. A
 * second call does nothing. */
void manifest_seal(struct manifest *manifest);

/* Computes the digest of the entries so far; after manifest_seal it is that of the manifest. */
uint64_t manifest_digest(const struct manifest *manifest);

/* Lists the entries for a READY message; the list is valid as long as the arena and the manifest.
 * The size of a custom entry is its room. The offsets are valid after manifest_seal. */
int manifest_entries(const struct manifest *manifest, struct arena *arena,
                     struct msg_entry_list *ret_entries) MUST_CHECK;

#endif
