/*
 * leftovers.h: what the workers of a former agent have started, and nobody has ended.
 *
 * An agent that is killed leaves that to its keeper. When both are killed at once, workers die with
 * the agent, but not what they had started; it is found by its environment.
 */
#ifndef AGENT_IO_LEFTOVERS_H
#define AGENT_IO_LEFTOVERS_H

/* Kills whatever was started with HVD_AGENT=socket, with all that it has started, but not those
 * that we descend from. For the process that has this socket, before its first worker. */
void leftovers_end(const char *socket);

#endif
