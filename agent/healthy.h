/*
 * healthy.h: `hvd-agent --healthy`, the probe of a container or a monitor: asks each agent of this
 * user on this host, and each `hvd-agent --join`, how it is.
 */
#ifndef AGENT_HEALTHY_H
#define AGENT_HEALTHY_H

/* Prints a line for each process that was asked: on standard output how the process is, on standard
 * error why it is not well. Returns the exit status: 0, or 1 if a process hangs, is not well, or if
 * there is none. */
int healthy_run(void);

#endif
