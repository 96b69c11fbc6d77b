/*
 * agent_link.h: a worker's connection to its agent, without a loop: who has it polls agent_link_fd.
 */
#ifndef WORKER_IO_AGENT_LINK_H
#define WORKER_IO_AGENT_LINK_H

#include "base/buf.h"
#include "proto/frame.h"
#include "proto/msg.h"

struct agent_link {
    int fd;
    int passed_fd; /* came beside a message and was not taken yet; -1 */
    struct frame_reader reader;
    struct buf unsent;
    uint8_t chunk[65536]; /* as it was read, */
    const uint8_t *at;    /* and what of it was not looked at yet */
    size_t left;
};

/* "@name" is in the abstract namespace. HVD_E_TIMEOUT: it takes no connection for so long. */
int agent_link_connect(const char *name, int64_t patience_us, int *ret_fd,
                       struct hvd_err *err) MUST_CHECK;
int agent_link_open(struct agent_link *link, const char *name, struct hvd_err *err) MUST_CHECK;
void agent_link_close(struct agent_link *link);

/* The connection is no more: nothing is sent or received from now on. */
void agent_link_cut(struct agent_link *link);

/* POLLIN, and POLLOUT when there is something unsent. */
short agent_link_events(const struct agent_link *link);

/* Queued, and sent as far as it goes now. HVD_E_LOST when nobody reads any more: what is unsent is
 * dropped, and what the agent has said before may still be received. */
int agent_link_send(struct agent_link *link, const struct msg *msg, struct hvd_err *err) MUST_CHECK;
int agent_link_flush(struct agent_link *link, struct hvd_err *err) MUST_CHECK;

/* The descriptor that came beside a message, given; -1: none came. */
#define AGENT_LINK_NO_ROOM (-2) /* one came, and this process may open no more */
int agent_link_take_fd(struct agent_link *link);

/* How the lack of one is said: HVD_E_LIMIT or HVD_E_PROTO; what: "the agent granted memory". */
int agent_link_no_fd(int fd, const char *what, struct hvd_err *err);

/* Reads what is there. 1: *ret_msg (release it); 0: no more for now; HVD_E_LOST: the agent is gone;
 * or what was wrong with what it sent. */
int agent_link_receive(struct agent_link *link, struct msg *ret_msg,
                       struct hvd_err *err) MUST_CHECK;

#endif
