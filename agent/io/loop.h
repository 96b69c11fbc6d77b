/*
 * loop.h: the agent as a process. An event of this machine becomes an event of the core
 * (agent/core), the core decides, and the loop carries out the core's actions in order. There is
 * one thread with one event loop that never waits for long, so a heartbeat that arrives proves that
 * the whole agent is well.
 */
#ifndef AGENT_IO_LOOP_H
#define AGENT_IO_LOOP_H

#include "agent/core/agent.h"

struct agent_loop;
struct agent_socket;
struct event_base;
struct tls;

struct agent_loop_config {
    struct agent_config core;
    struct msg_texts drivers;    /* the addresses of the driver; copied */
    const char *address;         /* borrowed: where other hosts reach this one; NULL: not given */
    struct tls *tls;             /* borrowed while the loop lives, as are the texts of `core` */
    struct agent_socket *socket; /* borrowed, already taken; agent_loop_free releases it */
    const char *job_id;          /* borrowed: tells this job from other jobs of the same name */
    uint64_t epoch;              /* number of the key that `tls` dials with */
    const char *const *env;      /* borrowed: the agent's own environment, passed on to workers */
    int64_t notice_us;           /* time from a SIGTERM until the machine goes away */
    int64_t warning_us;          /* time from a SIGUSR2 until the machine goes away */
    const char *preemption;      /* borrowed: other sources of notices; see proto/preemption.h */
    /* pid of the parent; the agent ends when that process is gone. 0: no supervisor */
    int64_t supervisor;
};

/* Creates the loop and the socket at which workers connect. */
int agent_loop_create(struct event_base *base, const struct agent_loop_config *config,
                      struct agent_loop **ret_loop, struct hvd_err *err) MUST_CHECK;

/* Runs until the agent has ended. Returns the code of the core's last action, AGENT_DO_EXIT, or the
 * error that has ended the loop (for example HVD_E_NOMEM). */
int agent_loop_run(struct agent_loop *loop) MUST_CHECK;

/* Frees the loop. On return no process of its workers is left, and each message to the driver is
 * sent or lost. */
void agent_loop_free(struct agent_loop *loop);

#endif
