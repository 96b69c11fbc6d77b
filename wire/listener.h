/*
 * listener.h: accepts connections, and hands a connection over when the peer has proved that it
 * may come in: over TCP that it has the key, on a Unix socket that it is the same user (or root).
 *
 * A stranger is a peer that has not proved this. Strangers are admitted by the rule of base/door.h:
 * they cost LIMIT_STRANGERS connections at most, a new one is always accepted, and an old one that
 * has sent nothing is closed to make room for it. Of a stranger's input only the TLS handshake is
 * parsed, of at most LIMIT_HANDSHAKE_BYTES, and the stranger has LIMIT_GREETING_US for it. Log
 * lines about strangers are limited.
 */
#ifndef WIRE_LISTENER_H
#define WIRE_LISTENER_H

#include "wire/conn.h"

struct listener;

/* The callback owns the connection: it calls conn_own, or drops the connection. */
typedef void listener_fn(void *arg, struct conn *conn);

struct listener_place {
    const char *host; /* a numeric address */
    uint16_t port;    /* 0: any free port */
    /* the keys that peers must prove; the settings must live as long as the listener */
    struct tls *tls;
};

/* Listens on a TCP port. HVD_E_BUSY: the port is taken; HVD_E_INVAL, HVD_E_IO, HVD_E_NOMEM. */
int listener_tcp(struct event_base *base, const struct listener_place *place, listener_fn *accepted,
                 void *arg, struct listener **ret_listener, struct hvd_err *err) MUST_CHECK;

/* Listens on "@name" in the abstract namespace, or on a path of any length. A socket file on which
 * no process listens is replaced; HVD_E_BUSY: a process listens there. listener_free removes the
 * file. */
int listener_unix(struct event_base *base, const char *name, listener_fn *accepted, void *arg,
                  struct listener **ret_listener, struct hvd_err *err) MUST_CHECK;

/* Asks for a call of `crowded`, about once a second, while strangers crowd the listener: a peer
 * that has the key may then come late, or not at all, by no fault of that peer. The callback gets
 * the owner's `arg`. */
typedef void listener_crowd_fn(void *arg);
void listener_watch_crowd(struct listener *listener, listener_crowd_fn *crowded);

/* From now on the log line about a peer with another key ends in this text: what such a peer may
 * be, and the remedy. The text is borrowed while the listener lives. */
void listener_advise(struct listener *listener, const char *advice);

/* Stops listening and frees the listener; NULL is allowed. Connections that were handed over stay
 * open. */
void listener_free(struct listener *listener);

/* Returns "127.0.0.1:4321" or "[::1]:4321"; for a Unix socket its name. */
const char *listener_address(const struct listener *listener);
uint16_t listener_port(const struct listener *listener);

#endif
