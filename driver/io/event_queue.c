/*
 * event_queue.c: the queue between the log of events and a hook (event_hook.c, event_url.c).
 * Invariant: no more than LIMIT_HOOK_EVENTS lines wait, and each line that had no room is counted.
 */
#include "driver/io/event_queue.h"

#include "base/limits.h"
#include "base/time.h"
#include "driver/control/tables.h"

#include <inttypes.h>
#include <stdio.h>

/* Removes the oldest line. */
static void event_queue_forget(struct event_queue *queue)
{
    queue->first = (queue->first + 1) % LIMIT_HOOK_EVENTS;
    queue->count--;
}

bool event_queue_put(struct event_queue *queue, const struct event_line *line)
{
    if (!event_filter_passes(&queue->filter, line->level, line->kind))
        return false;
    if (queue->count == LIMIT_HOOK_EVENTS) {
        event_queue_forget(queue);
        queue->dropped++;
    }
    queue->waiting[(queue->first + queue->count++) % LIMIT_HOOK_EVENTS] = *line;
    return true;
}

int event_queue_take(struct event_queue *queue, struct buf *json, uint64_t *ret_dropped)
{
    const struct event_line *line = &queue->waiting[queue->first];
    char moment[TIME_STAMP_MAX], facts[EVENT_FACTS_MAX + 40];

    snprintf(facts, sizeof(facts), "%s", line->facts);
    if (queue->dropped)
        snprintf(facts, sizeof(facts), "dropped=%" PRIu64 "\t%s", queue->dropped, line->facts);
    *ret_dropped = queue->dropped;
    queue->dropped = 0;
    event_queue_forget(queue);
    buf_clear(json);
    /* the memory of `line` is used again by the next event_queue_put at the earliest */
    return table_event(time_stamp(line->wall_us, moment), line->level, line->text, facts,
                       true /* as JSON */, json);
}
