/*
 * ask_agent.h: where an agent of the job runs on this host already, that one is told what a second
 * one was started for: the name of its job's key (tls_name), and where the driver is.
 */
#ifndef AGENT_IO_ASK_AGENT_H
#define AGENT_IO_ASK_AGENT_H

#include "proto/msg.h"

struct event_base;

/*
 * words is both in this order. 0: it knows, and its pid is *ret_pid. HVD_E_LOST: it is gone, or was
 * ending and is gone now: the name is free. HVD_E_TIMEOUT: it does not answer, or does not end.
 * Otherwise what it refused.
 */
int ask_agent_driver(struct event_base *base, const char *socket, const struct msg_texts *words,
                     int64_t *ret_pid, struct hvd_err *err) MUST_CHECK;

#endif
