#include "collectives/lane/inside.h"

/* A tree with the root at 0: each passes on, to those at the distance of a power of two, what has
 * come to it; the farthest first, as they have more to pass on. */
struct tree {
    uint32_t parent; /* TRAFFIC_NOBODY: the root */
    uint32_t children[LANE_PARTNERS_MAX / 2];
    size_t child_count;
};

static struct tree tree_of(const struct lane *lane, uint32_t root)
{
    uint32_t place = (lane->index + lane->size - root) % lane->size;
    struct tree tree = { .parent = TRAFFIC_NOBODY };
    uint32_t distance = 1;

    while (distance < lane->size && !(place & distance))
        distance *= 2;
    if (place)
        tree.parent = lane_before(lane, distance);
    for (distance /= 2; distance; distance /= 2) {
        if (place + distance < lane->size)
            tree.children[tree.child_count++] = lane_after(lane, distance);
    }
    return tree;
}

struct passing {
    struct traffic *traffic;
    struct tree tree;
    uint64_t tag;
    uint8_t *bytes;
    size_t length;
    size_t places[TRAFFIC_WINDOW]; /* of segments that are to come */
};

static int expect_segment(struct passing *passing, size_t segment)
{
    struct traffic *traffic = passing->traffic;

    if (passing->tree.parent == TRAFFIC_NOBODY)
        return 0;
    return traffic_receive(traffic, passing->tree.parent, passing->tag,
                           passing->bytes + segment * traffic->segment_bytes,
                           traffic_segment(traffic, passing->length, segment),
                           &passing->places[segment % TRAFFIC_WINDOW]);
}

static int pass_segment(struct passing *passing, size_t segment)
{
    struct traffic *traffic = passing->traffic;
    int rc = 0;

    if (passing->tree.parent != TRAFFIC_NOBODY)
        rc = traffic_await(traffic, passing->places[segment % TRAFFIC_WINDOW]);
    for (size_t i = 0; i < passing->tree.child_count && !rc; i++)
        rc = traffic_send(traffic, passing->tree.children[i], passing->tag,
                          passing->bytes + segment * traffic->segment_bytes,
                          traffic_segment(traffic, passing->length, segment));
    return rc;
}

/* With many children a place may have been awaited before its turn (traffic.c): then what has come
 * to it is there already. */
static int pass_all(struct passing *passing)
{
    size_t segments = traffic_segments(passing->traffic, passing->length);
    int rc = 0;

    for (size_t i = 0; i < segments + TRAFFIC_WINDOW && !rc; i++) {
        if (i >= TRAFFIC_WINDOW && i - TRAFFIC_WINDOW < segments)
            rc = pass_segment(passing, i - TRAFFIC_WINDOW);
        if (!rc && i < segments)
            rc = expect_segment(passing, i);
    }
    return rc;
}

int lane_broadcast(struct lane *lane, void *bytes, size_t length, uint32_t root)
{
    uint32_t step = lane_take(lane, 1);
    struct passing passing = { .traffic = lane->traffic, .bytes = bytes, .length = length };

    if (lane->size == 1)
        return 0;
    passing.tag = lane_tag(lane, step);
    passing.tree = tree_of(lane, root);
    return lane_settle(lane, pass_all(&passing));
}
