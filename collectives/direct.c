#include "collectives/operation.h"
#include "collectives/shm/pool.h"

#include <string.h>

/*
 * Where all members of a host have their numbers in memory that the others can read (hvd_alloc),
 * nothing is copied to a stage: each reduces its part of all of it out of theirs into its own
 * output, a step, takes the other parts out of the others' outputs, a step. Nobody ever writes into
 * the memory of another.
 */

/* Between two looks at whether the round has failed. */
#define STRETCH_BYTES ((size_t)1024 * 1024)

static const struct said *said_by(const struct operation *operation, uint32_t seat)
{
    return (const struct said *)board_said(operation->group->board, seat, operation->turn);
}

void direct_offer(struct operation *operation)
{
    const struct coll_call *call = operation->call;
    size_t bytes = call->count * reduce_type_bytes(call->type);

    if (!pool_locate(call->in, bytes, &operation->in) ||
        !pool_locate(call->out, bytes, &operation->out))
        operation->in = operation->out = (struct pool_locator){ .bytes = 0 };
}

enum direct_extent direct_offered(const struct operation *operation)
{
    uint32_t count = board_count(operation->group->board), offered = 0;

    for (uint32_t seat = 0; seat < count; seat++)
        offered += said_by(operation, seat)->in.bytes != 0;
    if (!offered)
        return DIRECT_NONE;
    return offered == count ? DIRECT_ALL : DIRECT_SOME;
}

/* ---- at work ---- */

struct direct {
    struct operation *operation;
    const struct reduction *how;
    size_t count, bytes;
    const uint8_t **ins, **outs; /* of each seat */
};

static const uint8_t *view(const struct operation *operation, const struct pool_locator *locator,
                           int *ret_rc)
{
    struct coll *coll = operation->coll;
    struct hvd_err err = { .text = "" };
    const void *at = NULL;

    if (!coll->views && !*ret_rc)
        *ret_rc = pool_views_create(&coll->views, &err);
    if (!*ret_rc)
        *ret_rc = pool_view(coll->views, locator, &at, &err);
    if (*ret_rc && err.text[0])
        coll_fail(coll, *ret_rc, coll->rank, "rank %u: memory of hvd_alloc: %s", coll->rank,
                  err.text);
    return at;
}

static int open_views(struct direct *direct)
{
    struct operation *operation = direct->operation;
    struct board *board = operation->group->board;
    int rc = 0;

    if (operation->coll->views)
        pool_views_trim(operation->coll->views);
    for (uint32_t seat = 0; seat < board_count(board) && !rc; seat++) {
        const struct said *said = said_by(operation, seat);
        bool ours = seat == board_seat(board);

        direct->ins[seat] = ours ? operation->call->in : view(operation, &said->in, &rc);
        direct->outs[seat] = ours ? operation->call->out : view(operation, &said->out, &rc);
    }
    return rc;
}

static size_t part_of(const struct direct *direct, uint32_t seat, size_t *ret_count)
{
    return share_of(direct->count, direct->bytes, seat,
                    board_count(direct->operation->group->board), ret_count);
}

static int reduce_part(const struct direct *direct)
{
    struct operation *operation = direct->operation;
    struct board *board = operation->group->board;
    const void **sources = operation->group->sources;
    size_t stretch = STRETCH_BYTES / direct->bytes, count;
    size_t from = part_of(direct, board_seat(board), &count);

    for (size_t done = 0; done < count; done += stretch) {
        size_t some = count - done < stretch ? count - done : stretch;
        size_t at = (from + done) * direct->bytes;
        void *to[1] = { (uint8_t *)operation->call->out + at };

        if (coll_has_failed(operation->coll))
            return HVD_E_REVOKED;
        for (uint32_t seat = 0; seat < board_count(board); seat++)
            sources[seat] = direct->ins[seat] + at;
        reduce_finish(to, 1, sources, board_count(board), some, direct->how);
    }
    return 0;
}

/* Of the others. They are gone through from our neighbour on, so that not all read the same. */
static int take_parts(const struct direct *direct)
{
    struct operation *operation = direct->operation;
    struct board *board = operation->group->board;
    uint32_t seats = board_count(board);

    for (uint32_t i = 1; i < seats; i++) {
        uint32_t seat = (board_seat(board) + i) % seats;
        size_t count, at = part_of(direct, seat, &count) * direct->bytes;
        size_t end = at + count * direct->bytes;

        for (; at < end; at += STRETCH_BYTES) {
            if (coll_has_failed(operation->coll))
                return HVD_E_REVOKED;
            memcpy((uint8_t *)operation->call->out + at, direct->outs[seat] + at,
                   end - at < STRETCH_BYTES ? end - at : STRETCH_BYTES);
        }
    }
    return 0;
}

int direct_run(struct operation *operation, const struct reduction *how)
{
    struct board *board = operation->group->board;
    struct direct direct = { .operation = operation,
                             .how = how,
                             .count = operation->call->count,
                             .bytes = reduce_type_bytes(how->type) };
    int rc;

    direct.ins = coll_scratch(operation->coll, 2 * board_count(board) * sizeof(*direct.ins));
    if (!direct.ins)
        return HVD_E_NOMEM;
    direct.outs = direct.ins + board_count(board);
    rc = open_views(&direct);
    if (!rc)
        rc = reduce_part(&direct);
    if (!rc)
        rc = board_step(board);
    if (!rc)
        rc = take_parts(&direct);
    if (!rc)
        rc = board_step(board);
    operation->group->turn = operation->turn + 1;
    return rc;
}
