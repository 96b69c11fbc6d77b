/*
 * control.h: the server on the Unix socket in the job's folder, through which operators make
 * requests.
 *
 * A connection carries one request: the client sends one ASK, and the driver answers with one or
 * more TELLs, of which the final one is marked as the last. Then the driver closes the connection.
 * The requests are the rows of a table in control.c. A stop is answered at once; with `follow` its
 * connection is closed when the driver ends. A drain, undrain, clear, rekey, checkpoint or change
 * of tokens is an event for the core, which answers when its records are durable, or the checkpoint
 * is complete. A rekey with `follow` gets a line for each step until all hosts have new keys.
 *
 * A client that sends no request within the time limit of a handshake is closed. A client that does
 * not read its answer is cut off. At most LIMIT_CLIENTS clients are served at a time, and further
 * ones are refused. Only the user of the driver and root may connect.
 */
#ifndef DRIVER_CONTROL_CONTROL_H
#define DRIVER_CONTROL_CONTROL_H

#include "driver/control/events.h"
#include "driver/control/tables.h"
#include "driver/core/event.h"
#include "driver/core/view.h"

struct control;
struct event_base;

struct control_ops {
    /* Makes the view of the job and the facts that the tables of the verbs show. Returns 0 or
     * HVD_E_NOMEM. The texts of the facts are borrowed until the event loop goes on. */
    int (*view)(void *arg, struct core_view *ret_view, struct table_facts *ret_facts);
    /* Gives the core an event. The core answers a DRAIN, UNDRAIN, CLEAR, REKEY, TOKEN or
     * WANT_CHECKPOINT by control_reply, now or later; a STOP gets no reply. The event borrows its
     * texts; the callee fills in the times. */
    void (*act)(void *arg, const struct event *event);
};

/* Creates the control server on the socket `path`. `ops` and `events` are borrowed while the server
 * lives. Fails with HVD_E_NOMEM or a code of listener_unix. */
int control_create(struct event_base *base, const char *path, struct events *events,
                   const struct control_ops *ops, void *arg, struct control **ret_control,
                   struct hvd_err *err) MUST_CHECK;

/* Closes all clients and removes the socket. */
void control_free(struct control *control);

/* Sends the core's answer to the client whose request has the number `ask`. Does nothing if `ask`
 * is 0, or if that client has closed its connection. */
void control_reply(struct control *control, uint64_t ask, int code, const char *text);

/* Sends `text`, which says how far the change of keys is, to all clients that wait for the end of
 * it (rekey with `follow`). `over`: true: the change of keys has ended, and `text` is the last part
 * of the answer. */
void control_rekeying(struct control *control, const char *text, bool over);

#endif
