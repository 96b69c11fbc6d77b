/*
 * reported.h: the values that the program reports (hvd_report), as the heartbeats of its agents
 * say: the newest value of each name, and a few older ones over time. All of it is shown to
 * operators, and nothing is decided by it: an agent may lie. A driver that takes over knows none,
 * and hears the newest ones with the first heartbeats.
 */
#ifndef DRIVER_CORE_REPORTED_H
#define DRIVER_CORE_REPORTED_H

#include "driver/core/core_internal.h"

/* Takes the reported values in a heartbeat of this host's agent, as far as authority.c believes
 * them. */
void reported_on_beat(struct core *core, struct core_host *host, const struct msg_beat *beat);

/* Copies the names with their values into the view, in the order in which the names came first. */
void reported_view(const struct core *core, struct core_view *view);

void reported_release(struct core *core);

#endif
