/*
 * agents.h: handles the three events that agents cause: a message, a closed connection, and an
 * agent that could not be started.
 */
#ifndef DRIVER_CORE_AGENTS_H
#define DRIVER_CORE_AGENTS_H

#include "driver/core/core_internal.h"

void agents_on_msg(struct core *core, const struct event *event);
void agents_on_closed(struct core *core, uint32_t peer, const char *why);
void agents_on_start_failed(struct core *core, const char *name, const char *why);

#endif
