#include "base/mem.h"
#include "collectives/deal.h"
#include "collectives/operation.h"

#include <string.h>

struct job {
    struct operation *operation;
    struct deal deal;
    struct reduction how;
    const uint8_t *in;
    uint8_t *out;
    uint8_t *work;  /* for what a lane carries */
    size_t *counts; /* of each host */
};

static uint32_t own(const struct job *job)
{
    return job->operation->group->group.place;
}

/* The pieces of all members, in the order of the deal. */
static void to_stage(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    struct deal *deal = &job->deal;
    struct board *board = job->operation->group->board;
    uint8_t *stage = board_stage(board, board_seat(board), turn);

    deal_chunk(deal, chunk);
    for (uint32_t i = 0; i < deal->group->size; i++)
        memcpy(stage + deal->at[i] * deal->bytes,
               job->in + (deal->first[i] + chunk * deal->piece) * deal->bytes,
               deal_piece(deal, i, chunk) * deal->bytes);
}

static size_t stages_from(struct job *job, uint64_t turn, size_t at)
{
    struct coll_group *group = job->operation->group;
    uint32_t count = board_count(group->board);

    for (uint32_t seat = 0; seat < count; seat++)
        group->sources[seat] = board_stage(group->board, seat, turn) + at * job->deal.bytes;
    return count;
}

/* On one host: our piece, from each one's stage. */
static void reduce_own(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    size_t count = deal_piece(&job->deal, own(job), chunk), sources;
    void *to[1] = { job->out + chunk * job->deal.piece * job->deal.bytes };

    if (!count)
        return;
    deal_chunk(&job->deal, chunk);
    sources = stages_from(job, turn, job->deal.at[own(job)]);
    reduce_finish(to, 1, job->operation->group->sources, sources, count, &job->how);
}

/* Between hosts: what this lane carries, of which our host's block comes back reduced. */
static int along_lane(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    struct coll_group *group = job->operation->group;
    const struct group *members = &group->group;
    uint32_t lane = group_local(members);
    size_t all = 0, count, from, home;

    if (lane >= members->lane_count)
        return 0;
    deal_chunk(&job->deal, chunk);
    from = deal_block(&job->deal, chunk, lane, 0, &count);
    for (uint32_t host = 0; host < members->host_count; host++) {
        (void)deal_block(&job->deal, chunk, lane, host, &job->counts[host]);
        all += job->counts[host];
    }
    home = deal_block(&job->deal, chunk, lane, members->host, &count);
    reduce_gather(job->work, group->sources, stages_from(job, turn, from), all, &job->how);
    return lane_reducescatter(&group->lane, job->work,
                              board_result(group->board, turn) + home * job->deal.bytes,
                              job->counts, &job->how, LANE_RING);
}

static void from_result(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;

    deal_chunk(&job->deal, chunk);
    memcpy(job->out + chunk * job->deal.piece * job->deal.bytes,
           board_result(job->operation->group->board, turn) +
               job->deal.at[own(job)] * job->deal.bytes,
           deal_piece(&job->deal, own(job), chunk) * job->deal.bytes);
}

static int over_board(struct job *job)
{
    bool here = job->operation->group->group.host_count == 1;
    const struct stages stages = {
        .chunks = job->deal.chunks,
        .in = to_stage,
        .middle = here ? NULL : along_lane,
        .out = here ? reduce_own : from_result,
        .arg = job,
    };

    job->work = here ? NULL
                     : coll_scratch(job->operation->coll, BOARD_STAGE_BYTES / job->deal.bytes *
                                                              reduce_work_bytes(&job->how));
    return here || job->work ? stages_run(job->operation, &stages) : HVD_E_NOMEM;
}

/* Over a lane of all members, in their order: their hosts are apart, or it is the mesh. */
static int over_lane(struct job *job, struct lane *lane, enum lane_way way)
{
    const struct group *members = &job->operation->group->group;
    size_t all = 0;

    for (uint32_t i = 0; i < members->size; i++) {
        job->counts[i] = deal_count(&job->deal, i);
        all += job->counts[i];
    }
    job->work = coll_scratch(job->operation->coll, all * reduce_work_bytes(&job->how) + 1);
    if (!job->work)
        return HVD_E_NOMEM;
    reduce_widen(job->work, job->in, all, &job->how);
    return lane_reducescatter(lane, job->work, job->out, job->counts, &job->how, way);
}

static int over_mesh(struct job *job)
{
    struct coll_group *group = job->operation->group;
    struct accord theirs;
    int rc = lane_open(&group->mesh_lane, &job->operation->accord, &theirs);

    if (!rc)
        rc = over_lane(job, &group->mesh_lane, LANE_ORDER);
    return lane_close(&group->mesh_lane, rc);
}

static int run(struct job *job)
{
    struct coll_group *group = job->operation->group;
    bool ordered = operation_is_ordered(job->operation);
    uint32_t last;
    int rc;

    if (group->board && !ordered)
        return over_board(job);
    rc = operation_open(job->operation, &last);
    if (group->board)
        group->turn = job->operation->turn + 1;
    if (rc)
        return rc;
    return ordered ? over_mesh(job) : over_lane(job, &group->lane, LANE_RING);
}

int reducescatter_run(struct operation *operation)
{
    const struct coll_call *call = operation->call;
    const struct group *members = &operation->group->group;
    struct job job = {
        .operation = operation,
        .deal = {.group = members,
                 .counts = call->counts,
                 .each = call->count,
                 .bytes = reduce_type_bytes(call->type)  },
        .how = { .type = call->type,
                 .op = call->op,
                 .size = members->size,
                 .prescale = operation->accord.prescale,
                 .postscale = operation->accord.postscale },
        .in = call->in,
        .out = call->out,
    };
    uint8_t *memory;
    int rc;

    memory = mem_alloc(deal_bytes(members) + members->size * sizeof(*job.counts));
    if (!memory)
        return HVD_E_NOMEM;
    job.counts = (size_t *)(void *)(memory + deal_bytes(members));
    deal_init(&job.deal, BOARD_STAGE_BYTES, memory);
    rc = run(&job);
    mem_free(memory);
    return rc;
}
