/*
 * broadcast.c: the bytes of one member of a lane reach all other members; called by the broadcast
 * of a group.
 *
 * The members form a binomial tree; `place` is a member's distance from the root in the row. A
 * member receives the message in segments from its parent. It sends each segment on to its children
 * as soon as the segment has arrived. The farthest child comes first, because that child has the
 * most members below it.
 */
#include "collectives/lane/lane_internal.h"

/* Brings the `length` bytes of the member with index `root` to all members of the lane. `place` is
 * this member's distance from the root in the row, 0 for the root itself. The place of its parent
 * is this member's place without the lowest set bit; the children are at the smaller powers of two
 * after this member. */
int lane_broadcast(struct lane *lane, void *bytes, size_t length, uint32_t root)
{
    struct traffic *traffic = lane->traffic;
    uint64_t tag = lane_tag(lane, lane_take(lane, 1));
    uint32_t place = (lane->index + lane->size - root) % lane->size, distance = 1, parent;
    uint32_t children[LANE_PARTNERS_MAX / 2];
    size_t child_count = 0;
    /* for each segment of the window: the index that traffic_receive has given for it */
    size_t indices[TRAFFIC_WINDOW] = { 0 };
    size_t segments;
    int rc = 0;

    if (lane->size == 1)
        return 0;
    while (distance < lane->size && !(place & distance))
        distance *= 2;
    parent = lane_before(lane, distance); /* not used by the root */
    for (distance /= 2; distance; distance /= 2) {
        if (place + distance < lane->size)
            children[child_count++] = lane_after(lane, distance);
    }
    segments = traffic_segments(traffic, length);
    for (size_t i = 0; i < segments + TRAFFIC_WINDOW && !rc; i++) {
        /* the segment to send on; wraps around while i is less than TRAFFIC_WINDOW, and is not used
         * then */
        size_t done = i - TRAFFIC_WINDOW;

        /* Send the oldest segment of the window on to the children. Before that, wait for the
         * segment. With many children a send may have waited for it already, to free an entry
         * (traffic.c); then the wait ends at once. */
        if (i >= TRAFFIC_WINDOW && done < segments) {
            if (place)
                rc = traffic_await(traffic, indices[done % TRAFFIC_WINDOW]);
            for (size_t child = 0; child < child_count && !rc; child++)
                rc = traffic_send(traffic, children[child], tag,
                                  (uint8_t *)bytes + done * traffic->segment_bytes,
                                  traffic_segment(traffic, length, done));
        }
        if (!rc && place && i < segments)
            rc =
                traffic_receive(traffic, parent, tag, (uint8_t *)bytes + i * traffic->segment_bytes,
                                traffic_segment(traffic, length, i), &indices[i % TRAFFIC_WINDOW]);
    }
    return lane_settle(lane, rc);
}
