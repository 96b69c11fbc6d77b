#include "collectives/lane/inside.h"

/* At each step everybody has another partner, and nobody the same one. */
static int trade_with_all(struct lane *lane, const uint8_t *const *out, const size_t *out_lengths,
                          uint8_t *const *in, const size_t *in_lengths)
{
    uint32_t first = lane_take(lane, lane->size);
    int rc = 0;

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

int lane_alltoall(struct lane *lane, const uint8_t *const *out, const size_t *out_lengths,
                  uint8_t *const *in, const size_t *in_lengths)
{
    return lane->size > 1 ? trade_with_all(lane, out, out_lengths, in, in_lengths) : 0;
}
