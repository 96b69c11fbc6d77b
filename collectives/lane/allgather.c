#include "collectives/lane/inside.h"

/* Around the row: each passes on what it has got the step before. */
static int pass_around(struct lane *lane, uint8_t *const *blocks, const size_t *lengths)
{
    uint32_t first = lane_take(lane, lane->size - 1);
    int rc = 0;

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

int lane_allgather(struct lane *lane, uint8_t *const *blocks, const size_t *lengths)
{
    return lane->size > 1 ? pass_around(lane, blocks, lengths) : 0;
}
