#include "base/text.h"
#include "collectives/operation.h"

#include <string.h>

/* Every number is reduced on one member only, in one order, and then passed on; or on all, in the
 * same order: so it is the same on all, bit for bit. */

/* Up to this size of all members on a host together each of them reduces everything by itself: that
 * costs less than one more step. */
#define SMALL_BYTES ((size_t)48 * 1024)
/* Up to this size one member of each host talks to the other hosts. */
#define LEADER_BYTES ((size_t)32 * 1024)
#define CHUNK_BYTES  ((size_t)128 * 1024)
/* What travels along a lane: up to this all of it to all; then in pairs; then around. */
#define GATHER_BYTES ((size_t)LANE_FIRST_MAX)
#define DOUBLE_BYTES ((size_t)64 * 1024)

#define FUSION_BYTES ((size_t)64 * 1024 * 1024)

/* Several buffers are one that is gone through from its beginning to its end. */
struct cursor {
    size_t piece, at; /* where this piece begins, in numbers of them all */
};

struct job {
    struct operation *operation;
    struct reduction how;
    size_t count, bytes, work_bytes; /* bytes: of one number */
    const struct coll_piece *pieces; /* NULL: it has joined */
    size_t piece_count;
    struct coll_piece whole;
    struct cursor in, out;

    size_t chunk;    /* numbers in one */
    uint32_t owners; /* so many members reduce a part of each chunk, the first ones of the host */
    uint8_t *work;   /* for a part, where it cannot be done in the result */
};

/* ---- the program's memory ---- */

static void set_pieces(struct job *job)
{
    const struct coll_call *call = job->operation->call;

    job->pieces = call->pieces;
    job->piece_count = call->piece_count;
    if (!call->pieces) {
        job->whole = (struct coll_piece){ call->in, call->out, call->count };
        job->pieces = &job->whole;
        job->piece_count = 1;
    }
}

static bool is_one(const struct job *job)
{
    return job->pieces == &job->whole;
}

/* What a member gives that has joined: it is not prescaled. */
static void give_nothing(const struct job *job, void *to, size_t count, struct reduction *ret_how)
{
    *ret_how = job->how;
    ret_how->prescale = 1;
    reduce_identity(to, count, ret_how);
}

/* How many of `left` numbers from `from` on lie in one piece, which the cursor is put on. */
static size_t stretch(const struct job *job, struct cursor *cursor, size_t from, size_t left)
{
    size_t end;

    while (from >= cursor->at + job->pieces[cursor->piece].count)
        cursor->at += job->pieces[cursor->piece++].count;
    end = cursor->at + job->pieces[cursor->piece].count;
    return end - from < left ? end - from : left;
}

static void read_numbers(struct job *job, size_t from, size_t count, uint8_t *to)
{
    while (count) {
        size_t some = stretch(job, &job->in, from, count);
        const uint8_t *in = job->pieces[job->in.piece].in;

        memcpy(to, in + (from - job->in.at) * job->bytes, some * job->bytes);
        to += some * job->bytes;
        from += some;
        count -= some;
    }
}

static void write_numbers(struct job *job, size_t to, size_t count, const uint8_t *from)
{
    while (count) {
        size_t some = stretch(job, &job->out, to, count);
        uint8_t *out = job->pieces[job->out.piece].out;

        memcpy(out + (to - job->out.at) * job->bytes, from, some * job->bytes);
        from += some * job->bytes;
        to += some;
        count -= some;
    }
}

/* ---- over a board ---- */

static size_t chunk_count(const struct job *job, size_t chunk)
{
    size_t left = job->count - chunk * job->chunk;

    return left < job->chunk ? left : job->chunk;
}

static size_t part_of(const struct job *job, size_t chunk, size_t *ret_count)
{
    return share_of(chunk_count(job, chunk), job->bytes, group_local(&job->operation->group->group),
                    job->owners, ret_count);
}

static bool owns(const struct job *job)
{
    return group_local(&job->operation->group->group) < job->owners;
}

/* What this member alone reads again it need not put on its stage. */
static void to_stage(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    struct board *board = job->operation->group->board;
    uint8_t *stage = board_stage(board, board_seat(board), turn);
    size_t from = chunk * job->chunk, count = chunk_count(job, chunk), own = 0, own_count = 0;

    if (is_one(job) && owns(job))
        own = part_of(job, chunk, &own_count);
    if (!own_count)
        own = count;
    read_numbers(job, from, own, stage);
    own += own_count;
    read_numbers(job, from + own, count - own, stage + own * job->bytes);
}

/* Where the members' numbers from `at` of the chunk on are; returns how many members give some. */
static size_t sources(struct job *job, size_t chunk, uint64_t turn, size_t at, const void **from)
{
    struct board *board = job->operation->group->board;
    size_t count = 0;

    for (uint32_t seat = 0; seat < board_count(board); seat++) {
        if (!operation_gives(job->operation, seat))
            continue;
        if (seat == board_seat(board) && job->pieces && is_one(job))
            from[count++] = (const uint8_t *)job->whole.in + (chunk * job->chunk + at) * job->bytes;
        else
            from[count++] = board_stage(board, seat, turn) + at * job->bytes;
    }
    return count;
}

/* On one host: what is reduced goes to the result for the others, and home at once. */
static int reduce_here(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    struct coll_group *group = job->operation->group;
    size_t count, at = part_of(job, chunk, &count), inputs, outputs = 1;
    void *to[2] = { board_result(group->board, turn) + at * job->bytes, NULL };

    if (!count)
        return 0;
    inputs = sources(job, chunk, turn, at, group->sources);
    if (job->pieces && is_one(job))
        to[outputs++] = (uint8_t *)job->whole.out + (chunk * job->chunk + at) * job->bytes;
    reduce_finish(to, outputs, group->sources, inputs, count, &job->how);
    return 0;
}

static enum lane_way way_for(size_t bytes)
{
    if (bytes <= GATHER_BYTES)
        return LANE_GATHER;
    return bytes <= DOUBLE_BYTES ? LANE_DOUBLE : LANE_RING;
}

/* What goes along with the opening of the lane is the work of a GATHER. */
static int open_late(const struct job *job, const void *work, size_t count)
{
    bool along = allreduce_opens_late(job->operation) && job->pieces;

    return operation_open_lane(job->operation, along ? work : NULL,
                               along ? count * job->work_bytes : 0);
}

/* Between hosts: what the members here give, then along the lane, to the result. */
static int reduce_between(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    struct coll_group *group = job->operation->group;
    struct reduction how = job->how;
    size_t count, at, inputs;
    uint8_t *result, *work;
    int rc;

    if (!owns(job))
        return 0;
    at = part_of(job, chunk, &count);
    if (!count)
        return 0;
    result = board_result(group->board, turn) + at * job->bytes;
    work = job->work ? job->work : result;
    inputs = sources(job, chunk, turn, at, group->sources);
    if (!inputs) { /* all here have joined: a stage is free */
        uint8_t *nothing = board_stage(group->board, board_seat(group->board), turn);

        give_nothing(job, nothing, count, &how);
        group->sources[inputs++] = nothing;
    }
    reduce_gather(work, group->sources, inputs, count, &how);
    rc = open_late(job, work, count);
    if (rc)
        return rc;
    return lane_allreduce(&group->lane, work, result, count, &job->how,
                          way_for(count * job->work_bytes));
}

static void from_result(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    const uint8_t *result = board_result(job->operation->group->board, turn);
    size_t to = chunk * job->chunk, count = chunk_count(job, chunk), own = count, own_count = 0;
    bool is_home = is_one(job) && job->operation->group->lane.size == 1 &&
                   job->operation->group->group.host_count == 1;

    if (is_home)
        own = part_of(job, chunk, &own_count);
    write_numbers(job, to, own, result);
    own += own_count;
    write_numbers(job, to + own, count - own, result + own * job->bytes);
}

/* Small: each reduces everything, in the order of seats. */
static void reduce_alone(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    struct coll_group *group = job->operation->group;
    uint8_t *result = board_stage(group->board, board_seat(group->board), turn + 1);
    size_t inputs = sources(job, chunk, turn, 0, group->sources);
    void *to[1] = { is_one(job) ? job->whole.out : result };

    reduce_finish(to, 1, group->sources, inputs, job->count, &job->how);
    if (!is_one(job))
        write_numbers(job, 0, job->count, result);
}

static bool is_small(const struct operation *operation, size_t bytes)
{
    const struct group *members = &operation->group->group;

    return members->host_count == 1 && bytes * (members->local_count - 1) <= SMALL_BYTES;
}

static int plan_stages(struct job *job, struct stages *stages)
{
    const struct group *members = &job->operation->group->group;
    size_t all = job->count * job->bytes;

    *stages = (struct stages){ .in = to_stage, .out = from_result, .arg = job };
    job->chunk = CHUNK_BYTES / job->bytes;
    if (is_small(job->operation, all)) {
        job->chunk = job->count ? job->count : 1;
        job->owners = 0;
        stages->out = reduce_alone;
    } else if (members->host_count == 1) {
        job->owners = members->local_count;
        stages->middle = reduce_here;
    } else {
        job->owners = allreduce_lanes(job->operation);
        stages->middle = reduce_between;
        job->work = NULL;
        if (job->work_bytes != job->bytes || reduce_work_type(&job->how) != job->how.type) {
            job->work = coll_scratch(job->operation->coll, job->chunk * job->work_bytes);
            if (!job->work)
                return HVD_E_NOMEM;
        }
    }
    stages->chunks = (job->count + job->chunk - 1) / job->chunk;
    return 0;
}

/* ---- along a lane alone: no other member is on this host ---- */

static size_t fusion_bytes(const struct coll *coll)
{
    size_t bytes = coll->engine ? coll->engine->options.fusion_bytes : 0;

    return bytes ? bytes : FUSION_BYTES;
}

/* Several buffers, and numbers that are worked on in another type, go by blocks. The size of these
 * depends on what all know, so that one that has joined takes the same. */
static size_t block_count(const struct job *job)
{
    size_t block = fusion_bytes(job->operation->coll) / job->work_bytes;

    if (!job->operation->accord.root && reduce_work_type(&job->how) == job->how.type)
        return job->count;
    return job->count < block ? job->count : block ? block : 1;
}

/* Where the block is in its own type; work is for what is not the program's. */
static uint8_t *load_block(struct job *job, size_t from, size_t count, uint8_t *work,
                           struct reduction *ret_how)
{
    uint8_t *at = work + count * job->work_bytes;

    *ret_how = job->how;
    if (!job->pieces)
        give_nothing(job, at, count, ret_how);
    else if (!is_one(job))
        read_numbers(job, from, count, at);
    else
        at = (uint8_t *)job->whole.out + from * job->bytes;
    return at;
}

static int reduce_block(struct job *job, struct lane *lane, enum lane_way way, size_t from,
                        size_t count, uint8_t *work)
{
    struct reduction how;
    uint8_t *out = load_block(job, from, count, work, &how);
    const uint8_t *in = out;
    int rc;

    if (job->pieces && is_one(job))
        in = (const uint8_t *)job->whole.in + from * job->bytes;
    if (!work)
        work = out;
    reduce_widen(work, in, count, &how);
    rc = way == LANE_ORDER ? 0 : open_late(job, work, count);
    if (!rc)
        rc = lane_allreduce(lane, work, out, count, &job->how, way);
    if (!rc && job->pieces && !is_one(job))
        write_numbers(job, from, count, out);
    return rc;
}

static int reduce_blocks(struct job *job, struct lane *lane, bool ordered)
{
    size_t block = block_count(job);
    bool in_place = job->pieces && is_one(job) && reduce_work_type(&job->how) == job->how.type;
    uint8_t *work = NULL;
    int rc = 0;

    if (!in_place && block) {
        work = coll_scratch(job->operation->coll, block * (job->work_bytes + job->bytes));
        if (!work)
            return HVD_E_NOMEM;
    }
    for (size_t from = 0; from < job->count && !rc; from += block) {
        size_t count = job->count - from < block ? job->count - from : block;

        rc = reduce_block(job, lane, ordered ? LANE_ORDER : way_for(count * job->work_bytes), from,
                          count, work);
    }
    return rc;
}

/* ---- */

/* From what all have agreed about. */
static struct reduction reduction_of(const struct operation *operation)
{
    const struct accord *accord = &operation->accord;

    return (struct reduction){ .type = (hvd_dtype)accord->type,
                               .op = (hvd_op)accord->op,
                               .size = operation->group->group.size,
                               .prescale = accord->prescale,
                               .postscale = accord->postscale };
}

static struct job job_of(struct operation *operation)
{
    struct job job = { .operation = operation,
                       .how = reduction_of(operation),
                       .count = operation->accord.count };

    job.bytes = reduce_type_bytes(job.how.type);
    job.work_bytes = reduce_work_bytes(&job.how);
    return job;
}

uint32_t allreduce_lanes(const struct operation *operation)
{
    size_t bytes = operation->accord.count * reduce_type_bytes((hvd_dtype)operation->accord.type);

    if (operation_is_ordered(operation) || bytes <= LEADER_BYTES)
        return 1;
    return operation->group->group.lane_count;
}

bool allreduce_opens_late(const struct operation *operation)
{
    const struct reduction how = reduction_of(operation);
    uint64_t count = operation->accord.count;

    return operation->accord.kind == COLL_ALLREDUCE && !operation_is_ordered(operation) && count &&
           count * reduce_work_bytes(&how) <= GATHER_BYTES;
}

/* What follows the opening, where there is no board, or the order is fixed between hosts. */
static int go_on_lane(struct job *job)
{
    struct coll_group *group = job->operation->group;
    struct accord theirs;
    int rc;

    if (group->board)
        group->turn = job->operation->turn + 1;
    if (!operation_is_ordered(job->operation))
        return reduce_blocks(job, &group->lane, false);
    rc = lane_open(&group->mesh_lane, &job->operation->accord, &theirs);
    if (!rc)
        rc = reduce_blocks(job, &group->mesh_lane, true);
    return lane_close(&group->mesh_lane, rc);
}

/* Each has said whether its numbers can be read by the others as they are. If only some can, those
 * have put nothing on their stages yet. */
static int go_on_stages(struct job *job, const struct stages *stages, bool begun)
{
    struct operation *operation = job->operation;
    enum direct_extent extent = direct_offered(operation);
    int rc = 0;

    if (extent == DIRECT_ALL)
        return direct_run(operation, &job->how);
    if (extent == DIRECT_SOME) {
        if (!begun)
            stages_begin(operation, stages);
        rc = board_step(operation->group->board);
    }
    return rc ? rc : stages_go_on(operation, stages);
}

int allreduce_run(struct operation *operation)
{
    struct job job = job_of(operation);
    struct stages stages;
    uint32_t last;
    bool direct;
    int rc;

    set_pieces(&job);
    if (!operation->group->board || operation_is_ordered(operation)) {
        rc = operation_open(operation, &last);
        return rc ? rc : go_on_lane(&job);
    }
    rc = plan_stages(&job, &stages);
    if (rc)
        return rc;
    if (is_one(&job) && stages.middle == reduce_here)
        direct_offer(operation);
    direct = operation->in.bytes != 0;
    if (!direct)
        stages_begin(operation, &stages);
    rc = operation_open(operation, &last);
    return rc ? rc : go_on_stages(&job, &stages, !direct);
}

int allreduce_go_on(struct operation *operation)
{
    struct job job = job_of(operation);
    struct stages stages;
    int rc;

    if (!operation->group->board || operation_is_ordered(operation))
        return go_on_lane(&job);
    rc = plan_stages(&job, &stages);
    return rc ? rc : go_on_stages(&job, &stages, true);
}
