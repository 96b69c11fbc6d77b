/*
 * loop_state.c: the state that the files of the loop share: the end of the loop, the queue of
 * events that wait, the workers that were started. Called by loop.c, loop_actions.c and
 * loop_commits.c. Invariant: a loop that has ended (`over`) handles no event and carries out no
 * action.
 */
#include "agent/io/loop_internal.h"

#include "base/mem.h"

#include <stdio.h>

struct loop_queued {
    struct agent_event event;
    char *text; /* the event's text, copied; freed when the next event is taken */
};

/* Ends the event loop with this code; the first call counts. */
void loop_end(struct agent_loop *loop, int code)
{
    if (loop->over)
        return;
    loop->over = true;
    loop->code = code;
    event_base_loopbreak(loop->base);
}

/* An error that the agent cannot survive: logs it, and ends the event loop. The supervisor ends
 * what is left, and the driver starts another agent. `what` names the step that has failed. */
void loop_give_up(struct agent_loop *loop, int code, const char *what)
{
    if (!loop->over)
        log_error(AGENT,
                  "%s: %s; %sthe agent and its workers end, and the driver starts another agent",
                  what, err_text(code), code == HVD_E_NOMEM ? "free memory on this host; " : "");
    loop_end(loop, code);
}

/* Queues an event until all actions of this step are done. Only the text is copied, so the event
 * must have no message and no other borrowed data, but for the remains of a worker, which are lost.
 */
void loop_put_off(struct agent_loop *loop, const struct agent_event *event)
{
    struct loop_queue *queue = &loop->queue;
    struct loop_queued queued = { .event = *event };

    ASSERT(!event->msg && !event->data.at && !event->kept && !event->reports);
    queued.event.remains = NULL;
    if (event->text)
        queued.event.text = queued.text = mem_strdup(event->text);
    if ((event->text && !queued.text) || VEC_RESERVE(&queue->waiting, 1, UINT32_MAX)) {
        mem_free(queued.text);
        loop_give_up(loop, HVD_E_NOMEM, "an event cannot be kept");
        return;
    }
    queue->waiting.items[queue->waiting.count++] = queued;
}

/* Takes the oldest waiting event. The text of the event before it is freed, because that event has
 * been handled. false: no event waits. */
bool loop_take_waiting(struct agent_loop *loop, struct agent_event *ret_event)
{
    struct loop_queue *queue = &loop->queue;

    mem_free(queue->text);
    queue->text = NULL;
    if (queue->taken == queue->waiting.count) {
        queue->taken = 0;
        queue->waiting.count = 0;
        return false;
    }
    *ret_event = queue->waiting.items[queue->taken].event;
    queue->text = queue->waiting.items[queue->taken++].text;
    return true;
}

/* Drops all waiting events; loop_take_waiting frees their texts. */
void loop_release_waiting(struct agent_loop *loop)
{
    struct agent_event event;

    while (loop_take_waiting(loop, &event))
        ;
    VEC_RELEASE(&loop->queue.waiting);
}

/* Returns the entry of a worker's process that was started and has not ended; NULL: none. */
struct started *loop_started(const struct agent_loop *loop, uint64_t incarnation)
{
    struct started *it;

    VEC_EACH (it, &loop->started) {
        if (it->incarnation == incarnation)
            return it;
    }
    return NULL;
}

/* The worker's process has ended, or could not be started. */
void loop_forget_started(struct agent_loop *loop, uint64_t incarnation)
{
    struct started *started = loop_started(loop, incarnation);

    if (started)
        *started = loop->started.items[--loop->started.count];
}

/* Answers the question "healthy". Every agent that answers counts as well, also one that has no
 * driver now: after driver_grace_us without a driver the agent ends by itself. */
void loop_health(void *arg, char ret_text[ERR_TEXT_MAX])
{
    const struct agent_loop *loop = arg;
    const char *how = loop->over || agent_is_ending(loop->core) ? "ends with its workers"
                      : driver_link_is_open(loop->driver)       ? "is connected to its driver"
                                                                : "waits for its driver";

    snprintf(ret_text, ERR_TEXT_MAX, "the agent of job %s on host %s %s", loop->config.core.job,
             loop->config.core.host, how);
}
