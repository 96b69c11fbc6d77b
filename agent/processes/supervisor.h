/*
 * supervisor.h: the supervisor is the parent of the agent and only waits. No process that the agent
 * has started outlives the supervisor, also when the agent is killed.
 *
 *   supervisor ──► agent ──► workers ──► processes that workers start
 *
 * Orphans of the agent's workers become children of the agent. When the agent is dead, these
 * processes become children of the supervisor, which kills them. When the supervisor dies the agent
 * gets SIGTERM.
 */
#ifndef AGENT_PROCESSES_SUPERVISOR_H
#define AGENT_PROCESSES_SUPERVISOR_H

#include "base/err.h"

#include <signal.h>

/* The signal by which the supervisor tells the agent that it has got SIGTERM, SIGINT or SIGHUP. */
#define SUPERVISOR_PASSES_ON SIGUSR1

/*
 * Runs agent(arg) in a child process, whose exit code is the result of agent(arg). The calling
 * process must have one thread and no other children. The calling process becomes the supervisor:
 * it keeps no descriptor open except standard error (its standard input and output are /dev/null),
 * passes SIGTERM, SIGINT and SIGHUP on to the agent as SUPERVISOR_PASSES_ON, and SIGUSR2 as it is.
 * It returns when all processes below it have ended. 0: *ret_code
 * is the agent's exit code, or 128 plus the signal that killed the agent. HVD_E_LIMIT, HVD_E_NOMEM:
 * the agent was not started.
 */
int supervisor_run(int (*agent)(void *arg), void *arg, int *ret_code,
                   struct hvd_err *err) MUST_CHECK;

#endif
