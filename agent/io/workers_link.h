/*
 * workers_link.h: the agent's own socket: its workers, and whoever comes to ask something.
 *
 * What comes first on a connection says what the other side is. HELLO_WORKER is believed only of
 * the process that was started as that worker, or of one below it, as the kernel vouches; the mind
 * then hears of it, with the number of the connection. ASK is answered here, and what concerns a
 * worker's state (SNAPSHOT, FETCH) by whoever keeps it: the mind does not hear of that.
 */
#ifndef AGENT_IO_WORKERS_LINK_H
#define AGENT_IO_WORKERS_LINK_H

#include "agent/io/children.h"
#include "wire/listener.h"

struct workers_link;

/* Called from the loop, and from inside workers_link_read_now. */
struct workers_link_ops {
    /* The pid of the process that was started as this worker and runs; 0. */
    uint64_t (*pid_of)(void *arg, uint64_t incarnation);
    void (*msg)(void *arg, uint32_t worker, const struct msg *msg);
    void (*down)(void *arg, uint32_t worker);
    /* "driver" was asked, by an agent of the job that has this key: 0, or why not. */
    int (*point)(void *arg, const char *key, const struct msg_texts *addresses,
                 struct hvd_err *err);
    /* SNAPSHOT: the descriptor (borrowed) that goes beside the GRANTED, or why there is none. */
    int (*snapshot)(void *arg, uint64_t incarnation, const struct msg_snapshot *wanted, int *ret_fd,
                    struct hvd_err *err);
    /* FETCH: by whom, for workers_link_fetched and for hung_up. */
    void (*fetch)(void *arg, uint64_t who, const struct msg *msg);
    /* Who fetches is gone, or about to be closed: nothing more is written for it. */
    void (*hung_up)(void *arg, uint64_t who);
};

/* HVD_E_BUSY when the name is taken. children is borrowed as long as the link lives. */
int workers_link_create(struct event_base *base, const char *name, struct children *children,
                        const struct workers_link_ops *ops, void *arg,
                        struct workers_link **ret_link, struct hvd_err *err) MUST_CHECK;
void workers_link_free(struct workers_link *link); /* what was sent still goes out */

/* As conn_send; an unknown number is ignored. */
int workers_link_send(struct workers_link *link, uint32_t worker, const struct msg *msg,
                      struct hvd_err *err) MUST_CHECK;
int workers_link_send_frame(struct workers_link *link, uint32_t worker, const void *frame,
                            size_t length) MUST_CHECK;
/* A FETCHED for whoever asked for it, if that is still there. */
void workers_link_fetched(struct workers_link *link, uint64_t who, const struct msg *msg);
void workers_link_drop(struct workers_link *link, uint32_t worker);

/* What that worker has still said is brought here now. */
void workers_link_read_now(struct workers_link *link, uint64_t incarnation);

#endif
