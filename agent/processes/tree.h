/*
 * tree.h: the processes of this machine at one moment, and a way to kill some of them with all
 * their descendants. One reading is not enough, because a process may fork after the reading. A
 * caller that wants no process left reads and kills again until no process was marked.
 */
#ifndef AGENT_PROCESSES_TREE_H
#define AGENT_PROCESSES_TREE_H

#include "base/vec.h"

#include <sys/types.h>

struct tree_process {
    pid_t pid;
    pid_t parent;
    bool ending; /* killed already, or exiting by itself */
    bool marked; /* tree_kill kills the process and its descendants */
};

struct tree VEC(struct tree_process);

/* Reads /proc. 0, HVD_E_NOMEM, or HVD_E_IO (no /proc); on failure the tree is empty. The owner
 * releases the tree. */
int tree_read(struct tree *tree) MUST_CHECK;
void tree_release(struct tree *tree);

/* true: this process has child processes, dead or alive. */
bool tree_have_children(void);

/* Marks all descendants of the marked processes, too, and sends SIGKILL to every marked process
 * except this one. Before a process that is not a child of this one is killed, tree_kill makes
 * sure that the pid still means the process that was read. */
void tree_kill(struct tree *tree);

/* Returns HVD_INCARNATION from the environment with which a process was started; 0: not set, or not
 * readable. */
uint64_t tree_incarnation(pid_t pid);

/* true: the process was started with a "NAME=value" in its environment that begins with `begin`. */
bool tree_started_with(pid_t pid, const char *begin);

#endif
