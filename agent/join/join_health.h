/*
 * join_health.h: the socket at which `hvd-agent --healthy` asks a process that joins a job how it
 * is. Its name lies where the names of agents lie (agent_socket.h), under a job that no job is
 * called.
 */
#ifndef AGENT_JOIN_JOIN_HEALTH_H
#define AGENT_JOIN_JOIN_HEALTH_H

#include "agent/processes/agent_socket.h"

struct conn;
struct event_base;
struct listener;

/* The most processes that ask at once; one more takes the place of the one that came first. */
#define JOIN_PROBERS 16

/* A process that asks. */
struct join_prober {
    struct join_health *health;
    struct conn *conn; /* NULL: the place is free */
};

struct join_health {
    struct listener *listener; /* NULL: no process can ask */
    struct join_prober probers[JOIN_PROBERS];
    size_t accepted; /* how many processes have connected */
    struct agent_socket socket;
    void *arg; /* for join_say_health */
};

/* Opens the socket; `arg` is set by the caller. A process that cannot open it goes on
 * without, and logs the reason. */
void join_health_open(struct join_health *health, struct event_base *base, const char *host);
void join_health_close(struct join_health *health); /* also one that was not opened */

/* join.c: writes how this process is, as one line without a line break. */
void join_say_health(void *arg, char ret_text[ERR_TEXT_MAX]);

#endif
