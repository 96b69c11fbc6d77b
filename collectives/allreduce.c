#include "collectives/operation.h"
#include "collectives/pieces.h"
#include "os/clock.h"

/* Every number is reduced on one member only, in one order, and then passed on; or on all, in the
 * same order: so it is the same on all, bit for bit. */

#define FUSION_BYTES       ((size_t)64 * 1024 * 1024)
#define FUSION_LEAST_BYTES ((size_t)4 * 1024) /* less than a message is worth */
#define BLOCK_BYTES        ((size_t)64 * 1024 * 1024)

/* Of a call on memory of a device what is reduced here are the votes about it. */
static const struct accord *numbers_of(const struct operation *operation)
{
    static const struct accord votes = { .kind = COLL_ALLREDUCE,
                                         .type = HVD_INT32,
                                         .op = HVD_SUM,
                                         .count = OPERATION_VOTES,
                                         .prescale = 1,
                                         .postscale = 1 };

    return operation->accord.on_device ? &votes : &operation->accord;
}

struct job {
    struct operation *operation;
    struct reduction how;
    size_t count, bytes, work_bytes; /* bytes: of one number */
    struct pieces *pieces;           /* NULL: it has joined */
    struct way way;

    size_t chunk;    /* numbers in one */
    uint32_t owners; /* so many members reduce a part of each chunk, the first ones of the host */
    uint8_t *work;   /* for a part, where it cannot be done in the result */
};

static bool is_one(const struct job *job)
{
    return job->pieces && pieces_are_one(job->pieces);
}

static bool is_apart(const struct job *job) /* work is done in another type */
{
    return reduce_work_type(&job->how) != job->how.type;
}

/* What a member gives that has joined: it is not prescaled. */
static void give_nothing(const struct job *job, void *to, size_t count, struct reduction *ret_how)
{
    *ret_how = job->how;
    ret_how->prescale = 1;
    reduce_identity(to, count, ret_how);
}

/* What goes along with the opening of a lane is the work of its first step. */
static int open_late(const struct job *job, const void *work, size_t count)
{
    bool along = allreduce_opens_late(job->operation) && job->pieces;

    return operation_open_lane(job->operation, along ? work : NULL,
                               along ? count * job->work_bytes : 0);
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
    pieces_read(job->pieces, from, own, stage);
    own += own_count;
    pieces_read(job->pieces, from + own, count - own, stage + own * job->bytes);
}

/* Where the members' numbers from `at` of the chunk on are; returns how many members give some. */
static size_t sources(struct job *job, size_t chunk, uint64_t turn, size_t at, const void **from)
{
    struct board *board = job->operation->group->board;
    size_t count = 0;

    for (uint32_t seat = 0; seat < board_count(board); seat++) {
        if (!operation_gives(job->operation, seat))
            continue;
        if (seat == board_seat(board) && is_one(job))
            from[count++] = pieces_in(job->pieces, chunk * job->chunk + at);
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
    if (is_one(job))
        to[outputs++] = pieces_out(job->pieces, chunk * job->chunk + at);
    reduce_finish(to, outputs, group->sources, inputs, count, &job->how);
    return 0;
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
                          ways_along_lane(count * job->work_bytes));
}

static void from_result(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    const uint8_t *result = board_result(job->operation->group->board, turn);
    size_t to = chunk * job->chunk, count = chunk_count(job, chunk), own = count, own_count = 0;
    bool is_home = is_one(job) && job->operation->group->group.host_count == 1;

    if (is_home)
        own = part_of(job, chunk, &own_count);
    pieces_write(job->pieces, to, own, result);
    own += own_count;
    pieces_write(job->pieces, to + own, count - own, result + own * job->bytes);
}

/* Each reduces everything, in the order of seats. */
static void reduce_alone(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    struct coll_group *group = job->operation->group;
    uint8_t *own = board_stage(group->board, board_seat(group->board), turn + 1);
    size_t inputs = sources(job, chunk, turn, 0, group->sources);
    void *to[1] = { is_one(job) ? pieces_out(job->pieces, 0) : own };

    reduce_finish(to, 1, group->sources, inputs, job->count, &job->how);
    if (!is_one(job))
        pieces_write(job->pieces, 0, job->count, own);
}

static int plan_between(struct job *job, struct stages *stages)
{
    job->owners = allreduce_lanes(job->operation);
    stages->middle = reduce_between;
    if (!is_apart(job))
        return 0;
    job->work = coll_scratch(job->operation->coll, job->chunk * job->work_bytes);
    return job->work ? 0 : HVD_E_NOMEM;
}

static int plan_stages(struct job *job, struct stages *stages)
{
    const struct group *members = &job->operation->group->group;
    int rc = 0;

    *stages = (struct stages){ .in = to_stage, .out = from_result, .arg = job };
    job->chunk = job->way.chunk_bytes / job->bytes;
    if (!job->chunk)
        job->chunk = 1;
    if (job->way.alone) {
        job->owners = 0;
        stages->out = reduce_alone;
    } else if (members->host_count == 1) {
        job->owners = members->local_count;
        stages->middle = reduce_here;
    } else {
        rc = plan_between(job, stages);
    }
    stages->chunks = (job->count + job->chunk - 1) / job->chunk;
    return rc;
}

/* ---- along a lane alone: every member is alone on its host ---- */

static size_t fusion_bytes(const struct coll *coll)
{
    size_t bytes = coll->engine ? coll->engine->options.fusion_bytes : 0;

    if (!bytes)
        return FUSION_BYTES;
    return bytes > FUSION_LEAST_BYTES ? bytes : FUSION_LEAST_BYTES;
}

/* A buffer goes by blocks, as what is copied at once cannot be cancelled; so do several together,
 * which are copied. Their size depends on what all know, so that one that has joined takes the
 * same. */
static size_t block_count(const struct job *job)
{
    bool several = numbers_of(job->operation)->root & ACCORD_PIECES;
    size_t block = (several ? fusion_bytes(job->operation->coll) : BLOCK_BYTES) / job->work_bytes;

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
        pieces_read(job->pieces, from, count, at);
    else
        at = pieces_out(job->pieces, from);
    return at;
}

static int reduce_block(struct job *job, struct lane *lane, enum lane_way way, size_t from,
                        size_t count, uint8_t *work)
{
    struct reduction how;
    uint8_t *out = load_block(job, from, count, work, &how);
    const uint8_t *in = is_one(job) ? pieces_in(job->pieces, from) : out;
    int rc;

    if (!work)
        work = out;
    reduce_widen(work, in, count, &how);
    rc = way == LANE_ORDER ? 0 : open_late(job, work, count);
    if (!rc)
        rc = lane_allreduce(lane, work, out, count, &job->how, way);
    if (!rc && job->pieces && !is_one(job))
        pieces_write(job->pieces, from, count, out);
    return rc;
}

static int reduce_blocks(struct job *job, struct lane *lane, enum lane_way way)
{
    size_t block = block_count(job);
    uint8_t *work = NULL;
    int rc = 0;

    if ((is_apart(job) || !is_one(job)) && block) {
        work = coll_scratch(job->operation->coll, block * (job->work_bytes + job->bytes));
        if (!work)
            return HVD_E_NOMEM;
    }
    for (size_t from = 0; from < job->count && !rc; from += block)
        rc = reduce_block(job, lane, way, from,
                          job->count - from < block ? job->count - from : block, work);
    return rc;
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
        return reduce_blocks(job, &group->lane, job->way.lane);
    rc = lane_open(&group->mesh_lane, &job->operation->accord, &theirs);
    if (!rc)
        rc = reduce_blocks(job, &group->mesh_lane, LANE_ORDER);
    return lane_close(&group->mesh_lane, rc);
}

/* ---- from what all have agreed about ---- */

static struct reduction reduction_of(const struct operation *operation)
{
    const struct accord *accord = numbers_of(operation);

    return (struct reduction){ .type = (hvd_dtype)accord->type,
                               .op = (hvd_op)accord->op,
                               .size = operation->group->group.size,
                               .prescale = accord->prescale,
                               .postscale = accord->postscale };
}

static size_t ways_of(const struct operation *operation, struct way ways[WAYS_MAX])
{
    const struct reduction how = reduction_of(operation);
    uint64_t numbers = numbers_of(operation)->count;

    return ways_for(&operation->group->group, numbers * reduce_type_bytes(how.type),
                    numbers * reduce_work_bytes(&how), ways);
}

static struct way way_of(const struct operation *operation)
{
    struct way ways[WAYS_MAX];
    size_t count = ways_of(operation, ways);
    uint32_t way = numbers_of(operation)->root / ACCORD_WAY;

    return ways[way < count ? way : 0];
}

static struct job job_of(struct operation *operation)
{
    struct job job = { .operation = operation,
                       .how = reduction_of(operation),
                       .count = numbers_of(operation)->count,
                       .way = way_of(operation) };

    job.bytes = reduce_type_bytes(job.how.type);
    job.work_bytes = reduce_work_bytes(&job.how);
    return job;
}

uint32_t allreduce_lanes(const struct operation *operation)
{
    return operation_is_ordered(operation) || way_of(operation).leader
               ? 1
               : operation->group->group.lane_count;
}

bool allreduce_opens_late(const struct operation *operation)
{
    const struct reduction how = reduction_of(operation);
    uint64_t count = numbers_of(operation)->count;

    return numbers_of(operation)->kind == COLL_ALLREDUCE && !operation_is_ordered(operation) &&
           count && ways_at_once(count * reduce_work_bytes(&how));
}

/* ---- which way ---- */

/* A way that is not the likeliest is part of what all agree about, for those that have joined. */
void allreduce_choose(struct operation *operation)
{
    struct way ways[WAYS_MAX];
    const struct accord *accord = &operation->accord;
    size_t count = ways_of(operation, ways);
    uint32_t way;

    operation->bytes = accord->count * reduce_type_bytes((hvd_dtype)accord->type);
    operation->ways = operation_is_ordered(operation) ? 1 : (uint32_t)count;
    way =
        trial_way(&operation->group->trials, operation->bytes, operation->ways, &operation->tries);
    if (!operation->joined)
        operation->accord.root += ACCORD_WAY * way;
    if (operation->tries)
        operation->begun_us = clock_now_us();
}

bool allreduce_note(struct operation *operation)
{
    return operation->tries &&
           trial_note(&operation->group->trials, operation->bytes, operation->ways,
                      operation->accord.root / ACCORD_WAY, clock_now_us() - operation->begun_us);
}

/* ---- */

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
    struct pieces pieces;
    struct stages stages;
    uint32_t last;
    bool direct;
    int rc;

    pieces_init(&pieces, operation->call);
    job.pieces = &pieces;
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
