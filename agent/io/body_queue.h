/*
 * body_queue.h: what happens while the agent's actions are carried out waits here until they are
 * done. Private to body*.c.
 */
#ifndef AGENT_IO_BODY_QUEUE_H
#define AGENT_IO_BODY_QUEUE_H

#include "agent/core/agent.h"

struct body_queue {
    struct VEC(struct body_queued) waiting;
    size_t taken;
    char *text; /* of the one that was taken last */
};

void body_queue_init(struct body_queue *queue);
void body_queue_release(struct body_queue *queue);

/* The text is copied, and the event may borrow nothing else. 0 or HVD_E_NOMEM. */
int body_queue_put(struct body_queue *queue, const struct agent_event *event) MUST_CHECK;

/* The oldest; its text lives until the next call. */
bool body_queue_take(struct body_queue *queue, struct agent_event *ret_event);

#endif
