/*
 * agent_find.h: finds the sockets of all processes of this user on this host that hold the lock of
 * an agent (agent_socket.h): agents of any job, and `hvd-agent --join`.
 */
#ifndef AGENT_PROCESSES_AGENT_FIND_H
#define AGENT_PROCESSES_AGENT_FIND_H

#include "agent/processes/agent_socket.h"

#define AGENT_FIND_MAX 256 /* the most sockets that are found; further ones are left out */

struct agent_names {
    char items[AGENT_FIND_MAX][AGENT_SOCKET_MAX];
    size_t count;
};

/* Looks into the user's state directory and below /tmp, where agent_socket_take makes its files. A
 * file without a lock is that of an agent that has died, and is left out. */
void agent_find(struct agent_names *ret_names);

#endif
