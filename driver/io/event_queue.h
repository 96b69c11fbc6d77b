/*
 * event_queue.h: the events that wait for a hook, the command of --on-event or the server of
 * --on-event-url: those that the filter lets through, the newest LIMIT_HOOK_EVENTS of them. Older
 * ones are dropped, because the newest ones say how the job is now.
 *
 * A queue has no lock: the URL's hook, which has a thread, calls it with its own mutex held.
 */
#ifndef DRIVER_IO_EVENT_QUEUE_H
#define DRIVER_IO_EVENT_QUEUE_H

#include "driver/control/event_filter.h"
#include "driver/control/events.h"

/* The settings of the hooks of events, borrowed while a hook lives. */
struct event_hook_config {
    /* --on-event: a program and its arguments, with blanks between them; NULL: no such hook */
    const char *command;
    const char *url;            /* --on-event-url; NULL: no such hook */
    const char *header_file;    /* --on-event-url-header-file; NULL: no such file */
    const char *ca_file;        /* --on-event-url-ca; NULL: the authorities of the system */
    struct event_filter filter; /* which events are told */
    int64_t limit_us;           /* how long one call of the command or one request may take */
    const char *const *envp;    /* environment of the command; NULL: that of this process */
};

struct event_queue {
    struct event_filter filter;
    uint64_t dropped;    /* events that were dropped since the last one that was taken out */
    size_t first, count; /* the oldest of the lines that wait, and how many these are */
    struct event_line waiting[LIMIT_HOOK_EVENTS];
};

/* Copies a line of the log of events into the queue; false: the filter does not let it through. */
bool event_queue_put(struct event_queue *queue, const struct event_line *line);

/* Takes the oldest event out and writes it into `json`, as one line of JSON (docs/events.md).
 * *ret_dropped is how many events were dropped before; the event has this number as `dropped`.
 * After a failure, HVD_E_NOMEM or HVD_E_LIMIT, the event is taken out as well. */
int event_queue_take(struct event_queue *queue, struct buf *json, uint64_t *ret_dropped) MUST_CHECK;

#endif
