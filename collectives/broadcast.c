#include "collectives/operation.h"

#include <string.h>

/*
 * The root puts it on its stage, from where the members on its host take it; the owners of lanes
 * send it to the other hosts, a part each, into the result there.
 *
 * step              1                2                3
 * root's host  in 0 │  out 0 and     │  out 1 and     │
 *                   │  lanes 0, in 1 │  lanes 1, in 2 │
 * the others        │  lanes 0       │ lanes 1, out 0 │  out 1
 */
#define CHUNK_BYTES ((size_t)256 * 1024)

struct job {
    struct operation *operation;
    uint8_t *buffer;
    size_t bytes;
    uint32_t root_host, root_seat; /* the seat is one of the root's host */
    bool is_root, is_here;         /* on our host */
};

static size_t chunk_bytes(const struct job *job, size_t chunk)
{
    size_t left = job->bytes - chunk * CHUNK_BYTES;

    return left < CHUNK_BYTES ? left : CHUNK_BYTES;
}

static uint8_t *place_of(const struct job *job, uint64_t turn)
{
    struct board *board = job->operation->group->board;

    return job->is_here ? board_stage(board, job->root_seat, turn) : board_result(board, turn);
}

static int go_along_lane(const struct job *job, size_t chunk, uint64_t turn)
{
    struct coll_group *group = job->operation->group;
    const struct group *members = &group->group;
    uint32_t local = group_local(members);
    size_t length, at;

    if (members->host_count == 1 || local >= members->lane_count)
        return 0;
    at = share_of(chunk_bytes(job, chunk), 1, local, members->lane_count, &length);
    return lane_broadcast(&group->lane, place_of(job, turn) + at, length, job->root_host);
}

static void put(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;

    if (job->is_root)
        memcpy(place_of(job, turn), job->buffer + chunk * CHUNK_BYTES, chunk_bytes(job, chunk));
}

static void take(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;

    if (!job->is_root)
        memcpy(job->buffer + chunk * CHUNK_BYTES, place_of(job, turn), chunk_bytes(job, chunk));
}

static int pass_on(void *arg, size_t chunk, uint64_t turn)
{
    return go_along_lane(arg, chunk, turn);
}

/* On the root's host what is sent may be taken at the same time: two stages are enough. */
static int pass_on_and_take(void *arg, size_t chunk, uint64_t turn)
{
    int rc = go_along_lane(arg, chunk, turn);

    if (!rc)
        take(arg, chunk, turn);
    return rc;
}

static int over_board(struct job *job)
{
    struct stages stages = {
        .chunks = (job->bytes + CHUNK_BYTES - 1) / CHUNK_BYTES,
        .in = put,
        .middle = job->is_here ? pass_on_and_take : pass_on,
        .out = job->is_here ? NULL : take,
        .arg = job,
    };

    return stages_run(job->operation, &stages);
}

int broadcast_run(struct operation *operation)
{
    const struct coll_call *call = operation->call;
    const struct group *members = &operation->group->group;
    struct job job = {
        .operation = operation,
        .buffer = call->out,
        .bytes = call->count * reduce_type_bytes(call->type),
        .root_host = members->host_of[call->root],
        .root_seat = members->local_of[call->root],
        .is_root = members->place == call->root,
        .is_here = members->host_of[call->root] == members->host,
    };
    uint32_t last;
    int rc;

    if (operation->group->board)
        return over_board(&job);
    rc = operation_open(operation, &last);
    return rc ? rc : lane_broadcast(&operation->group->lane, job.buffer, job.bytes, job.root_host);
}
