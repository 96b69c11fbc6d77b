/*
 * workers_link.h: the agent's own socket, for its workers and for clients that ask a question.
 *
 * The first message on a connection says what the other side is. HELLO_WORKER is accepted only from
 * the process that was started as that worker, or from a descendant of that process; the kernel
 * tells the sender's pid. The core then gets the message, with the number of the connection. ASK is
 * answered in this file. Messages about commits (SNAPSHOT, FETCH) go to the owner of `ops`, not to
 * the core.
 */
#ifndef AGENT_IO_WORKERS_LINK_H
#define AGENT_IO_WORKERS_LINK_H

#include "agent/processes/children.h"
#include "wire/listener.h"

struct workers_link;

/* These callbacks are called from the event loop, and from inside workers_link_read_now. */
struct workers_link_ops {
    /* Returns the pid of the running process that was started as this worker; 0: no such process
     * runs. */
    uint64_t (*pid_of)(void *arg, uint64_t incarnation);
    /* msg: a message has come on the connection with the number `worker`. down: it is closed. */
    void (*msg)(void *arg, uint32_t worker, const struct msg *msg);
    void (*down)(void *arg, uint32_t worker);
    /* An agent of the job with this key has asked "driver" (see ask_agent.h): returns 0, or why the
     * addresses are refused. */
    int (*point)(void *arg, const char *job_id, const char *key_word,
                 const struct msg_texts *addresses, struct hvd_err *err);
    /* Writes the answer to the question "healthy": how this agent is, as one line. */
    void (*health)(void *arg, char ret_text[ERR_TEXT_MAX]);
    /* SNAPSHOT: sets the descriptor (borrowed) that goes with the GRANTED, or returns why there is
     * none. */
    int (*snapshot)(void *arg, uint64_t incarnation, const struct msg_snapshot *wanted, int *ret_fd,
                    struct hvd_err *err);
    /* FETCH: `requester` names the connection of the worker, for workers_link_fetched and for
     * hung_up. */
    void (*fetch)(void *arg, uint64_t requester, const struct msg *msg);
    /* The connection of `requester` is closed or about to be closed: the owner must write nothing
     * more for the fetch of that worker. */
    void (*hung_up)(void *arg, uint64_t requester);
};

/* Creates the socket and listens. HVD_E_BUSY: the name is taken. `children` is borrowed as long as
 * the link lives. */
int workers_link_create(struct event_base *base, const char *name, struct children *children,
                        const struct workers_link_ops *ops, void *arg,
                        struct workers_link **ret_link, struct hvd_err *err) MUST_CHECK;
void workers_link_free(struct workers_link *link); /* messages that are queued are still sent */

/* Sends a message as conn_send does, or a frame (an encoded message), to the worker on the
 * connection with the number `worker`. A number that no connection has is ignored. */
int workers_link_send(struct workers_link *link, uint32_t worker, const struct msg *msg,
                      struct hvd_err *err) MUST_CHECK;
int workers_link_send_frame(struct workers_link *link, uint32_t worker, const void *frame,
                            size_t length) MUST_CHECK;
/* Sends a FETCHED to the connection that asked, if that connection is still there. */
void workers_link_fetched(struct workers_link *link, uint64_t requester, const struct msg *msg);
/* Closes the connection with this number when all messages are sent; no callback `down` follows. */
void workers_link_drop(struct workers_link *link, uint32_t worker);

/* Reads and hands on at once all messages that the worker has sent by now. Called when the worker
 * is about to end. */
void workers_link_read_now(struct workers_link *link, uint64_t incarnation);

#endif
