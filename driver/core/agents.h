/*
 * agents.h: the agents of the hosts: hello, silence, coming back.
 */
#ifndef DRIVER_CORE_AGENTS_H
#define DRIVER_CORE_AGENTS_H

#include "driver/core/state.h"

void agents_on_msg(struct core *core, uint32_t peer, const struct msg *msg);
void agents_on_closed(struct core *core, uint32_t peer, const char *why);
void agents_on_start_failed(struct core *core, const char *name, const char *why);
void agents_beat(struct core *core);
void agents_expire(struct core *core);

/* Says again to a host that has come back whatever it may have missed. */
void agents_resume(struct core *core, struct core_host *host);

#endif
