/*
 * step.c: what the files of the core request while a step is made. All files of the core call
 * step.c, and step.c calls none of them but the tables in moves.c, so the calls between files form
 * no circle. core.c carries a request out after the event was handled, so a message handler need
 * not know what follows from its request.
 */
#include "driver/core/step.h"

#include "driver/core/moves.h"

/* No memory is left: core_step will drop all actions of this step, and the process must use this
 * core no more. */
void core_fail(struct core *core)
{
    core->step.failed = true;
}

/* Requests that slots.c launches workers and sends workers away at the end of this step
 * (slots_reconcile). */
void core_want_slots(struct core *core)
{
    core->step.want_slots = true;
}

/* Requests that core.c tries to begin or to change a round at the end of this step. */
void core_want_round(struct core *core)
{
    core->step.want_round = true;
}

/* Requests a step at at_us. Only the earliest request is kept: that step looks at all deadlines,
 * and each one that is not over is requested again. */
void core_want_timer(struct core *core, int64_t at_us)
{
    if (at_us < core->step.due_us)
        core->step.due_us = at_us;
}

/* Returns the time of this step on both clocks, as the blacklist needs it. */
struct blacklist_moment core_moment(const struct core *core)
{
    return (struct blacklist_moment){ core->now_us, core->wall_us };
}

/* Moves the job to another state; the table in moves.c must have the move. The assertions name what
 * must hold in the new state. */
void core_move_job(struct core *core, enum job_state to)
{
    bool changing = to == JOB_PREPARING || to == JOB_PENDING;

    machine_check(&job_machine, core->job, to);
    core->job = to;
    ASSERT(!changing || (core->next.number && core->current.state != ROUND_REVOKED));
    ASSERT(to != JOB_RUNNING || (core->current.number && !core->next.number));
    ASSERT(to != JOB_RECOVERING || core->current.state == ROUND_REVOKED);
}

/* Sets the worker's time limit: if it does not come into another state within in_us, core.c kills
 * it and reports `late` as the reason. */
void worker_limit(struct core *core, struct worker *worker, int64_t in_us, const char *late)
{
    worker->limit = (struct worker_limit){ core->now_us, in_us, late };
    core_want_timer(core, time_add(core->now_us, in_us));
}

/* Returns the deadline of something that the worker has to do within in_us from since_us on. While
 * its agent is not connected there is no deadline (TIME_NEVER). After a break of the connection the
 * time counts from the moment when the agent came back (`back_us`). */
int64_t worker_due_us(const struct worker *worker, int64_t since_us, int64_t in_us)
{
    const struct core_host *host = worker->host;

    if (host->agent != AGENT_THERE)
        return TIME_NEVER;
    return time_add(since_us > host->back_us ? since_us : host->back_us, in_us);
}

/* True: the agent of the worker is connected, and has been for at least for_us, or its connection
 * never broke (`back_us` is 0). */
bool worker_is_heard(const struct core *core, const struct worker *worker, int64_t for_us)
{
    const struct core_host *host = worker->host;

    return host->agent == AGENT_THERE &&
           (!host->back_us || time_add(host->back_us, for_us) <= core->now_us);
}
