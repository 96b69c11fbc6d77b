/*
 * allgather.c: every member of a lane gets the block of every other member; called by the allgather
 * of a group.
 *
 * Small blocks are copied into one buffer and are sent in log2(size) steps (lane_gather). Large
 * blocks go around the row without a copy: in each step a member passes on the block that came in
 * the step before.
 */
#include "base/mem.h"
#include "collectives/lane/lane_internal.h"

#include <string.h>

/* blocks are small if the blocks of all members together have at most this many bytes */
#define SMALL_BYTES ((size_t)64 * 1024)

/* Returns the index of the member whose block lane_gather puts at `place` in `packed`. Place 0 has
 * our own block, place 1 the block of the member before us in the row, and so on. */
static uint32_t packed_at(const struct lane *lane, uint32_t place)
{
    return (lane->index + lane->size - place) % lane->size;
}

/* Gives every member the blocks of all members (lane.h). Small blocks and large ones are moved by
 * different algorithms; both end with lane_settle, which waits for all messages, because the caller
 * may use the blocks' memory after the return. */
int lane_allgather(struct lane *lane, uint8_t *const *blocks, const size_t *lengths)
{
    size_t left = SMALL_BYTES, *packed_lengths;
    uint8_t *packed;
    bool small = true;
    uint32_t first;
    int rc = 0;

    if (lane->size == 1)
        return 0;
    /* `left` wraps around at the first length that is too large; then the loop ends */
    for (uint32_t i = 0; i < lane->size && small; i++) {
        small = lengths[i] <= left;
        left -= lengths[i];
    }
    if (!small) {
        /* Large blocks go around the row: in each step this member sends the block that it got in
         * the step before, and receives another block from the member before it. */
        first = lane_take(lane, lane->size - 1);
        for (uint32_t step = 0; step < lane->size - 1 && !rc; step++) {
            uint32_t out = (lane->index + lane->size - step) % lane->size;
            uint32_t in = (out + lane->size - 1) % lane->size;
            const struct exchange exchange = {
                .to = lane_after(lane, 1),
                .from = lane_before(lane, 1),
                .out = blocks[out],
                .in = blocks[in],
                .out_bytes = lengths[out],
                .in_bytes = lengths[in],
            };

            rc = traffic_exchange(lane->traffic, lane_tag(lane, first + step), &exchange);
        }
        return lane_settle(lane, rc);
    }
    /* Small blocks are packed: our own block first, then the block of the member before us, and so
     * on back along the row (packed_at). lane_gather collects them in that order. */
    rc = HVD_E_NOMEM;
    packed_lengths = mem_zalloc_array(lane->size, sizeof(*packed_lengths));
    packed = mem_alloc(SMALL_BYTES);
    if (packed && packed_lengths) {
        for (uint32_t i = 0; i < lane->size; i++)
            packed_lengths[i] = lengths[packed_at(lane, i)];
        if (packed_lengths[0])
            memcpy(packed, blocks[lane->index], packed_lengths[0]);
        rc = lane_gather(lane, packed, packed_lengths);
    }
    if (!rc) {
        const uint8_t *from = packed + packed_lengths[0];

        for (uint32_t i = 1; i < lane->size; i++) {
            if (packed_lengths[i])
                memcpy(blocks[packed_at(lane, i)], from, packed_lengths[i]);
            from += packed_lengths[i];
        }
    }
    rc = lane_settle(lane, rc);
    mem_free(packed);
    mem_free(packed_lengths);
    return rc;
}
