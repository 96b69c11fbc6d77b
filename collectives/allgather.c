#include "base/mem.h"
#include "collectives/deal.h"
#include "collectives/operation.h"

#include <string.h>

struct job {
    struct operation *operation;
    struct deal deal;
    const uint8_t *in;
    uint8_t *out;
    uint8_t **blocks; /* of each host */
    size_t *lengths;
};

static uint32_t own(const struct job *job)
{
    return job->operation->group->group.place;
}

static void to_stage(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    struct board *board = job->operation->group->board;
    size_t count = deal_piece(&job->deal, own(job), chunk);

    if (count)
        memcpy(board_stage(board, board_seat(board), turn),
               job->in + chunk * job->deal.piece * job->deal.bytes, count * job->deal.bytes);
}

static void take(struct job *job, uint32_t member, size_t chunk, const uint8_t *from)
{
    size_t count = deal_piece(&job->deal, member, chunk);

    if (count && member != own(job))
        memcpy(job->out + (job->deal.first[member] + chunk * job->deal.piece) * job->deal.bytes,
               from, count * job->deal.bytes);
}

/* On one host: from each other's stage. */
static void from_stages(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    const struct group *members = &job->operation->group->group;

    for (uint32_t seat = 0; seat < members->local_count; seat++)
        take(job, members->locals[seat], chunk,
             board_stage(job->operation->group->board, seat, turn));
}

/* What this lane carries of our host is put together in the result, where that of the others comes
 * to. */
static int along_lane(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    struct coll_group *group = job->operation->group;
    const struct group *members = &group->group;
    uint32_t lane = group_local(members);
    uint8_t *result = board_result(group->board, turn);

    if (lane >= members->lane_count)
        return 0;
    deal_chunk(&job->deal, chunk);
    for (uint32_t seat = lane; seat < members->local_count; seat += members->lane_count) {
        uint32_t member = members->locals[seat];

        memcpy(result + job->deal.at[member] * job->deal.bytes,
               board_stage(group->board, seat, turn),
               deal_piece(&job->deal, member, chunk) * job->deal.bytes);
    }
    for (uint32_t host = 0; host < members->host_count; host++) {
        size_t count, at = deal_block(&job->deal, chunk, lane, host, &count);

        job->blocks[host] = result + at * job->deal.bytes;
        job->lengths[host] = count * job->deal.bytes;
    }
    return lane_allgather(&group->lane, job->blocks, job->lengths);
}

static void from_result(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    const uint8_t *result = board_result(job->operation->group->board, turn);

    deal_chunk(&job->deal, chunk);
    for (uint32_t i = 0; i < job->deal.group->size; i++)
        take(job, i, chunk, result + job->deal.at[i] * job->deal.bytes);
}

static int over_board(struct job *job)
{
    bool here = job->operation->group->group.host_count == 1;
    const struct stages stages = {
        .chunks = job->deal.chunks,
        .in = to_stage,
        .middle = here ? NULL : along_lane,
        .out = here ? from_stages : from_result,
        .arg = job,
    };

    return stages_run(job->operation, &stages);
}

/* Each member is alone on its host: its block goes where it belongs. */
static int over_lane(struct job *job)
{
    const struct group *members = &job->operation->group->group;
    uint32_t last;
    int rc = operation_open(job->operation, &last);

    for (uint32_t host = 0; host < members->host_count && !rc; host++) {
        uint32_t member = members->by_host[members->host_at[host]];

        job->blocks[host] = job->out + job->deal.first[member] * job->deal.bytes;
        job->lengths[host] = deal_count(&job->deal, member) * job->deal.bytes;
    }
    return rc ? rc : lane_allgather(&job->operation->group->lane, job->blocks, job->lengths);
}

static int run(struct job *job)
{
    size_t count = deal_count(&job->deal, own(job)) * job->deal.bytes;
    uint8_t *place = job->out + job->deal.first[own(job)] * job->deal.bytes;

    if (count && place != job->in)
        memmove(place, job->in, count);
    if (count)
        job->in = place;
    return job->operation->group->board ? over_board(job) : over_lane(job);
}

int allgather_run(struct operation *operation)
{
    const struct coll_call *call = operation->call;
    const struct group *members = &operation->group->group;
    struct job job = {
        .operation = operation,
        .deal = {.group = members,
                 .counts = call->counts,
                 .each = call->count,
                 .bytes = reduce_type_bytes(call->type)},
        .in = call->in,
        .out = call->out,
    };
    uint8_t *memory;
    int rc;

    memory = mem_alloc(deal_bytes(members) +
                       members->host_count * (sizeof(*job.blocks) + sizeof(*job.lengths)));
    if (!memory)
        return HVD_E_NOMEM;
    job.lengths = (size_t *)(void *)(memory + deal_bytes(members));
    job.blocks = (uint8_t **)(void *)(job.lengths + members->host_count);
    deal_init(&job.deal, BOARD_STAGE_BYTES, memory);
    rc = run(&job);
    mem_free(memory);
    return rc;
}
