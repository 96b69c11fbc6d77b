/*
 * live.h: the message that viewers of --page get: one object with the JSON of status, hosts,
 * changes and blacklist, the newest complete checkpoint, and the newest events with their facts.
 * The value "now" is the present time; if the job has ended, the time of its end.
 *
 * The size of the message is bounded, however large the job is: it has at most LIVE_HOSTS hosts
 * with LIVE_WORKERS workers, first the hosts with something to say, and LIVE_HELD rows of the
 * blacklist. Beside each list the message says how many are left out.
 */
#ifndef DRIVER_CONTROL_LIVE_H
#define DRIVER_CONTROL_LIVE_H

#include "driver/control/events.h"
#include "driver/control/tables.h"

#define LIVE_HOSTS   256
#define LIVE_WORKERS 4096
#define LIVE_HELD    256
#define LIVE_EVENTS  2000 /* how many events the verb "page" gets */

/* Appends the message, with the newest `most` events; events NULL: without events. The lists of the
 * view are shortened. HVD_E_NOMEM, or HVD_E_LIMIT; after a failure `out` is unchanged. */
int live_write(struct core_view *view, const struct table_facts *facts, const struct events *events,
               size_t most, struct buf *out) MUST_CHECK;

#endif
