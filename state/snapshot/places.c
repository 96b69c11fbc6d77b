#include "state/snapshot/places.h"

#include "base/mem.h"
#include "state/snapshot/custom.h"

/* Replicated entries lie before those of a rank; within each kind the manifest's order is that of
 * the offsets. */
static void put_in_order(struct places *places, const struct copy *copy, uint32_t kind)
{
    for (size_t i = 0; i < copy->manifest->count; i++) {
        const struct manifest_entry *entry = &copy->manifest->items[i];

        if (entry->kind == kind)
            places->items[places->count++] = (struct place){ entry, &copy->parts[i] };
    }
}

int places_init(struct places *places, const struct copy *copy, unsigned which)
{
    *places =
        (struct places){ .items = mem_zalloc_array(copy->manifest->count, sizeof(*places->items)) };
    if (!places->items)
        return HVD_E_NOMEM;
    if (which & COPY_REPLICATED)
        put_in_order(places, copy, ENTRY_REPLICATED);
    if (which & COPY_PER_RANK)
        put_in_order(places, copy, ENTRY_PER_RANK);
    return 0;
}

void places_release(struct places *places)
{
    mem_free(places->items);
}

/* Where the bytes end that the entry has written. */
static uint64_t end_of(const struct places *places, const struct manifest_entry *entry)
{
    if (!entry->custom)
        return entry->offset + entry->bytes;
    return entry->offset + custom_bytes(entry, places->bytes + entry->offset);
}

/* The first place whose offset is beyond `offset`. */
static size_t place_after(const struct places *places, uint64_t offset)
{
    size_t low = 0;
    size_t high = places->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (places->items[middle].entry->offset > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

size_t places_first(const struct places *places, uint64_t offset)
{
    size_t after = place_after(places, offset);

    while (after > 0 && places->items[after - 1].entry->offset == offset)
        after--; /* those of no bytes share their offset with the next */
    return after > 0 ? after - 1 : 0;
}

bool places_next(const struct places *places, uint64_t from, uint64_t to, size_t *at,
                 struct piece *ret_piece)
{
    for (; *at < places->count; ++*at) {
        const struct place *place = &places->items[*at];
        uint64_t begin = place->entry->offset;
        uint64_t end;

        if (begin >= to)
            return false;
        end = end_of(places, place->entry);
        if (end <= from || end == begin)
            continue;
        *ret_piece = (struct piece){ place, begin > from ? begin : from, end < to ? end : to };
        ++*at;
        return true;
    }
    return false;
}

const char *places_name(const struct places *places, uint64_t from, uint64_t to)
{
    size_t at = places_first(places, from);
    struct piece piece;

    return places_next(places, from, to, &at, &piece) ? piece.place->entry->name : "";
}

bool places_on_device(const struct places *places, uint64_t from, uint64_t to)
{
    size_t at = places_first(places, from);
    struct piece piece;

    while (places_next(places, from, to, &at, &piece)) {
        if (piece.place->part->on_device)
            return true;
    }
    return false;
}

uint8_t *piece_live(const struct piece *piece)
{
    return (uint8_t *)piece->place->part->at + (piece->from - piece->place->entry->offset);
}
