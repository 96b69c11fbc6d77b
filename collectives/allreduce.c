/*
 * allreduce.c: one allreduce from its opening to the result, by one of five algorithms.
 *
 *   allreduce_board.c: over the board of each host, in chunks (the pipeline is in stages.c)
 *     one host, small   stage ──► each member reduces all stages by itself ──► out
 *     one host          stage ──► member i reduces part i of all stages ──► result ──► out
 *     several hosts     stage ──► owner i reduces part i of its host, then along lane i
 *                             ──► result ──► out
 *   allreduce_direct.c: one host, all buffers are from hvd_alloc, none is copied to a stage
 *                       member i reduces part i out of all buffers ──► each takes the other parts
 *   allreduce_lane.c: every member is alone on its host, or --fixed-order: along a lane, in blocks
 *
 * Every number is reduced on one member only, in one order, and then passed on; or on all members
 * in the same order. So the result is the same on all members, bit for bit.
 */
#include "collectives/allreduce_internal.h"

/* Collects the facts of an allreduce. The caller sets `pieces`. A rank that has called hvd_join
 * gives no numbers, so there `pieces` stays NULL. */
static struct allreduce allreduce_of(struct operation *operation)
{
    struct allreduce all = { .operation = operation,
                             .how = allreduce_reduction(operation),
                             .count = allreduce_fingerprint(operation)->count,
                             .algorithm = allreduce_algorithm(operation) };

    all.bytes = reduce_type_bytes(all.how.type);
    all.work_bytes = reduce_work_bytes(&all.how);
    return all;
}

/* true: the operation uses no board, the memory that the members on one host share. Either every
 * member is alone on its host, or --fixed-order is given and there are several hosts. */
static bool is_without_board(const struct operation *operation)
{
    return !operation->group->board || operation_is_ordered(operation);
}

/* Runs the chunks of an allreduce after the opening. In the opening each member has told whether
 * the others can read its buffers in place. If all buffers can be read in place, the stages are not
 * needed. Otherwise all members use their stages. `begun` is true: this member has put its first
 * chunk on its stage before the opening. A member that had offered its buffers instead puts its
 * first chunk on its stage now; one more step of the board publishes these chunks. */
static int go_on_stages(struct allreduce *all, const struct stages *stages, bool begun)
{
    struct operation *operation = all->operation;
    enum direct_extent extent = direct_offered(operation);
    int rc = 0;

    if (extent == DIRECT_ALL)
        return direct_run(all);
    if (extent == DIRECT_SOME) {
        if (!begun)
            stages_begin(operation, stages);
        rc = board_step(operation->group->board);
    }
    return rc ? rc : stages_go_on(operation, stages);
}

/* Runs an allreduce of this rank. Without a board the numbers go along the lane, a chain of links
 * between the members. With a board each member puts its numbers on its stage, its own part of the
 * board. `in_parts`: all members are on one host, and each reduces a part of the numbers.
 * `offered`: the other members may read our buffers in place, so no copy to our stage is needed.
 * Buffers are offered only with `in_parts`, and only if both are in memory of hvd_alloc. */
int allreduce_run(struct operation *operation)
{
    struct allreduce all = allreduce_of(operation);
    bool in_parts = operation->group->group.host_count == 1 && !all.algorithm.alone;
    bool offered = false;
    struct pieces pieces;
    struct stages stages;
    uint32_t last; /* only the call of a rank that has called hvd_join uses it */
    int rc;

    pieces_init(&pieces, operation->call);
    all.pieces = &pieces;
    if (is_without_board(operation)) {
        rc = operation_open(operation, &last);
        return rc ? rc : allreduce_along_lane(&all);
    }
    rc = allreduce_plan_stages(&all, &stages);
    if (rc)
        return rc;
    if (allreduce_is_one(&all) && in_parts)
        offered = direct_offer(operation);
    if (!offered)
        stages_begin(operation, &stages);
    rc = operation_open(operation, &last);
    return rc ? rc : go_on_stages(&all, &stages, !offered);
}

/* Runs the rest of an allreduce on a rank that has called hvd_join, and so has no numbers to give.
 * The opening has told this rank which allreduce the other members run. */
int allreduce_go_on(struct operation *operation)
{
    struct allreduce all = allreduce_of(operation);
    struct stages stages;
    int rc;

    if (is_without_board(operation))
        return allreduce_along_lane(&all);
    rc = allreduce_plan_stages(&all, &stages);
    /* true (`begun`): this rank has no numbers, so no first chunk is to be put on its stage (its
     * own part of the board) */
    return rc ? rc : go_on_stages(&all, &stages, true);
}
