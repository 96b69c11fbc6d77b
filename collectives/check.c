/*
 * check.c: checks the arguments of a call. coll_run does this before it sends anything to the other
 * members. A call that does not make sense ends the round (coll_refuse), because the other members
 * would wait for this rank for ever. The texts are for the author of the training program.
 */
#include "base/limits.h"
#include "collectives/dispatch.h"
#include "collectives/reduce/reduce.h"

#include <inttypes.h>

/* Refuses a call whose counts are too large together; ends the round. */
static int refuse_counts(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    return coll_refuse(
        coll, err,
        "%s: the sum of the counts of %s is more than memory can hold; correct the counts",
        coll_kind_name(call->kind), reduce_type_name(call->type));
}

/* Refuses a call without memory for its numbers; ends the round. */
static int refuse_null(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    return coll_refuse(coll, err,
                       "%s: the buffer \"in\" or \"out\" is NULL, and the count of %s is not 0; "
                       "give memory for both buffers",
                       coll_kind_name(call->kind), reduce_type_name(call->type));
}

/* Adds up how many numbers all members have: counts[i] each or, when `counts` is NULL, `each` for
 * each of `size` members. bytes: of one number. false: more numbers than memory can hold. */
static bool add_up(const size_t *counts, uint32_t size, size_t each, size_t bytes, size_t *ret_sum)
{
    size_t left = SIZE_MAX / 2 / bytes;

    *ret_sum = 0;
    for (uint32_t i = 0; i < size; i++) {
        size_t count = counts ? counts[i] : each;

        if (count > left)
            return false;
        left -= count;
        *ret_sum += count;
    }
    return true;
}

/* Checks a ragged call: an allgather or alltoall in which each member knows only its own counts,
 * and gets those of the other members in call->received. No member may give more than
 * LIMIT_RAGGED_BYTES, so every sum of the members' counts fits into a size_t. */
static int check_ragged(struct coll *coll, const struct coll_group *group,
                        const struct coll_call *call, struct hvd_err *err)
{
    const char *name = coll_kind_name(call->kind);
    bool to_each = call->kind == COLL_ALLTOALL_RAGGED;
    size_t most = LIMIT_RAGGED_BYTES / reduce_type_bytes(call->type), sum = 0;

    /* an alltoall needs `counts`; an allgather must not have it */
    if (!call->counts == to_each)
        return coll_refuse(coll, err, "%s: counts is %s; give %s", name,
                           to_each ? "NULL" : "not NULL",
                           to_each ? "a count for each member" : "the count of this rank in count");
    if (!call->received || !call->received->counts)
        return coll_refuse(
            coll, err,
            "%s: received or received.counts is NULL; give memory for one count of each member",
            name);
    for (uint32_t i = 0; i < (to_each ? group->group.size : 1); i++) {
        size_t count = to_each ? call->counts[i] : call->count;

        if (count > most - sum) {
            coll_fail(coll, HVD_E_LIMIT, coll->rank,
                      "rank %u: %s: this rank gives more than %" PRIu64
                      " bytes (LIMIT_RAGGED_BYTES); correct the counts of this rank, or give less "
                      "in one call",
                      coll->rank, name, LIMIT_RAGGED_BYTES);
            return coll_failure(coll, err);
        }
        sum += count;
    }
    if (sum && !call->in)
        return refuse_null(coll, call, err);
    if (call->device && !call->received->memory)
        return coll_refuse(
            coll, err,
            "%s: the buffer \"in\" is in the memory of a GPU, and received.memory is NULL; give in "
            "received.memory a function that allocates the result on the GPU",
            name);
    return 0;
}

/* Checks that the numbers which the call reads and writes fit into memory, and that the call has a
 * buffer for them. `in` and `out` count these numbers; 0: the call needs no such buffer. Returns 0,
 * or the code of coll_refuse. */
static int check_buffers(struct coll *coll, const struct coll_group *group,
                         const struct coll_call *call, struct hvd_err *err)
{
    size_t bytes = reduce_type_bytes(call->type), in = 0, out = 0, left = SIZE_MAX / 2 / bytes;
    uint32_t size = group->group.size;
    bool fits = add_up(call->counts, size, call->count, bytes, &in);
    bool is_root = group->group.place == call->root;

    if (call->pieces && call->kind != COLL_ALLREDUCE && call->kind != COLL_BROADCAST)
        return coll_refuse(coll, err,
                           "%s: pieces is set, but only an allreduce and a broadcast take pieces; "
                           "use in, out and count",
                           coll_kind_name(call->kind));
    for (size_t i = 0; call->pieces && i < call->piece_count; i++) {
        const struct coll_piece *piece = &call->pieces[i];

        if (piece->count > left)
            return refuse_counts(coll, call, err);
        left -= piece->count;
        if (piece->count && ((!piece->in && call->kind == COLL_ALLREDUCE) || !piece->out))
            return refuse_null(coll, call, err);
    }
    if (call->pieces)
        return 0;
    if (call->kind == COLL_ALLREDUCE || call->kind == COLL_BROADCAST || call->kind == COLL_REDUCE)
        fits = add_up(NULL, 1, call->count, bytes, &in);
    out = in;
    if (call->kind == COLL_ALLTOALL && call->counts)
        fits = fits && add_up(call->out_counts, size, 0, bytes, &out);
    if (!fits)
        return refuse_counts(coll, call, err);
    if (call->kind == COLL_ALLGATHER || call->kind == COLL_GATHER)
        in = call->count;
    if (call->kind == COLL_REDUCESCATTER || call->kind == COLL_SCATTER)
        out = call->count;
    if ((call->kind == COLL_REDUCE || call->kind == COLL_GATHER) && !is_root)
        out = 0;
    if (call->kind == COLL_SCATTER && !is_root)
        in = 0;
    if (call->kind == COLL_BROADCAST)
        in = 0;
    if ((in && !call->in) || (out && !call->out))
        return refuse_null(coll, call, err);
    return 0;
}

/* Checks the arguments of a call before any message goes to another member. After a failure the
 * round has ended, and the code is that of coll_refuse; HVD_E_LIMIT: a limit that hvd.h documents.
 */
int coll_check_call(struct coll *coll, const struct coll_group *group, const struct coll_call *call,
                    struct hvd_err *err)
{
    const char *name = coll_kind_name(call->kind);
    bool reduces = call->kind == COLL_ALLREDUCE || call->kind == COLL_REDUCESCATTER ||
                   call->kind == COLL_REDUCE;
    bool has_root = call->kind == COLL_BROADCAST || coll_kind_is_rooted(call->kind);
    bool scaled = call->prescale != 0 || call->postscale != 0;

    if (call->kind == COLL_BARRIER || call->kind == COLL_JOIN || call->kind == COLL_CLOSE)
        return 0;
    if (call->kind == COLL_OPEN && coll->group_count < coll->group_room)
        return 0;
    if (call->kind == COLL_OPEN) {
        coll_fail(coll, HVD_E_LIMIT, coll->rank,
                  "rank %u: more than %d groups (LIMIT_OPENED) were opened in this round; use an "
                  "open group again, or create groups before hvd_elastic_run",
                  coll->rank, LIMIT_OPENED);
        return coll_failure(coll, err);
    }
    if (call->kind < COLL_ALLREDUCE || call->kind == COLL_END ||
        (call->kind > COLL_ALLTOALL_RAGGED && !coll_kind_is_rooted(call->kind)))
        return coll_refuse(coll, err, "kind %d is no collective; use one of hvd_kind",
                           (int)call->kind);
    /* the type, the op and the scales */
    if (!reduce_type_bytes(call->type))
        return coll_refuse(coll, err, "%s: there is no type %d; use one of hvd_dtype", name,
                           (int)call->type);
    if (reduces && !reduce_is_op(call->op))
        return coll_refuse(coll, err, "%s: there is no op %d; use one of hvd_op", name,
                           (int)call->op);
    if (reduces && !reduce_knows(call->type, call->op))
        return coll_refuse(coll, err, "%s: %s does not have the op %s; use %s", name,
                           reduce_type_name(call->type), reduce_op_name(call->op),
                           call->type == HVD_BOOL ? "HVD_AND, HVD_OR or HVD_XOR"
                                                  : "an integer type or HVD_BOOL");
    if (scaled && !reduces)
        return coll_refuse(coll, err,
                           "%s: this collective computes nothing that could be scaled; leave "
                           "prescale and postscale 0",
                           name);
    if (scaled && !reduce_type_is_real(call->type))
        return coll_refuse(
            coll, err,
            "%s: %s cannot be scaled; leave prescale and postscale 0, or use a floating type", name,
            reduce_type_name(call->type));
    /* the root and the counts */
    if (has_root && call->root >= group->group.size)
        return coll_refuse(coll, err, "%s: root %u is no rank of this group; use 0 to %u", name,
                           call->root, group->group.size - 1);
    if (call->kind == COLL_ALLTOALL && !call->counts != !call->out_counts)
        return coll_refuse(coll, err, "%s: %s is given without %s; give both or none", name,
                           call->counts ? "counts" : "out_counts",
                           call->counts ? "out_counts" : "counts");
    if (call->kind == COLL_REDUCE && call->counts)
        return coll_refuse(coll, err, "%s: counts is not NULL; give only count", name);
    if (call->kind != COLL_ALLTOALL && !coll_kind_is_ragged(call->kind) && call->counts &&
        call->counts[group->group.place] != call->count)
        return coll_refuse(coll, err,
                           "%s: counts[%u] is %zu, but count is %zu; both are this rank's part, so "
                           "make them equal",
                           name, group->group.place, call->counts[group->group.place], call->count);
    if (coll_kind_is_ragged(call->kind))
        return check_ragged(coll, group, call, err);
    return check_buffers(coll, group, call, err);
}
