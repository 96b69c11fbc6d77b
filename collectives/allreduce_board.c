/*
 * allreduce_board.c: an allreduce over the boards of its hosts, in chunks. The steps of a chunk
 * (stages.c has the pipeline):
 *
 *     copy_in        this member's numbers to its stage, its own memory on the board
 *     reduce_here    one host: member i reduces part i of all stages, to the result and to its own
 *                    buffer at once
 *     reduce_between several hosts: owner i reduces part i of its host, and takes it along lane i
 *     copy_out       from the result to the program's buffer
 *     reduce_alone   one host, small: each member reduces all parts by itself, to its own buffer;
 *                    used instead of reduce_here and copy_out
 *
 * A board is the shared memory of the members of one host; a turn counts the chunks of all
 * operations on a board. Each member computes by itself how a chunk is divided into parts, and all
 * get the same division, because they compute it from equal values. A member writes its stage
 * before it waits for the others at a step of the board; the others read that stage only until the
 * next step.
 */
#include "collectives/allreduce_internal.h"

/* How many numbers the chunk has: the last one may be shorter. */
static size_t chunk_count(const struct allreduce *all, size_t chunk)
{
    size_t left = all->count - chunk * all->chunk;

    return left < all->chunk ? left : all->chunk;
}

/* Returns the index at which this member's part of the chunk begins. *ret_count: how many numbers
 * the part has; 0 if the member owns no part. */
static size_t own_part(const struct allreduce *all, size_t chunk, size_t *ret_count)
{
    uint32_t local = all->operation->group->group.local;

    *ret_count = 0;
    if (local >= all->owners)
        return 0;
    return share_of(chunk_count(all, chunk), all->bytes, local, all->owners, ret_count);
}

/* Stage `in` of the pipeline: copies our numbers to our stage, except those of our own part, which
 * only this member reads. With several buffers in the call all are copied. */
static void copy_in(void *arg, size_t chunk, uint64_t turn)
{
    struct allreduce *all = arg;
    struct board *board = all->operation->group->board;
    uint8_t *stage = board_stage(board, board_local(board), turn);
    size_t from = chunk * all->chunk, count = chunk_count(all, chunk), own = 0, own_count = 0;

    if (allreduce_is_one(all))
        own = own_part(all, chunk, &own_count);
    if (!own_count)
        own = count;
    pieces_read(all->pieces, from, own, stage);
    own += own_count;
    pieces_read(all->pieces, from + own, count - own, stage + own * all->bytes);
}

/* Lists in group->sources the addresses of the members' numbers from index `at` of the chunk on.
 * Returns how many members give numbers: those that have joined give none. */
static size_t find_sources(const struct allreduce *all, size_t chunk, uint64_t turn, size_t at)
{
    struct board *board = all->operation->group->board;
    const void **from = all->operation->group->sources;
    size_t count = 0;

    for (uint32_t local = 0; local < board_count(board); local++) {
        if (!operation_gives(all->operation, local))
            continue;
        if (local == board_local(board) && allreduce_is_one(all))
            from[count++] = pieces_in(all->pieces, chunk * all->chunk + at);
        else
            from[count++] = board_stage(board, local, turn) + at * all->bytes;
    }
    return count;
}

/* Stage `middle` of the pipeline on one host: reduces our part of the chunk out of the numbers of
 * all members, and writes it to the result, from where the other members copy it. If the call
 * has only one buffer, our own numbers were not copied to the stage: they are read from that
 * buffer, and the result is also written to that buffer at once. */
static int reduce_here(void *arg, size_t chunk, uint64_t turn)
{
    struct allreduce *all = arg;
    struct coll_group *group = all->operation->group;
    size_t count, at = own_part(all, chunk, &count), inputs, outputs = 1;
    void *to[2] = { board_result(group->board, turn) + at * all->bytes, NULL };

    if (!count)
        return 0;
    inputs = find_sources(all, chunk, turn, at);
    if (allreduce_is_one(all))
        to[outputs++] = pieces_out(all->pieces, chunk * all->chunk + at);
    reduce_finish(to, outputs, group->sources, inputs, count, &all->how);
    return 0;
}

/* Stage `middle` of the pipeline with several hosts: reduces our part of the chunk over the members
 * of this host, then along our lane over all hosts. The sum goes to the result, the memory from
 * which all members of this host copy it. */
static int reduce_between(void *arg, size_t chunk, uint64_t turn)
{
    struct allreduce *all = arg;
    struct coll_group *group = all->operation->group;
    struct reduction how = all->how;
    size_t count, at = own_part(all, chunk, &count), inputs;
    uint8_t *result = board_result(group->board, turn) + at * all->bytes;
    uint8_t *work = all->work ? all->work : result;
    int rc;

    if (!count)
        return 0;
    inputs = find_sources(all, chunk, turn, at);
    if (!inputs) { /* all members of this host have joined, so our stage is unused */
        uint8_t *nothing = board_stage(group->board, board_local(group->board), turn);

        allreduce_give_nothing(all, nothing, count, &how);
        group->sources[inputs++] = nothing;
    }
    reduce_gather(work, group->sources, inputs, count, &how);
    rc = allreduce_open_lane(all, work, count);
    if (rc)
        return rc;
    return lane_allreduce(&group->lane, work, result, count, &all->how,
                          algorithm_along_lane(count * all->work_bytes));
}

/* Stage `out` of the pipeline: copies the result of the chunk from the board to the program's
 * buffer, except the part that reduce_here has written to that buffer already. */
static void copy_out(void *arg, size_t chunk, uint64_t turn)
{
    struct allreduce *all = arg;
    const uint8_t *result = board_result(all->operation->group->board, turn);
    size_t to = chunk * all->chunk, count = chunk_count(all, chunk), own = count, own_count = 0;

    /* on one host, with one buffer: reduce_here has written our own part to the program's buffer */
    if (allreduce_is_one(all) && all->operation->group->group.host_count == 1)
        own = own_part(all, chunk, &own_count);
    pieces_write(all->pieces, to, own, result);
    own += own_count;
    pieces_write(all->pieces, to + own, count - own, result + own * all->bytes);
}

/* Stage `out` of a small allreduce on one host, after the first step of the board: this member
 * reduces the numbers of all members by itself, so no second step is needed. The whole operation is
 * one chunk. If the call has several buffers, the sum is first written to the second copy of our
 * stage, the one for chunk `turn` + 1, which no member reads, and then copied to the buffers. */
static void reduce_alone(void *arg, size_t chunk, uint64_t turn)
{
    struct allreduce *all = arg;
    struct coll_group *group = all->operation->group;
    uint8_t *own = board_stage(group->board, board_local(group->board), turn + 1);
    size_t inputs = find_sources(all, chunk, turn, 0 /* the whole chunk */);
    void *to[1] = { allreduce_is_one(all) ? pieces_out(all->pieces, 0) : own };

    reduce_finish(to, 1, group->sources, inputs, all->count, &all->how);
    if (!allreduce_is_one(all))
        pieces_write(all->pieces, 0, all->count, own);
}

/* Plans the stages of an allreduce over a board: the chunks, and which members own a part of each
 * chunk. HVD_E_NOMEM: no memory for the work type. */
int allreduce_plan_stages(struct allreduce *all, struct stages *ret_stages)
{
    const struct group *members = &all->operation->group->group;
    size_t chunk = all->algorithm.chunk_bytes / all->bytes;

    all->chunk = chunk ? chunk : 1;
    *ret_stages = (struct stages){ .chunks = (all->count + all->chunk - 1) / all->chunk,
                                   .in = copy_in,
                                   .out = copy_out,
                                   .arg = all };
    if (all->algorithm.alone) {
        ret_stages->out = reduce_alone;
    } else if (members->host_count == 1) {
        all->owners = members->local_count;
        ret_stages->middle = reduce_here;
    } else {
        all->owners = allreduce_lanes(all->operation);
        ret_stages->middle = reduce_between;
        if (allreduce_is_apart(all)) {
            all->work = coll_scratch(all->operation->coll, all->chunk * all->work_bytes);
            return all->work ? 0 : HVD_E_NOMEM;
        }
    }
    return 0;
}
