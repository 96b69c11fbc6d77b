/*
 * run.c: one call of the training program on a round (coll_run): the call is refused, or carried
 * out by dispatch.c, or on memory of a GPU by device.c; then a failure of the call becomes a
 * failure of the round, and the timeline shows the call. Everything here runs on the owner's
 * thread, the one that makes the calls.
 */
#include "collectives/device.h"
#include "collectives/nccl/nccl_thread.h"
#include "collectives/reduce/reduce.h"

/* Checks whether the call can run: the round has not failed, it is connected, the group exists and
 * has this rank, the arguments make sense. 0, or the code with which the call ends. */
static int run_check_call(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    const struct coll_group *group;
    int rc;

    if (coll->by_nccl)
        device_notice(coll);
    rc = coll_failure(coll, err);
    if (rc)
        return rc;
    if (coll->size > 1 && !coll->circle.connected)
        return err_set(
            err, HVD_E_STATE,
            "the round is not connected yet, which is a bug of hvd-elastic; please report it");
    if (call->group >= coll->group_count)
        return coll_refuse(
            coll, err,
            "there is no group with number %zu; use a group that hvd_group_create has returned",
            call->group);
    group = &coll->groups[call->group];
    if (group->group.place == GROUP_OUTSIDE)
        return coll_refuse(coll, err,
                           "%s: this rank is not a member of the group of the call; make the call "
                           "on the members of the group only",
                           coll_kind_name(call->kind));
    return coll_check_call(coll, group, call, err);
}

/* Returns how many bytes this member gives in the call, for the timeline; for a broadcast, how many
 * bytes the root sends. 0: the operation has no numbers. */
static uint64_t run_bytes(const struct coll *coll, const struct coll_call *call)
{
    uint32_t size = coll->groups[call->group].group.size;
    uint64_t count = call->count;

    if (call->kind == COLL_BARRIER || call->kind == COLL_JOIN || coll_kind_is_of_groups(call->kind))
        return 0;
    if (call->pieces) {
        count = 0;
        for (size_t i = 0; i < call->piece_count; i++)
            count += call->pieces[i].count;
    } else if (call->kind == COLL_SCATTER && coll->groups[call->group].group.place != call->root) {
        count = 0;
    } else if (call->counts && call->kind != COLL_ALLGATHER && call->kind != COLL_GATHER) {
        /* in an allgather or a gather the counts are those of all members: this member gives
         * `count` */
        count = 0;
        for (uint32_t i = 0; i < size; i++)
            count += call->counts[i];
    } else if (call->kind == COLL_ALLTOALL || call->kind == COLL_REDUCESCATTER ||
               call->kind == COLL_SCATTER) {
        count *= size;
    }
    return count * reduce_type_bytes(call->type);
}

/* Shows a call in the timeline of its round, after the call has ended, also with a failure. */
static void run_show_call(const struct coll *coll, const struct coll_call *call,
                          struct timeline_call *event)
{
    if (call->kind != COLL_BARRIER && call->kind != COLL_JOIN &&
        !coll_kind_is_of_groups(call->kind))
        event->type = reduce_type_name(call->type);
    event->bytes = run_bytes(coll, call);
    event->requests = call->fused;
    if (call->kind == COLL_ALLREDUCE || call->kind == COLL_REDUCESCATTER ||
        call->kind == COLL_REDUCE)
        event->op = reduce_op_name(call->op);
    event->rank = coll->rank;
    event->lowest_rank = coll->groups[call->group].group.ranks[0];
    event->members = coll->groups[call->group].group.size;
    event->arrival = coll->arrival;
    event->ended_us = timeline_now_us(coll->timeline);
    timeline_call(coll->timeline, event);
}

/* Reduces, or broadcasts, the buffers of a call one after the other (--fusion-threshold-mb 0). All
 * members have that option, because it is in the hash of a round, so all make the same operations.
 */
static int run_unfused(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    struct coll_call one = *call;
    int rc = 0;

    one.pieces = NULL;
    one.piece_count = 0;
    for (size_t i = 0; i < call->piece_count && !rc; i++) {
        one.in = call->pieces[i].in;
        one.out = call->pieces[i].out;
        one.count = call->pieces[i].count;
        rc = coll_run(coll, &one, err);
    }
    return rc;
}

/* Shows the operation to a thread that watches. If the group was opened by its members alone, its
 * first operation waits here until all members have opened it. */
static int run_begin(struct coll *coll, struct coll_group *group, const char *operation,
                     struct hvd_err *err)
{
    struct coll_activity *activity = &coll->activity;
    int rc;

    atomic_fetch_add_explicit(&activity->number, 1, memory_order_relaxed);
    if (group->circle && !group->circle->connected)
        atomic_store_explicit(&activity->operation, "opening of a group", memory_order_release);
    rc = coll_connect_group(coll, group, err);
    atomic_store_explicit(&activity->group, group, memory_order_release);
    atomic_store_explicit(&activity->operation, operation, memory_order_release);
    return rc;
}

/* Fails the round because this call has failed with `rc`. Another process of this host may have
 * failed the segment before, and written its code there. Only the member that caused the failure
 * returns that code, so here the code counts as HVD_E_LOST; but a mismatch is one on all members.
 */
static void run_fail(struct coll *coll, const struct coll_call *call, int rc, struct hvd_err *why)
{
    uint32_t rank = MEET_NOBODY;
    int code = 0;

    if (rc == HVD_E_NOMEM && !why->text[0])
        err_set(why, rc, "no memory for the work of this %s; free memory on the host of this rank",
                coll_kind_name(call->kind));
    if (rc == HVD_E_REVOKED)
        code = coll_segment_failure(coll, &rank, why);
    if (code)
        coll_fail(coll, code == HVD_E_MISMATCH ? code : HVD_E_LOST, rank, "%s", why->text);
    coll_fail(coll, rc, coll->rank, "rank %u: %s", coll->rank,
              why->text[0] ? why->text : err_text(rc));
}

/* Runs a call of the program from its check to its end, and shows it in the timeline and in the
 * worker's record of its last activities. `activity` tells a thread that watches (coll_wait_look)
 * which operation runs: its `operation` is NULL between calls. Returns 0, or the code that this
 * member's call must return for the round's failure. */
int coll_run(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    struct coll_activity *activity = &coll->activity;
    struct timeline_call event = { .operation = coll_kind_name(call->kind),
                                   .round = coll->round,
                                   .group = call->group,
                                   .why = err ? err->text : NULL };
    struct hvd_err why = { .text = "" };
    struct coll_group *group;
    uint64_t range = 0, recorded;
    int rc = run_check_call(coll, call, err);

    if (rc)
        return rc;
    if (call->piece_count > 1 && coll->engine && coll->engine->options.unfused)
        return run_unfused(coll, call, err);
    group = &coll->groups[call->group];
    if (timeline_has_ranges(coll->timeline))
        range = timeline_begin_range(coll->timeline, run_bytes(coll, call), "%s", event.operation);
    event.begun_us = timeline_now_us(coll->timeline);
    coll->arrival = (struct timeline_arrival){ .at_us = event.begun_us };
    event.number = group->number + 1;
    recorded = timeline_begin_activity(coll->timeline, event.operation, coll->round, event.number,
                                       run_bytes(coll, call));
    rc = run_begin(coll, group, event.operation, &why);
    if (rc) {
        /* the group could not be connected */
    } else if (call->kind == COLL_JOIN) {
        rc = operation_join(coll, group, call);
        event.number = group->number;
    } else if (coll_kind_is_ragged(call->kind)) {
        rc = ragged_run(coll, group, call, &event.by);
    } else if (coll_kind_is_rooted(call->kind)) {
        rc = rooted_run(coll, group, call, &event.by);
    } else if (coll_kind_is_of_groups(call->kind)) {
        rc = opened_run(coll, group, call);
    } else if (call->device) {
        rc = device_run(coll, group, call, &event.by);
    } else {
        rc = operation_inside(coll, group, call);
    }
    atomic_store_explicit(&activity->operation, NULL, memory_order_release);
    if (rc) {
        run_fail(coll, call, rc, &why);
        rc = coll_failure(coll, err);
    } else if (!coll->agreed && call->group == 0 &&
               (call->device || call->kind == COLL_BARRIER ||
                (call->kind == COLL_ALLREDUCE && operation_count(group, call)))) {
        /* The operation needed every member of the round, so no member is still in an earlier
         * round. Now NCCL communicators of earlier rounds that were freed may be aborted. */
        coll->agreed = true;
        if (coll->engine && coll->engine->nccl_thread)
            nccl_thread_agreed(coll->engine->nccl_thread, coll->round);
    }
    timeline_end_range(coll->timeline, range);
    timeline_end_activity(coll->timeline, recorded, rc);
    event.code = rc;
    if (timeline_is_on(coll->timeline))
        run_show_call(coll, call, &event);
    return rc;
}
