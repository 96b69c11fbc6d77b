/*
 * event_hook.h: the command of --on-event. It is run once for each event that the filter lets
 * through, with the event as one line of JSON (docs/events.md) on its standard input.
 *
 * The driver never waits for the command. One call runs at a time, each for at most `limit_us`; the
 * newest LIMIT_HOOK_EVENTS events wait. Events that had no room are counted: the next event has the
 * number as `dropped`, and the log says it. A call that fails costs its event and one warning for
 * all failures in a row.
 *
 *     serving ── event_hook_end ──► ending ── all events told, or LIMIT_OUTPUT_LINGER_US ──► ended
 */
#ifndef DRIVER_IO_EVENT_HOOK_H
#define DRIVER_IO_EVENT_HOOK_H

#include "driver/control/event_filter.h"
#include "driver/control/events.h"

struct event_base;
struct event_hook;

/* Borrowed while the hook lives. */
struct event_hook_config {
    const char *command; /* a program and its arguments, with blanks between them; no shell */
    struct event_filter filter;
    int64_t limit_us;
    const char *const *envp; /* NULL: the environment of this process */
};

/* Events that the log has in memory already are told, too. Returns 0, HVD_E_NOMEM, or HVD_E_INVAL
 * for a command without a word or with too many. */
int event_hook_create(struct event_base *base, const struct event_hook_config *config,
                      struct events *events, struct event_hook **ret_hook,
                      struct hvd_err *err) MUST_CHECK;

/* No further event is taken. The event loop goes on until all are told, for at most
 * LIMIT_OUTPUT_LINGER_US. The hook may be NULL. */
void event_hook_end(struct event_hook *hook);

/* Kills a call that runs. Events that still wait are lost, and the log says how many. */
void event_hook_free(struct event_hook *hook);

#endif
