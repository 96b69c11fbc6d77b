/*
 * event_hook.h: the command of --on-event. It is run once for each event that the filter lets
 * through, with the event as one line of JSON (docs/events.md) on its standard input.
 *
 * The driver never waits for the command. One call runs at a time, each for at most `limit_us`; the
 * newest LIMIT_HOOK_EVENTS events wait, and older ones are dropped. The next event that is told has
 * the number of dropped events as `dropped`, and the log says it. The event of a call that fails is
 * lost; several failures in a row cause one warning.
 *
 *     serving ── event_hook_end ──► ending ── all events told, or LIMIT_OUTPUT_LINGER_US ──► ended
 */
#ifndef DRIVER_IO_EVENT_HOOK_H
#define DRIVER_IO_EVENT_HOOK_H

#include "driver/io/event_queue.h"

struct event_base;
struct event_hook;

/* Makes the hook of config->command, which no shell reads. Events that `events` has in memory
 * already are told, too. Returns 0, HVD_E_NOMEM, or HVD_E_INVAL for a command without a word or
 * with too many. */
int event_hook_create(struct event_base *base, const struct event_hook_config *config,
                      struct events *events, struct event_hook **ret_hook,
                      struct hvd_err *err) MUST_CHECK;

/* The hook takes no further event. The event loop runs until the command was told all events that
 * wait, for at most LIMIT_OUTPUT_LINGER_US. The hook may be NULL. */
void event_hook_end(struct event_hook *hook);

/* Kills a call that runs. Events that still wait are lost, and the log says how many. */
void event_hook_free(struct event_hook *hook);

#endif
