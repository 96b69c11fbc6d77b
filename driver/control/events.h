/*
 * events.h: the log of what has happened to the job, one line for each event: the trace of the
 * driver's core, with the time of day. The last LIMIT_EVENTS_KEPT lines stay in memory. A thread
 * appends all lines to a file, so a disk that hangs or is full never stops the driver's event loop.
 *
 * If the file cannot be written, one warning is logged. When the file can be written again, a line
 * in it says how many lines are missing. A file of more than LIMIT_EVENTS_LOG_BYTES is renamed to
 * FILE.1, which replaces an older FILE.1.
 *
 * All calls must come from one thread, that of the event loop.
 */
#ifndef DRIVER_CONTROL_EVENTS_H
#define DRIVER_CONTROL_EVENTS_H

#include "base/err.h"
#include "base/list.h"
#include "base/trace.h"

struct events;

struct event_line {
    int64_t wall_us;
    char text[TRACE_LINE_MAX];
};

/* Opens the log. The file is "events.log" in the folder; folder NULL: no file. Returns 0,
 * HVD_E_NOMEM, or HVD_E_LIMIT if no thread can be started. */
int events_create(const char *folder, struct events **ret_events, struct hvd_err *err) MUST_CHECK;

/* Writes the lines that are waiting, and waits at most EVENTS_LAST_US for the disk. */
void events_free(struct events *events);
#define EVENTS_LAST_US (2 * INT64_C(1000000))

/* Adds a line with the present time. The text is cut at TRACE_LINE_MAX bytes. */
void events_add(struct events *events, const char *text);

/* Calls visit with the newest `most` lines that are in memory, the oldest of them first. When
 * `visit` returns false, no further line is visited. */
typedef bool events_fn(void *arg, const struct event_line *line);
void events_each(const struct events *events, size_t most, events_fn *visit, void *arg);

/* After events_follow, the callback `line` gets each new line, until events_unfollow. The callback
 * must not add lines. */
struct events_follower {
    struct list link;
    void (*line)(void *arg, const struct event_line *line);
    void *arg;
};
void events_follow(struct events *events, struct events_follower *follower);
void events_unfollow(struct events_follower *follower);

#endif
