/*
 * server.h: the connections of agents. The core knows a connection by a small number, its peer
 * number. A queued message points at the connection itself, because numbers are used again.
 */
#ifndef DRIVER_IO_SERVER_H
#define DRIVER_IO_SERVER_H

#include "driver/core/event.h"
#include "wire/tls.h"

struct event_base;
struct server;
struct peer;

struct server_ops {
    void (*msg)(void *arg, uint32_t number, const struct msg *msg);
    /* EVENT_CLOSED of a connection, and EVENT_CROWDED; the callee may add the time */
    void (*happened)(void *arg, struct event *event);
};

/* Creates the server. `tls` is borrowed while the server lives. Returns 0 or HVD_E_NOMEM. */
int server_create(struct event_base *base, struct tls *tls, const struct server_ops *ops, void *arg,
                  struct server **ret_server) MUST_CHECK;
void server_free(struct server *server); /* also closes all connections, at once */

/*
 * Listens at `source`, an address of this machine. *ret_address is the address that agents dial,
 * "10.0.0.7:4321"; it is borrowed. If the port is in use, the server listens at another port and
 * sets *ret_moved; with NULL it fails with HVD_E_BUSY. A second call for the same source only
 * returns the address. err must not be NULL.
 */
int server_listen(struct server *server, const char *source, uint16_t port,
                  const char **ret_address, bool *ret_moved, struct hvd_err *err) MUST_CHECK;

/* Hosts may join at the addresses at which the server listens from now on: the log says what a peer
 * with an unknown token needs. */
void server_take_tokens(struct server *server);

/* Returns the i-th of the addresses at which the server listens, without its port, and *ret_port;
 * NULL: there are fewer. The text is borrowed while the server lives. */
const char *server_place(const struct server *server, size_t i, uint16_t *ret_port);

/* True: an agent is connected over the loopback. Only this machine can use the address of such an
 * agent. */
bool server_has_loopback_peer(const struct server *server);

/* Returns the identity that the agent of this connection has proved with its key; NULL: no
 * connection has the number. The result is borrowed until the next event of the connection. */
const struct tls_peer *server_proved(const struct server *server, uint32_t number);

/* Returns the address from which this connection comes, "10.0.0.7:4321"; NULL: no connection has
 * the number. Borrowed as the result of server_proved. */
const char *server_seen(const struct server *server, uint32_t number);

/* Returns the connection that has this number now. NULL: no connection has it. The caller releases
 * it with peer_release. */
struct peer *server_peer(struct server *server, uint32_t number) MUST_CHECK;

/* Called when the core closes the connection: the core gets no more events of the connection, and
 * the number is free. */
void server_mute(struct server *server, uint32_t number);

/* Sends a frame (an encoded message); on a closed connection it does nothing and returns 0. After a
 * WELCOME_AGENT, which ends the greeting, the peer may send larger frames. */
int peer_send(struct peer *peer, enum msg_type type, const void *frame, size_t length);
void peer_close(struct peer *peer);   /* the connection closes when all frames are sent */
void peer_release(struct peer *peer); /* gives the reference of server_peer back; NULL is allowed */

#endif
