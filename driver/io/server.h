/*
 * server.h: the connections of agents. The core knows each by a small number, its peer; what is
 * queued for one is bound to the connection itself, because a number is used again.
 */
#ifndef DRIVER_IO_SERVER_H
#define DRIVER_IO_SERVER_H

#include "proto/msg.h"
#include "wire/tls.h"

struct event_base;
struct server;
struct peer;

struct server_ops {
    void (*msg)(void *arg, uint32_t number, const struct msg *msg);
    void (*closed)(void *arg, uint32_t number, const char *why);
};

/* tls is borrowed as long as the server lives. */
int server_create(struct event_base *base, struct tls *tls, const struct server_ops *ops, void *arg,
                  struct server **ret_server) MUST_CHECK;
void server_free(struct server *server); /* what was sent goes out as far as the sockets take it */

/*
 * err is not NULL. Where agents that reach us by this address dial: "10.0.0.7:4321", borrowed. The
 * first time it begins to listen there, at the port, or if that is taken at another (*ret_moved).
 */
int server_listen(struct server *server, const char *source, uint16_t port,
                  const char **ret_address, bool *ret_moved, struct hvd_err *err) MUST_CHECK;

/* Some agent is connected by the loopback: what it says of itself only this machine can use. */
bool server_has_inside(const struct server *server);

/* The connection that goes by this number now; NULL: none. To be given back with peer_release. */
struct peer *server_peer(struct server *server, uint32_t number) MUST_CHECK;

/* The core has asked for its end: nothing more is heard of it, and its number is free. */
void server_mute(struct server *server, uint32_t number);

/* Lost on a connection that is gone. A WELCOME_AGENT ends the greeting. */
int peer_send(struct peer *peer, enum msg_type type, const void *frame, size_t length);
void peer_close(struct peer *peer); /* once what was sent is out */
void peer_release(struct peer *peer);

#endif
