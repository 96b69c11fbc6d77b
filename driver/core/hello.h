/*
 * hello.h: an agent introduces itself, for the first time, again, or to a new driver: what it says
 * of its workers is compared with what is known of them.
 */
#ifndef DRIVER_CORE_HELLO_H
#define DRIVER_CORE_HELLO_H

#include "driver/core/state.h"

void hello_on_agent(struct core *core, uint32_t peer, const struct msg *msg);

#endif
