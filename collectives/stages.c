#include "collectives/operation.h"

/*
 * step        1         2         3         4
 *       in 0  │   in 1  │   in 2  │         │
 *             │middle 0 │middle 1 │middle 2 │
 *             │         │  out 0  │  out 1  │  out 2
 *
 * A stage is written between two steps, read between the next two, and written again after those:
 * two of each are enough. The first step is that of the opening.
 */

static size_t depth_of(const struct stages *stages)
{
    return stages->middle && stages->out ? 2 : 1;
}

static void go_in(const struct operation *operation, const struct stages *stages, size_t chunk)
{
    struct timeline *timeline = operation->coll->timeline;
    int64_t begun_us = timeline_now_us(timeline);

    if (!stages->in || operation->joined || chunk >= stages->chunks)
        return;
    stages->in(stages->arg, chunk, operation->turn + chunk);
    timeline_phase(timeline, "copy in", 0, begun_us, timeline_now_us(timeline));
}

static int go_through(const struct operation *operation, const struct stages *stages, size_t step)
{
    struct timeline *timeline = operation->coll->timeline;
    int64_t begun_us = timeline_now_us(timeline);
    bool between = operation->group->group.host_count > 1;
    int rc;

    if (!stages->middle || step - 1 >= stages->chunks)
        return 0;
    rc = stages->middle(stages->arg, step - 1, operation->turn + step - 1);
    if (!rc)
        rc = operation_settle(operation);
    timeline_phase(timeline, between ? "between hosts" : "reduce", 0, begun_us,
                   timeline_now_us(timeline));
    return rc;
}

static void go_out(const struct operation *operation, const struct stages *stages, size_t step)
{
    struct timeline *timeline = operation->coll->timeline;
    int64_t begun_us = timeline_now_us(timeline);
    size_t depth = depth_of(stages);

    if (!stages->out || operation->joined || step < depth)
        return;
    stages->out(stages->arg, step - depth, operation->turn + step - depth);
    timeline_phase(timeline, stages->middle ? "copy out" : "reduce and copy out", 0, begun_us,
                   timeline_now_us(timeline));
}

int operation_settle(const struct operation *operation)
{
    const struct lane *lane = &operation->group->lane;

    return lane->size > 1 ? traffic_await_all(lane->traffic) : 0;
}

int stages_go_on(struct operation *operation, const struct stages *stages)
{
    size_t last = stages->chunks ? stages->chunks + depth_of(stages) - 1 : 0;
    int rc = 0;

    for (size_t step = 1; step <= last && !rc; step++) {
        go_in(operation, stages, step);
        rc = go_through(operation, stages, step);
        if (rc)
            break;
        go_out(operation, stages, step);
        if (step < last)
            rc = board_step(operation->group->board);
    }
    operation->group->turn = operation->turn + (stages->chunks ? stages->chunks : 1);
    return rc;
}

void stages_begin(const struct operation *operation, const struct stages *stages)
{
    go_in(operation, stages, 0);
}

int stages_run(struct operation *operation, const struct stages *stages)
{
    uint32_t last;
    int rc;

    stages_begin(operation, stages);
    rc = operation_open(operation, &last);
    return rc ? rc : stages_go_on(operation, stages);
}

#define LINE_BYTES ((size_t)64)

size_t share_of(size_t length, size_t bytes, uint32_t place, uint32_t count, size_t *ret_length)
{
    size_t line = LINE_BYTES / bytes ? LINE_BYTES / bytes : 1;
    size_t share = (length + count - 1) / count;
    size_t from;

    share = (share + line - 1) / line * line;
    from = place * share;
    if (from > length)
        from = length;
    *ret_length = length - from < share ? length - from : share;
    return from;
}
