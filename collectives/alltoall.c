#include "base/mem.h"
#include "collectives/operation.h"

#include <inttypes.h>
#include <string.h>

/* Members on one host give each other theirs by the board, all others by a connection of each pair.
 * Who gives how much to whom is told to all beforehand: then every member sees by itself whether it
 * is what each expects. */

struct job {
    struct operation *operation;
    const uint8_t *in;
    uint8_t *out;
    size_t bytes;
    const uint64_t *given; /* NULL: count between any two; else of member i to k: [i * size + k] */
    const uint8_t **out_blocks; /* of each member */
    uint8_t **in_blocks;
    size_t *out_lengths, *in_lengths;
    size_t piece; /* bytes for each member on a stage */
};

static size_t length_between(const struct job *job, uint32_t from, uint32_t to)
{
    if (!job->given)
        return job->operation->call->count * job->bytes;
    return (size_t)job->given[(size_t)from * job->operation->group->group.size + to] * job->bytes;
}

/* ---- what is given to whom ---- */

/* A table has two rows of each member: what it gives, and what it expects. */
static struct coll_call gather_of(const struct group *members, const struct coll_call *call,
                                  uint64_t *table)
{
    uint64_t *own = table + (size_t)members->place * 2 * members->size;

    for (uint32_t i = 0; i < members->size; i++) {
        own[i] = call->counts[i];
        own[members->size + i] = call->out_counts[i];
    }
    return (struct coll_call){ .kind = COLL_ALLGATHER,
                               .type = HVD_INT64,
                               .in = own,
                               .out = table,
                               .count = 2 * (size_t)members->size };
}

static int compare_counts(struct coll *coll, const struct group *members, const uint64_t *table,
                          uint64_t *given)
{
    size_t size = members->size;

    for (uint32_t from = 0; from < size; from++) {
        for (uint32_t to = 0; to < size; to++) {
            uint64_t gives = table[from * 2 * size + to];
            uint64_t expects = table[to * 2 * size + size + from];

            given[from * size + to] = gives;
            if (gives != expects)
                return coll_fail(coll, HVD_E_MISMATCH, members->ranks[from],
                                 "alltoall: rank %u gives rank %u %" PRIu64
                                 " numbers, and that one expects %" PRIu64
                                 "; counts there and out_counts here must be equal",
                                 members->ranks[from], members->ranks[to], gives, expects);
        }
    }
    return 0;
}

/* operation: that it is for; NULL: none is open. */
static int learn_counts(struct coll *coll, struct coll_group *group, const struct coll_call *call,
                        struct operation *operation, uint64_t **ret_given)
{
    size_t size = group->group.size;
    uint64_t *table = mem_zalloc_array(3 * size * size, sizeof(*table));
    struct coll_call gather;
    int rc;

    if (!table)
        return HVD_E_NOMEM;
    gather = gather_of(&group->group, call, table);
    rc = operation ? operation_before(operation, &gather) : operation_inside(coll, group, &gather);
    if (!rc)
        rc = compare_counts(coll, &group->group, table, table + 2 * size * size);
    if (!rc)
        memmove(table, table + 2 * size * size, size * size * sizeof(*table));
    if (rc) {
        mem_free(table);
        return rc;
    }
    *ret_given = table;
    return 0;
}

int alltoall_agree(struct coll *coll, struct coll_group *group, const struct coll_call *call,
                   size_t *ret_most)
{
    size_t size = group->group.size;
    uint64_t *given = NULL;
    int rc = learn_counts(coll, group, call, NULL, &given);

    if (rc)
        return rc;
    *ret_most = 0;
    for (size_t i = 0; i < size * size; i++)
        *ret_most = given[i] > *ret_most ? given[i] : *ret_most;
    mem_free(given);
    return 0;
}

static void lay_out(struct job *job)
{
    const struct group *members = &job->operation->group->group;
    size_t out = 0, in = 0;

    for (uint32_t i = 0; i < members->size; i++) {
        job->out_blocks[i] = job->in + out;
        job->in_blocks[i] = job->out + in;
        job->out_lengths[i] = length_between(job, members->place, i);
        job->in_lengths[i] = length_between(job, i, members->place);
        out += job->out_lengths[i];
        in += job->in_lengths[i];
    }
}

/* ---- on a board ---- */

static size_t piece_of(const struct job *job, size_t length, size_t chunk)
{
    size_t from = chunk * job->piece;

    if (from >= length)
        return 0;
    return length - from < job->piece ? length - from : job->piece;
}

static void to_stage(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    const struct group *members = &job->operation->group->group;
    struct board *board = job->operation->group->board;
    uint8_t *stage = board_stage(board, board_seat(board), turn);

    for (uint32_t seat = 0; seat < members->local_count; seat++) {
        uint32_t to = members->locals[seat];
        size_t length = piece_of(job, job->out_lengths[to], chunk);

        if (length)
            memcpy(stage + seat * job->piece, job->out_blocks[to] + chunk * job->piece, length);
    }
}

static void from_stages(void *arg, size_t chunk, uint64_t turn)
{
    struct job *job = arg;
    const struct group *members = &job->operation->group->group;
    struct board *board = job->operation->group->board;

    for (uint32_t seat = 0; seat < members->local_count; seat++) {
        uint32_t from = members->locals[seat];
        size_t length = piece_of(job, job->in_lengths[from], chunk);

        if (length)
            memcpy(job->in_blocks[from] + chunk * job->piece,
                   board_stage(board, seat, turn) + board_seat(board) * job->piece, length);
    }
}

/* The same on all members here. */
static size_t chunks_here(const struct job *job)
{
    const struct group *members = &job->operation->group->group;
    size_t most = 0;

    for (uint32_t i = 0; i < members->local_count; i++) {
        for (uint32_t k = 0; k < members->local_count; k++) {
            size_t length = length_between(job, members->locals[i], members->locals[k]);

            most = length > most ? length : most;
        }
    }
    return (most + job->piece - 1) / job->piece;
}

static int over_board(struct job *job)
{
    struct stages stages = { .in = to_stage, .out = from_stages, .arg = job };

    job->piece = BOARD_STAGE_BYTES / job->operation->group->group.local_count / 64 * 64;
    stages.chunks = chunks_here(job);
    return stages_run(job->operation, &stages);
}

/* ---- between hosts ---- */

static int over_mesh(struct job *job)
{
    struct coll_group *group = job->operation->group;
    const struct group *members = &group->group;
    struct accord theirs;
    int rc;

    for (uint32_t i = 0; i < members->local_count; i++) {
        job->out_lengths[members->locals[i]] = 0;
        job->in_lengths[members->locals[i]] = 0;
    }
    rc = lane_open(&group->mesh_lane, &job->operation->accord, &theirs);
    if (!rc)
        rc = lane_alltoall(&group->mesh_lane, job->out_blocks, job->out_lengths, job->in_blocks,
                           job->in_lengths);
    return lane_close(&group->mesh_lane, rc);
}

static void keep_own(const struct job *job)
{
    uint32_t own = job->operation->group->group.place;

    if (job->out_lengths[own])
        memcpy(job->in_blocks[own], job->out_blocks[own], job->out_lengths[own]);
}

static int run(struct job *job)
{
    struct coll_group *group = job->operation->group;
    uint32_t last;
    int rc = 0;

    lay_out(job);
    if (group->board) {
        rc = over_board(job);
    } else {
        rc = operation_open(job->operation, &last);
        if (!rc)
            keep_own(job);
    }
    return rc || group->group.host_count == 1 ? rc : over_mesh(job);
}

int alltoall_run(struct operation *operation)
{
    const struct coll_call *call = operation->call;
    size_t size = operation->group->group.size;
    struct job job = { .operation = operation,
                       .in = call->in,
                       .out = call->out,
                       .bytes = reduce_type_bytes(call->type) };
    uint64_t *given = NULL;
    void *memory;
    int rc = 0;

    if (operation->group->group.host_count > 1)
        rc = operation_mesh(operation);
    if (!rc && call->counts)
        rc = learn_counts(operation->coll, operation->group, call, operation, &given);
    if (rc)
        return rc;
    job.given = given;
    memory = mem_alloc(size * (2 * sizeof(size_t) + 2 * sizeof(void *)));
    if (memory) {
        job.out_lengths = memory;
        job.in_lengths = job.out_lengths + size;
        job.out_blocks = (const uint8_t **)(void *)(job.in_lengths + size);
        job.in_blocks = (uint8_t **)(void *)(job.out_blocks + size);
        rc = run(&job);
    }
    mem_free(memory);
    mem_free(given);
    return memory ? rc : HVD_E_NOMEM;
}
