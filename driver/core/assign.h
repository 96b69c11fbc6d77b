/*
 * assign.h: pure functions that need no core. They compute ranks and sizes, and how many members a
 * round keeps.
 */
#ifndef DRIVER_CORE_ASSIGN_H
#define DRIVER_CORE_ASSIGN_H

#include "base/limits.h"
#include "proto/place.h"

/* Returns how many members that have to go must stay for now, because the round would otherwise
 * have fewer than `min_np` members. `staying`: the number of members that need not go; `joining`:
 * the number of new members. */
size_t assign_kept(size_t staying, size_t joining, size_t min_np);

/* A slot in which a worker is about to be launched, and the place (ranks and sizes) that LAUNCH
 * tells the worker. */
struct assignment {
    /* a number that stands for the host; all slots of one host have the same number */
    uint32_t host;
    uint32_t slot;
    struct place place;
};

/*
 * Fills in the place (ranks and sizes) of each of the `count` slots. The slots of one host must be
 * neighbours in `list`. The ranks begin at `first`, and the size is first + count. Local and cross
 * ranks count only the slots of this list. LAUNCH tells a worker this place; the first round of the
 * worker may give it another one.
 */
void assign_places(struct assignment *list, size_t count, uint32_t first);

#endif
