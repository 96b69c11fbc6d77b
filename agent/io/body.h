/*
 * body.h: the agent as a process: what happens on this machine becomes an event, the mind
 * (agent/core) decides, and its actions are carried out in their order. One thread, one loop that
 * never blocks: a beat that arrives proves that the whole agent is well.
 */
#ifndef AGENT_IO_BODY_H
#define AGENT_IO_BODY_H

#include "agent/core/agent.h"

struct body;
struct event_base;
struct tls;

struct body_config {
    struct agent_config mind;
    struct msg_texts drivers; /* copied */
    struct tls *tls;          /* this, and the texts of mind, borrowed as long as the body lives */
    const char *const *env;   /* ours, for workers; likewise */
    int64_t notice_us;        /* from a SIGTERM until the machine goes away */
    int64_t keeper;           /* the pid of our parent; when that is gone we end. 0: we have none */
};

/* From then on the workers' socket is there. HVD_E_BUSY: another agent of the job has it. */
int body_create(struct event_base *base, const struct body_config *config, struct body **ret_body,
                struct hvd_err *err) MUST_CHECK;

/* Until the agent has ended: the code of its EXIT, or what made it give up (HVD_E_NOMEM). */
int body_run(struct body *body) MUST_CHECK;

/* Nothing of its workers is left then. What was said to the driver is out or lost. */
void body_free(struct body *body);

#endif
