/*
 * assign.h: who is where, as a matter of numbers: pure functions, without a core.
 */
#ifndef DRIVER_CORE_ASSIGN_H
#define DRIVER_CORE_ASSIGN_H

#include "base/limits.h"
#include "proto/place.h"

/* Of members that have to go, how many are kept because the round would be too small without. */
size_t assign_kept(size_t staying, size_t joining, size_t min_np);

/* A seat that is to be taken, and the place that its worker may expect. */
struct assignment {
    uint32_t host; /* a number that is equal for seats of one host */
    uint32_t slot;
    struct place place;
};

/*
 * Places for the seats in the order in which they stand, hosts side by side: ranks from `first` on,
 * in a round of first + count. Local and cross ranks count the seats of this list alone. They are
 * what a launched worker is told until its first round says what they really are.
 */
void assign_places(struct assignment *seats, size_t count, uint32_t first);

#endif
