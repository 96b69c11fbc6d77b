#include "state/manifest.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"
#include "state/sum.h"

#include <inttypes.h>
#include <string.h>

#define NAMES_BYTES_MAX ((size_t)64 << 20) /* of all names together */

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

static uint64_t round_up(uint64_t bytes, uint64_t multiple)
{
    return (bytes + multiple - 1) / multiple * multiple;
}

/* What it takes in a commit, with what aligns the next. */
static uint64_t taken_by(uint64_t bytes, bool custom)
{
    return round_up(bytes + (custom ? sizeof(uint64_t) : 0), MANIFEST_ALIGN);
}

static int judge_name(const char *name, size_t length, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];

    if (length == 0)
        return err_set(err, HVD_E_INVAL, "an entry of the state without a name; give it one");
    if (length > LIMIT_MANIFEST_NAME_BYTES)
        return err_set(err, HVD_E_INVAL,
                       "%s: a name of %zu bytes; LIMIT_MANIFEST_NAME_BYTES is %d, shorten it",
                       text_quote(name, length, quoted), length, LIMIT_MANIFEST_NAME_BYTES);
    if (!text_is_clean(name, length) || memchr(name, '\t', length) || memchr(name, '\n', length))
        return err_set(err, HVD_E_INVAL,
                       "%s: not a name; it must be UTF-8 without control characters",
                       text_quote(name, length, quoted));
    return 0;
}

/* Until the manifest is sealed, replicated_bytes and bytes are what is taken so far by the
 * replicated entries, and by the others. */
static uint64_t *taken(struct manifest *manifest, uint32_t kind)
{
    return kind == ENTRY_REPLICATED ? &manifest->replicated_bytes : &manifest->bytes;
}

/* Half of the limit for each kind would do no harm to anybody; but the sum is what is said. Two
 * chunks are set aside for the padding. */
static int judge_bytes(const struct manifest *manifest, const char *name, uint64_t bytes,
                       bool custom, struct hvd_err *err)
{
    uint64_t left = LIMIT_STATE_BYTES - 2 * (uint64_t)STATE_CHUNK_BYTES -
                    manifest->replicated_bytes - manifest->bytes;

    if (bytes > LIMIT_STATE_BYTES || taken_by(bytes, custom) > left)
        return err_set(err, HVD_E_LIMIT,
                       "entry \"%s\" of %" PRIu64 " bytes makes the state larger than "
                       "LIMIT_STATE_BYTES, %" PRIu64 "; split the state over more workers",
                       name, bytes, LIMIT_STATE_BYTES);
    return 0;
}

static int judge(const struct manifest *manifest, const char *name, uint64_t bytes, uint32_t kind,
                 bool custom, struct hvd_err *err)
{
    size_t length = name ? strlen(name) : 0;
    int rc;

    if (manifest->sealed)
        return err_set(err, HVD_E_STATE,
                       "the state is in use and takes no more entries; add them all before "
                       "hvd_elastic_run");
    rc = judge_name(name, length, err);
    if (rc)
        return rc;
    if (kind >= ENTRY_KIND_COUNT)
        return err_set(err, HVD_E_INVAL, "entry \"%s\" is of kind %" PRIu32 ", which there is not",
                       name, kind);
    if (names_find(&manifest->names, name, length) != NAMES_NONE)
        return err_set(err, HVD_E_EXISTS,
                       "the state has an entry \"%s\" already; give each its own name", name);
    return judge_bytes(manifest, name, bytes, custom, err);
}

/* The name is in the index or nowhere: what a failure leaves in the arena is only not used. */
static int keep(struct manifest *manifest, const char *name, struct manifest_entry entry)
{
    size_t length = strlen(name);
    char *copy;
    int rc = VEC_RESERVE(manifest, 1, LIMIT_MANIFEST_ENTRIES);

    if (rc)
        return rc;
    copy = arena_alloc(&manifest->memory, length + 1);
    if (!copy)
        return HVD_E_NOMEM;
    memcpy(copy, name, length + 1);
    rc = names_put(&manifest->names, copy, length, (uint32_t)manifest->count);
    if (rc)
        return rc;
    entry.name = copy;
    manifest->items[manifest->count++] = entry;
    return 0;
}

int manifest_add(struct manifest *manifest, const char *name, uint64_t bytes, uint32_t kind,
                 bool custom, struct hvd_err *err)
{
    struct manifest_entry entry = { .bytes = bytes, .kind = kind, .custom = custom };
    int rc = judge(manifest, name, bytes, kind, custom, err);

    if (rc)
        return rc;
    rc = keep(manifest, name, entry);
    if (rc == HVD_E_LIMIT)
        return err_set(err, rc,
                       "entry \"%s\" is one too many; LIMIT_MANIFEST_ENTRIES is %d, put several "
                       "into one",
                       name, LIMIT_MANIFEST_ENTRIES);
    if (rc)
        return err_set(err, rc, "no memory for entry \"%s\" of the state", name);
    *taken(manifest, kind) += taken_by(bytes, custom);
    return 0;
}

static uint64_t lay_out(struct manifest *manifest, uint32_t kind, uint64_t offset)
{
    struct manifest_entry *entry;

    VEC_EACH (entry, manifest) {
        if (entry->kind != kind)
            continue;
        entry->offset = offset;
        offset += taken_by(entry->bytes, entry->custom);
    }
    return round_up(offset, STATE_CHUNK_BYTES);
}

static uint64_t digest_of(const struct manifest *manifest)
{
    const struct manifest_entry *entry;
    uint64_t digest = manifest->count;

    VEC_EACH (entry, manifest) {
        uint64_t words[] = { digest, sum_of(entry->name, strlen(entry->name)), entry->bytes,
                             entry->kind, entry->custom };

        digest = sum_of(words, sizeof(words));
    }
    return digest ? digest : 1; /* of no entries */
}

void manifest_seal(struct manifest *manifest)
{
    if (manifest->sealed)
        return;
    manifest->replicated_bytes = lay_out(manifest, ENTRY_REPLICATED, 0);
    manifest->bytes = lay_out(manifest, ENTRY_PER_RANK, manifest->replicated_bytes);
    manifest->digest = digest_of(manifest);
    manifest->sealed = true;
    ASSERT(manifest->bytes <= LIMIT_STATE_BYTES);
}

int manifest_entries(const struct manifest *manifest, struct arena *arena,
                     struct msg_entry_list *ret_entries)
{
    const struct manifest_entry *entry;
    struct msg_entry_list list = { 0 };
    struct msg_entry *items = arena_alloc_array(arena, manifest->count, sizeof(*items));

    if (!items)
        return HVD_E_NOMEM;
    VEC_EACH (entry, manifest)
        items[list.count++] =
            (struct msg_entry){ .name = entry->name, .bytes = entry->bytes, .kind = entry->kind };
    list.items = items;
    *ret_entries = list;
    return 0;
}
