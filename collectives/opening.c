/*
 * opening.c: every operation begins by comparing fingerprints, before any number is sent. The files
 * of the kinds (allreduce.c, ...) call operation_open. Each member writes its fingerprint to the
 * board of its host; the board step that publishes the fingerprints is the first step of the
 * pipeline (stages.c). Between hosts a message goes around the lane: when each member agrees with
 * the member before it, all agree.
 *
 * A rank that has joined (hvd_join) learns here which operations the other members run, and takes
 * part without numbers, until all members have joined.
 */
#include "base/time.h"
#include "collectives/dispatch.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOOK_US (20 * TIME_MS) /* how often operation_await_end looks */

/* true: an allreduce that combines several requests of the program (hvd_start). */
static bool is_fused(const struct fingerprint *fingerprint)
{
    return fingerprint->kind == COLL_ALLREDUCE && fingerprint->fused;
}

/* Waits until the round has failed, here or on another process of this host (operation.h). */
int operation_await_end(struct coll *coll)
{
    while (!coll_has_failed(coll) && !coll_segment_failure(coll, NULL, NULL))
        coll_pause_until(coll, clock_now_us() + LOOK_US);
    return HVD_E_REVOKED;
}

/* Called when the fingerprints of two members differ: fails the round with HVD_E_MISMATCH.
 * Exception: one of the two members has ended (COLL_END) and makes no further call. Then there
 * is no mismatch: the other member waits until the round ends, and the member that has ended
 * returns HVD_E_STATE. A rank that has joined waits too: it may have received the fingerprint of a
 * member that has ended. */
static int mismatch(struct operation *operation, const struct fingerprint *theirs)
{
    struct coll *coll = operation->coll;
    char ours[FINGERPRINT_TEXT_MAX], other[FINGERPRINT_TEXT_MAX];
    bool ended = theirs->kind == COLL_END || operation->fingerprint.kind == COLL_END;

    /* The two members are on this host. The members of the other hosts wait for a message from the
     * first lane of this host: so the member on that lane tells them that this operation will never
     * run. */
    if (ended && !operation->on_lane && operation->group->group.local == 0)
        lane_open_ended(&operation->group->lane, &operation->fingerprint);
    if (operation->call->kind == COLL_END)
        return HVD_E_STATE;
    /* This rank has joined, and was told that the round ends; but a member of another host makes a
     * call. The other members of this host wait in the next board step: this rank makes that step
     * too. */
    if (ended && operation->joined && operation->on_lane && operation->group->board &&
        operation->fingerprint.kind == COLL_END && board_step(operation->group->board))
        return HVD_E_REVOKED;
    if (ended)
        return operation_await_end(coll);
    fingerprint_describe(&operation->fingerprint, ours);
    fingerprint_describe(theirs, other);
    return coll_fail(coll, HVD_E_MISMATCH, theirs->rank,
                     "on rank %u %s, on rank %u %s%s; all ranks must make the same calls in the "
                     "same order%s",
                     theirs->rank, other, operation->fingerprint.rank, ours,
                     strcmp(ours, other) ? "" : " (of another group, or cut into other pieces)",
                     is_fused(theirs) || is_fused(&operation->fingerprint)
                         ? ", hvd_wait and hvd_test too, or give --fusion-threshold-mb 0"
                         : "");
}

/* true: a rank that has joined can take part in an operation of this kind, because the kind needs
 * no numbers of that rank. */
static bool allows_joined(const struct fingerprint *fingerprint)
{
    return fingerprint->kind == COLL_ALLREDUCE || fingerprint->kind == COLL_BARRIER ||
           fingerprint->kind == COLL_JOIN || fingerprint->kind == COLL_END;
}

/* Compares the fingerprint of another member with ours. One that has joined (JOIN) agrees with
 * every operation that needs no numbers of it. 0, or the result of mismatch. */
static int opening_compare(struct operation *operation, const struct fingerprint *theirs)
{
    bool agree = theirs->kind == COLL_JOIN ? allows_joined(&operation->fingerprint)
                                           : fingerprint_same(&operation->fingerprint, theirs);

    return agree ? 0 : mismatch(operation, theirs);
}

/* Returns what the member `local` of this host has written at the board to open this operation. */
const struct board_opening *operation_opening(const struct operation *operation, uint32_t local)
{
    return (const struct board_opening *)board_opening(operation->group->board, local,
                                                       operation->turn);
}

/* true: the member with this index on our host gives numbers, that is, has not called hvd_join. The
 * bits of `joins` tell that for the first 64 members of the host; for the others this function
 * reads the opening on the board. */
bool operation_gives(const struct operation *operation, uint32_t local)
{
    if (operation->givers == operation->group->group.local_count)
        return true;
    if (local < 64)
        return !(operation->joins >> local & 1);
    return operation_opening(operation, local)->fingerprint.kind != COLL_JOIN;
}

/* Compares the fingerprints on the board of this host, after the board step that published them.
 * Counts in `givers` the members that give numbers; 0: all members of this host have joined. */
static int opening_compare_members(struct operation *operation)
{
    struct fingerprint *ours = &operation->fingerprint;
    uint32_t count = operation->group->group.local_count;

    /* Find the members that give numbers. A rank that has joined gets the fingerprint of the first
     * of these members as its own. */
    for (uint32_t local = 0; local < count; local++) {
        const struct fingerprint *theirs = &operation_opening(operation, local)->fingerprint;

        if (theirs->kind == COLL_JOIN) {
            operation->joins |= local < 64 ? UINT64_C(1) << local : 0;
            continue;
        }
        if (!operation->givers++ && operation->joined)
            *ours = *theirs;
    }
    /* All members of this host must run the same operation. If all of them have joined, `ours` gets
     * the rank among them that joined last. */
    for (uint32_t local = 0; local < count; local++) {
        const struct fingerprint *theirs = &operation_opening(operation, local)->fingerprint;
        int rc = opening_compare(operation, theirs);

        if (rc)
            return rc;
        if (!operation->givers &&
            (theirs->last_number != ours->last_number ? theirs->last_number > ours->last_number
                                                      : theirs->last > ours->last)) {
            ours->last = theirs->last;
            ours->last_number = theirs->last_number;
        }
    }
    return 0;
}

/* Called when all members of this host have joined, so that none of them knows the operation. The
 * member on the first lane learns the operation from the other hosts. One more board step gives it
 * to the other members of this host. */
static int ask_other_hosts(struct operation *operation)
{
    struct coll_group *group = operation->group;
    uint32_t local = board_local(group->board);
    struct fingerprint learnt = operation->fingerprint;
    int rc = 0;

    if (local == 0 && group->lane.size > 1) {
        operation->on_lane = true;
        rc = lane_open(&group->lane, &operation->fingerprint, &learnt);
        if (rc >= 0 && !allows_joined(&learnt))
            return mismatch(operation, &learnt);
        rc = rc < 0 ? rc : operation_settle(operation);
        if (rc)
            return rc;
    }
    operation->turn++;
    if (local == 0)
        memcpy(board_opening(group->board, 0, operation->turn), &learnt, sizeof(learnt));
    rc = board_step(group->board);
    if (!rc)
        operation->fingerprint = operation_opening(operation, 0)->fingerprint;
    return rc;
}

/* Opens the lane: sends our fingerprint along it, and compares the fingerprint that the member
 * before us has sent (operation.h). A rank that has joined gets the received fingerprint as its
 * own. */
int operation_open_lane(struct operation *operation, const void *first, size_t length)
{
    struct fingerprint theirs;
    int rc;

    if (operation->on_lane)
        return 0;
    operation->on_lane = true;
    rc = lane_open_with(&operation->group->lane, &operation->fingerprint, first, length, &theirs);
    if (rc < 0)
        return rc;
    if (operation->fingerprint.kind == COLL_JOIN) {
        if (!allows_joined(&theirs))
            return mismatch(operation, &theirs);
        operation->fingerprint = theirs;
    }
    return opening_compare(operation, &theirs);
}

/* Returns how many lanes the operation uses, counted from lane 0. A rank that has joined knows the
 * operation by now, from its opening. */
static uint32_t lanes_used(const struct operation *operation)
{
    if (coll_kind_is_ragged(operation->fingerprint.kind) || /* the counts come by an allgather */
        coll_kind_is_of_groups(operation->fingerprint.kind))
        return operation_is_ordered(operation) ? 1 : operation->group->group.lane_count;
    if (operation->fingerprint.on_device)
        return allreduce_lanes(operation); /* the lanes for adding up the votes */
    switch (operation->fingerprint.kind) {
    case COLL_ALLREDUCE: return allreduce_lanes(operation);
    case COLL_BROADCAST:
    case COLL_ALLGATHER:
    case COLL_REDUCESCATTER:
    case COLL_REDUCE:
        return operation_is_ordered(operation) ? 1 : operation->group->group.lane_count;
    default: return 1;
    }
}

/* Shows in the timeline how long this member has waited for the other members of its host, from
 * begun_us until now. Each member has published when it made its call, so the wait is named after
 * the member that called last. That member is not known if one of them writes no timeline, or if
 * one's time is in the future, because it comes from another clock. */
static void opening_show_wait(struct operation *operation, int64_t begun_us)
{
    struct timeline_arrival *arrival = &operation->coll->arrival;
    int64_t now_us = timeline_now_us(operation->coll->timeline), last_us = arrival->at_us;
    char name[32] = "wait for others";

    arrival->knows_last = true;
    arrival->last = operation->coll->rank;
    for (uint32_t local = 0; local < operation->group->group.local_count; local++) {
        const struct board_opening *theirs = operation_opening(operation, local);

        if (theirs->fingerprint.kind == COLL_JOIN)
            continue;
        if (!theirs->arrived_us || theirs->arrived_us > now_us)
            arrival->knows_last = false;
        if (theirs->arrived_us <= last_us)
            continue;
        last_us = theirs->arrived_us;
        arrival->last = theirs->fingerprint.rank;
    }
    arrival->early_us = last_us - arrival->at_us;
    if (arrival->knows_last && last_us <= begun_us)
        return;
    if (arrival->knows_last)
        snprintf(name, sizeof(name), "wait for rank %" PRIu32, arrival->last);
    timeline_phase(operation->coll->timeline, name, 0, begun_us, now_us);
}

_Static_assert(sizeof(struct board_opening) <= BOARD_OPENING_BYTES, "it has room on a board");

/* Opens the operation (operation.h): the members of this host compare their fingerprints at the
 * board, then the hosts compare theirs along the lanes. If there is a timeline (arrival->at_us is
 * not 0), it shows both waits. */
int operation_open(struct operation *operation, uint32_t *ret_last)
{
    const struct coll_group *group = operation->group;
    const struct fingerprint *ours = &operation->fingerprint;
    struct timeline_arrival *arrival = &operation->coll->arrival;
    struct timeline *timeline = operation->coll->timeline;
    struct board_opening opening = { *ours, operation->in, operation->out, arrival->at_us };
    int64_t begun_us = arrival->at_us ? timeline_now_us(timeline) : 0;
    int rc = 0;

    if (group->board) {
        memcpy(board_opening(group->board, board_local(group->board), operation->turn), &opening,
               sizeof(opening));
        rc = board_step(group->board);
        if (!rc)
            rc = opening_compare_members(operation);
        if (!rc && arrival->at_us)
            opening_show_wait(operation, begun_us);
        if (!rc && !operation->givers)
            rc = ask_other_hosts(operation);
    } else {
        /* without a board this is the only member of its host: it gives numbers, unless it has
         * joined */
        operation->givers = !operation->joined;
    }
    if (!rc && group->lane.size > 1 && group->group.local < lanes_used(operation)) {
        begun_us = arrival->at_us ? timeline_now_us(timeline) : 0;
        /* The opening message of a lane can carry the first step of the operation too. A barrier
         * uses that: its first step has no bytes (""). A small allreduce also does, but it opens
         * its lane later, when its numbers are reduced on this host. NULL: without a first step. */
        if ((ours->kind == COLL_BARRIER || ours->kind == COLL_END) && !operation->joined)
            rc = operation_open_lane(operation, "", 0);
        else if (!allreduce_opens_late(operation))
            rc = operation_open_lane(operation, NULL, 0);
        if (!rc && arrival->at_us && operation->on_lane)
            timeline_phase(timeline, "wait for other hosts", 0, begun_us,
                           timeline_now_us(timeline));
    }
    /* one call of the program may run several operations: only the first shows when the program
     * made the call */
    arrival->at_us = 0;
    /* JOIN is still the kind after the opening: no member has told an operation, so all members
     * have joined */
    if (rc || ours->kind != COLL_JOIN)
        return rc;
    *ret_last = ours->last;
    return HVD_DONE;
}
