/*
 * join_health.h: the socket at which `hvd-agent --healthy` asks a process that joins a job how that
 * process is. The file of this socket is in the same folder as those of agents (agent_socket.h), in
 * the place of a job with the name ".join", which no job can have.
 */
#ifndef AGENT_JOIN_JOIN_HEALTH_H
#define AGENT_JOIN_JOIN_HEALTH_H

#include "agent/processes/agent_socket.h"

struct conn;
struct event_base;
struct listener;

/* The most processes that ask at once; one more takes the place of the one that came first. */
#define JOIN_PROBERS 16

/* A process (`hvd-agent --healthy`) that has connected to ask. */
struct join_prober {
    struct join_health *health;
    struct conn *conn; /* its connection; NULL: this entry is free */
};

struct join_health {
    struct listener *listener; /* NULL: the socket could not be opened, so no process can ask */
    struct join_prober probers[JOIN_PROBERS];
    size_t accepted; /* how many processes have connected */
    struct agent_socket socket;
    void *arg; /* the argument of join_say_health */
};

/* Opens the socket; the caller has set `arg`. If that fails, the reason is logged, and the process
 * goes on without the socket. */
void join_health_open(struct join_health *health, struct event_base *base, const char *host);
/* Closes the socket; also called if join_health_open has failed or was never called. */
void join_health_close(struct join_health *health);

/* join.c: writes how this process is, as one line without a line break. */
void join_say_health(void *arg, char ret_text[ERR_TEXT_MAX]);

#endif
