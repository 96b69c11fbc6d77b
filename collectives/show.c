#include "collectives/show.h"

#include "collectives/reduce/reduce.h"

/* That this member brings; of a broadcast what travels. */
static uint64_t bytes_of(const struct coll_group *group, const struct coll_call *call)
{
    uint64_t count = call->count;

    if (call->kind == COLL_BARRIER || call->kind == COLL_JOIN)
        return 0;
    if (call->pieces) {
        count = 0;
        for (size_t i = 0; i < call->piece_count; i++)
            count += call->pieces[i].count;
    } else if (call->counts && call->kind != COLL_ALLGATHER) {
        count = 0;
        for (uint32_t i = 0; i < group->group.size; i++)
            count += call->counts[i];
    } else if (call->kind == COLL_ALLTOALL || call->kind == COLL_REDUCESCATTER) {
        count *= group->group.size;
    }
    return count * reduce_type_bytes(call->type);
}

void show_call(const struct coll *coll, const struct coll_call *call, const struct shown *shown)
{
    const struct coll_group *group = &coll->groups[call->group];
    bool reduces = call->kind == COLL_ALLREDUCE || call->kind == COLL_REDUCESCATTER;
    bool numbers = call->kind != COLL_BARRIER && call->kind != COLL_JOIN;

    if (!coll->timeline)
        return;
    timeline_call(coll->timeline,
                  &(struct timeline_call){ .operation = accord_kind_name(call->kind),
                                           .number = shown->number,
                                           .round = coll->round,
                                           .group = call->group,
                                           .type = numbers ? reduce_type_name(call->type) : NULL,
                                           .op = reduces ? reduce_op_name(call->op) : NULL,
                                           .by = shown->by,
                                           .bytes = bytes_of(group, call),
                                           .code = shown->code,
                                           .why = shown->err ? shown->err->text : NULL,
                                           .begun_us = shown->begun_us,
                                           .ended_us = timeline_now_us(coll->timeline) });
}
