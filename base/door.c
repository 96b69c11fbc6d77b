/*
 * door.c: decides which unproved connection is closed when a new one comes and all places are taken
 * (door.h has the rule). Such a connection is called a guest, the network it comes from its source.
 * Called by every listener for each connection that it accepts. Invariants: the guests of all
 * sources together are the guests in the list; there are never more than there are places, so the
 * arrays are large enough.
 */
#include "base/door.h"

#include "base/panic.h"

#include <string.h>

/* Makes a door with this many places for guests, and this many for the guests of one source. */
void door_init(struct door *door, size_t places, size_t places_each)
{
    ASSERT(places > 0 && places <= LIMIT_STRANGERS && places_each > 0);
    *door = (struct door){ .places = places, .places_each = places_each };
    list_init(&door->guests);
}

/* Returns the index of the source's entry; door->source_count: the source has no guest. */
static size_t door_find_source(const struct door *door, uint64_t source)
{
    size_t i = 0;

    while (i < door->source_count && door->sources[i].source != source)
        i++;
    return i;
}

/* Returns the guest of this source that is closed first: the oldest that has sent nothing; if
 * all have sent something, the oldest of all. */
static struct door_guest *door_leaver_of(const struct door *door, uint64_t source)
{
    struct door_guest *oldest = NULL;

    LIST_EACH (it, &door->guests) {
        struct door_guest *guest = CONTAINER_OF(it, struct door_guest, link);

        if (guest->source != source)
            continue;
        if (!guest->spoke)
            return guest;
        if (!oldest)
            oldest = guest;
    }
    return oldest;
}

/* Returns the guest that is closed first among those of the source with the most guests; NULL:
 * there is no guest. */
struct door_guest *door_any_leaver(const struct door *door)
{
    const struct door_source *from = &door->sources[0];

    for (size_t i = 1; i < door->source_count; i++) {
        if (door->sources[i].guests > from->guests)
            from = &door->sources[i];
    }
    return door->source_count ? door_leaver_of(door, from->source) : NULL;
}

/* Returns the guest that must be closed before a peer of this source becomes a guest; NULL:
 * there is a free place. A source may have at most `places_each` guests: if it has that many,
 * one of its own is closed. Otherwise one of the source with the most guests is closed. */
struct door_guest *door_next_leaver(const struct door *door, uint64_t source)
{
    size_t at = door_find_source(door, source);

    if (at < door->source_count && door->sources[at].guests >= door->places_each)
        return door_leaver_of(door, source);
    return door->count < door->places ? NULL : door_any_leaver(door);
}

/* A peer of this source becomes a guest. The caller has made room before. */
void door_enter(struct door *door, struct door_guest *guest, uint64_t source)
{
    size_t at = door_find_source(door, source);

    ASSERT(door->count < door->places);
    if (at == door->source_count)
        door->sources[door->source_count++] = (struct door_source){ .source = source };
    door->sources[at].guests++;
    guest->source = source;
    guest->spoke = false;
    list_append(&door->guests, &guest->link);
    door->count++;
}

/* Notes that the peer of the guest has sent something: guests that have sent nothing leave
 * first. */
void door_spoke(struct door_guest *guest)
{
    guest->spoke = true;
}

/* Removes a guest, because it has proved what it is, or because its connection has ended. A
 * guest that was removed before is left as it is. */
void door_leave(struct door *door, struct door_guest *guest)
{
    size_t at = door_find_source(door, guest->source);

    if (list_empty(&guest->link))
        return;
    list_remove(&guest->link);
    door->count--;
    if (--door->sources[at].guests)
        return;
    /* Of several sources with equally many guests, the first one in this array loses a guest. So
     * memmove keeps their order: a swap with the last source could make the newest guest of a crowd
     * leave before older ones. */
    door->source_count--;
    memmove(&door->sources[at], &door->sources[at + 1],
            (door->source_count - at) * sizeof(door->sources[0]));
}

/* Removes a guest because another one needs its place, and counts it for the next door_report. */
void door_turn_away(struct door *door, struct door_guest *guest, int64_t now_us)
{
    door_leave(door, guest);
    door->crowded_us = now_us;
    door->turned_away++;
    /* A majority vote (Boyer and Moore): a source of more than half of the guests that were turned
     * away is main_source at the end. */
    if (!door->votes)
        door->main_source = guest->source;
    door->votes += guest->source == door->main_source ? 1 : UINT64_MAX; /* adds 1 or -1 */
}

/* Gives the numbers for a log line about guests that were turned away. false: there were none, or
 * the last report was less than `every_us` ago. */
bool door_report(struct door *door, int64_t now_us, int64_t every_us,
                 struct door_report *ret_report)
{
    size_t at = door_find_source(door, door->main_source);

    if (!door->turned_away || (door->reported_us && now_us - door->reported_us < every_us))
        return false;
    *ret_report =
        (struct door_report){ .turned_away = door->turned_away,
                              .source = door->main_source,
                              .guests = at < door->source_count ? door->sources[at].guests : 0 };
    door->turned_away = door->votes = 0;
    door->reported_us = now_us;
    return true;
}
