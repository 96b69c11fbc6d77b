/*
 * server.c: the connections of agents. The event loop owns the server, and the items of queue.c
 * send. A peer number belongs to one connection at a time. The number is used again only after the
 * core was told that the connection is closed, or after the core itself has closed the connection.
 */
#include "driver/io/server.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/vec.h"
#include "driver/core/event.h"
#include "os/clock.h"
#include "proto/catalog.h"
#include "proto/frame.h"
#include "wire/listener.h"

#include <stdlib.h>
#include <string.h>

/* The most connections of one host that have no WELCOME_AGENT yet. An agent needs only one. A host
 * that an attacker controls may open more, but must not take the descriptors and the memory that
 * other hosts need. */
#define GREETINGS_EACH 8
/* The most connections without a WELCOME_AGENT that have proved one token: many hosts may join with
 * the same token at once. */
#define GREETINGS_TOKEN 4096
/* At most REFUSED_BURST lines about refused connections are logged in REFUSED_WINDOW_US. */
#define REFUSED_WINDOW_US (10 * TIME_S)
#define REFUSED_BURST     3
/* The remedy for a peer with another key, where hosts join. TLS refuses an unknown token as any
 * other key that is unknown, and no name of a host is known then. */
#define TOKEN_ADVICE                                                                    \
    "if it is a host that joins, its token is unknown to this job; 'hvd-elastic token " \
    "list' shows the job's tokens, 'hvd-elastic token create' makes one"

struct peer {
    struct server *server; /* whose connection this is; NULL: the server was freed */
    struct conn *conn;     /* NULL: the connection is closed */
    uint32_t number;
    unsigned refs; /* references: one of the server's table, and one of each queued item */
    bool muted;    /* the core has closed the connection and gets none of its events */
    bool open;     /* a WELCOME_AGENT was sent: the handshake is over */
};

/* An address at which agents dial the driver. */
struct place_to_dial {
    char *source; /* address of this machine, without a port */
    struct listener *listener;
};

struct server {
    struct event_base *base;
    struct tls *tls;
    const struct server_ops *ops;
    void *arg;
    struct VEC(struct peer *) peers; /* the index is the peer number */
    struct VEC(struct place_to_dial) places;
    bool tokens;              /* hosts may join with tokens */
    struct log_limit refused; /* limits the lines about connections that are refused */
};

/* Drops one reference to a connection's struct, and frees it with the last one. A connection that
 * is still open then is closed at once: the queue may have freed the CLOSE of this connection
 * without carrying it out. */
void peer_release(struct peer *peer)
{
    if (!peer || --peer->refs > 0)
        return;
    if (peer->conn)
        conn_drop(peer->conn);
    mem_free(peer);
}

/* Removes the peer from the server's table: its number is free, and the table's reference is
 * dropped. */
static void leave_table(struct peer *peer)
{
    struct server *server = peer->server;

    /* NULL: server_free has freed the table. Not this peer: server_mute has removed it before, and
     * the number may belong to another connection now. */
    if (!server || server->peers.items[peer->number] != peer)
        return;
    server->peers.items[peer->number] = NULL;
    peer_release(peer);
}

/* Called when the connection has ended: its number becomes free, and the core is told why, unless
 * the core has closed the connection. */
static void peer_gone(struct peer *peer, const char *why)
{
    struct server *server = peer->server;
    uint32_t number = peer->number;
    bool tell_core = !peer->muted;

    /* leave_table may free the peer, so the fields that are needed later were copied above */
    peer->conn = NULL;
    leave_table(peer);
    if (tell_core)
        server->ops->happened(server->arg,
                              &(struct event){ .kind = EVENT_CLOSED, .peer = number, .text = why });
}

/* Called for a message of an agent: gives it to the core if the protocol allows it now; otherwise
 * closes the connection. */
static void server_on_msg(void *arg, const struct msg *msg)
{
    struct peer *peer = arg;
    struct hvd_err err;

    if (peer->muted) /* the core has closed the connection; this frame was on its way */
        return;
    /* PROTOCOL.md, section 6: the first message is HELLO_AGENT, and a WELCOME_AGENT ends the
     * handshake. msg_allowed returns 0 if the message is allowed. */
    if (!msg_allowed(msg->type, LINK_AGENT_TO_DRIVER, peer->open ? WHEN_OPEN : WHEN_GREETING,
                     &err)) {
        peer->server->ops->msg(peer->server->arg, peer->number, msg);
        return;
    }
    log_warning(NET, "%s: %s; the connection to this agent is closed", conn_peer(peer->conn),
                err.text);
    conn_drop(peer->conn);
    peer_gone(peer, err.text);
}

/* The agent has closed the connection, or it is lost. An agent of another version has proved its
 * key and comes again: the operator must know. */
static void server_on_closed(void *arg, const char *why)
{
    struct peer *peer = arg;
    unsigned held;

    if (!peer->open && strstr(why, FRAME_OTHER_MAJOR) &&
        log_limit_pass(&peer->server->refused, clock_now_us(), &held))
        log_warning(NET, "%s: an agent is refused: %s", conn_peer(peer->conn), why);
    log_debug(NET, "%s: the connection to this agent is closed: %s", conn_peer(peer->conn), why);
    peer_gone(peer, why);
}

/* Closes a new connection that the server cannot take. The log lines about this are limited, so
 * that a host that dials again and again does not fill the log. */
static void server_refuse(struct server *server, struct conn *conn, const char *why)
{
    unsigned held;

    if (log_limit_pass(&server->refused, clock_now_us(), &held))
        log_warning(NET,
                    "%s, the agent of %s: the connection is refused: %s; the agent tries again (%u "
                    "more such refusals were not logged)",
                    conn_peer(conn), conn_proved(conn)->name, why, held);
    conn_drop(conn);
}

/* Takes a new connection, or refuses the connection if there are too many. A new connection gets
 * the lowest free number. */
static void server_on_accepted(void *arg, struct conn *conn)
{
    static const struct conn_ops ops = { .msg = server_on_msg, .closed = server_on_closed };
    struct server *server = arg;
    uint32_t number = 0;
    struct peer *peer;
    size_t greetings = 0;
    bool room = true;

    /* Counts the connections of this host that have no WELCOME_AGENT yet. */
    for (size_t i = 0; i < server->peers.count; i++) {
        peer = server->peers.items[i];
        greetings += peer && peer->conn && !peer->open &&
                     !strcmp(conn_proved(peer->conn)->name, conn_proved(conn)->name);
    }
    if (greetings >= (strncmp(conn_proved(conn)->name, TOKEN_PEER, strlen(TOKEN_PEER)) != 0
                          ? GREETINGS_EACH
                          : GREETINGS_TOKEN)) {
        server_refuse(
            server, conn,
            "this host already has as many connections without a WELCOME_AGENT as it may have");
        return;
    }
    /* Finds the lowest free number; if none is free, the table grows. */
    while (number < server->peers.count && server->peers.items[number])
        number++;
    if (number == server->peers.count) {
        room = !VEC_RESERVE(&server->peers, 1, LIMIT_PEERS);
        if (room)
            server->peers.items[server->peers.count++] = NULL;
    }
    peer = room ? mem_zalloc(sizeof(*peer)) : NULL;
    if (!peer) {
        server_refuse(
            server, conn,
            server->peers.count >= LIMIT_PEERS
                ? "the driver has 65536 connections, the most that it can have; run fewer "
                  "hosts in this job"
                : "no memory for another connection; free memory on this host");
        return;
    }
    *peer = (struct peer){ .server = server, .conn = conn, .number = number, .refs = 1 };
    server->peers.items[number] = peer;
    conn_own(conn, &ops, peer);
}

/* Many connections wait whose other side has not proved a key, so an agent may be accepted late or
 * not at all: the core is told (EVENT_CROWDED). */
static void server_on_crowd(void *arg)
{
    struct server *server = arg;

    server->ops->happened(server->arg, &(struct event){ .kind = EVENT_CROWDED });
}

/* Makes a server that listens nowhere yet (server_listen). `ops` are called for messages of agents,
 * for closed connections, and for crowds of connections that have proved no key. */
int server_create(struct event_base *base, struct tls *tls, const struct server_ops *ops, void *arg,
                  struct server **ret_server)
{
    struct server *server = mem_zalloc(sizeof(*server));

    if (!server)
        return HVD_E_NOMEM;
    server->base = base;
    server->tls = tls;
    server->ops = ops;
    server->arg = arg;
    server->refused = (struct log_limit){ .window_us = REFUSED_WINDOW_US, .burst = REFUSED_BURST };
    *ret_server = server;
    return 0;
}

/* Closes all listeners and connections. The core is told of none of these ends. Unsent
 * messages of an open connection are lost: at the end of a job such an agent has not answered its
 * STOP in time, and a driver that fails or was replaced must command no agent any more. Connections
 * that the core has closed (peer_close) still send their last messages. */
void server_free(struct server *server)
{
    if (!server)
        return;
    for (size_t i = 0; i < server->places.count; i++) {
        listener_free(server->places.items[i].listener);
        mem_free(server->places.items[i].source);
    }
    VEC_RELEASE(&server->places);
    for (size_t i = 0; i < server->peers.count; i++) {
        /* An item of the queue may still refer to the peer. Then the peer stays in memory, without
         * a connection, until that item is freed. */
        struct peer *peer = server->peers.items[i];

        if (!peer)
            continue;
        conn_drop(peer->conn);
        peer->conn = NULL;
        peer->server = NULL;
        peer_release(peer);
    }
    VEC_RELEASE(&server->peers);
    mem_free(server);
}

/* Listens at the address `source` of this machine, unless the server does so already. `port` 0: any
 * free port. *ret_moved true: `port` was in use, so another port was taken. If ret_moved is NULL, a
 * port in use is HVD_E_BUSY. *ret_address is the address that agents are told. */
int server_listen(struct server *server, const char *source, uint16_t port,
                  const char **ret_address, bool *ret_moved, struct hvd_err *err)
{
    struct place_to_dial place = { 0 };
    bool ipv6 = strchr(source, ':') != NULL;
    int rc;

    if (ret_moved)
        *ret_moved = false;
    for (size_t i = 0; i < server->places.count; i++) {
        if (strcmp(server->places.items[i].source, source) == 0) {
            *ret_address = listener_address(server->places.items[i].listener);
            return 0;
        }
    }
    place.source = mem_strdup(source);
    if (!place.source || VEC_RESERVE(&server->places, 1, LIMIT_ADDRESSES)) {
        mem_free(place.source);
        if (server->places.count < LIMIT_ADDRESSES) /* so the failure was not the limit */
            return err_set(err, HVD_E_LIMIT,
                           "%s: the driver cannot listen on this address: no memory", source);
        return err_set(err, HVD_E_LIMIT,
                       "%s: the driver cannot listen on this address: the driver listens on %d "
                       "addresses already, the most that it can (LIMIT_ADDRESSES); choose "
                       "one network with --network-interface",
                       source, LIMIT_ADDRESSES);
    }
    rc = listener_tcp(server->base, &(struct listener_place){ source, port, server->tls },
                      server_on_accepted, server, &place.listener, err);
    /* After a takeover the former driver may still use the port. */
    if (rc == HVD_E_BUSY && port && ret_moved) {
        *ret_moved = true;
        log_warning(
            NET, "%s%s%s:%u is in use, perhaps by the earlier driver: agents are told another port",
            ipv6 ? "[" : "", source, ipv6 ? "]" : "", port);
        rc = listener_tcp(server->base, &(struct listener_place){ source, 0, server->tls },
                          server_on_accepted, server, &place.listener, err);
    }
    if (rc) {
        mem_free(place.source);
        return rc;
    }
    listener_watch_crowd(place.listener, server_on_crowd);
    if (server->tokens)
        listener_advise(place.listener, TOKEN_ADVICE);
    server->places.items[server->places.count++] = place;
    *ret_address = listener_address(place.listener);
    log_info(NET, "the driver listens for agents at %s", *ret_address);
    return 0;
}

/* Each listener that is made from now on says in the log what a peer with an unknown token needs.
 */
void server_take_tokens(struct server *server)
{
    server->tokens = true;
}

/* Returns the i-th address at which the server listens, and its port, from the listener's address
 * ("10.0.0.7:4321"): the port behind the last colon. */
const char *server_place(const struct server *server, size_t i, uint16_t *ret_port)
{
    const char *address;

    if (i >= server->places.count)
        return NULL;
    address = listener_address(server->places.items[i].listener);
    *ret_port = (uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10);
    return server->places.items[i].source;
}

/* True: an agent is connected over the loopback of this machine. */
bool server_has_loopback_peer(const struct server *server)
{
    for (size_t i = 0; i < server->peers.count; i++) {
        const struct peer *peer = server->peers.items[i];
        const char *from = peer && peer->conn ? conn_peer(peer->conn) : "";

        if (!strncmp(from, "127.", 4) || !strncmp(from, "[::1]:", 6))
            return true;
    }
    return false;
}

/* Returns what the other side of this connection has proved: the name of its host or token, and the
 * version of the key. NULL: no open connection has this number. */
const struct tls_peer *server_proved(const struct server *server, uint32_t number)
{
    const struct peer *peer = number < server->peers.count ? server->peers.items[number] : NULL;

    return peer && peer->conn ? conn_proved(peer->conn) : NULL;
}

/* Returns the address from which this connection comes, "10.0.0.7:4321". NULL: no open connection
 * has this number. */
const char *server_seen(const struct server *server, uint32_t number)
{
    const struct peer *peer = number < server->peers.count ? server->peers.items[number] : NULL;

    return peer && peer->conn ? conn_peer(peer->conn) : NULL;
}

/* Returns the connection with this number, and adds a reference, for an item of the queue. */
struct peer *server_peer(struct server *server, uint32_t number)
{
    struct peer *peer = number < server->peers.count ? server->peers.items[number] : NULL;

    if (peer)
        peer->refs++;
    return peer;
}

/* The core closes the connection: no more of its events reach the core, and its number is free. The
 * connection itself closes later, when the queue carries the CLOSE out (peer_close). */
void server_mute(struct server *server, uint32_t number)
{
    struct peer *peer = number < server->peers.count ? server->peers.items[number] : NULL;

    if (!peer)
        return;
    peer->muted = true;
    leave_table(peer);
}

/* Sends a frame over the connection, if it is still open. A WELCOME_AGENT ends the handshake:
 * longer messages are accepted from now on. */
int peer_send(struct peer *peer, enum msg_type type, const void *frame, size_t length)
{
    if (!peer->conn)
        return 0;
    if (type == MSG_WELCOME_AGENT) {
        peer->open = true;
        conn_greeted(peer->conn);
    }
    return conn_send_frame(peer->conn, frame, length);
}

/* Closes the connection when all its frames are sent. The struct stays until its last reference is
 * dropped. */
void peer_close(struct peer *peer)
{
    if (!peer->conn)
        return;
    conn_close(peer->conn);
    peer->conn = NULL;
}
