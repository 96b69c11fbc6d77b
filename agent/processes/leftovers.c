/*
 * leftovers.c: ends processes that the workers of a former agent have started, when agent and
 * supervisor were killed at once. Called once, after this agent has taken the host, when no other
 * agent of the job runs on it. Such a process has the name of the former agent's socket in its
 * environment.
 */
#include "agent/processes/leftovers.h"

#include "agent/processes/agent_socket.h"
#include "agent/processes/tree.h"
#include "base/log.h"
#include "os/process.h"

#include <stdio.h>
#include <unistd.h>

#define PASSES  20   /* passes over /proc; a process that forks faster is left alone */
#define PARENTS 1024 /* longest chain of parents that is followed */

/* Kills the processes that a dead agent of this job and host has left, with all their descendants.
 * HVD_AGENT in their environment names that agent. */
void leftovers_end(const char *job, const char *host)
{
    char prefix[AGENT_SOCKET_MAX], variable[AGENT_SOCKET_MAX + 16];
    size_t found = 1;
    size_t ended = 0;

    snprintf(variable, sizeof(variable), "HVD_AGENT=%s", agent_socket_prefix(job, host, prefix));
    /* One pass is not enough: a process that forks meanwhile is found in the next pass. */
    for (int i = 0; i < PASSES && found > 0; i++) {
        struct process_state state;
        struct tree_process *it;
        struct tree tree;

        found = 0;
        if (tree_read(&tree))
            break;
        VEC_EACH (it, &tree) {
            pid_t at = getpid();

            /* A process that the pass before has killed is `ending`, and is not counted again. */
            it->marked = !it->ending && tree_started_with(it->pid, variable);
            /* An agent that was started from a worker's shell must not end its own ancestors. */
            for (int k = 0; it->marked && k < PARENTS && at > 1; k++) {
                it->marked = at != it->pid;
                at = process_look(at, &state) ? 0 : state.parent;
            }
            found += it->marked;
        }
        tree_kill(&tree);
        tree_release(&tree);
        ended += found;
    }
    if (ended)
        log_warning(AGENT,
                    "a former agent left %zu processes of its workers on this host; this agent has "
                    "ended them",
                    ended);
}
