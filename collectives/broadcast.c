/*
 * broadcast.c: sends the root's numbers to all members. The root puts a chunk on its stage, from
 * where the members of its host copy it; each member on a lane sends a part of the chunk to the
 * other hosts, into the result (shared memory) there.
 *
 *     step              1                2                3
 *     root's host  in 0 │  out 0 and     │  out 1 and     │
 *                       │  lanes 0, in 1 │  lanes 1, in 2 │
 *     other hosts       │  lanes 0       │ lanes 1, out 0 │  out 1
 */
#include "collectives/dispatch.h"
#include "collectives/pieces.h"

#include <string.h>

#define CHUNK_BYTES ((size_t)256 * 1024)

struct broadcast {
    struct operation *operation;
    struct pieces pieces;
    /* number_bytes: bytes of one number; bytes: of all numbers */
    size_t number_bytes, bytes;
    /* root_host: index of the root's host; root_local: index of the root among that host's members
     */
    uint32_t root_host, root_local;
    bool is_root, is_here; /* is_here: the root is on our host */
};

/* How many bytes the chunk has: the last one may be shorter. */
static size_t chunk_bytes(const struct broadcast *cast, size_t chunk)
{
    size_t left = cast->bytes - chunk * CHUNK_BYTES;

    return left < CHUNK_BYTES ? left : CHUNK_BYTES;
}

/* Returns the address of the chunk on the board of this host. On the root's host a chunk is on the
 * root's stage; on the other hosts in the result. */
static uint8_t *chunk_on_board(const struct broadcast *cast, uint64_t turn)
{
    struct board *board = cast->operation->group->board;

    return cast->is_here ? board_stage(board, cast->root_local, turn) : board_result(board, turn);
}

/* Stage `in`: the root copies the chunk to its stage; the other members have nothing to do. */
static void broadcast_put(void *arg, size_t chunk, uint64_t turn)
{
    struct broadcast *cast = arg;

    if (cast->is_root)
        pieces_read(&cast->pieces, chunk * CHUNK_BYTES / cast->number_bytes,
                    chunk_bytes(cast, chunk) / cast->number_bytes, chunk_on_board(cast, turn));
}

/* Copies the chunk from the board to our buffer; the root's buffer has it already. */
static void broadcast_take(void *arg, size_t chunk, uint64_t turn)
{
    struct broadcast *cast = arg;

    if (!cast->is_root)
        pieces_write(&cast->pieces, chunk * CHUNK_BYTES / cast->number_bytes,
                     chunk_bytes(cast, chunk) / cast->number_bytes, chunk_on_board(cast, turn));
}

/* Stage `middle`: sends the chunk along the lanes to the other hosts. On the root's host the chunk
 * is sent out of the root's stage, and the members of that host also copy it out of that stage:
 * both only read, so no step of the board is needed between them. */
static int broadcast_pass_on(void *arg, size_t chunk, uint64_t turn)
{
    struct broadcast *cast = arg;
    struct coll_group *group = cast->operation->group;
    const struct group *members = &group->group;
    uint32_t local = members->local;
    size_t length, at;
    int rc = 0;

    /* the first lane_count members of each host have a lane, and send a share of the chunk each */
    if (members->host_count > 1 && local < members->lane_count) {
        at = share_of(chunk_bytes(cast, chunk), 1, local, members->lane_count, &length);
        rc = lane_broadcast(&group->lane, chunk_on_board(cast, turn) + at, length, cast->root_host);
    }
    if (!rc && cast->is_here)
        broadcast_take(arg, chunk, turn);
    return rc;
}

/* Every member is alone on its host, so the numbers go along the lane. Several buffers are sent a
 * chunk at a time, by way of a scratch memory. */
static int broadcast_alone(struct broadcast *cast)
{
    struct operation *operation = cast->operation;
    struct lane *lane = &operation->group->lane;
    size_t chunks = (cast->bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    uint8_t *scratch;
    int rc = 0;

    if (!operation->call->pieces)
        return lane_broadcast(lane, operation->call->out, cast->bytes, cast->root_host);
    scratch = coll_scratch(operation->coll, CHUNK_BYTES);
    if (!scratch)
        return HVD_E_NOMEM;
    for (size_t chunk = 0; chunk < chunks && !rc; chunk++) {
        size_t from = chunk * CHUNK_BYTES / cast->number_bytes;
        size_t count = chunk_bytes(cast, chunk) / cast->number_bytes;

        if (cast->is_root)
            pieces_read(&cast->pieces, from, count, scratch);
        rc = lane_broadcast(lane, scratch, count * cast->number_bytes, cast->root_host);
        if (!rc)
            rc = operation_settle(operation); /* the scratch memory is used again */
        if (!rc && !cast->is_root)
            pieces_write(&cast->pieces, from, count, scratch);
    }
    return rc;
}

/* Runs a broadcast. The members of the root's host copy a chunk out of the root's stage in the
 * stage `middle`, so they need no stage `out`. */
int broadcast_run(struct operation *operation)
{
    const struct coll_call *call = operation->call;
    const struct group *members = &operation->group->group;
    struct broadcast cast = {
        .operation = operation,
        .number_bytes = reduce_type_bytes(call->type),
        .bytes = operation_count(operation->group, call) * reduce_type_bytes(call->type),
        .root_host = members->host_of[call->root],
        .root_local = members->local_of[call->root],
        .is_root = members->place == call->root,
        .is_here = members->host_of[call->root] == members->host,
    };
    const struct stages stages = {
        .chunks = (cast.bytes + CHUNK_BYTES - 1) / CHUNK_BYTES,
        .in = broadcast_put,
        .middle = broadcast_pass_on,
        .out = cast.is_here ? NULL : broadcast_take,
        .arg = &cast,
    };
    uint32_t last; /* only the call of a rank that has called hvd_join uses it */
    int rc;

    pieces_init(&cast.pieces, call);
    if (operation->group->board)
        return stages_run(operation, &stages);
    rc = operation_open(operation, &last);
    return rc ? rc : broadcast_alone(&cast);
}
