/*
 * agent_socket.h: the name of the socket on which a job's agent of a host listens. Abstract: it is
 * there exactly as long as the agent is, and leaves no file.
 */
#ifndef AGENT_IO_AGENT_SOCKET_H
#define AGENT_IO_AGENT_SOCKET_H

#include "base/base.h"

#define AGENT_SOCKET_MAX 108 /* with the "@" and the NUL: what the kernel takes */

/* "@hvd-agent/JOB/HOST", or a digest of that when it is too long for a socket. Returns name. */
const char *agent_socket_name(const char *job, const char *host, char name[AGENT_SOCKET_MAX]);

#endif
