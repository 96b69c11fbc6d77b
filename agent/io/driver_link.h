/*
 * driver_link.h: the agent's one connection to its driver, and the addresses at which the driver
 * may be.
 *
 * After a welcome the next attempt begins at the address of that welcome. Otherwise each attempt
 * begins one entry further in the list of addresses: a driver that still answers but has been
 * replaced must not hide its successor.
 */
#ifndef AGENT_IO_DRIVER_LINK_H
#define AGENT_IO_DRIVER_LINK_H

#include "wire/conn.h"

struct driver_link;

/* These callbacks are called from the event loop. */
struct driver_link_ops {
    void (*up)(void *arg);                         /* the connection to the driver is open */
    void (*msg)(void *arg, const struct msg *msg); /* a message of the driver, borrowed */
    /* the connection is lost, or the dial has failed */
    void (*down)(void *arg, const char *why);
    void (*drained)(void *arg); /* the driver takes output of workers again */
};

/* `tls` is borrowed as long as the link lives. The addresses are copied. */
int driver_link_create(struct event_base *base, struct tls *tls, const struct msg_texts *addresses,
                       const struct driver_link_ops *ops, void *arg, struct driver_link **ret_link,
                       struct hvd_err *err) MUST_CHECK;
void driver_link_free(struct driver_link *link); /* messages that are queued are still sent */

/* Dials the driver. `up` or `down` is called later, unless the function fails at once. */
int driver_link_dial(struct driver_link *link, struct hvd_err *err) MUST_CHECK;
/* Closes the connection. Messages that are queued are still sent; neither `up` nor `down`
 * follows. */
void driver_link_hang_up(struct driver_link *link);

/* Sends as conn_send does. Without a connection the message is lost. */
int driver_link_send(struct driver_link *link, const struct msg *msg,
                     struct hvd_err *err) MUST_CHECK;

/* Called when the driver has said welcome: longer messages are accepted now, and the driver's
 * address is remembered. */
void driver_link_welcomed(struct driver_link *link);
bool driver_link_is_open(const struct driver_link *link);
/* true: a driver has said welcome, and not too many bytes wait to be sent to it. */
bool driver_link_takes_output(const struct driver_link *link);

/* Puts these addresses before the addresses that the link has. *ret_moved is true: the present
 * connection goes to none of these addresses, so the caller must dial. HVD_E_NOMEM: memory is
 * out. */
int driver_link_point(struct driver_link *link, const struct msg_texts *addresses,
                      bool *ret_moved) MUST_CHECK;

/* Replaces the addresses of standbys, which are dialled after those of the driver. Returns true if
 * the list of standbys has changed. If no memory is left, some addresses are missing until the next
 * call. */
bool driver_link_learn(struct driver_link *link, const struct msg_texts *standbys);

/* Writes the host address of the agent's end of the connection, as conn_local_host does.
 * HVD_E_STATE: the connection is not open. */
int driver_link_local_host(const struct driver_link *link, char text[ADDRESS_TEXT_MAX]) MUST_CHECK;

/* The driver's address, "10.0.0.7:4321"; without a connection the address at which the next attempt
 * begins. */
const char *driver_link_peer(const struct driver_link *link);

#endif
