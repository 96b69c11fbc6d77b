/*
 * history.h: what events.log tells of the whole life of a job, for its page and for the verb
 * "changes": the changes of the membership, and the events that matter most.
 *
 * The lines are bytes from outside: a file may end inside a line, come from another release, or
 * have been edited. A line that is not understood is an event like any other.
 */
#ifndef DRIVER_CONTROL_HISTORY_H
#define DRIVER_CONTROL_HISTORY_H

#include "base/buf.h"
#include "base/text.h"
#include "driver/core/view.h"

/* How many changes and events are written: the newest of each, and of the older warnings and errors
 * the newest HISTORY_GRAVE. */
#define HISTORY_CHANGES 1024
#define HISTORY_EVENTS  1500
#define HISTORY_GRAVE   500

/* The number of texts: events.log.1 and events.log, the older first; a missing file is an empty
 * text. */
#define HISTORY_TEXTS 2

/*
 * Appends one object of JSON: {"began":TIME,"changes":[...],"events":[...]}. A change has the
 * fields of the answer to "changes"; but in place of "ago_s" it has its time, "ended". Its
 * durations are rounded as in the log. Its cause is "unknown" if no driver has seen its beginning.
 * An event has number, time, severity, text and its facts, as in live.h; numbers are missing where
 * events are left out. Lines before the time `since`, which may be "", belong to another job.
 * HVD_E_NOMEM, or HVD_E_LIMIT; after a failure `out` has a part of the object.
 */
int history_write(const struct span texts[HISTORY_TEXTS], const char *since,
                  struct buf *out) MUST_CHECK;

/* Reads the newest changes, at most `max`, the oldest of them first; returns how many there are. A
 * change that no driver has measured has the cause CAUSE_COUNT. `wall_us` is the time of day at the
 * moment now_us of the monotonic clock, on which ended_us is. */
size_t history_changes(const struct span texts[HISTORY_TEXTS], const char *since, int64_t now_us,
                       int64_t wall_us, struct view_change *ret_changes, size_t max);

#endif
