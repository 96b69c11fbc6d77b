/*
 * allgather.c: gives each member's numbers to all members. On one host each member copies the
 * numbers out of the stages of the other members (a stage is a member's own part of the shared
 * memory). Between hosts each lane carries the numbers of its members into the result, which the
 * members of a host share. deal.h says where each member's numbers are in a chunk.
 *
 * Two other operations run an allgather before they begin (allgather_before): an alltoall with
 * counts, to tell all members the counts; and the making of a mesh, to tell all members the
 * addresses.
 */
#include "base/mem.h"
#include "collectives/deal.h"
#include "collectives/dispatch.h"

#include <string.h>

struct allgather {
    struct operation *operation;
    struct deal deal;
    uint32_t own; /* our index in the group */
    const uint8_t *in;
    uint8_t *out;
    uint8_t **blocks; /* for each host: a block, all pieces that our lane carries */
    size_t *lengths;  /* the bytes of each block */
};

/* Stage `in` of the pipeline: copies this member's piece of the chunk to its stage, its part of the
 * shared memory, where the other members of the host read it. */
static void put_on_stage(void *arg, size_t chunk, uint64_t turn)
{
    struct allgather *gather = arg;
    struct board *board = gather->operation->group->board;
    size_t count = deal_piece(&gather->deal, gather->own, chunk);

    if (count)
        memcpy(board_stage(board, board_local(board), turn),
               gather->in + chunk * gather->deal.piece * gather->deal.bytes,
               count * gather->deal.bytes);
}

/* Copies one member's piece of the chunk from `from` to the program's output. Leaves out our own
 * piece, because allgather_run has copied all our numbers to the output before. */
static void take_piece(struct allgather *gather, uint32_t member, size_t chunk, const uint8_t *from)
{
    const struct deal *deal = &gather->deal;
    size_t count = deal_piece(deal, member, chunk);

    if (count && member != gather->own)
        memcpy(gather->out + (deal->first[member] + chunk * deal->piece) * deal->bytes, from,
               count * deal->bytes);
}

/* Stage `out` of the pipeline on one host: copies the pieces of all members from their stages to
 * the program's output. */
static void take_from_stages(void *arg, size_t chunk, uint64_t turn)
{
    struct allgather *gather = arg;
    const struct group *members = &gather->operation->group->group;

    for (uint32_t local = 0; local < members->local_count; local++)
        take_piece(gather, members->locals[local], chunk,
                   board_stage(gather->operation->group->board, local, turn));
}

/* Stage `middle` of the pipeline with several hosts: fills the result, the memory that the members
 * of this host share. The pieces of this host are copied into it, those of the other hosts are
 * received along our lane. A member without a lane does nothing. */
static int gather_along_lane(void *arg, size_t chunk, uint64_t turn)
{
    struct allgather *gather = arg;
    struct deal *deal = &gather->deal;
    struct coll_group *group = gather->operation->group;
    const struct group *members = &group->group;
    uint32_t lane = members->local;
    uint8_t *result = board_result(group->board, turn);

    if (lane >= members->lane_count)
        return 0;
    deal_chunk(deal, chunk);
    for (uint32_t local = lane; local < members->local_count; local += members->lane_count) {
        uint32_t member = members->locals[local];

        memcpy(result + deal->at[member] * deal->bytes, board_stage(group->board, local, turn),
               deal_piece(deal, member, chunk) * deal->bytes);
    }
    for (uint32_t host = 0; host < members->host_count; host++) {
        size_t count, at = deal_block(deal, chunk, lane, host, &count);

        gather->blocks[host] = result + at * deal->bytes;
        gather->lengths[host] = count * deal->bytes;
    }
    return lane_allgather(&group->lane, gather->blocks, gather->lengths);
}

/* Stage `out` of the pipeline with several hosts: copies the pieces of all members from the result
 * to the program's output. */
static void take_from_result(void *arg, size_t chunk, uint64_t turn)
{
    struct allgather *gather = arg;
    const uint8_t *result = board_result(gather->operation->group->board, turn);

    deal_chunk(&gather->deal, chunk);
    for (uint32_t i = 0; i < gather->deal.group->size; i++)
        take_piece(gather, i, chunk, result + gather->deal.at[i] * gather->deal.bytes);
}

/* Runs an allgather. On one host the members read the pieces from each other's stages; between
 * hosts lanes bring the pieces to each host's result. If every member is alone on its host, there
 * is no board, and the numbers are not cut into chunks. */
int allgather_run(struct operation *operation)
{
    const struct coll_call *call = operation->call;
    const struct group *members = &operation->group->group;
    struct allgather gather = {
        .operation = operation,
        .deal = {.group = members,
                 .counts = call->counts,
                 .each = call->count,
                 .bytes = reduce_type_bytes(call->type)},
        .own = members->place,
        .in = call->in,
        .out = call->out,
    };
    const struct deal *deal = &gather.deal;
    bool one_host = members->host_count == 1;
    struct stages stages = { .in = put_on_stage,
                             .middle = one_host ? NULL : gather_along_lane,
                             .out = one_host ? take_from_stages : take_from_result,
                             .arg = &gather };
    size_t bytes = members->host_count * (sizeof(*gather.blocks) + sizeof(*gather.lengths)), length;
    uint8_t *memory = mem_alloc(deal_bytes(members) + bytes), *place;
    uint32_t last;
    int rc;

    if (!memory)
        return HVD_E_NOMEM;
    gather.lengths = (size_t *)(void *)(memory + deal_bytes(members));
    gather.blocks = (uint8_t **)(void *)(gather.lengths + members->host_count);
    deal_init(&gather.deal, BOARD_STAGE_BYTES, memory);
    stages.chunks = deal->chunks;
    /* Copy our own numbers to their place in the output first; the stages then read them from
     * there. */
    length = deal_count(deal, gather.own) * deal->bytes;
    place = gather.out + deal->first[gather.own] * deal->bytes;
    if (length && place != gather.in)
        memmove(place, gather.in, length);
    if (length)
        gather.in = place;
    if (operation->group->board) {
        rc = stages_run(operation, &stages);
    } else {
        /* Every member is alone on its host: each block is received directly into the output. */
        rc = operation_open(operation, &last);
        for (uint32_t host = 0; host < members->host_count && !rc; host++) {
            uint32_t member = members->by_host[members->host_at[host]];

            gather.blocks[host] = gather.out + deal->first[member] * deal->bytes;
            gather.lengths[host] = deal_count(deal, member) * deal->bytes;
        }
        if (!rc)
            rc = lane_allgather(&operation->group->lane, gather.blocks, gather.lengths);
    }
    mem_free(memory);
    return rc;
}

/* Runs an allgather from its fingerprint to the end, for files that need one beside the call of the
 * program. */
int allgather_whole(struct coll *coll, struct coll_group *group, const struct coll_call *call)
{
    struct operation operation = operation_make(coll, group, call);

    return lane_close(&group->lane, allgather_run(&operation));
}

/* Runs an allgather that tells an operation something about all members (counts, addresses) before
 * the operation itself begins. Both need a number, by which the members compare what they run: the
 * allgather takes the number that the operation had, and the operation takes the next number. */
int allgather_before(struct operation *operation, const struct coll_call *call)
{
    struct coll_group *group = operation->group;
    int rc;

    group->number--;
    rc = allgather_whole(operation->coll, group, call);
    group->number++;
    operation->fingerprint.number = group->number;
    operation->turn = group->turn;
    return rc;
}
