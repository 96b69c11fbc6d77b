/*
 * places.h: what lies where in a commit: the entries that a copy is of, and which of them have
 * written what of any range of its bytes.
 */
#ifndef STATE_SNAPSHOT_PLACES_H
#define STATE_SNAPSHOT_PLACES_H

#include "state/snapshot/copy.h"

/* An entry where it lies. */
struct place {
    const struct manifest_entry *entry;
    const struct copy_part *part;
};

struct places {
    struct place *items; /* by offset */
    size_t count;
    const uint8_t *bytes; /* of the commit: there a custom entry says how much it has written */
};

/* A part of the bytes of a commit that an entry has written. */
struct piece {
    const struct place *place;
    uint64_t from;
    uint64_t to;
};

/* Of these kinds of entries. HVD_E_NOMEM. */
int places_init(struct places *places, const struct copy *copy, unsigned which) MUST_CHECK;
void places_release(struct places *places);

/* The place that may reach beyond the offset from before it, or begins with it. */
size_t places_first(const struct places *places, uint64_t offset);

/* The next piece in [from, to) at or after place *at, which moves on; false when there is none. */
bool places_next(const struct places *places, uint64_t from, uint64_t to, size_t *at,
                 struct piece *ret_piece);

/* The entry that a range is counted to; "" if none. */
const char *places_name(const struct places *places, uint64_t from, uint64_t to);

/* Has the device anything of it? */
bool places_on_device(const struct places *places, uint64_t from, uint64_t to);

uint8_t *piece_live(const struct piece *piece); /* where it is live */

#endif
