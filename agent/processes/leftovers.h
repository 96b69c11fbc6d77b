/*
 * leftovers.h: processes that the workers of a former agent have started, and that still run.
 *
 * The supervisor of a killed agent ends these processes. When agent and supervisor are killed at
 * once, workers die with the agent, but the processes that workers had started do not. Their
 * environment (HVD_AGENT) says that they belong to that agent.
 */
#ifndef AGENT_PROCESSES_LEFTOVERS_H
#define AGENT_PROCESSES_LEFTOVERS_H

/* Kills all processes that were started with the socket of an agent of this job and host in
 * HVD_AGENT, and all their descendants, but not the ancestors of this process. An agent calls this
 * function once, when it has the host and has started no worker yet. */
void leftovers_end(const char *job, const char *host);

#endif
