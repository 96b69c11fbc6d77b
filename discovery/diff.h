/*
 * diff.h: what changed from one set of hosts to the next. The order of the two sets does not count.
 */
#ifndef DISCOVERY_DIFF_H
#define DISCOVERY_DIFF_H

#include "discovery/hosts.h"

#define DIFF_ADDED    0x1u
#define DIFF_REMOVED  0x2u
#define DIFF_GROWN    0x4u
#define DIFF_SHRUNK   0x8u
#define DIFF_GAIN     (DIFF_ADDED | DIFF_GROWN)    /* changes that may make slots available */
#define DIFF_LOSS     (DIFF_REMOVED | DIFF_SHRUNK) /* changes that may take slots from workers */

#define DIFF_TEXT_MAX 480

struct host_change {
    /* borrowed from the new set if the host is in that set, else from the old set */
    const char *name;
    unsigned kind;      /* DIFF_ADDED, _REMOVED, _GROWN or _SHRUNK */
    uint32_t old_slots; /* 0 when the host is added */
    uint32_t new_slots; /* 0 when the host is removed */
};

struct diff {
    /* first the changed hosts of the old set, in the order of that set; then the added hosts, in
     * the order of the new set */
    struct host_change *items;
    size_t count;
    size_t capacity;
    unsigned kinds; /* the kinds of all items, joined with |; 0: nothing changed */
};

void diff_init(struct diff *diff);
void diff_release(struct diff *diff);

/* Compares two sets. ret_diff must be initialised, and is replaced on success. Both sets stay
 * borrowed as long as names in ret_diff are used. Returns 0 or HVD_E_NOMEM. The time is linear in
 * the number of hosts. */
int diff_between(const struct hosts *before, const struct hosts *now,
                 struct diff *ret_diff) MUST_CHECK;

/* Writes a log line such as "-a b:2->4 +c:4": a was removed, b had 2 slots and has 4, c was added.
 * Without a change the line is "no change"; a line that is too long is cut and ends in "... and 17
 * more". Returns `text`. */
const char *diff_describe(const struct diff *diff, char text[DIFF_TEXT_MAX]);

#endif
