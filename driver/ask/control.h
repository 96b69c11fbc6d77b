/*
 * control.h: where operators ask: a server on the Unix socket in the job's folder.
 *
 * One connection is one question: an ASK, then TELLs, the last of which says so, then it is closed.
 *
 *     status, hosts, changes, blacklist  what a view shows
 *     events [N]                       the newest N lines; with `follow` also all that come
 *     drain HOST[:SLOT] [DEADLINE]     } of the core: answered once what it
 *     undrain HOST[:SLOT]              } wrote down is durable
 *     clear HOST[:SLOT]                }
 *     stop                             answered at once; with `follow` the connection is closed
 *                                      when the driver ends
 *
 * Who does not ask within the time of a greeting is closed, who does not read is cut off with the
 * reason, and more than LIMIT_CLIENTS at a time are turned away. Only the same user gets in.
 */
#ifndef DRIVER_ASK_CONTROL_H
#define DRIVER_ASK_CONTROL_H

#include "driver/ask/events.h"
#include "driver/ask/tables.h"
#include "driver/core/event.h"
#include "driver/core/view.h"

struct control;
struct event_base;

struct control_ops {
    /* 0 or HVD_E_NOMEM; the facts' texts are borrowed until the loop goes on */
    int (*view)(void *arg, struct core_view *ret_view, struct table_facts *ret_facts);
    /* A DRAIN, UNDRAIN or CLEAR, whose ask is answered by control_reply, now or later; or a STOP,
     * which is not. What it points to is borrowed; the owner fills in the times. */
    void (*act)(void *arg, const struct event *event);
};

/* ops and events are borrowed as long as it lives. Codes as of listener_unix. */
int control_create(struct event_base *base, const char *path, struct events *events,
                   const struct control_ops *ops, void *arg, struct control **ret_control,
                   struct hvd_err *err) MUST_CHECK;

/* Whoever still waits is closed; the socket's file goes. */
void control_free(struct control *control);

/* The core's answer. An ask that nobody waits for any more is passed over, and so is 0. */
void control_reply(struct control *control, uint64_t ask, int code, const char *text);

#endif
