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
#define DIFF_GAIN     (DIFF_ADDED | DIFF_GROWN)    /* there may be more to run on */
#define DIFF_LOSS     (DIFF_REMOVED | DIFF_SHRUNK) /* somebody may have to leave */

#define DIFF_TEXT_MAX 480

struct host_change {
    const char *name;   /* borrowed from the set that has the host; from the new one if both do */
    unsigned kind;      /* one of the four above */
    uint32_t old_slots; /* 0 when added */
    uint32_t new_slots; /* 0 when removed */
};

struct diff {
    struct host_change *items; /* hosts of the old set in its order, then added ones in theirs */
    size_t count;
    size_t capacity;
    unsigned kinds; /* of all items together; 0: nothing changed */
};

void diff_init(struct diff *diff);
void diff_release(struct diff *diff);

/* ret_diff is a diff already, replaced on success. Both sets stay borrowed as long as its names are
 * used. 0 or HVD_E_NOMEM. Linear in the number of hosts. */
int diff_between(const struct hosts *before, const struct hosts *now,
                 struct diff *ret_diff) MUST_CHECK;

/* "-a b:2->4 +c:4" for a log line, or "no change"; cut with "... and 17 more" when it is too long.
 * Returns text. */
const char *diff_describe(const struct diff *diff, char text[DIFF_TEXT_MAX]);

#endif
