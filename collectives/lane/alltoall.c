/*
 * alltoall.c: each member of a lane gives a block to each other member; called by the alltoall of a
 * group. In each step a member sends to one member and receives from one; in the next step these
 * are other members. No two members send to the same member in a step, so no member waits for
 * another's turn. Every two members of the lane need a link.
 */
#include "collectives/lane/lane_internal.h"

/* Exchanges one block with each other member. In the step of distance d a member sends to the
 * member d places after it in the row, and receives from the member d places before it. So all
 * members send and receive in each step, and each step has its own number. */
int lane_alltoall(struct lane *lane, const uint8_t *const *out, const size_t *out_lengths,
                  uint8_t *const *in, const size_t *in_lengths)
{
    uint32_t first = lane_take(lane, lane->size);
    int rc = 0;

    if (lane->size == 1)
        return 0;
    for (uint32_t distance = 1; distance < lane->size && !rc; distance++) {
        uint32_t to = (lane->index + distance) % lane->size;
        uint32_t from = (lane->index + lane->size - distance) % lane->size;
        const struct exchange exchange = {
            .to = lane->ranks[to],
            .from = lane->ranks[from],
            .out = out[to],
            .in = in[from],
            .out_bytes = out_lengths[to],
            .in_bytes = in_lengths[from],
        };

        rc = traffic_exchange(lane->traffic, lane_tag(lane, first + distance), &exchange);
    }
    return lane_settle(lane, rc);
}
