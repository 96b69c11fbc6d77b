/*
 * events.h: the event log: what has happened to the job, one line for each event. The lines are
 * those of the trace of the driver's core, with the time of day and facts. The last
 * LIMIT_EVENTS_KEPT lines stay in memory. A thread appends all lines to a file, so a disk that
 * hangs or is full never stops the driver's event loop.
 *
 * A line of the file is "TIME TEXT TAB FACTS" (event_facts.h). A text whose level is not TRACE_INFO
 * begins with its severity: "TIME warning: TEXT".
 *
 * If the file cannot be written, one warning is logged. When the file can be written again, a line
 * in it says how many lines are missing. A file of more than LIMIT_EVENTS_LOG_BYTES is renamed to
 * FILE.1, which replaces an older FILE.1.
 *
 * All calls must come from one thread, that of the event loop.
 */
#ifndef DRIVER_CONTROL_EVENTS_H
#define DRIVER_CONTROL_EVENTS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/text.h"
#include "base/trace.h"
#include "driver/control/event_facts.h"

struct events;

struct event_line {
    uint64_t number; /* counts all lines of this driver; the first is 1 */
    int64_t wall_us;
    enum trace_level level;
    enum facts_kind kind;
    char text[TRACE_LINE_MAX];
    char facts[EVENT_FACTS_MAX];
};

/* The most bytes of a file: it is renamed when it has more than LIMIT_EVENTS_LOG_BYTES, but until
 * then it may have some more. */
#define EVENTS_FILE_MAX (2 * LIMIT_EVENTS_LOG_BYTES)

/* Returns "error", "warning", "info" or "debug". */
const char *events_severity(enum trace_level level);

/* Returns what comes before the text of a line of this level: "warning: ", or "" for TRACE_INFO. */
#define EVENTS_MARK_MAX 16
const char *events_mark(enum trace_level level);

/* The parts of a line of the file, without its newline; they point into that line. A line that
 * another program or an older driver has written has the level TRACE_INFO and no facts. */
struct events_parsed {
    struct span moment, text, facts;
    enum trace_level level;
};
struct events_parsed events_parse(struct span line);

/* Appends the text of an events.log to `text`, whose max is EVENTS_FILE_MAX. If the file ends
 * inside a line, because the driver has died there or is writing now, that line gets the end
 * TORN_END of the next driver, so that a number that was cut is not shown as a fact. The codes are
 * those of file_read. */
int events_read(const char *path, struct buf *text, struct hvd_err *err) MUST_CHECK;

/* Opens the log. The file is "events.log" in the folder; folder NULL: no file. `job`, the name of
 * the job, is borrowed until events_free. Returns 0, HVD_E_NOMEM, or HVD_E_LIMIT if no thread can
 * be started. */
int events_create(const char *folder, const char *job, struct events **ret_events,
                  struct hvd_err *err) MUST_CHECK;

/* Frees the log. Lines that are not in the file yet are written first; the wait for the disk is
 * EVENTS_LAST_US at most. */
void events_free(struct events *events);
#define EVENTS_LAST_US (2 * INT64_C(1000000))

/* Adds a line with the present time. The text is cut at TRACE_LINE_MAX bytes. facts NULL: nothing
 * but the level and the text is known. */
void events_add(struct events *events, enum trace_level level, const struct facts *facts,
                const char *text);

/* Calls visit with the newest `most` lines that are in memory, the oldest of them first. When
 * `visit` returns false, no further line is visited. */
typedef bool events_fn(void *arg, const struct event_line *line);
void events_each(const struct events *events, size_t most, events_fn *visit, void *arg);

/* After events_follow the callback `line` gets each new line, until events_unfollow. The callback
 * must not add lines. */
struct events_follower {
    struct list link;
    void (*line)(void *arg, const struct event_line *line);
    void *arg;
};
void events_follow(struct events *events, struct events_follower *follower);
void events_unfollow(struct events_follower *follower);

#endif
