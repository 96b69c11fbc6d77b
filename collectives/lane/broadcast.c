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

static int pass_segment(struct lane *lane, const struct tree *tree, uint64_t tag, uint8_t *bytes,
                        size_t length)
{
    size_t place;
    int rc = 0;

    if (tree->parent != TRAFFIC_NOBODY) {
        rc = traffic_receive(lane->traffic, tree->parent, tag, bytes, length, &place);
        if (!rc)
            rc = traffic_await(lane->traffic, place);
    }
    for (size_t i = 0; i < tree->child_count && !rc; i++)
        rc = traffic_send(lane->traffic, tree->children[i], tag, bytes, length);
    return rc;
}

int lane_broadcast(struct lane *lane, void *bytes, size_t length, uint32_t root)
{
    uint64_t tag = lane_tag(lane, lane_take(lane, 1));
    struct tree tree;
    int rc = 0;

    if (lane->size == 1)
        return 0;
    tree = tree_of(lane, root);
    for (size_t at = 0; at < length && !rc; at += SEGMENT_BYTES)
        rc = pass_segment(lane, &tree, tag, (uint8_t *)bytes + at,
                          length - at < SEGMENT_BYTES ? length - at : SEGMENT_BYTES);
    return lane_settle(lane, rc);
}
