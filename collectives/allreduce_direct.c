/*
 * allreduce_direct.c: an allreduce on one host where all members have their numbers in memory that
 * the other members can read (hvd_alloc). Nothing is copied to a stage (shared memory): each member
 * reduces its part of all numbers, out of the buffers of all members, into its own output; after a
 * step (board.h) the member copies the other parts out of the outputs of the other members; then
 * one more step. A member never writes into the memory of another member.
 */
#include "collectives/allreduce_internal.h"

#include <string.h>

/* After so many bytes the member looks whether the round has failed. */
#define STRETCH_BYTES ((size_t)1024 * 1024)

/* Writes into our opening message where our input and our output are, so that the other members
 * of this host can read both (allreduce_internal.h). If one of the two is not in memory of
 * hvd_alloc, other processes cannot read it: then neither is offered (`bytes` is 0). Returns
 * whether they are offered. */
bool direct_offer(struct operation *operation)
{
    const struct coll_call *call = operation->call;
    size_t bytes = call->count * reduce_type_bytes(call->type);

    if (!pool_locate(call->in, bytes, &operation->in) ||
        !pool_locate(call->out, bytes, &operation->out))
        operation->in = operation->out = (struct pool_locator){ .bytes = 0 };
    return operation->in.bytes != 0;
}

/* Returns how many members of this host have offered their buffers. Their openings are on the
 * board, so all members get the same answer. */
enum direct_extent direct_offered(const struct operation *operation)
{
    uint32_t count = board_count(operation->group->board), offered = 0;

    for (uint32_t local = 0; local < count; local++)
        offered += operation_opening(operation, local)->in.bytes != 0;
    if (!offered)
        return DIRECT_NONE;
    return offered == count ? DIRECT_ALL : DIRECT_SOME;
}

/* For each member of this host: the address of its input (`ins`) and of its output (`outs`). */
struct direct {
    const struct allreduce *all;
    const uint8_t **ins, **outs;
};

/* Returns the address at which this process reads a buffer of another member. *ret_rc on entry: the
 * result so far; if that is an error, this call does nothing. NULL: the buffer cannot be opened,
 * the round has failed, and *ret_rc has the code. */
static const uint8_t *view_of(struct coll *coll, const struct pool_locator *locator, int *ret_rc)
{
    struct pool_views **views = &coll->memory.views;
    struct hvd_err err = { .text = "" };
    const void *at = NULL;

    if (!*views && !*ret_rc)
        *ret_rc = pool_views_create(views, &err);
    if (!*ret_rc)
        *ret_rc = pool_view(*views, locator, &at, &err);
    if (*ret_rc && err.text[0])
        coll_fail(coll, *ret_rc, coll->rank, "rank %u: memory of hvd_alloc cannot be opened: %s",
                  coll->rank, err.text);
    return at;
}

/* Returns the index of the first number that the member `local` reduces; *ret_count: how many. */
static size_t part_of(const struct direct *direct, uint32_t local, size_t *ret_count)
{
    return share_of(direct->all->count, direct->all->bytes, local,
                    board_count(direct->all->operation->group->board), ret_count);
}

/* Copies the parts that the other members have reduced to our output. Each member begins with its
 * neighbour's part, so that the members do not all read the same memory. */
static int take_other_parts(const struct direct *direct)
{
    struct operation *operation = direct->all->operation;
    struct board *board = operation->group->board;
    uint32_t locals = board_count(board);

    for (uint32_t i = 1; i < locals; i++) {
        uint32_t local = (board_local(board) + i) % locals;
        size_t count, at = part_of(direct, local, &count) * direct->all->bytes;
        size_t end = at + count * direct->all->bytes;

        for (; at < end; at += STRETCH_BYTES) {
            if (coll_has_failed(operation->coll))
                return HVD_E_REVOKED;
            memcpy((uint8_t *)operation->call->out + at, direct->outs[local] + at,
                   end - at < STRETCH_BYTES ? end - at : STRETCH_BYTES);
        }
    }
    return 0;
}

/* Runs the allreduce on the buffers themselves (see the top of this file). The last step of the
 * board says that no member reads another member's output any more, so the program may change it.
 */
int direct_run(const struct allreduce *all)
{
    struct operation *operation = all->operation;
    struct coll *coll = operation->coll;
    struct board *board = operation->group->board;
    const void **sources = operation->group->sources;
    struct direct direct = { .all = all };
    size_t stretch = STRETCH_BYTES / all->bytes, from, count;
    int rc = 0;

    direct.ins = coll_scratch(coll, 2 * board_count(board) * sizeof(*direct.ins));
    if (!direct.ins)
        return HVD_E_NOMEM;
    direct.outs = direct.ins + board_count(board);
    if (coll->memory.views)
        pool_views_trim(coll->memory.views);
    for (uint32_t local = 0; local < board_count(board) && !rc; local++) {
        const struct board_opening *opening = operation_opening(operation, local);
        bool ours = local == board_local(board);

        direct.ins[local] = ours ? operation->call->in : view_of(coll, &opening->in, &rc);
        direct.outs[local] = ours ? operation->call->out : view_of(coll, &opening->out, &rc);
    }
    /* This member reduces its own part, at most STRETCH_BYTES at a time. */
    from = part_of(&direct, board_local(board), &count);
    for (size_t done = 0; !rc && done < count; done += stretch) {
        size_t at = (from + done) * all->bytes;
        void *to[1] = { (uint8_t *)operation->call->out + at };

        for (uint32_t local = 0; local < board_count(board); local++)
            sources[local] = direct.ins[local] + at;
        if (coll_has_failed(coll))
            rc = HVD_E_REVOKED;
        else
            reduce_finish(to, 1, sources, board_count(board),
                          count - done < stretch ? count - done : stretch, &all->how);
    }
    if (!rc)
        rc = board_step(board);
    if (!rc)
        rc = take_other_parts(&direct);
    if (!rc)
        rc = board_step(board);
    /* The operation counts as one chunk of the board, for all members alike. */
    operation->group->turn = operation->turn + 1;
    return rc;
}
