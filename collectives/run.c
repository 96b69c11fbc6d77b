#include "collectives/device.h"
#include "collectives/show.h"

#include <inttypes.h>
#include <string.h>

/* ---- is it allowed? ---- */

static int check_numbers(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    const char *name = accord_kind_name(call->kind);
    bool reduces = call->kind == COLL_ALLREDUCE || call->kind == COLL_REDUCESCATTER;

    if (!reduce_type_bytes(call->type))
        return coll_refuse(coll, err, "%s: no such type (%d)", name, (int)call->type);
    if (reduces && !reduce_knows(call->type, call->op))
        return coll_refuse(coll, err, "%s: no such reduction (%d)", name, (int)call->op);
    if ((call->prescale != 0 || call->postscale != 0) && !reduces)
        return coll_refuse(coll, err, "%s: only reductions have scales", name);
    if ((call->prescale != 0 || call->postscale != 0) && !reduce_type_is_real(call->type))
        return coll_refuse(coll, err,
                           "%s: %s cannot be scaled; leave the scales 0, or use a floating type",
                           name, reduce_type_name(call->type));
    return 0;
}

/* false: more than there can be memory for. */
static bool add_up(const size_t *counts, uint32_t size, size_t each, size_t bytes, size_t *ret_sum)
{
    size_t left = SIZE_MAX / 2 / bytes;

    *ret_sum = 0;
    for (uint32_t i = 0; i < size; i++) {
        size_t count = counts ? counts[i] : each;

        if (count > left)
            return false;
        left -= count;
        *ret_sum += count;
    }
    return true;
}

static int too_much(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    return coll_refuse(coll, err, "%s: no memory holds that many %s; check the counts",
                       accord_kind_name(call->kind), reduce_type_name(call->type));
}

static int no_memory_given(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    return coll_refuse(coll, err, "%s: NULL where there are %s to be read or written",
                       accord_kind_name(call->kind), reduce_type_name(call->type));
}

static int check_pieces(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    size_t bytes = reduce_type_bytes(call->type), left = SIZE_MAX / 2 / bytes;

    if (call->kind != COLL_ALLREDUCE)
        return coll_refuse(coll, err, "%s: only an allreduce takes pieces",
                           accord_kind_name(call->kind));
    for (size_t i = 0; i < call->piece_count; i++) {
        const struct coll_piece *piece = &call->pieces[i];

        if (piece->count > left)
            return too_much(coll, call, err);
        left -= piece->count;
        if (piece->count && (!piece->in || !piece->out))
            return no_memory_given(coll, call, err);
    }
    return 0;
}

static int check_memory(struct coll *coll, const struct coll_group *group,
                        const struct coll_call *call, struct hvd_err *err)
{
    size_t bytes = reduce_type_bytes(call->type), in = 0, out = 0;
    uint32_t size = group->group.size;
    bool fits = add_up(call->counts, size, call->count, bytes, &in);

    if (call->kind == COLL_ALLREDUCE || call->kind == COLL_BROADCAST)
        fits = add_up(NULL, 1, call->count, bytes, &in);
    out = in;
    if (call->kind == COLL_ALLTOALL && call->counts)
        fits = fits && add_up(call->out_counts, size, 0, bytes, &out);
    if (!fits)
        return too_much(coll, call, err);
    if (call->kind == COLL_ALLGATHER)
        in = call->count;
    if (call->kind == COLL_REDUCESCATTER)
        out = call->count;
    if (call->kind == COLL_BROADCAST)
        in = 0;
    if ((in && !call->in) || (out && !call->out))
        return no_memory_given(coll, call, err);
    return 0;
}

static int check(struct coll *coll, const struct coll_group *group, const struct coll_call *call,
                 struct hvd_err *err)
{
    const char *name = accord_kind_name(call->kind);
    int rc;

    if (call->kind == COLL_BARRIER || call->kind == COLL_JOIN)
        return 0;
    if (call->kind < COLL_ALLREDUCE || call->kind > COLL_JOIN)
        return coll_refuse(coll, err, "no such collective (%d)", (int)call->kind);
    rc = check_numbers(coll, call, err);
    if (rc)
        return rc;
    if (call->kind == COLL_BROADCAST && call->root >= group->group.size)
        return coll_refuse(coll, err, "%s: there is no rank %u among %u", name, call->root,
                           group->group.size);
    if (call->kind == COLL_ALLTOALL && !call->counts != !call->out_counts)
        return coll_refuse(coll, err, "%s: counts and out_counts go together", name);
    if ((call->kind == COLL_ALLGATHER || call->kind == COLL_REDUCESCATTER) && call->counts &&
        call->counts[group->group.place] != call->count)
        return coll_refuse(coll, err, "%s: the count of rank %u is %zu, but counts says %zu", name,
                           coll->rank, call->count, call->counts[group->group.place]);
    return call->pieces ? check_pieces(coll, call, err) : check_memory(coll, group, call, err);
}

/* ---- what is agreed about ---- */

/* What each rank is free to choose is not in it: how much of an alltoall goes to whom. */
static uint64_t count_of(const struct coll_group *group, const struct coll_call *call)
{
    uint64_t sum = 0;

    if (call->pieces) {
        for (size_t i = 0; i < call->piece_count; i++)
            sum += call->pieces[i].count;
        return sum;
    }
    if (!call->counts)
        return call->count;
    if (call->kind == COLL_ALLTOALL)
        return 0;
    for (uint32_t i = 0; i < group->group.size; i++)
        sum = accord_mix(sum, call->counts[i]);
    return sum;
}

static double scale_of(double scale)
{
    return scale != 0 ? scale : 1;
}

/* How they are cut is as much a part of it as who takes part. */
static uint64_t sum_pieces(uint64_t sum, const struct coll_call *call)
{
    for (size_t i = 0; call->pieces && i < call->piece_count; i++)
        sum = accord_mix(sum, call->pieces[i].count);
    return sum;
}

static struct accord accord_of(const struct coll *coll, const struct coll_group *group,
                               const struct coll_call *call)
{
    struct accord accord = {
        .number = group->number + 1,
        .group = sum_pieces(group->group.sum, call),
        .kind = call->kind,
        .rank = coll->rank,
        .prescale = 1,
        .postscale = 1,
    };

    if (call->kind == COLL_BARRIER || call->kind == COLL_JOIN || call->kind == COLL_END)
        return accord;
    accord.type = (uint16_t)call->type;
    accord.on_device = call->device != NULL;
    accord.count = count_of(group, call);
    accord.root =
        call->kind == COLL_BROADCAST ? call->root : (uint32_t)(call->pieces || call->counts);
    if (call->kind == COLL_ALLREDUCE || call->kind == COLL_REDUCESCATTER) {
        accord.op = call->op;
        accord.prescale = scale_of(call->prescale);
        accord.postscale = scale_of(call->postscale);
    }
    return accord;
}

uint32_t operation_lanes(const struct operation *operation)
{
    if (operation->accord.on_device)
        return allreduce_lanes(operation); /* of the votes */
    switch (operation->accord.kind) {
    case COLL_ALLREDUCE: return allreduce_lanes(operation);
    case COLL_BROADCAST:
    case COLL_ALLGATHER:
    case COLL_REDUCESCATTER:
        return operation_is_ordered(operation) ? 1 : operation->group->group.lane_count;
    default: return 1;
    }
}

bool operation_is_ordered(const struct operation *operation)
{
    const struct coll *coll = operation->coll;

    return coll->engine && coll->engine->options.fixed_order &&
           operation->group->group.host_count > 1;
}

/* ---- doing it ---- */

static int dispatch(struct operation *operation)
{
    switch (operation->call->kind) {
    case COLL_ALLREDUCE: return allreduce_run(operation);
    case COLL_BROADCAST: return broadcast_run(operation);
    case COLL_ALLGATHER: return allgather_run(operation);
    case COLL_REDUCESCATTER: return reducescatter_run(operation);
    case COLL_ALLTOALL: return alltoall_run(operation);
    case COLL_BARRIER:
    case COLL_END: return barrier_run(operation);
    default: return HVD_E_INTERNAL;
    }
}

static struct operation begin(struct coll *coll, struct coll_group *group,
                              const struct coll_call *call)
{
    struct operation operation = { .coll = coll,
                                   .group = group,
                                   .call = call,
                                   .accord = accord_of(coll, group, call),
                                   .turn = group->turn };

    group->number++;
    if (operation.accord.kind == COLL_ALLREDUCE && !operation.accord.on_device)
        allreduce_choose(&operation);
    return operation;
}

/* Every member comes to it after the same operation. */
static int agree_on_way(struct coll *coll, struct coll_group *group, size_t bytes, uint32_t ways)
{
    float *times = trial_times(&group->trials, bytes);
    const struct coll_call call = { .kind = COLL_ALLREDUCE,
                                    .type = HVD_FLOAT32,
                                    .op = HVD_MIN,
                                    .in = times,
                                    .out = times,
                                    .count = ways };
    struct operation operation = begin(coll, group, &call);
    int rc = lane_close(&group->lane, allreduce_run(&operation));

    if (!rc)
        trial_settle(&group->trials, bytes, ways);
    return rc;
}

static int end(struct operation *operation, int rc)
{
    rc = lane_close(&operation->group->lane, rc);
    if (rc || !allreduce_note(operation))
        return rc;
    return agree_on_way(operation->coll, operation->group, operation->bytes, operation->ways);
}

int operation_before(struct operation *operation, const struct coll_call *call)
{
    struct operation before;
    int rc;

    operation->group->number--; /* the one that it is for comes after it */
    before = begin(operation->coll, operation->group, call);
    rc = lane_close(&operation->group->lane, dispatch(&before));
    operation->group->number++;
    operation->accord.number = operation->group->number;
    operation->turn = operation->group->turn;
    return rc;
}

int operation_inside(struct coll *coll, struct coll_group *group, const struct coll_call *call)
{
    struct operation operation = begin(coll, group, call);

    return end(&operation, dispatch(&operation));
}

int operation_vote(struct coll *coll, struct coll_group *group, const struct coll_call *call,
                   const int32_t own[OPERATION_VOTES], int32_t ret_sums[OPERATION_VOTES])
{
    int32_t sums[OPERATION_VOTES];
    const struct coll_call sum = { .kind = COLL_ALLREDUCE,
                                   .type = HVD_INT32,
                                   .op = HVD_SUM,
                                   .in = own,
                                   .out = sums,
                                   .count = OPERATION_VOTES };
    struct operation operation = begin(coll, group, call);
    int rc;

    operation.call = &sum;
    rc = lane_close(&group->lane, allreduce_run(&operation));
    if (!rc)
        memcpy(ret_sums, sums, sizeof(sums));
    return rc;
}

/* What the others do, by one that has joined and learnt what it is. */
static int go_on(struct operation *operation)
{
    if (operation->accord.kind != COLL_ALLREDUCE)
        return barrier_go_on(operation);
    if (!operation->accord.on_device)
        allreduce_choose(operation);
    return allreduce_go_on(operation);
}

/* Takes part in what the others do until they have joined too. */
static int join(struct coll *coll, struct coll_group *group, const struct coll_call *call)
{
    uint64_t since = group->number + 1;
    uint32_t last = 0;
    int rc = 0;

    while (!rc) {
        struct operation operation = begin(coll, group, call);

        operation.joined = true;
        operation.accord.last = coll->rank;
        operation.accord.last_number = since;
        rc = operation_open(&operation, &last);
        if (rc == HVD_DONE)
            group->turn = operation.turn + 1;
        else if (!rc)
            rc = go_on(&operation);
        rc = end(&operation, rc);
    }
    if (rc == HVD_DONE && call->ret_last)
        *call->ret_last = last;
    return rc == HVD_DONE ? 0 : rc;
}

/* ---- around it ---- */

/* Another process of this host has ended it. */
static void take_over_failure(struct coll *coll)
{
    struct hvd_err why = { .text = "" };
    uint32_t rank = MEET_NOBODY;
    int code = coll->segment ? segment_failure(coll->segment, &rank, &why) : 0;

    if (code) /* that of a fault is only for whose it is: as in connect.c */
        coll_fail(coll, code == HVD_E_MISMATCH ? code : HVD_E_LOST, rank, "%s", why.text);
}

static void enter(struct coll *coll, struct coll_group *group, const struct coll_call *call)
{
    atomic_fetch_add_explicit(&coll->number, 1, memory_order_relaxed);
    atomic_store_explicit(&coll->current, group, memory_order_relaxed);
    atomic_store_explicit(&coll->operation, accord_kind_name(call->kind), memory_order_release);
}

static int leave(struct coll *coll, int rc, struct hvd_err *err)
{
    atomic_store_explicit(&coll->operation, NULL, memory_order_release);
    if (!rc)
        return 0;
    if (rc == HVD_E_REVOKED)
        take_over_failure(coll);
    coll_fail(coll, rc, coll->rank, "rank %u: %s", coll->rank, err_text(rc)); /* if it is new */
    return coll_failure(coll, err);
}

/* Has what has ended well needed something of each member? */
static bool has_met_all(const struct coll_group *group, const struct coll_call *call)
{
    return call->group == 0 && (call->device || call->kind == COLL_BARRIER ||
                                (call->kind == COLL_ALLREDUCE && count_of(group, call)));
}

int coll_run(struct coll *coll, const struct coll_call *call, struct hvd_err *err)
{
    struct coll_group *group;
    const char *by = NULL;
    uint64_t number;
    int64_t begun_us;
    int rc;

    if (coll->by_nccl)
        device_notice(coll);
    rc = coll_failure(coll, err);
    if (rc)
        return rc;
    if (coll->size > 1 && !coll->connected)
        return err_set(err, HVD_E_STATE, "the round is not connected");
    if (call->group >= coll->group_count)
        return coll_refuse(coll, err, "there is no group %zu", call->group);
    group = &coll->groups[call->group];
    if (group->group.place == GROUP_OUTSIDE)
        return coll_refuse(coll, err, "%s: this rank is not in that group",
                           accord_kind_name(call->kind));
    rc = check(coll, group, call, err);
    if (rc)
        return rc;
    begun_us = timeline_now_us(coll->timeline);
    enter(coll, group, call);
    number = group->number + 1;
    if (call->kind == COLL_JOIN) {
        rc = join(coll, group, call);
        number = group->number;
    } else if (call->device) {
        rc = device_run(coll, group, call, &by);
    } else {
        rc = operation_inside(coll, group, call);
    }
    rc = leave(coll, rc, err);
    if (!rc && !coll->agreed && has_met_all(group, call)) {
        coll->agreed = true;
        device_agreed(coll);
    }
    show_call(coll, call, &(struct shown){ number, by, begun_us, rc, err });
    return rc;
}
