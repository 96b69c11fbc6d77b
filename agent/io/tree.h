/*
 * tree.h: the processes of this machine at one moment, and killing some of them with all that they
 * have started. A moment is not enough: what forks meanwhile is found by the next one, so whoever
 * wants nothing left reads and kills until nothing was marked.
 */
#ifndef AGENT_IO_TREE_H
#define AGENT_IO_TREE_H

#include "base/vec.h"

#include <sys/types.h>

struct tree_process {
    pid_t pid;
    pid_t parent;
    bool ending; /* killed already, or on its way out by itself */
    bool marked;
};

struct tree VEC(struct tree_process);

/* 0, HVD_E_NOMEM or HVD_E_IO (no /proc); then the tree is empty. Released by its owner. */
int tree_read(struct tree *tree) MUST_CHECK;
void tree_release(struct tree *tree);

/* Marks what the marked ones have started. */
void tree_spread(struct tree *tree);

/* SIGKILL to every marked one but ourselves. Of those that are not our children it makes sure that
 * the number still means the process that was read. */
void tree_kill(const struct tree *tree);

/* HVD_INCARNATION in the environment that a process was started with; 0: none, or none to be seen.
 */
uint64_t tree_incarnation(pid_t pid);

/* Whether it was started with this "NAME=value" in its environment. */
bool tree_started_with(pid_t pid, const char *variable);

#endif
