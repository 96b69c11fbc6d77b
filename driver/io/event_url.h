/*
 * event_url.h: the server of --on-event-url. Each event that the filter lets through is posted to
 * it, as one line of JSON (docs/events.md), by a thread that the driver's event loop never waits
 * for.
 *
 * One request runs at a time, for at most `limit_us`, on a connection that is kept open. While the
 * server cannot be reached or takes no event, the oldest event is posted again and again, with
 * longer and longer pauses, and later ones wait (event_queue.h). An event that the server refuses
 * is lost. Failures in a row cause one warning when the first event is held up, and one when the
 * first is lost; a line says when the server works again. These lines of the log are no events.
 *
 *     serving ── event_url_end ──► ending ── all events told, or LIMIT_OUTPUT_LINGER_US ──► ended
 */
#ifndef DRIVER_IO_EVENT_URL_H
#define DRIVER_IO_EVENT_URL_H

#include "driver/io/event_queue.h"

struct event_url;

/* Checks config->url, if there is one, before anything is made for a job. `file`: the file of the
 * headers and that of the authorities must be there, too. HVD_E_INVAL, or a code of
 * event_target_init. */
int event_url_check(const struct event_hook_config *config, bool file,
                    struct hvd_err *err) MUST_CHECK;

/* Starts the thread. Events that `events` has in memory already are told, too. The config is
 * borrowed during the call. A code of event_target_init, HVD_E_NOMEM, or HVD_E_LIMIT if no thread
 * can be started. */
int event_url_create(const struct event_hook_config *config, struct events *events,
                     struct event_url **ret_hook, struct hvd_err *err) MUST_CHECK;

/* No further event is taken. The thread goes on telling those that wait, for at most
 * LIMIT_OUTPUT_LINGER_US; this call does not wait for it. The hook may be NULL, here and in
 * event_url_free. */
void event_url_end(struct event_url *hook);

/* Waits for the thread: after event_url_end for at most LIMIT_OUTPUT_LINGER_US from then, otherwise
 * it breaks the request off at once. The log says how many events were not told. A thread that does
 * not end within EVENT_URL_STOP_US more, because the look-up of a name hangs, is abandoned. */
void event_url_free(struct event_url *hook);
#define EVENT_URL_STOP_US (2 * INT64_C(1000000))

#endif
