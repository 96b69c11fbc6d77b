#include "agent/io/body_queue.h"

#include "base/mem.h"

struct body_queued {
    struct agent_event event;
    char *text;
};

void body_queue_init(struct body_queue *queue)
{
    *queue = (struct body_queue){ .taken = 0 };
}

void body_queue_release(struct body_queue *queue)
{
    struct agent_event event;

    while (body_queue_take(queue, &event))
        ;
    VEC_RELEASE(&queue->waiting);
}

int body_queue_put(struct body_queue *queue, const struct agent_event *event)
{
    struct body_queued queued = { .event = *event };
    int rc = VEC_RESERVE(&queue->waiting, 1, UINT32_MAX);

    ASSERT(!event->msg && !event->data.at && !event->kept);
    if (rc)
        return rc;
    if (event->text) {
        queued.text = mem_strdup(event->text);
        if (!queued.text)
            return HVD_E_NOMEM;
    }
    queued.event.text = queued.text;
    queue->waiting.items[queue->waiting.count++] = queued;
    return 0;
}

bool body_queue_take(struct body_queue *queue, struct agent_event *ret_event)
{
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
