/*
 * driver_link.h: the agent's one connection to its driver, and the list of where that may be.
 *
 * Whoever was welcomed last is tried first again. Otherwise each attempt begins one place further
 * in the list: a driver that answers but has been replaced must not hide its successor behind it.
 */
#ifndef AGENT_IO_DRIVER_LINK_H
#define AGENT_IO_DRIVER_LINK_H

#include "wire/conn.h"

struct driver_link;

/* Called from the loop. */
struct driver_link_ops {
    void (*up)(void *arg);
    void (*msg)(void *arg, const struct msg *msg); /* borrowed */
    void (*down)(void *arg, const char *why);      /* an attempt that failed, too */
    void (*drained)(void *arg);                    /* it takes output again */
};

/* tls is borrowed as long as the link lives, the addresses are copied. */
int driver_link_create(struct event_base *base, struct tls *tls, const struct msg_texts *addresses,
                       const struct driver_link_ops *ops, void *arg, struct driver_link **ret_link,
                       struct hvd_err *err) MUST_CHECK;
void driver_link_free(struct driver_link *link); /* what was sent still goes out */

/* Answered by up or down, unless it fails at once. */
int driver_link_dial(struct driver_link *link, struct hvd_err *err) MUST_CHECK;
/* What was sent goes out; neither up nor down follows. */
void driver_link_hang_up(struct driver_link *link);

/* As conn_send; without a connection it is lost. */
int driver_link_send(struct driver_link *link, const struct msg *msg,
                     struct hvd_err *err) MUST_CHECK;

/* A message is the driver's welcome: longer ones may follow, and its address was a good one. */
void driver_link_welcomed(struct driver_link *link);
bool driver_link_is_open(const struct driver_link *link);
bool driver_link_takes_output(const struct driver_link *link);

/* Other addresses, before those that it has: *ret_moved when they are to be dialled now, because
 * the connection that there is goes to none of them. HVD_E_NOMEM. */
int driver_link_point(struct driver_link *link, const struct msg_texts *addresses,
                      bool *ret_moved) MUST_CHECK;

/* Our own end's address, as conn_local_host. HVD_E_STATE: it is not open. */
int driver_link_local_host(const struct driver_link *link, char text[ADDRESS_TEXT_MAX]) MUST_CHECK;

/* "10.0.0.7:4321", or where the next attempt begins. */
const char *driver_link_peer(const struct driver_link *link);

#endif
