/*
 * agent_autopsy.c: what a worker was doing when it died (AUTOPSY). agent_process.c calls it: once
 * when the process has ended, and whenever the end is reported; and agent.c for workers that live,
 * when the driver has asked. Invariant: the message is within the limits of hvd.proto, also for
 * a worker that has filled its page with rubbish.
 */
#include "agent/core/agent_handlers.h"

/* Returns the time from `then_us` to `now_us`, within what a message can carry: the worker has
 * written at least one of them. */
static int64_t autopsy_span(int64_t then_us, int64_t now_us)
{
    if (then_us <= 0 || then_us >= now_us)
        return 0;
    return now_us - then_us < LIMIT_DURATION_US ? now_us - then_us : LIMIT_DURATION_US;
}

/* Makes the list of the activities of the message, in the memory of this step. */
static struct msg_activity_list autopsy_activities(struct agent *agent,
                                                   const struct recorded *recorded)
{
    struct msg_activity *items =
        arena_alloc_array(&agent->list->memory, recorded->count, sizeof(*items));

    for (size_t i = 0; items && i < recorded->count; i++) {
        const struct activity *activity = &recorded->items[i];
        bool code_is_good = activity->code >= INT32_MIN && activity->code <= INT32_MAX;

        items[i] = (struct msg_activity){
            .name = activity->name,
            .round = activity->round,
            .number = activity->number,
            .bytes = activity->bytes,
            .ago_us = autopsy_span(activity->began_us, agent->now_us),
            .took_us = activity->ended_us ? autopsy_span(activity->began_us, activity->ended_us)
                                          : TIME_NEVER,
            .code = activity->ended_us && code_is_good ? (int32_t)activity->code : 0,
        };
    }
    if (!items)
        agent->list->failed = true;
    return (struct msg_activity_list){ items, items ? recorded->count : 0 };
}

/* Makes the message, in the memory of this step. */
static const struct msg *autopsy_msg(struct agent *agent, const struct agent_worker *worker,
                                     const struct agent_remains *remains)
{
    const struct agent_ending *ending = &worker->ending;
    const struct recorded *recorded = remains->recorded;
    struct msg *msg = agent_msg(agent, MSG_AUTOPSY, worker->incarnation);
    const struct msg *last = &worker->words.last;
    const char *reason = worker->killing.reason; /* of the driver, or else of the worker itself */

    if (!reason && last->type == MSG_UNUSABLE)
        reason = last->u.unusable.text;
    else if (!reason && last->type == MSG_FINISHED)
        reason = last->u.finished.text;
    msg->u.autopsy = (struct msg_autopsy){
        .slot = worker->slot,
        .host = "",
        .pid = remains->pid,
        .ended = ending->ended,
        .value = ending->value,
        .ran_us = ending->ended ? ending->ran_us : agent->now_us - worker->started_us,
        .rank = recorded->rank,
        .size = recorded->size,
        .last_round = recorded->round,
        .step = recorded->step,
        .reason = reason ? reason : "",
        .dumped = remains->dumped,
        .core_pattern = remains->core_pattern,
        .activities = autopsy_activities(agent, recorded),
        .output = remains->output[STREAM_STDOUT],
        .errors = remains->output[STREAM_STDERR],
    };
    return msg;
}

/* An end with exit code 0 needs no autopsy. */
void agent_autopsy_make(struct agent *agent, struct agent_worker *worker,
                        const struct agent_remains *remains)
{
    const struct agent_ending *ending = &worker->ending;

    if (ending->ended == ENDED_EXIT && !ending->value)
        return;
    if (msg_copy(autopsy_msg(agent, worker, remains), &worker->ending.autopsy)) {
        worker->ending.autopsy = (struct msg){ .type = 0 };
        agent->list->failed = true;
    }
}

void agent_autopsy_of_living(struct agent *agent, const struct agent_worker *worker,
                             const struct agent_remains *remains)
{
    agent_link_send(agent, autopsy_msg(agent, worker, remains));
}

void agent_autopsy_say(struct agent *agent, const struct agent_worker *worker)
{
    const struct msg *kept = &worker->ending.autopsy;
    struct msg *msg;

    if (!kept->type || !agent_link_is_open(agent))
        return;
    msg = agent_msg(agent, MSG_AUTOPSY, worker->incarnation);
    if (msg_copy_into(kept, &agent->list->memory, msg))
        agent->list->failed = true;
    msg->term = agent->link.term;
    agent_link_send(agent, msg);
}
