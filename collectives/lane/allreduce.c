#include "base/panic.h"
#include "collectives/lane/inside.h"

/* Every number is reduced on one member only, in one order, and then passed on: so it is the same
 * on all, bit for bit. Or on all, in the same order. */

static int (*const ways[])(struct numbers *numbers) = {
    [LANE_GATHER] = lane_gather_numbers, [LANE_DOUBLE] = lane_double_numbers,
    [LANE_HALVE] = lane_halve_numbers,   [LANE_RING] = lane_ring_numbers,
    [LANE_ORDER] = lane_order_numbers,
};

int lane_allreduce(struct lane *lane, void *work, void *out, size_t count,
                   const struct reduction *how, enum lane_way way)
{
    struct numbers numbers = {
        .lane = lane,
        .work = work,
        .out = out,
        .count = count,
        .how = how,
        .bytes = reduce_type_bytes(how->type),
        .work_bytes = reduce_work_bytes(how),
    };

    ASSERT((size_t)way < ARRAY_SIZE(ways));
    if (!count)
        return 0;
    if (lane->size > 1)
        return ways[way](&numbers);
    reduce_narrow(out, work, count, how);
    return 0;
}

int lane_reducescatter(struct lane *lane, void *work, void *out, const size_t *counts,
                       const struct reduction *how, enum lane_way way)
{
    struct numbers numbers = {
        .lane = lane,
        .work = work,
        .out = out,
        .counts = counts,
        .how = how,
        .bytes = reduce_type_bytes(how->type),
        .work_bytes = reduce_work_bytes(how),
    };

    for (uint32_t i = 0; i < lane->size; i++)
        numbers.count += counts[i];
    if (!numbers.count)
        return 0;
    if (lane->size > 1)
        return way == LANE_ORDER ? lane_order_scatter(&numbers) : lane_ring_scatter(&numbers);
    reduce_narrow(out, work, numbers.count, how);
    return 0;
}
