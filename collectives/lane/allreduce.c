/*
 * allreduce.c: lane_allreduce and lane_reducescatter. Each calls the algorithm that the members
 * have agreed on. With every algorithm all members get the same result, bit for bit: either one
 * member reduces a number and sends it to the others, or all members reduce it in the same order.
 */
#include "base/panic.h"
#include "collectives/lane/lane_internal.h"

static int (*const algorithms[])(struct numbers *numbers) = {
    [LANE_GATHER] = lane_gather_numbers, [LANE_DOUBLE] = lane_double_numbers,
    [LANE_HALVE] = lane_halve_numbers,   [LANE_RING] = lane_ring_numbers,
    [LANE_ORDER] = lane_order_numbers,
};

/* Describes the numbers that an algorithm of a lane reduces. The caller sets `count`, and `counts`
 * for a reducescatter. */
static struct numbers numbers_for(struct lane *lane, void *work, void *out,
                                  const struct reduction *how)
{
    return (struct numbers){
        .lane = lane,
        .work = work,
        .out = out,
        .how = how,
        .bytes = reduce_type_bytes(how->type),
        .work_bytes = reduce_work_bytes(how),
    };
}

/* Reduces the numbers of all members with this algorithm; lane.h describes the arguments. A member
 * that is alone in the lane only turns its own numbers from the work type into results. */
int lane_allreduce(struct lane *lane, void *work, void *out, size_t count,
                   const struct reduction *how, enum lane_algorithm algorithm)
{
    struct numbers numbers = numbers_for(lane, work, out, how);

    ASSERT((size_t)algorithm < ARRAY_SIZE(algorithms));
    numbers.count = count;
    if (!count)
        return 0;
    if (lane->size > 1)
        return algorithms[algorithm](&numbers);
    reduce_narrow(out, work, count, how);
    return 0;
}

/* As lane_allreduce, but member i gets only counts[i] numbers of the result. A member that is alone
 * in the lane gets them all. */
int lane_reducescatter(struct lane *lane, void *work, void *out, const size_t *counts,
                       const struct reduction *how, enum lane_algorithm algorithm)
{
    struct numbers numbers = numbers_for(lane, work, out, how);

    numbers.counts = counts;
    for (uint32_t i = 0; i < lane->size; i++)
        numbers.count += counts[i];
    if (!numbers.count)
        return 0;
    if (lane->size > 1)
        return algorithm == LANE_ORDER ? lane_order_scatter(&numbers) : lane_ring_scatter(&numbers);
    reduce_narrow(out, work, numbers.count, how);
    return 0;
}
