/*
 * reducescatter.c: a sum of which each member gets only its part. A member copies its pieces for
 * all members to its stage (shared memory), in the order of deal.h. On one host each member reduces
 * its own piece out of all stages; between hosts a lane reduces the block of each host, and brings
 * that block to its host. With --fixed-order the blocks go over the mesh, in the order of ranks.
 */
#include "base/mem.h"
#include "collectives/deal.h"
#include "collectives/dispatch.h"

#include <string.h>

struct reducescatter {
    struct operation *operation;
    struct deal deal;
    struct reduction how;
    uint32_t own; /* our index in the group */
    const uint8_t *in;
    uint8_t *out;
    uint8_t *work;  /* memory for the numbers that a lane carries */
    size_t *counts; /* how many numbers each host, or each member, gets */
};

/* Stage `in`: copies our numbers for each member's part to our stage, in the order of the deal
 * (deal.h). */
static void put_all_pieces(void *arg, size_t chunk, uint64_t turn)
{
    struct reducescatter *scatter = arg;
    struct deal *deal = &scatter->deal;
    struct board *board = scatter->operation->group->board;
    uint8_t *stage = board_stage(board, board_local(board), turn);

    deal_chunk(deal, chunk);
    for (uint32_t i = 0; i < deal->group->size; i++)
        memcpy(stage + deal->at[i] * deal->bytes,
               scatter->in + (deal->first[i] + chunk * deal->piece) * deal->bytes,
               deal_piece(deal, i, chunk) * deal->bytes);
}

/* Lists in group->sources where the stages of the members of this host hold the numbers from index
 * `at` of the chunk on. Returns how many members there are. */
static size_t find_stages(struct reducescatter *scatter, uint64_t turn, size_t at)
{
    struct coll_group *group = scatter->operation->group;
    uint32_t count = board_count(group->board);

    for (uint32_t local = 0; local < count; local++)
        group->sources[local] = board_stage(group->board, local, turn) + at * scatter->deal.bytes;
    return count;
}

/* Stage `out` of a group on one host: reduces our own piece of the chunk out of all stages, into
 * the output. */
static void reduce_own_piece(void *arg, size_t chunk, uint64_t turn)
{
    struct reducescatter *scatter = arg;
    struct deal *deal = &scatter->deal;
    size_t count = deal_piece(deal, scatter->own, chunk), sources;
    void *to[1] = { scatter->out + chunk * deal->piece * deal->bytes };

    if (!count)
        return;
    deal_chunk(deal, chunk);
    sources = find_stages(scatter, turn, deal->at[scatter->own]);
    reduce_finish(to, 1, scatter->operation->group->sources, sources, count, &scatter->how);
}

/* Stage `middle` with several hosts: reduces the blocks that this lane carries, first over the
 * members of this host, then over the hosts; our host's block comes back into the result. */
static int scatter_along_lane(void *arg, size_t chunk, uint64_t turn)
{
    struct reducescatter *scatter = arg;
    struct deal *deal = &scatter->deal;
    struct coll_group *group = scatter->operation->group;
    const struct group *members = &group->group;
    uint32_t lane = members->local;
    size_t all = 0, count, from, home;

    if (lane >= members->lane_count)
        return 0;
    deal_chunk(deal, chunk);
    from = deal_block(deal, chunk, lane, 0, &count);
    for (uint32_t host = 0; host < members->host_count; host++) {
        (void)deal_block(deal, chunk, lane, host, &scatter->counts[host]);
        all += scatter->counts[host];
    }
    home = deal_block(deal, chunk, lane, members->host, &count);
    reduce_gather(scatter->work, group->sources, find_stages(scatter, turn, from), all,
                  &scatter->how);
    return lane_reducescatter(&group->lane, scatter->work,
                              board_result(group->board, turn) + home * deal->bytes,
                              scatter->counts, &scatter->how, LANE_RING);
}

/* Stage `out` with several hosts: copies our piece from the result of this host to the output. */
static void take_own_piece(void *arg, size_t chunk, uint64_t turn)
{
    struct reducescatter *scatter = arg;
    struct deal *deal = &scatter->deal;
    size_t count = deal_piece(deal, scatter->own, chunk);

    if (!count) /* a member that gets nothing may have no memory */
        return;
    deal_chunk(deal, chunk);
    memcpy(scatter->out + chunk * deal->piece * deal->bytes,
           board_result(scatter->operation->group->board, turn) +
               deal->at[scatter->own] * deal->bytes,
           count * deal->bytes);
}

/* Reduces along a lane that has all members of the group: each member is alone on its host, or
 * `lane` is the mesh. There are no chunks: all numbers are reduced at once. */
static int scatter_over_lane(struct reducescatter *scatter, struct lane *lane,
                             enum lane_algorithm algorithm)
{
    const struct group *members = scatter->deal.group;
    size_t all = 0;

    for (uint32_t i = 0; i < members->size; i++) {
        scatter->counts[i] = deal_count(&scatter->deal, i);
        all += scatter->counts[i];
    }
    scatter->work = /* + 1: never an allocation of 0 bytes */
        coll_scratch(scatter->operation->coll, all * reduce_work_bytes(&scatter->how) + 1);
    if (!scatter->work)
        return HVD_E_NOMEM;
    reduce_widen(scatter->work, scatter->in, all, &scatter->how);
    return lane_reducescatter(lane, scatter->work, scatter->out, scatter->counts, &scatter->how,
                              algorithm);
}

/* Runs the reducescatter: over the board of this host and the lanes; or along one lane, if every
 * member is alone on its host; or with --fixed-order over the mesh. */
static int scatter_all(struct reducescatter *scatter)
{
    struct operation *operation = scatter->operation;
    struct coll_group *group = operation->group;
    const struct deal *deal = &scatter->deal;
    bool one_host = deal->group->host_count == 1, ordered = operation_is_ordered(operation);
    const struct stages stages = {
        .chunks = deal->chunks,
        .in = put_all_pieces,
        .middle = one_host ? NULL : scatter_along_lane,
        .out = one_host ? reduce_own_piece : take_own_piece,
        .arg = scatter,
    };
    struct fingerprint theirs;
    uint32_t last;
    int rc;

    if (group->board && !ordered) {
        if (!one_host) {
            size_t room = BOARD_STAGE_BYTES / deal->bytes * reduce_work_bytes(&scatter->how);

            scatter->work = coll_scratch(operation->coll, room);
            if (!scatter->work)
                return HVD_E_NOMEM;
        }
        return stages_run(operation, &stages);
    }
    rc = operation_open(operation, &last);
    if (group->board)
        group->turn = operation->turn + 1;
    if (rc)
        return rc;
    if (!ordered)
        return scatter_over_lane(scatter, &group->lane, LANE_RING);
    rc = lane_open(&group->mesh_lane, &operation->fingerprint, &theirs);
    if (!rc)
        rc = scatter_over_lane(scatter, &group->mesh_lane, LANE_ORDER);
    return lane_close(&group->mesh_lane, rc);
}

/* Runs a reducescatter: member i gets its part of the reduced numbers. */
int reducescatter_run(struct operation *operation)
{
    const struct coll_call *call = operation->call;
    const struct group *members = &operation->group->group;
    struct reducescatter scatter = {
        .operation = operation,
        .deal = {.group = members,
                 .counts = call->counts,
                 .each = call->count,
                 .bytes = reduce_type_bytes(call->type)       },
        .how = { .type = call->type,
                 .op = call->op,
                 .size = members->size,
                 .prescale = operation->fingerprint.prescale,
                 .postscale = operation->fingerprint.postscale },
        .own = members->place,
        .in = call->in,
        .out = call->out,
    };
    uint8_t *memory;
    int rc;

    memory = mem_alloc(deal_bytes(members) + members->size * sizeof(*scatter.counts));
    if (!memory)
        return HVD_E_NOMEM;
    scatter.counts = (size_t *)(void *)(memory + deal_bytes(members));
    deal_init(&scatter.deal, BOARD_STAGE_BYTES, memory);
    rc = scatter_all(&scatter);
    mem_free(memory);
    return rc;
}
