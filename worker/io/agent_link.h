/*
 * agent_link.h: a worker's connection to its agent. It has no event loop: the user of the link
 * polls `fd` for agent_link_events.
 */
#ifndef WORKER_IO_AGENT_LINK_H
#define WORKER_IO_AGENT_LINK_H

#include "base/buf.h"
#include "proto/frame.h"
#include "proto/msg.h"

struct agent_link {
    int fd;
    int passed_fd; /* the descriptor that came with a message and was not taken yet; -1: none */
    struct frame_reader reader;
    struct buf unsent;    /* messages that the socket has not taken yet */
    uint8_t chunk[65536]; /* the bytes of the last read */
    const uint8_t *at;    /* points to the first byte of `chunk` that is not parsed yet */
    size_t left;          /* how many bytes of `chunk` are not parsed yet */
};

/* Connects to the agent's socket, whose name is `name`; a name "@..." is in the abstract
 * namespace. HVD_E_TIMEOUT: the agent has accepted no connection within patience_us.
 * HVD_E_DENIED: a process of another user listens there. */
int agent_link_connect(const char *name, int64_t patience_us, int *ret_fd,
                       struct hvd_err *err) MUST_CHECK;
int agent_link_open(struct agent_link *link, const char *name, struct hvd_err *err) MUST_CHECK;
void agent_link_close(struct agent_link *link);

/* Closes the connection: afterwards no message is sent or received. */
void agent_link_cut(struct agent_link *link);

/* Returns the poll events to wait for: POLLIN, and also POLLOUT when there are unsent bytes. */
short agent_link_events(const struct agent_link *link);

/* Queues the message and sends as many bytes as the socket takes now. HVD_E_LOST: the agent does
 * not read any more; unsent bytes are dropped, but messages that the agent has sent may still be
 * received. */
int agent_link_send(struct agent_link *link, const struct msg *msg, struct hvd_err *err) MUST_CHECK;
int agent_link_flush(struct agent_link *link, struct hvd_err *err) MUST_CHECK;

/* The error text of HVD_E_LOST: the agent is gone. A caller that knows the cause writes it before
 * this text. */
#define AGENT_LINK_GONE                                                                           \
    "the agent of this host is gone, so this worker cannot go on; end this process with an exit " \
    "code other than 0"

/* The value of `passed_fd` when a descriptor came, but this process may not open any more
 * descriptors. */
#define AGENT_LINK_NO_ROOM (-2)
/* Takes the descriptor that came with a message; the caller closes it. -1: no descriptor came;
 * AGENT_LINK_NO_ROOM: this process could not receive it. */
int agent_link_take_fd(struct agent_link *link);

/* Writes into *err why a message came without the descriptor that belongs to it. fd
 * AGENT_LINK_NO_ROOM: HVD_E_LIMIT; another fd: HVD_E_PROTO. The text begins with `what`, for
 * example "the agent granted memory". */
int agent_link_no_fd(int fd, const char *what, struct hvd_err *err);

/* Receives the next message. Returns 1: *ret_msg is the message, which the caller releases; 0:
 * no message is complete yet; HVD_E_LOST: the agent is gone; another code: the agent has sent a
 * malformed message. */
int agent_link_receive(struct agent_link *link, struct msg *ret_msg,
                       struct hvd_err *err) MUST_CHECK;

#endif
