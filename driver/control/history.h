/*
 * history.h: what events.log tells of the whole life of a job, for its page: the changes of the
 * membership and the events that matter most.
 *
 * The lines are foreign bytes: a file may be torn, be of another release, or have been edited. A
 * line that is not understood is an event like any other.
 */
#ifndef DRIVER_CONTROL_HISTORY_H
#define DRIVER_CONTROL_HISTORY_H

#include "base/buf.h"
#include "base/text.h"

/* How many changes and events are kept: the newest ones, and of the warnings and errors before
 * these the newest HISTORY_GRAVE. */
#define HISTORY_CHANGES 1024
#define HISTORY_EVENTS  1500
#define HISTORY_GRAVE   500

/* The texts of events.log.1 and events.log, in the order of time; an empty one is left out. */
#define HISTORY_TEXTS 2

/*
 * Appends one object of JSON: {"began":TIME,"changes":[...],"events":[...]}. A change has the
 * fields of the answer to "changes", but for "ago_s", in whose place stands its time, "ended"; its
 * durations are as rounded as those of the log. The cause "unknown" is that of a change whose
 * beginning no driver has seen. An event has number, time, severity, text and its facts, as in
 * live.h; numbers are missing where events are left out. Lines before the time `since`, which may
 * be "", belong to another job. HVD_E_NOMEM, or HVD_E_LIMIT; after a failure `out` has a part of
 * the object.
 */
int history_write(const struct span texts[HISTORY_TEXTS], const char *since,
                  struct buf *out) MUST_CHECK;

#endif
