/*
 * joins.h: hosts that come by themselves. A process on the host (`hvd-agent --join`) proves a
 * token, says JOIN, and keeps its connection: over it the driver starts agents there, where it
 * would otherwise use ssh. A host that has joined appears and disappears as one of discovery does
 * (listing.c): with JOIN_ALONE it is a host of the job, with JOIN_LISTED if discovery names it too.
 */
#ifndef DRIVER_CORE_JOINS_H
#define DRIVER_CORE_JOINS_H

#include "driver/core/core_internal.h"

/* The first message of the connection event->peer is a JOIN. */
void joins_on_join(struct core *core, const struct event *event);

/* Returns the host whose `hvd-agent --join` has this connection; NULL: no such process has the
 * connection. */
struct core_host *joins_peer(const struct core *core, uint32_t peer);

/* joins_on_msg handles each later message of the process `hvd-agent --join` on this host,
 * joins_on_closed the end of its connection. */
void joins_on_msg(struct core *core, struct core_host *host, const struct msg *msg);
void joins_on_closed(struct core *core, struct core_host *host, const char *why);

/* The driver starts. After a takeover the hosts that have workers have a lease to join again. */
void joins_start(struct core *core);

/* joins_beat sends heartbeats to the processes that have joined. joins_expire lets silent hosts
 * leave, and makes the list of the job's hosts again if it has changed. */
void joins_beat(struct core *core);
void joins_expire(struct core *core);

/* The job is over: the processes are told to end, and the driver ends. */
void joins_end(struct core *core);

#endif
