#include "collectives/lane/inside.h"

#define STEPS 32

/* After the step of distance d everybody has heard, directly or not, of the 2d - 1 before it. The
 * first step may have been the opening. */
static int wait_for_all(struct lane *lane)
{
    uint8_t said = 0, heard = 0;
    uint32_t step = lane_take(lane, STEPS);
    bool opening = step == 0;
    int rc = 0;

    for (uint32_t distance = 1; distance < lane->size && !rc; distance *= 2) {
        const struct exchange exchange = {
            .to = lane_after(lane, distance),
            .from = lane_before(lane, distance),
            .out = &said,
            .in = &heard,
            .out_bytes = !(opening && lane->said.takes_first),
            .in_bytes = !(opening && lane->heard.takes_first),
        };

        rc = traffic_exchange(lane->traffic, lane_tag(lane, step++), &exchange);
        opening = false;
    }
    return lane_settle(lane, rc);
}

int lane_barrier(struct lane *lane)
{
    return lane->size > 1 ? wait_for_all(lane) : 0;
}
