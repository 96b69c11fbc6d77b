/*
 * listener.h: who may come in. Hands over a connection once the other side has proved that it may:
 * over TCP that it has the key, on a Unix socket that it is the same user (or root).
 *
 * A stranger costs one line in the log (limited) and LIMIT_STRANGERS connections at most; of what
 * it sends nothing is parsed but the TLS handshake.
 */
#ifndef WIRE_LISTENER_H
#define WIRE_LISTENER_H

#include "wire/conn.h"

struct listener;

/* The connection is given: conn_own it, or drop it. */
typedef void listener_fn(void *arg, struct conn *conn);

/* A numeric address; port 0: any. HVD_E_BUSY when the port is taken, HVD_E_INVAL, HVD_E_IO. */
int listener_tcp(struct event_base *base, const char *address, uint16_t port, struct tls *tls,
                 listener_fn *accepted, void *arg, struct listener **ret_listener,
                 struct hvd_err *err) MUST_CHECK;

/* "@name" in the abstract namespace, or a path: one that nobody listens on is replaced, one that
 * somebody does is HVD_E_BUSY. The file is removed by listener_free. A path of any length. */
int listener_unix(struct event_base *base, const char *name, listener_fn *accepted, void *arg,
                  struct listener **ret_listener, struct hvd_err *err) MUST_CHECK;

void listener_free(struct listener *listener);

/* "127.0.0.1:4321", "[::1]:4321"; of a Unix socket its name. */
const char *listener_address(const struct listener *listener);
uint16_t listener_port(const struct listener *listener);

#endif
