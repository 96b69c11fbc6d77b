/*
 * events.h: what has happened to the job, a line each: the trace of the driver's core with the wall
 * clock's time. The last LIMIT_EVENTS_KEPT lines are kept in memory, and all are appended to a file
 * by a thread of its own, so that a disk which hangs or is full never stops the driver's loop.
 *
 * A file that cannot be written is warned of once; lines that were lost to it are counted there
 * when it can be written again. Past LIMIT_EVENTS_LOG_BYTES it is renamed to FILE.1, over the one
 * before.
 *
 * All but the thread's own work is done by one thread, the driver's.
 */
#ifndef DRIVER_ASK_EVENTS_H
#define DRIVER_ASK_EVENTS_H

#include "base/err.h"
#include "base/list.h"
#include "base/trace.h"

struct events;

struct event_line {
    int64_t wall_us;
    char text[TRACE_LINE_MAX];
};

/* The file is "events.log" in the folder; NULL: none. 0, HVD_E_NOMEM, or HVD_E_LIMIT when there can
 * be no thread. */
int events_create(const char *folder, struct events **ret_events, struct hvd_err *err) MUST_CHECK;

/* Writes what waits, but waits for no disk longer than EVENTS_LAST_US. */
void events_free(struct events *events);
#define EVENTS_LAST_US (2 * INT64_C(1000000))

/* Now. Cut at TRACE_LINE_MAX. */
void events_add(struct events *events, const char *text);

/* Visits the newest `most` lines that are kept, oldest first; stops when visit returns false. */
typedef bool events_fn(void *arg, const struct event_line *line);
void events_each(const struct events *events, size_t most, events_fn *visit, void *arg);

/* Calls for each line from now on, as it is added, until it is taken off. It must not add lines. */
struct events_follower {
    struct list link;
    void (*line)(void *arg, const struct event_line *line);
    void *arg;
};
void events_follow(struct events *events, struct events_follower *follower);
void events_unfollow(struct events_follower *follower);

#endif
