/*
 * authority.h: which messages of an agent the driver believes. An agent speaks for its own host
 * alone: for the workers that were launched there, for their commits and for their contacts
 * (addresses). The driver believes no statement about another host, and no number that is
 * impossible.
 */
#ifndef DRIVER_CORE_AUTHORITY_H
#define DRIVER_CORE_AUTHORITY_H

#include "driver/core/core_internal.h"

/* Logs that a statement of this host's agent is refused; `what` describes the statement. Only a few
 * such lines of a host are logged in each time window, so that a lying agent fills neither the log
 * nor memory. */
void authority_refuse(struct core *core, struct core_host *host, const char *what);

/* Logs that a message about the worker `incarnation`, which has ended, is dropped (PROTOCOL.md,
 * K2). Only a few such lines of a host are logged in each time window. */
void authority_note_late(struct core *core, struct core_host *host, uint64_t incarnation);

/* Decides whether the driver believes a message of the host's agent; called before the message is
 * handled. False: the caller drops the message. Then *ret_absurd is NULL if the refusal was logged
 * here. Otherwise *ret_absurd says why no honest agent can send the message; the caller logs this
 * and closes the connection. */
bool authority_believes(struct core *core, struct core_host *host, const struct msg *msg,
                        const char **ret_absurd) MUST_CHECK;

/* Judges the addresses at which a host's worker and agent are reached. *ret_absurd, NULL before the
 * call, says what is wrong with the first one that is no address. */
void authority_judge_contacts(struct core *core, struct core_host *host,
                              const struct msg_texts *contacts, const char **ret_absurd);

/* Decides whether the driver uses what a BEAT (a heartbeat of the agent) says of one worker: its
 * pulse or its reported values. False: the caller leaves this part out. A worker that has ended is
 * left out without a log line, because the agent may not know of the end yet. */
bool authority_believes_beat(struct core *core, struct core_host *host,
                             uint64_t incarnation) MUST_CHECK;

/* Returns why a HELLO_AGENT is refused; NULL: it is accepted. The key of the connection has proved
 * that the agent is the agent of event->host. */
const char *authority_judge_hello(struct core *core, const struct event *event);

#endif
