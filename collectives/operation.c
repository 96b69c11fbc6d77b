/*
 * operation.c: what every operation begins with, its number and its fingerprint, and the small
 * tools that all kinds share. This file calls no file of a kind (allreduce.c, ...); those files
 * call it.
 */
#include "collectives/operation.h"

#include "base/mem.h"

/* Returns `count` for the fingerprint: how many numbers there are, or a hash of the counts. Counts
 * that may differ between ranks, those of an alltoall with counts and of a ragged operation, are
 * left out: then it is 0. */
uint64_t operation_count(const struct coll_group *group, const struct coll_call *call)
{
    uint64_t sum = 0;

    if (coll_kind_is_ragged(call->kind))
        return 0;
    if (call->pieces) {
        for (size_t i = 0; i < call->piece_count; i++)
            sum += call->pieces[i].count;
        return sum;
    }
    if (!call->counts)
        return call->count;
    if (call->kind == COLL_ALLTOALL)
        return 0;
    for (uint32_t i = 0; i < group->group.size; i++)
        sum = fingerprint_mix(sum, call->counts[i]);
    return sum;
}

/* Prepares the next operation of the group: takes its number, and makes its fingerprint, which
 * all members compare. The fingerprint has what must be equal on all members, and the rank of
 * this member, which is only for error texts. */
struct operation operation_make(struct coll *coll, struct coll_group *group,
                                const struct coll_call *call)
{
    const struct coll_call *shown = call->shown ? call->shown : call;
    struct operation operation = {
        .coll = coll,
        .group = group,
        .call = call,
        .turn = group->turn,
        .fingerprint = {.number = ++group->number,
                        .group = group->group.hash,
                        .kind = shown->kind,
                        .rank = coll->rank,
                        .prescale = 1,
                        .postscale = 1,
                        .tag = shown->kind == COLL_JOIN ? 0 : shown->tag},
    };
    struct fingerprint *fingerprint = &operation.fingerprint;

    for (size_t i = 0; shown->pieces && i < shown->piece_count; i++)
        fingerprint->group = fingerprint_mix(fingerprint->group, shown->pieces[i].count);
    if (shown->kind == COLL_BARRIER || shown->kind == COLL_JOIN || shown->kind == COLL_END)
        return operation;
    if (coll_kind_is_of_groups(shown->kind)) {
        fingerprint->count =
            shown->kind == COLL_OPEN ? shown->opening->hash : shown->opening->group;
        return operation;
    }
    fingerprint->type = (uint16_t)shown->type;
    fingerprint->on_device = !shown->device ? 0 : shown->by_host ? FINGERPRINT_BY_HOST : 1;
    fingerprint->count = operation_count(group, shown);
    if (shown->kind == COLL_BROADCAST || shown->kind == COLL_GATHER ||
        shown->kind == COLL_SCATTER || shown->kind == COLL_SEND)
        fingerprint->root = shown->root;
    else
        fingerprint->in_parts = shown->pieces || shown->counts;
    if (shown->kind == COLL_ALLREDUCE)
        fingerprint->fused = shown->fused & FINGERPRINT_FUSED_MAX;
    if (shown->kind == COLL_ALLREDUCE || shown->kind == COLL_REDUCESCATTER ||
        shown->kind == COLL_REDUCE) {
        fingerprint->op = (uint32_t)shown->op;
        fingerprint->prescale = shown->prescale != 0 ? shown->prescale : 1;
        fingerprint->postscale = shown->postscale != 0 ? shown->postscale : 1;
    }
    if (shown->kind == COLL_REDUCE)
        fingerprint->op |= shown->root << FINGERPRINT_ROOT_SHIFT;
    return operation;
}

/* true: this operation adds the numbers in the order of the ranks (operation.h). On one host that
 * is so anyway. */
bool operation_is_ordered(const struct operation *operation)
{
    const struct coll *coll = operation->coll;

    return coll->engine && coll->engine->options.fixed_order &&
           operation->group->group.host_count > 1;
}

/* Waits for the messages along the lane, before this member waits at the board (operation.h). */
int operation_settle(const struct operation *operation)
{
    const struct lane *lane = &operation->group->lane;

    return lane->size > 1 ? traffic_await_all(lane->traffic) : 0;
}

/* Returns memory that the operation in progress may use (operation.h). The memory is kept for later
 * operations and grows when one needs more. */
void *coll_scratch(struct coll *coll, size_t bytes)
{
    struct coll_memory *memory = &coll->memory;

    if (bytes <= memory->scratch_bytes)
        return memory->scratch;
    mem_free(memory->scratch);
    memory->scratch = mem_alloc(bytes);
    memory->scratch_bytes = memory->scratch ? bytes : 0;
    return memory->scratch;
}

#define LINE_BYTES ((size_t)64) /* of a line of the CPU cache */

/* Divides `length` items among `count` members (operation.h). Shares are whole cache lines, so that
 * no two members write to one line. The last members may get less, or nothing. */
size_t share_of(size_t length, size_t element_bytes, uint32_t index, uint32_t count,
                size_t *ret_length)
{
    size_t line = LINE_BYTES / element_bytes ? LINE_BYTES / element_bytes : 1;
    size_t share = (length + count - 1) / count;
    size_t from;

    share = (share + line - 1) / line * line;
    from = index * share;
    if (from > length)
        from = length;
    *ret_length = length - from < share ? length - from : share;
    return from;
}
