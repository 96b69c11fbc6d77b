#include "collectives/operation.h"
#include "collectives/reduce/reduce.h"

/* A tree with the root at 0: each passes on, to those at the distance of a power of two, what has
 * come to it; the farthest first, as they have more to pass on. */
struct tree {
    uint32_t parent; /* MEET_NOBODY: the root */
    uint32_t children[PARTNERS_MAX];
    size_t child_count;
};

static struct tree tree_of(const struct coll *coll, uint32_t root)
{
    uint32_t place = (coll->rank + coll->size - root) % coll->size;
    struct tree tree = { .parent = MEET_NOBODY };
    uint32_t distance = 1;

    while (distance < coll->size && !(place & distance))
        distance *= 2;
    if (place)
        tree.parent = (coll->rank + coll->size - distance) % coll->size;
    for (distance /= 2; distance; distance /= 2) {
        if (place + distance < coll->size)
            tree.children[tree.child_count++] = (coll->rank + distance) % coll->size;
    }
    return tree;
}

static int pass_segment(struct coll *coll, const struct tree *tree, uint8_t *bytes, size_t length)
{
    uint64_t tag = coll_tag(coll, 0);
    size_t place;
    int rc = 0;

    if (tree->parent != MEET_NOBODY) {
        rc = coll_receive(coll, tree->parent, tag, bytes, length, &place);
        if (!rc)
            rc = coll_await(coll, place);
    }
    for (size_t i = 0; i < tree->child_count && !rc; i++)
        rc = coll_send(coll, tree->children[i], tag, bytes, length);
    return rc;
}

static int pass_all(struct coll *coll, uint32_t root, uint8_t *bytes, size_t length)
{
    const struct tree tree = tree_of(coll, root);
    int rc = coll_open_with(coll, NULL, 0, NULL);

    for (size_t at = 0; at < length && !rc; at += SEGMENT_BYTES)
        rc = pass_segment(coll, &tree, bytes + at,
                          length - at < SEGMENT_BYTES ? length - at : SEGMENT_BYTES);
    return rc;
}

int coll_broadcast(struct coll *coll, void *buf, size_t count, hvd_dtype type, uint32_t root,
                   struct hvd_err *err)
{
    const struct coll_call call = {
        .kind = COLL_BROADCAST, .type = (uint32_t)type, .root = root, .count = count
    };
    size_t bytes = reduce_type_bytes(type);
    int rc;

    if (!bytes)
        return coll_refuse(coll, err, "broadcast: no such type");
    if (root >= coll->size)
        return coll_refuse(coll, err, "broadcast: there is no rank %u among %u", root, coll->size);
    if (count > SIZE_MAX / 2 / bytes || (count && !buf))
        return coll_refuse(coll, err, "broadcast: no memory for %zu %s", count,
                           reduce_type_name(type));
    rc = coll_begin(coll, &call, err);
    if (rc)
        return rc;
    if (coll->size > 1)
        rc = pass_all(coll, root, buf, count * bytes);
    return coll_end(coll, rc, err);
}
