/*
 * owned_process.h: a child process whose end belongs to the thread that has started it, inside a
 * process that reaps all its children. The agent is such a process: its loop reaps orphans, while
 * its other threads run programs for checkpoints and for notices.
 */
#ifndef OS_OWNED_PROCESS_H
#define OS_OWNED_PROCESS_H

#include "os/process.h"

/* Starts the program as process_spawn does. *ret_watch: a pidfd, which becomes readable when the
 * program has ended. The caller calls owned_process_end once, and then closes *ret_watch.
 * HVD_E_LIMIT: too many descriptors, or LIMIT_OWNED_PROCESSES programs run already. */
int owned_process_start(const struct process_spec *spec, pid_t *ret_pid, int *ret_watch,
                        struct hvd_err *err) MUST_CHECK;

/* Waits for the end of the program and returns its wait status, also if another thread has reaped
 * the process by owned_process_reap. */
int owned_process_end(pid_t pid, int watch);

/* Reaps a child that has ended. The status of an owned process is kept for owned_process_end. */
void owned_process_reap(pid_t pid);

#endif
