/*
 * ask_agent.h: questions to an agent that runs on this host already: that of a new agent of its
 * job, which tells the older agent the id of the job, the host's key, and the addresses of the
 * driver; and that of a probe, which asks how an agent, or `hvd-agent --join`, is.
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
 * Asks the process at `socket` how it is. 0: its event loop goes round, and ret_text says on one
 * line what it does. HVD_E_LOST: no process listens there, or it has ended. HVD_E_TIMEOUT: the
 * process does not answer. Any other code: the process has refused.
 */
int ask_agent_health(struct event_base *base, const char *socket, char ret_text[ERR_TEXT_MAX],
                     struct hvd_err *err) MUST_CHECK;

#endif
