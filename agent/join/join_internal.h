/*
 * join_internal.h: what join.c and join_agent.c share. Private to this folder.
 */
#ifndef AGENT_JOIN_INTERNAL_H
#define AGENT_JOIN_INTERNAL_H

#include "agent/join/join.h"
#include "base/buf.h"

#include <sys/types.h>

struct event;
struct event_base;
struct command;

/* The agent of this host, as this process has started it. */
struct join_agent {
    struct event_base *base;
    /* runs `hvd-agent --stdin`, which starts the agent or gives a running agent new settings; NULL:
     * it does not run now */
    struct command *command;
    struct buf settings;     /* the settings that wait for the end of `command`; empty: none wait */
    struct buf input;        /* the settings that `command` reads */
    pid_t pid;               /* the agent that runs; 0: none is known */
    int watch;               /* the pidfd of that agent; -1: none */
    bool warned;             /* while `command` runs: the agent that it starts gets SIGUSR2 */
    struct event *end_event; /* `watch` is readable: the agent has ended */
    char program[4096];      /* path of hvd-agent, which this process runs, too */
    void (*failed)(void *arg, const char *why); /* no agent could be started */
    void (*ended)(void *arg);                   /* the agent has ended */
    void *arg;
};

/* Finds the program of the agent. HVD_E_IO: /proc does not name the file of this program. */
int join_agent_init(struct join_agent *agent, struct event_base *base,
                    struct hvd_err *err) MUST_CHECK;
void join_agent_release(struct join_agent *agent);

/* Starts an agent with these settings (copied), or gives them to the agent that runs. Settings that
 * come while a start is under way wait for the end of that start, and replace older settings that
 * wait. 0 or HVD_E_NOMEM. */
int join_agent_start(struct join_agent *agent, const struct buf *settings) MUST_CHECK;

/* Reaps the children of this process that have ended: call it at SIGCHLD. In a container, where
 * this process is the first one, supervisors of agents and processes of others become its children.
 */
void join_agent_reap(const struct join_agent *agent);

/* True: an agent runs, or is being started. */
bool join_agent_lives(const struct join_agent *agent);

/* Tells the agent that its machine will go away, as a scheduler does with SIGUSR2; an agent that is
 * being started is told when it runs. False: there is no agent. */
bool join_agent_warn(struct join_agent *agent);

/* Ends the agent and its workers at once, as a second SIGTERM does. */
void join_agent_end(const struct join_agent *agent);

#endif
