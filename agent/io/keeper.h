/*
 * keeper.h: the process above the agent, which does nothing but wait. Whatever becomes of the
 * agent, nothing that it has started outlives it.
 *
 *     keeper ──► agent ──► workers ──► whatever they start
 *
 * Orphans of the agent's workers become the agent's children, and the keeper's when the agent is
 * dead: then it kills them. When the keeper dies the agent gets SIGTERM.
 */
#ifndef AGENT_IO_KEEPER_H
#define AGENT_IO_KEEPER_H

#include "base/err.h"

/*
 * Runs agent(arg) in a child process, which ends with its result as its exit code. The calling
 * process, which must have one thread and no other children, becomes the keeper: it lets go of all
 * descriptors but its standard error, passes SIGTERM, SIGINT and SIGHUP on as SIGTERM, and returns
 * when nothing is left: 0 and in *ret_code the agent's exit code, or 128 and the signal that killed
 * it. HVD_E_LIMIT, HVD_E_NOMEM: the agent was not started.
 */
int keeper_run(int (*agent)(void *arg), void *arg, int *ret_code, struct hvd_err *err) MUST_CHECK;

#endif
