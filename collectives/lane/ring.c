/*
 * ring.c: LANE_RING. The numbers are cut into one part for each member. In each step a member
 * receives a part from the member before it, reduces its own numbers into that part, and sends it
 * to the next member in the following step. After size - 1 steps each member has one reduced part
 * (a reduce-scatter ends here); for an allreduce the results go around the row in size - 1 more
 * steps.
 */
#include "base/panic.h"
#include "collectives/lane/lane_internal.h"

/* Describes one step of the ring: sends part number `out` to the next member of the row, and
 * receives part number `out` - 1 from the member before us. */
static struct merge ring_step(const struct numbers *numbers, uint32_t out)
{
    const struct lane *lane = numbers->lane;
    uint32_t in = (out + lane->size - 1) % lane->size;

    return (struct merge){
        .to = lane_after(lane, 1),
        .from = lane_before(lane, 1),
        .out_at = numbers_at(numbers, out),
        .out_count = numbers_of(numbers, out),
        .in_at = numbers_at(numbers, in),
        .in_count = numbers_of(numbers, in),
        .theirs_first = true,
    };
}

/* Makes the size - 1 reducing steps of the ring, with step numbers from `first` on. In the last
 * step our own part arrives, reduced over all other members. Afterwards `to` holds our own part of
 * the result, in the result's type. The caller calls numbers_end, also after a failure. */
static int reduce_around(struct numbers *numbers, uint32_t first, uint8_t *to)
{
    struct lane *lane = numbers->lane;
    uint32_t own = lane->index;
    size_t largest = 0;
    int rc;

    ASSERT(lane->size > 1);
    for (uint32_t i = 0; i < lane->size; i++) {
        size_t count = numbers_of(numbers, i);

        largest = count > largest ? count : largest;
    }
    rc = numbers_begin(numbers, numbers_window(numbers, largest));
    for (uint32_t step = 0; step < lane->size - 1 && !rc; step++) {
        /* part own - 1 - step is sent; 2 * size keeps the number positive */
        const struct merge merge =
            ring_step(numbers, (own + 2 * lane->size - 1 - step) % lane->size);

        rc = numbers_merge(numbers, first + step, &merge);
    }
    rc = lane_settle(lane, rc);
    if (!rc)
        reduce_narrow(to, numbers->work + numbers_at(numbers, own) * numbers->work_bytes,
                      numbers_of(numbers, own), numbers->how);
    return rc;
}

/* LANE_RING: each member reduces its own part (reduce_around). Then the results go around the row:
 * in each step a member sends on the part that it got in the step before. */
int lane_ring_numbers(struct numbers *numbers)
{
    struct lane *lane = numbers->lane;
    uint32_t steps = lane->size - 1, first = lane_take(lane, 2 * steps);
    int rc = reduce_around(numbers, first,
                           numbers->out + numbers_at(numbers, lane->index) * numbers->bytes);

    for (uint32_t step = 0; step < steps && !rc; step++) {
        const struct merge pass =
            ring_step(numbers, (lane->index + lane->size - step) % lane->size);

        rc = numbers_pass(numbers, first + steps + step, &pass);
    }
    return numbers_end(numbers, rc);
}

/* The reduce-scatter of LANE_RING: the reducing steps alone, which leave each member its own part.
 */
int lane_ring_scatter(struct numbers *numbers)
{
    uint32_t first = lane_take(numbers->lane, numbers->lane->size - 1);

    return numbers_end(numbers, reduce_around(numbers, first, numbers->out));
}
