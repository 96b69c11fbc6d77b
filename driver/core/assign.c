/*
 * assign.c: ranks and sizes as arithmetic. slots.c asks for the places of the workers that it
 * launches, change.c for the number of members that a round keeps. No function here reads the core.
 */
#include "driver/core/assign.h"

#include "base/panic.h"

/* Returns how many members that have to go must stay in the next round, because otherwise it would
 * have fewer than min_np members. change.c asks when it chooses the members. */
size_t assign_kept(size_t staying, size_t joining, size_t min_np)
{
    return staying + joining < min_np ? min_np - staying - joining : 0;
}

/* Computes ranks and sizes for slots that get a worker. The slots of one host are neighbours in
 * `list`. `first` is the rank of the first slot. The cross rank of a slot is the number of earlier
 * hosts that have a slot of the same local rank. */
void assign_places(struct assignment *list, size_t count, uint32_t first)
{
    /* The index is a local rank; the value is the number of hosts so far that have a slot of this
     * local rank. */
    uint32_t hosts_with[LIMIT_SLOTS_PER_HOST] = { 0 };

    for (size_t from = 0, end; from < count; from = end) {
        for (end = from; end < count && list[end].host == list[from].host;)
            end++;
        ASSERT(end - from <= LIMIT_SLOTS_PER_HOST);
        for (size_t i = from; i < end; i++)
            list[i].place = (struct place){
                .rank = first + (uint32_t)i,
                .size = first + (uint32_t)count,
                .local_rank = (uint32_t)(i - from),
                .local_size = (uint32_t)(end - from),
                .cross_rank = hosts_with[i - from]++,
            };
    }
    for (size_t i = 0; i < count; i++)
        list[i].place.cross_size = hosts_with[list[i].place.local_rank];
}
