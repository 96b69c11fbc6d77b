#include "base/time.h"
#include "collectives/operation.h"
#include "os/clock.h"
#include "os/thread.h"

#include <inttypes.h>
#include <string.h>

/* ---- they do not mean the same ---- */

#define LOOK_US (20 * TIME_MS)

static bool is_over(const struct coll *coll)
{
    return coll_has_failed(coll) || (coll->segment && segment_failure(coll->segment, NULL, NULL));
}

/* Who has ended makes no other call, so this one waits for what does not come, until the round is
 * over. Who ends does not wait for it. */
static int apart(struct operation *operation)
{
    struct coll *coll = operation->coll;

    if (operation->call->kind == COLL_END)
        return HVD_E_STATE;
    pthread_mutex_lock(&coll->mutex);
    while (!is_over(coll))
        (void)thread_cond_wait(&coll->changed, &coll->mutex, clock_now_us() + LOOK_US);
    pthread_mutex_unlock(&coll->mutex);
    return HVD_E_REVOKED;
}

static int mismatch(struct operation *operation, const struct accord *theirs)
{
    char ours[ACCORD_TEXT_MAX], other[ACCORD_TEXT_MAX];

    if (theirs->kind == COLL_END || operation->accord.kind == COLL_END)
        return apart(operation);
    accord_describe(&operation->accord, ours);
    accord_describe(theirs, other);
    return coll_fail(operation->coll, HVD_E_MISMATCH, theirs->rank,
                     "on rank %u %s, on rank %u %s%s; all ranks must make the same calls in the "
                     "same order",
                     theirs->rank, other, operation->accord.rank, ours,
                     strcmp(ours, other) ? "" : " (of another group, or cut into other pieces)");
}

/* Who has joined can take part in what needs nothing of it. */
static bool can_do_without(const struct accord *accord)
{
    return accord->kind == COLL_ALLREDUCE || accord->kind == COLL_BARRIER ||
           accord->kind == COLL_JOIN;
}

static int judge(struct operation *operation, const struct accord *theirs)
{
    bool agree = theirs->kind == COLL_JOIN ? can_do_without(&operation->accord)
                                           : accord_same(&operation->accord, theirs);

    return agree ? 0 : mismatch(operation, theirs);
}

/* ---- on a board ---- */

static const struct accord *said_by(const struct operation *operation, uint32_t seat)
{
    const struct said *said =
        (const struct said *)board_said(operation->group->board, seat, operation->turn);

    return &said->accord;
}

bool operation_gives(const struct operation *operation, uint32_t seat)
{
    if (operation->givers == operation->group->group.local_count)
        return true;
    if (seat < 64)
        return !(operation->joins >> seat & 1);
    return said_by(operation, seat)->kind != COLL_JOIN;
}

static bool is_later(const struct accord *a, const struct accord *b)
{
    return a->last_number != b->last_number ? a->last_number > b->last_number : a->last > b->last;
}

/* Who has joined takes up what a neighbour means; of those who all have joined the last counts. */
static int compare_seats(struct operation *operation)
{
    uint32_t count = operation->group->group.local_count;

    for (uint32_t seat = 0; seat < count; seat++) {
        const struct accord *theirs = said_by(operation, seat);

        if (theirs->kind == COLL_JOIN) {
            operation->joins |= seat < 64 ? UINT64_C(1) << seat : 0;
            continue;
        }
        if (!operation->givers++ && operation->joined)
            operation->accord = *theirs;
    }
    for (uint32_t seat = 0; seat < count; seat++) {
        const struct accord *theirs = said_by(operation, seat);
        int rc = judge(operation, theirs);

        if (rc)
            return rc;
        if (!operation->givers && is_later(theirs, &operation->accord)) {
            operation->accord.last = theirs->last;
            operation->accord.last_number = theirs->last_number;
        }
    }
    return 0;
}

/* All here have joined: the one on the first lane asks the other hosts, and tells the others here
 * with one more step. */
static int ask_others(struct operation *operation)
{
    struct coll_group *group = operation->group;
    uint32_t seat = board_seat(group->board);
    struct accord learnt = operation->accord;
    int rc = 0;

    if (seat == 0 && group->lane.size > 1) {
        operation->on_lane = true;
        rc = lane_open(&group->lane, &operation->accord, &learnt);
        if (rc >= 0 && !can_do_without(&learnt))
            return mismatch(operation, &learnt);
        rc = rc < 0 ? rc : operation_settle(operation);
        if (rc)
            return rc;
    }
    operation->turn++;
    if (seat == 0)
        memcpy(board_said(group->board, 0, operation->turn), &learnt, sizeof(learnt));
    rc = board_step(group->board);
    if (!rc)
        operation->accord = *said_by(operation, 0);
    return rc;
}

_Static_assert(sizeof(struct said) <= BOARD_SAID_BYTES, "it has room on a board");

static int open_board(struct operation *operation)
{
    struct board *board = operation->group->board;
    struct said said = { operation->accord, operation->in, operation->out };
    int rc;

    memcpy(board_said(board, board_seat(board), operation->turn), &said, sizeof(said));
    rc = board_step(board);
    if (!rc)
        rc = compare_seats(operation);
    if (!rc && !operation->givers)
        rc = ask_others(operation);
    return rc;
}

/* ---- between hosts ---- */

int operation_open_lane(struct operation *operation, const void *first, size_t length)
{
    struct accord theirs;
    int rc;

    if (operation->on_lane)
        return 0;
    operation->on_lane = true;
    rc = lane_open_with(&operation->group->lane, &operation->accord, first, length, &theirs);
    if (rc < 0)
        return rc;
    if (operation->accord.kind == COLL_JOIN) {
        if (!can_do_without(&theirs))
            return mismatch(operation, &theirs);
        operation->accord = theirs;
    }
    return judge(operation, &theirs);
}

/* What can go along with the opening: a barrier has no numbers. */
static int open_lane(struct operation *operation)
{
    bool bare = operation->accord.kind == COLL_BARRIER || operation->accord.kind == COLL_END;

    if (bare && !operation->joined)
        return operation_open_lane(operation, "", 0);
    return allreduce_opens_late(operation) ? 0 : operation_open_lane(operation, NULL, 0);
}

/* How many lanes it takes is known by now also to who has joined. */
static bool is_on_a_lane(const struct operation *operation)
{
    const struct coll_group *group = operation->group;

    return group->lane.size > 1 && group_local(&group->group) < operation_lanes(operation);
}

int operation_open(struct operation *operation, uint32_t *ret_last)
{
    int rc = 0;

    if (operation->group->board)
        rc = open_board(operation);
    else
        operation->givers = !operation->joined;
    if (!rc && is_on_a_lane(operation))
        rc = open_lane(operation);
    if (rc || operation->accord.kind != COLL_JOIN)
        return rc;
    *ret_last = operation->accord.last;
    return HVD_DONE;
}
