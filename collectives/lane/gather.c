/*
 * gather.c: every member gets the blocks of all members in log2(size) steps; each step doubles the
 * number of blocks that a member has. allgather.c calls it for small blocks. The algorithm
 * LANE_GATHER uses it too: each member then reduces all blocks alone, in the order of the row.
 *
 * lane_barrier has the same steps and sends no blocks. For both the opening message may have
 * carried the first step already (lane_open_with).
 */
#include "collectives/lane/lane_internal.h"

#include <string.h>

#define STEPS 32 /* the steps double the blocks of a member: enough for 2^32 members */

/* Returns the bytes of the first `count` blocks together. */
static size_t gather_sum_of(const size_t *lengths, uint32_t count)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += lengths[i];
    return sum;
}

/* Collects the blocks of all members in `packed`. The order of `packed` and `lengths`: the own
 * block first, then that of the member before this one, and so on back along the row. A member that
 * has `have` blocks sends its first `more` blocks to the member `have` places after it, and appends
 * those of the member `have` places before it. The caller waits for the sends (lane_settle). */
int lane_gather(struct lane *lane, uint8_t *packed, const size_t *lengths)
{
    uint32_t step = lane_take(lane, STEPS);
    int rc = 0;

    for (uint32_t have = 1; have < lane->size && !rc; have *= 2, step++) {
        uint32_t more = have < lane->size - have ? have : lane->size - have;
        uint8_t *behind = packed + gather_sum_of(lengths, have);
        struct exchange exchange = {
            .to = lane_after(lane, have),
            .from = lane_before(lane, have),
            .out = packed,
            .in = behind,
            .out_bytes = gather_sum_of(lengths, more),
            .in_bytes = gather_sum_of(lengths + have, more),
        };

        /* The opening message of the operation may have carried the blocks of the first step
         * already: ours to the next member, and the block of the member before us to us. */
        if (step == 0 && lane->said.takes_first)
            exchange.out_bytes = 0;
        if (step == 0 && lane->heard.takes_first) {
            if (lane->heard.length != lengths[1])
                return HVD_E_MISMATCH;
            if (lengths[1])
                memcpy(behind, lane->heard.first, lengths[1]);
            exchange.in_bytes = 0;
        }
        rc = traffic_exchange(lane->traffic, lane_tag(lane, step), &exchange);
    }
    return rc;
}

/* The algorithm LANE_GATHER: every member gets the numbers of all members, and reduces them by
 * itself. The scratch memory holds the lengths of the blocks and, after them, the blocks. */
int lane_gather_numbers(struct numbers *numbers)
{
    uint32_t size = numbers->lane->size, index = numbers->lane->index;
    size_t width = numbers->count * numbers->work_bytes;
    int rc = numbers_begin(numbers, size * (sizeof(size_t) + width));
    size_t *lengths = (size_t *)(void *)numbers->scratch;
    uint8_t *blocks;

    if (rc)
        return numbers_end(numbers, rc);
    blocks = numbers->scratch + size * sizeof(*lengths);
    for (uint32_t i = 0; i < size; i++)
        lengths[i] = width;
    memcpy(blocks, numbers->work, width);
    rc = lane_gather(numbers->lane, blocks, lengths);

    /* `blocks` begins with our own block on each member; all members still reduce in the order of
     * the row */
    for (uint32_t i = 0; i < size && !rc; i++) {
        const uint8_t *block = blocks + (size_t)((index + size - i) % size) * width;

        if (i == 0)
            memcpy(numbers->work, block, width);
        else
            reduce_two(numbers->work, numbers->work, block, numbers->count, numbers->how);
    }
    if (!rc)
        reduce_narrow(numbers->out, numbers->work, numbers->count, numbers->how);
    return numbers_end(numbers, rc);
}

/* Waits until all members of the lane have called lane_barrier. In the step of distance d a member
 * gets a message from the member d places before it, which has already got messages itself. So
 * after this step the member knows that the 2d - 1 members before it have called lane_barrier. */
int lane_barrier(struct lane *lane)
{
    uint8_t said = 0, heard = 0;
    uint32_t step = lane_take(lane, STEPS);
    bool opening = step == 0;
    int rc = 0;

    if (lane->size == 1)
        return 0;
    for (uint32_t distance = 1; distance < lane->size && !rc; distance *= 2) {
        const struct exchange exchange = {
            .to = lane_after(lane, distance),
            .from = lane_before(lane, distance),
            .out = &said,
            .in = &heard,
            /* one byte; none if the opening message of the operation was the message of this step
             */
            .out_bytes = !(opening && lane->said.takes_first),
            .in_bytes = !(opening && lane->heard.takes_first),
        };

        rc = traffic_exchange(lane->traffic, lane_tag(lane, step++), &exchange);
        opening = false;
    }
    return lane_settle(lane, rc);
}
