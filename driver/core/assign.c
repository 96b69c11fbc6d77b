#include "driver/core/assign.h"

#include "base/panic.h"

size_t assign_kept(size_t staying, size_t joining, size_t min_np)
{
    return staying + joining < min_np ? min_np - staying - joining : 0;
}

static size_t end_of_host(const struct assignment *seats, size_t count, size_t from)
{
    size_t end = from;

    while (end < count && seats[end].host == seats[from].host)
        end++;
    return end;
}

void assign_places(struct assignment *seats, size_t count, uint32_t first)
{
    uint32_t hosts_with[LIMIT_SLOTS_PER_HOST] = { 0 }; /* that have a seat of this local rank */

    for (size_t from = 0, end; from < count; from = end) {
        end = end_of_host(seats, count, from);
        ASSERT(end - from <= LIMIT_SLOTS_PER_HOST);
        for (size_t i = from; i < end; i++)
            seats[i].place = (struct place){
                .rank = first + (uint32_t)i,
                .size = first + (uint32_t)count,
                .local_rank = (uint32_t)(i - from),
                .local_size = (uint32_t)(end - from),
                .cross_rank = hosts_with[i - from]++,
            };
    }
    for (size_t i = 0; i < count; i++)
        seats[i].place.cross_size = hosts_with[seats[i].place.local_rank];
}
