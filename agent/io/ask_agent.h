/*
 * ask_agent.h: two questions to an agent that runs on this host already. A new agent of the same
 * job asks "driver": it tells the older agent the id of the job, the host's key, and the addresses
 * of the driver. A probe asks "healthy": how this agent, or this `hvd-agent --join`, is.
 */
#ifndef AGENT_IO_ASK_AGENT_H
#define AGENT_IO_ASK_AGENT_H

#include "proto/msg.h"

struct event_base;

/*
 * Asks the agent that listens at `socket`. `words` holds the id of the job, the key (key_word.h),
 * then the driver's addresses. 0: the other agent knows the addresses now, and *ret_pid is its pid.
 * HVD_E_LOST: the other agent has ended, so this agent can take the host. HVD_E_TIMEOUT: the other
 * agent does not answer, or does not end. Any other code: the other agent has refused.
 */
int ask_agent_driver(struct event_base *base, const char *socket, const struct msg_texts *words,
                     int64_t *ret_pid, struct hvd_err *err) MUST_CHECK;

/*
 * Asks the process that listens at `socket` how it is. 0: the event loop of that process runs, and
 * ret_text says on one line what the process does. HVD_E_LOST: no process listens at `socket`, or
 * it has ended. HVD_E_TIMEOUT: the process does not answer. Any other code: the process has
 * refused.
 */
int ask_agent_health(struct event_base *base, const char *socket, char ret_text[ERR_TEXT_MAX],
                     struct hvd_err *err) MUST_CHECK;

#endif
