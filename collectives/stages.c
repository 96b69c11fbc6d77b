/*
 * stages.c: the pipeline of an operation over a board (the shared memory of the members of a host).
 * The operation goes chunk by chunk, in two or three stages, each stage one step behind the
 * previous stage:
 *
 *     step        1         2         3         4
 *           in 0  │   in 1  │   in 2  │         │
 *                 │middle 0 │middle 1 │middle 2 │
 *                 │         │  out 0  │  out 1  │  out 2
 *
 * A chunk's memory is written between two steps, read between the next two, and written again after
 * those: two copies of each memory are enough (board.h). The first step is made by the opening.
 */
#include "collectives/operation.h"

/* Shows a phase in the timeline, from begun_us to now. Returns now, when the next phase begins. */
static int64_t note_phase(struct timeline *timeline, const char *name, int64_t begun_us)
{
    int64_t now_us = timeline_now_us(timeline);

    timeline_phase(timeline, name, 0, begun_us, now_us);
    return now_us;
}

/* Copies the first chunk to the board. The opening then makes the first step of the pipeline
 * (operation.h). A rank that has joined has no numbers and copies nothing. */
void stages_begin(const struct operation *operation, const struct stages *stages)
{
    struct timeline *timeline = operation->coll->timeline;
    int64_t begun_us = timeline_now_us(timeline);

    if (!stages->in || operation->joined || !stages->chunks)
        return;
    stages->in(stages->arg, 0, operation->turn);
    (void)note_phase(timeline, "copy in", begun_us);
}

/* Runs the rest of the pipeline after the opening: in each step every stage works on one chunk, a
 * later stage on an earlier chunk (see the table above). `depth`: by how many steps the last stage
 * is behind the first. Returns 0 or a code. */
int stages_go_on(struct operation *operation, const struct stages *stages)
{
    struct timeline *timeline = operation->coll->timeline;
    bool is_between = operation->group->group.host_count > 1, gives = !operation->joined;
    size_t depth = stages->middle && stages->out ? 2 : 1;
    size_t last = stages->chunks ? stages->chunks + depth - 1 : 0;
    int rc = 0;

    for (size_t step = 1; step <= last && !rc; step++) {
        int64_t begun_us = timeline_now_us(timeline);

        if (stages->in && gives && step < stages->chunks) {
            stages->in(stages->arg, step, operation->turn + step);
            begun_us = note_phase(timeline, "copy in", begun_us);
        }
        if (stages->middle && step - 1 < stages->chunks) {
            rc = stages->middle(stages->arg, step - 1, operation->turn + step - 1);
            if (!rc)
                rc = operation_settle(operation);
            begun_us = note_phase(timeline, is_between ? "between hosts" : "reduce", begun_us);
            if (rc)
                break;
        }
        if (stages->out && gives && step >= depth) {
            stages->out(stages->arg, step - depth, operation->turn + step - depth);
            (void)note_phase(timeline, stages->middle ? "copy out" : "reduce and copy out",
                             begun_us);
        }
        if (step < last)
            rc = board_step(operation->group->board);
    }
    /* an operation without chunks counts as one, because its opening has used the board */
    operation->group->turn = operation->turn + (stages->chunks ? stages->chunks : 1);
    return rc;
}

/* Runs an operation chunk by chunk over the board, from its opening to its end. */
int stages_run(struct operation *operation, const struct stages *stages)
{
    uint32_t last;
    int rc;

    stages_begin(operation, stages);
    rc = operation_open(operation, &last);
    return rc ? rc : stages_go_on(operation, stages);
}
