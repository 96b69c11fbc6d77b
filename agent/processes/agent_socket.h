/*
 * agent_socket.h: which agent of a job has this host, and the socket on which that agent listens.
 *
 * The name of the socket is abstract: the name exists exactly as long as the agent, and leaves no
 * file. The name ends in random digits, because any user may bind any abstract name: a name that
 * others can foresee could be taken before the agent comes. Workers are told the name by HVD_AGENT;
 * the next agent of the job on this host finds the name in a file that only this user can write.
 * The agent holds the lock of that file for as long as it has the host.
 */
#ifndef AGENT_PROCESSES_AGENT_SOCKET_H
#define AGENT_PROCESSES_AGENT_SOCKET_H

#include "base/err.h"

/* bytes with the "@" and the NUL: the longest name that the kernel takes */
#define AGENT_SOCKET_MAX 108
/* bytes: the path of the folder, and the name of the file in it */
#define AGENT_SOCKET_FILE_MAX 4400

/* the beginning of the names of all agents' sockets */
#define AGENT_SOCKET_BEGIN "@hvd-agent/"

struct agent_socket {
    /* the name of this agent's socket; after HVD_E_BUSY the name of the other agent's socket */
    char name[AGENT_SOCKET_MAX];
    char path[AGENT_SOCKET_FILE_MAX]; /* path of the file that holds the name */
    int fd;                           /* the locked file; -1: this agent does not have the host */
};

/* Writes the part of the name that all agents of this job and host share, "@hvd-agent/JOB/HOST/",
 * or a digest when the name would be too long. Returns `prefix`. */
const char *agent_socket_prefix(const char *job, const char *host, char prefix[AGENT_SOCKET_MAX]);

/*
 * Takes the host for this agent, with a new name. The file lies in the user's state directory, or
 * below /tmp if that cannot be used. HVD_E_BUSY: another agent has the host; ret_socket->name is
 * the name of its socket. HVD_E_LOST: that agent has just begun or ended; try again.
 */
int agent_socket_take(const char *job, const char *host, struct agent_socket *ret_socket,
                      struct hvd_err *err) MUST_CHECK;

/* Removes the file and gives the host back. A socket that was not taken, or that was released, is
 * left as it is. */
void agent_socket_release(struct agent_socket *socket);

#endif
