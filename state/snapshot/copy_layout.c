/*
 * copy_layout.c: the map from the bytes of a commit to the entries of the state.
 *
 * copy.c walks over a commit chunk by chunk and asks here which pieces of live memory belong to
 * each chunk. Items are sorted by offset, so a chunk finds its first piece by binary search.
 */
#include "state/snapshot/copy_layout.h"

#include "base/mem.h"
#include "state/snapshot/custom.h"

/* Lists the entries whose kinds are in `which`, in the order of their offsets in a commit. */
int copy_layout_init(struct copy_layout *layout, const struct copy *copy, unsigned which)
{
    /* A manifest puts all replicated entries before the per-rank ones; within a kind the entries
     * are in the order of their offsets. */
    static const uint32_t kinds[] = { ENTRY_REPLICATED, ENTRY_PER_RANK };

    *layout = (struct copy_layout){
        .items = mem_zalloc_array(copy->manifest->count, sizeof(*layout->items)),
    };
    if (!layout->items)
        return HVD_E_NOMEM;
    for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
        for (size_t i = 0; i < copy->manifest->count && which & 1U << kinds[k]; i++) {
            const struct manifest_entry *entry = &copy->manifest->items[i];

            if (entry->kind == kinds[k])
                layout->items[layout->count++] = (struct layout_item){ entry, &copy->parts[i] };
        }
    }
    return 0;
}

void copy_layout_release(struct copy_layout *layout)
{
    mem_free(layout->items);
}

/* Returns the index of the item at which a search for bytes at or after the offset begins. */
size_t copy_layout_first(const struct copy_layout *layout, uint64_t offset)
{
    size_t low = 0;
    size_t high = layout->count;

    /* `low` becomes the first item that begins after the offset. The item before it may contain the
     * offset. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (layout->items[middle].entry->offset > offset)
            high = middle;
        else
            low = middle + 1;
    }
    while (low > 0 && layout->items[low - 1].entry->offset == offset)
        low--; /* an entry of 0 bytes has the same offset as the next entry */
    return low > 0 ? low - 1 : 0;
}

/* Finds the next piece of an entry in [from, to), from the item *at on; false: there is none. A
 * custom entry has only the bytes that its callback has written. */
bool copy_layout_next(const struct copy_layout *layout, uint64_t from, uint64_t to, size_t *at,
                      struct layout_piece *ret_piece)
{
    for (; *at < layout->count; ++*at) {
        const struct manifest_entry *entry = layout->items[*at].entry;
        uint64_t begin = entry->offset;
        uint64_t end = begin + entry->bytes;

        if (begin >= to)
            return false;
        if (entry->custom)
            end = begin + custom_bytes(entry, layout->bytes + begin);
        if (end <= from || end == begin)
            continue;
        *ret_piece = (struct layout_piece){ &layout->items[*at], begin > from ? begin : from,
                                            end < to ? end : to };
        ++*at;
        return true;
    }
    return false;
}

/* true: an entry in device memory has bytes in [from, to) of the commit. */
bool copy_layout_on_device(const struct copy_layout *layout, uint64_t from, uint64_t to)
{
    size_t at = copy_layout_first(layout, from);
    struct layout_piece piece;

    while (copy_layout_next(layout, from, to, &at, &piece)) {
        if (piece.item->part->on_device)
            return true;
    }
    return false;
}

/* Returns where the bytes of a piece are in live memory. */
uint8_t *layout_piece_live(const struct layout_piece *piece)
{
    return (uint8_t *)piece->item->part->at + (piece->from - piece->item->entry->offset);
}
