/*
 * hello.h: handles HELLO_AGENT. An agent says hello when it is new, when it has lost its
 * connection, and when the driver is new. The workers that the agent reports are compared with the
 * workers that the driver knows.
 */
#ifndef DRIVER_CORE_HELLO_H
#define DRIVER_CORE_HELLO_H

#include "driver/core/core_internal.h"

void hello_on_agent(struct core *core, const struct event *event);

#endif
