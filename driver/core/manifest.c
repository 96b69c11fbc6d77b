#include "driver/core/manifest.h"

#include "base/mem.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <string.h>

struct manifest {
    struct arena memory;
    struct msg_entry_list entries;
};

#define MANIFEST_MEMORY_MAX ((size_t)64 << 20)

void manifest_release(struct core *core)
{
    if (!core->manifest.first)
        return;
    arena_release(&core->manifest.first->memory);
    mem_free(core->manifest.first);
    core->manifest.first = NULL;
}

static bool copy_entries(struct manifest *manifest, const struct msg_entry_list *entries)
{
    struct msg_entry *items = arena_alloc_array(&manifest->memory, entries->count, sizeof(*items));

    for (size_t i = 0; items && i < entries->count; i++) {
        size_t length = strlen(entries->items[i].name) + 1;
        char *name = arena_alloc(&manifest->memory, length);

        if (!name)
            return false;
        memcpy(name, entries->items[i].name, length);
        items[i] = entries->items[i];
        items[i].name = name;
    }
    manifest->entries = (struct msg_entry_list){ items, entries->count };
    return items != NULL;
}

/* What a later worker is held against, entry by entry. Without it only the digest is known. */
static void keep(struct core *core, const struct msg_entry_list *entries)
{
    struct manifest *manifest = mem_zalloc(sizeof(*manifest));

    if (!manifest) {
        core->broken = true;
        return;
    }
    arena_init(&manifest->memory, MANIFEST_MEMORY_MAX);
    core->manifest.first = manifest;
    if (!copy_entries(manifest, entries))
        core->broken = true;
}

static const char *difference(struct core *core, const struct msg_entry_list *ours,
                              const struct msg_entry_list *theirs)
{
    for (size_t i = 0; i < ours->count && i < theirs->count; i++) {
        const struct msg_entry *a = &ours->items[i];
        const struct msg_entry *b = &theirs->items[i];

        if (strcmp(a->name, b->name) != 0)
            return tell_text(core, "its state differs: entry %zu is \"%s\", not \"%s\"", i + 1,
                             b->name, a->name);
        if (a->kind != b->kind)
            return tell_text(core,
                             "its state differs: entry \"%s\" is replicated on some workers, and "
                             "one of a rank on others",
                             a->name);
        if (a->bytes != b->bytes)
            return tell_text(core,
                             "its state differs: entry \"%s\" has %" PRIu64 " bytes, not %" PRIu64,
                             a->name, b->bytes, a->bytes);
    }
    if (theirs->count > ours->count && ours->count)
        return tell_text(core, "its state differs: it has \"%s\", which others have not",
                         theirs->items[ours->count].name);
    if (ours->count > theirs->count && theirs->count)
        return tell_text(core, "its state differs: it has no \"%s\", which others have",
                         ours->items[theirs->count].name);
    return "its state differs from that of the others";
}

bool manifest_yields(struct core *core, const struct msg_ready *ready, size_t others)
{
    if (core->rounds || !core->manifest.known || core->manifest.digest == ready->manifest)
        return false;
    if (core->manifest.rival != ready->manifest)
        core->manifest.rivals = 0;
    core->manifest.rival = ready->manifest;
    if (++core->manifest.rivals <= others)
        return false;
    manifest_release(core);
    core->manifest.known = false;
    core->manifest.rivals = 0;
    return true;
}

const char *manifest_judge(struct core *core, const struct msg_ready *ready)
{
    const struct msg_entry_list none = { NULL, 0 };

    if (!core->manifest.known) {
        core->manifest.known = true;
        core->manifest.digest = ready->manifest;
    }
    if (core->manifest.digest != ready->manifest)
        return difference(core, core->manifest.first ? &core->manifest.first->entries : &none,
                          &ready->entries);
    if (!core->manifest.first && ready->entries.count)
        keep(core, &ready->entries);
    return NULL;
}
