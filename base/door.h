/*
 * door.h: the one rule by which every listener admits strangers: the ports of the driver and the
 * agents (wire/listener), the port at which workers meet (collectives/meet), the ports of links
 * (collectives/link). Pure: told the time, and which address a peer comes from.
 *
 * A guest is a connection whose peer has not proved yet who it is. Guests have `places`, and those
 * of one source have `places_each`. A new guest always enters. When there is no place for it, an
 * older guest leaves:
 *
 *   - The leaver is a guest of the same source, if this source has all its `places_each`. Otherwise
 *     the leaver is a guest of the source with the most guests (of several such sources, the one
 *     that came first).
 *   - The leaver is the oldest guest of that source that has sent nothing; if all guests of the
 *     source have sent something, the oldest guest.
 *
 * A guest also leaves when the process has no descriptor for a new peer: a guest of the source with
 * the most guests, by the same rule.
 *
 * So a crowd of one source costs other sources nothing. A peer that proves itself at once is let in
 * even when its own source, or more sources than there are places, send a crowd.
 *
 *     while ((leaver = door_next_leaver(door, source)) != NULL)
 *         close it, door_turn_away(door, leaver, ..)
 *     door_enter(door, guest, source);  ...  door_spoke(guest);  ...  door_leave(door, guest)
 */
#ifndef BASE_DOOR_H
#define BASE_DOOR_H

#include "base/limits.h"
#include "base/list.h"

/* The network that a peer comes from: an IPv4 address, or the first 64 bits of an IPv6 address
 * (os/source.h). Hosts get whole /64 networks, so one host may use all addresses of one. */
struct door_source {
    uint64_t source;
    uint32_t guests;
};

struct door_guest {
    struct list link; /* links the guest into door->guests */
    uint64_t source;
    bool spoke; /* the peer has sent something, perhaps the beginning of a proof */
};

struct door {
    size_t places, places_each; /* the most guests inside, and of one source */
    size_t count;
    struct list guests; /* all guests, the oldest first */
    /* one entry for each source that has guests; the source that came first stands first */
    struct door_source sources[LIMIT_STRANGERS];
    size_t source_count;

    /* a crowd: strangers came when all places were taken, so guests had to leave */
    int64_t crowded_us;   /* when the last guest left for lack of a place; 0: none did */
    uint64_t turned_away; /* guests that left for lack of a place since the last report */
    /* The source of more than half of the guests that were turned away; if no source has more than
     * half, the source of any of these guests. It is found by a majority vote: a guest from
     * main_source adds a vote, a guest from another source takes a vote away. */
    uint64_t main_source;
    uint64_t votes;
    int64_t reported_us; /* when door_report last gave a report; 0: never */
};

/* The numbers of a crowd, for the log. */
struct door_report {
    uint64_t turned_away;
    uint64_t source;
    size_t guests; /* guests that this source has inside now */
};

void door_init(struct door *door, size_t places, size_t places_each);

/* Returns the guest that has to leave before a peer of this source enters; NULL: there is a place.
 * The caller first looks whether the peer of that guest has sent something meanwhile. If it has,
 * the caller calls door_spoke and asks again. */
struct door_guest *door_next_leaver(const struct door *door, uint64_t source);

/* Returns the guest that has to leave because the process has no descriptor for a new peer, whose
 * source is not known yet: a guest of the source with the most guests. NULL: no guest is inside. As
 * with door_next_leaver, the caller first looks whether that guest has sent something meanwhile. */
struct door_guest *door_any_leaver(const struct door *door);

/* The peer of this source becomes a guest. door_next_leaver has returned NULL before. */
void door_enter(struct door *door, struct door_guest *guest, uint64_t source);
/* The guest has sent something. */
void door_spoke(struct door_guest *guest);
/* The guest has proved what it is, or its connection has ended. A guest that is not inside is left
 * as it is. */
void door_leave(struct door *door, struct door_guest *guest);
/* The guest leaves because another one needs its place. */
void door_turn_away(struct door *door, struct door_guest *guest, int64_t now_us);

/* Reports the guests that were turned away since the last report. Returns false when there were
 * none, or the last report is not older than `every_us`. */
bool door_report(struct door *door, int64_t now_us, int64_t every_us,
                 struct door_report *ret_report);

#endif
