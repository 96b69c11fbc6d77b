/*
 * manifest.c: the list of a state's entries, where each entry lies in a commit, and the digest that
 * tells two lists apart.
 *
 * worker/state.c adds entries, run.c seals the list; copy.c reads it. Invariant: names are unique,
 * and the sizes never exceed LIMIT_STATE_BYTES in any order of calls.
 */
#include "state/manifest.h"

#include "base/panic.h"
#include "base/text.h"
#include "proto/entry_type.h"
#include "state/sum.h"

#include <inttypes.h>
#include <string.h>

#define NAMES_BYTES_MAX ((size_t)64 << 20) /* limit for the bytes of all names together */

void manifest_init(struct manifest *manifest)
{
    *manifest = (struct manifest){ .sealed = false };
    names_init(&manifest->names);
    arena_init(&manifest->memory, NAMES_BYTES_MAX);
}

void manifest_release(struct manifest *manifest)
{
    if (!manifest)
        return;
    VEC_RELEASE(manifest);
    names_release(&manifest->names);
    arena_release(&manifest->memory);
    manifest_init(manifest);
}

/* Returns the bytes that an entry takes in a commit, with the padding that aligns the next
 * entry. */
static uint64_t padded_bytes(uint64_t bytes, bool custom)
{
    return manifest_round_up(bytes + (custom ? sizeof(uint64_t) : 0), MANIFEST_ALIGN);
}

/* Checks a new entry: its name, its kind, and that the state with it is not too large. custom: the
 * program's callbacks save and load the entry; `bytes` is then its room. */
static int check_entry(const struct manifest *manifest, const char *name, uint64_t bytes,
                       uint32_t kind, bool custom, struct hvd_err *err)
{
    size_t length = name ? strlen(name) : 0;
    /* Two chunks are reserved for padding: one behind the replicated entries, one behind the
     * per-rank entries. */
    uint64_t left = LIMIT_STATE_BYTES - 2 * (uint64_t)STATE_CHUNK_BYTES -
                    manifest->replicated_bytes - manifest->bytes;
    char quoted[TEXT_QUOTE_MAX];

    if (manifest->sealed)
        return err_set(err, HVD_E_STATE,
                       "the state is in use, so no entry can be added; add all entries before "
                       "hvd_elastic_run");
    if (length == 0)
        return err_set(err, HVD_E_INVAL,
                       "an entry of the state has no name; give each entry a name");
    if (length > LIMIT_MANIFEST_NAME_BYTES)
        return err_set(err, HVD_E_INVAL,
                       "entry %s: the name has %zu bytes, more than %d "
                       "(LIMIT_MANIFEST_NAME_BYTES); shorten the name",
                       text_quote(name, length, quoted), length, LIMIT_MANIFEST_NAME_BYTES);
    if (!text_is_clean(name, length) || memchr(name, '\t', length) || memchr(name, '\n', length))
        return err_set(
            err, HVD_E_INVAL,
            "entry %s: the name has control characters or is no UTF-8; give a name of plain text",
            text_quote(name, length, quoted));
    if (kind >= ENTRY_KIND_COUNT)
        return err_set(err, HVD_E_INVAL,
                       "entry \"%s\" is of kind %" PRIu32
                       ", which this version does not know; install the same release on all hosts",
                       name, kind);
    if (names_find(&manifest->names, name, length) != NAMES_NONE)
        return err_set(err, HVD_E_EXISTS,
                       "the state has an entry \"%s\" already; give each entry its own name", name);
    if (bytes > LIMIT_STATE_BYTES || padded_bytes(bytes, custom) > left)
        return err_set(err, HVD_E_LIMIT,
                       "entry \"%s\" of %" PRIu64 " bytes makes the state larger than %" PRIu64
                       " bytes (LIMIT_STATE_BYTES); register large entries per rank, so that each "
                       "worker keeps only its part",
                       name, bytes, LIMIT_STATE_BYTES);
    return 0;
}

/* Adds an entry, with a copy of its name. After a failure the manifest has the same entries as
 * before. */
int manifest_add_typed(struct manifest *manifest, const char *name, uint64_t bytes, uint32_t kind,
                       bool custom, uint32_t type, struct hvd_err *err)
{
    struct manifest_entry entry = { .bytes = bytes, .kind = kind, .type = type, .custom = custom };
    int rc = check_entry(manifest, name, bytes, kind, custom, err);
    char *copy = NULL;

    ASSERT(entry_type_bytes(type) && bytes % entry_type_bytes(type) == 0);
    if (rc)
        return rc;
    rc = VEC_RESERVE(manifest, 1, LIMIT_MANIFEST_ENTRIES);
    if (rc == HVD_E_LIMIT)
        return err_set(err, rc,
                       "entry \"%s\" is one too many: a state has at most %d entries "
                       "(LIMIT_MANIFEST_ENTRIES); put several arrays into one entry",
                       name, LIMIT_MANIFEST_ENTRIES);
    /* On failure the index does not have the name; the copy of the name in the arena is not
     * used. */
    if (!rc && !(copy = arena_alloc(&manifest->memory, strlen(name) + 1)))
        rc = HVD_E_NOMEM;
    if (!rc) {
        memcpy(copy, name, strlen(name) + 1);
        rc = names_put(&manifest->names, copy, strlen(name), (uint32_t)manifest->count);
    }
    if (rc)
        return err_set(err, rc, "no memory for entry \"%s\" of the state; free memory on this host",
                       name);
    entry.name = copy;
    manifest->items[manifest->count++] = entry;
    /* Until manifest_seal these two fields hold the sums of the entries so far: replicated_bytes of
     * replicated entries, `bytes` of all other entries. */
    *(kind == ENTRY_REPLICATED ? &manifest->replicated_bytes : &manifest->bytes) +=
        padded_bytes(bytes, custom);
    return 0;
}

/* Adds an entry of bytes of no known type. */
int manifest_add(struct manifest *manifest, const char *name, uint64_t bytes, uint32_t kind,
                 bool custom, struct hvd_err *err)
{
    return manifest_add_typed(manifest, name, bytes, kind, custom, ENTRY_TYPE_BYTES, err);
}

/* Gives all entries of this kind their offsets; the first entry gets `offset`. Returns the offset
 * after the last entry, rounded up to a chunk. */
static uint64_t lay_out(struct manifest *manifest, uint32_t kind, uint64_t offset)
{
    struct manifest_entry *entry;

    VEC_EACH (entry, manifest) {
        if (entry->kind != kind)
            continue;
        entry->offset = offset;
        offset += padded_bytes(entry->bytes, entry->custom);
    }
    return manifest_round_up(offset, STATE_CHUNK_BYTES);
}

/* Computes the digest that tells this list of entries from other lists; it also depends on their
 * order. */
uint64_t manifest_digest(const struct manifest *manifest)
{
    const struct manifest_entry *entry;
    uint64_t digest = manifest->count;

    VEC_EACH (entry, manifest) {
        uint64_t words[] = { digest,        sum_of(entry->name, strlen(entry->name)),
                             entry->bytes,  entry->kind,
                             entry->custom, entry->type };

        /* The type comes last, and only where it is known, so that a state without types has the
         * same digest as in earlier releases. */
        digest = sum_of(words, sizeof(words) - (entry->type ? 0 : sizeof(words[0])));
    }
    return digest ? digest : 1; /* a manifest without entries has a digest too */
}

/* Ends the adding of entries: gives each entry its offset in a commit, and computes the sizes and
 * the digest. */
void manifest_seal(struct manifest *manifest)
{
    if (manifest->sealed)
        return;
    manifest->replicated_bytes = lay_out(manifest, ENTRY_REPLICATED, 0);
    manifest->bytes = lay_out(manifest, ENTRY_PER_RANK, manifest->replicated_bytes);
    manifest->digest = manifest_digest(manifest);
    manifest->sealed = true;
    ASSERT(manifest->bytes <= LIMIT_STATE_BYTES);
}

/* Lists the entries for a READY message. The list is in the memory of the arena, the names stay in
 * the manifest. */
int manifest_entries(const struct manifest *manifest, struct arena *arena,
                     struct msg_entry_list *ret_entries)
{
    const struct manifest_entry *entry;
    struct msg_entry_list list = { 0 };
    struct msg_entry *items = arena_alloc_array(arena, manifest->count, sizeof(*items));

    if (!items)
        return HVD_E_NOMEM;
    VEC_EACH (entry, manifest)
        items[list.count++] = (struct msg_entry){ .name = entry->name,
                                                  .bytes = entry->bytes,
                                                  .kind = entry->kind,
                                                  .offset = entry->offset,
                                                  .type = entry->type,
                                                  .custom = entry->custom };
    list.items = items;
    *ret_entries = list;
    return 0;
}
