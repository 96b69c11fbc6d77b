/*
 * allreduce_lane.c: an allreduce along a lane without a board: every member is alone on its host,
 * or the sum between hosts is made in the order of ranks (--fixed-order), over links between all
 * members. Also here: how every allreduce between hosts opens its lane.
 *
 * The numbers are reduced in blocks, one after another: a copy in progress cannot be cancelled, so
 * no copy is longer than a block. Several buffers are packed into blocks of --fusion-threshold-mb.
 * The size of a block depends only on values that all members know, so a rank that has joined uses
 * the same size.
 */
#include "collectives/allreduce_internal.h"

#define FUSION_LEAST_BYTES ((size_t)4 * 1024)         /* a smaller block is not worth a message */
#define BLOCK_BYTES        ((size_t)64 * 1024 * 1024) /* longest block of a single buffer */

/* Writes the neutral numbers of a rank that has joined (allreduce_internal.h). They are no numbers
 * of the program, so the prescale is left out. */
void allreduce_give_nothing(const struct allreduce *all, void *to, size_t count,
                            struct reduction *ret_how)
{
    *ret_how = all->how;
    ret_how->prescale = 1;
    reduce_identity(to, count, ret_how);
}

/* Opens the lane (allreduce_internal.h). `along`: the numbers go along in the opening message; but
 * a rank that has joined sends none, as it learns of the operation only then. */
int allreduce_open_lane(const struct allreduce *all, const void *work, size_t count)
{
    bool along = allreduce_opens_late(all->operation) && all->pieces;

    return operation_open_lane(all->operation, along ? work : NULL,
                               along ? count * all->work_bytes : 0);
}

/* Reduces the numbers block by block along the lane. A block is processed in `work`, which has room
 * for the block in the work type and, after that, in its own type. Without `work` (one buffer, in
 * its own type) the block is processed in place. */
static int reduce_blocks(struct allreduce *all, struct lane *lane, enum lane_algorithm algorithm)
{
    struct coll *coll = all->operation->coll;
    size_t fusion = coll->engine ? coll->engine->options.fusion_bytes : 0, block = BLOCK_BYTES;
    bool is_one = allreduce_is_one(all);
    uint8_t *work = NULL;
    int rc = 0;

    /* several buffers: the user's --fusion-threshold-mb says how much is sent together */
    if (allreduce_fingerprint(all->operation)->in_parts) {
        block = fusion ? fusion : COLL_FUSION_BYTES;
        block = block > FUSION_LEAST_BYTES ? block : FUSION_LEAST_BYTES;
    }
    block /= all->work_bytes; /* from now on `block` counts numbers, not bytes */
    block = all->count < block ? all->count : block ? block : 1;
    if ((allreduce_is_apart(all) || !is_one) && block) {
        work = coll_scratch(coll, block * (all->work_bytes + all->bytes));
        if (!work)
            return HVD_E_NOMEM;
    }
    for (size_t from = 0; from < all->count && !rc; from += block) {
        size_t count = all->count - from < block ? all->count - from : block;
        uint8_t *out = is_one ? pieces_out(all->pieces, from) : work + count * all->work_bytes;
        const uint8_t *in = is_one ? pieces_in(all->pieces, from) : out;
        struct reduction how = all->how;

        if (!all->pieces)
            allreduce_give_nothing(all, out, count, &how);
        else if (!is_one)
            pieces_read(all->pieces, from, count, out);
        reduce_widen(work ? work : out, in, count, &how);
        if (algorithm != LANE_ORDER)
            rc = allreduce_open_lane(all, work ? work : out, count);
        if (!rc)
            rc = lane_allreduce(lane, work ? work : out, out, count, &all->how, algorithm);
        if (!rc && all->pieces && !is_one)
            pieces_write(all->pieces, from, count, out);
    }
    return rc;
}

/* Runs an allreduce along a lane alone: every member is on a host of its own, or --fixed-order
 * demands the order of ranks. With --fixed-order the numbers go over the mesh, which has a link
 * between each two members. */
int allreduce_along_lane(struct allreduce *all)
{
    struct coll_group *group = all->operation->group;
    struct fingerprint theirs;
    int rc;

    /* the opening has used one chunk of the board */
    if (group->board)
        group->turn = all->operation->turn + 1;
    if (!operation_is_ordered(all->operation))
        return reduce_blocks(all, &group->lane, all->algorithm.lane);
    rc = lane_open(&group->mesh_lane, &all->operation->fingerprint, &theirs);
    if (!rc)
        rc = reduce_blocks(all, &group->mesh_lane, LANE_ORDER);
    return lane_close(&group->mesh_lane, rc);
}
