#include "driver/io/server.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/vec.h"
#include "proto/catalog.h"
#include "wire/listener.h"

#include <stdio.h>
#include <string.h>

struct peer {
    struct server *server; /* NULL: the server is gone */
    struct conn *conn;     /* NULL: it is gone */
    uint32_t number;
    unsigned refs;
    bool muted;
    bool open; /* the greeting is over */
};

struct place_to_dial {
    char *source;
    struct listener *listener;
};

struct server {
    struct event_base *base;
    struct tls *tls;
    const struct server_ops *ops;
    void *arg;
    struct VEC(struct peer *) peers; /* by number */
    struct VEC(struct place_to_dial) places;
};

/* A connection that the queue was still to close ends with the queue. */
void peer_release(struct peer *peer)
{
    if (!peer || --peer->refs > 0)
        return;
    if (peer->conn)
        conn_drop(peer->conn);
    mem_free(peer);
}

/* Its number is free, and the table's hold on it ends. */
static void leave_table(struct peer *peer)
{
    struct server *server = peer->server;

    if (!server || server->peers.items[peer->number] != peer)
        return;
    server->peers.items[peer->number] = NULL;
    peer_release(peer);
}

/* The other side broke the rules: the connection ends, and the core learns why. */
static void end(struct peer *peer, const char *why)
{
    struct server *server = peer->server;
    uint32_t number = peer->number;
    bool told = !peer->muted;

    log_warning(NET, "%s: %s, the connection is closed", conn_peer(peer->conn), why);
    conn_drop(peer->conn);
    peer->conn = NULL;
    leave_table(peer);
    if (told)
        server->ops->closed(server->arg, number, why);
}

static void on_msg(void *arg, const struct msg *msg)
{
    struct peer *peer = arg;
    struct hvd_err err;

    if (peer->muted)
        return;
    if (msg_allowed(msg->type, LINK_AGENT_TO_DRIVER, peer->open ? WHEN_OPEN : WHEN_GREETING, &err))
        end(peer, err.text);
    else
        peer->server->ops->msg(peer->server->arg, peer->number, msg);
}

static void on_closed(void *arg, const char *why)
{
    struct peer *peer = arg;
    struct server *server = peer->server;
    uint32_t number = peer->number;
    bool told = !peer->muted;

    log_debug(NET, "%s: closed: %s", conn_peer(peer->conn), why);
    peer->conn = NULL;
    leave_table(peer);
    if (told)
        server->ops->closed(server->arg, number, why);
}

static const struct conn_ops peer_ops = { .msg = on_msg, .closed = on_closed };

/* The lowest free number; LIMIT_PEERS when there is none. */
static uint32_t free_number(struct server *server)
{
    uint32_t number = 0;

    while (number < server->peers.count && server->peers.items[number])
        number++;
    if (number == server->peers.count) {
        if (VEC_RESERVE(&server->peers, 1, LIMIT_PEERS))
            return LIMIT_PEERS;
        server->peers.items[server->peers.count++] = NULL;
    }
    return number;
}

static void on_accepted(void *arg, struct conn *conn)
{
    struct server *server = arg;
    struct peer *peer = mem_zalloc(sizeof(*peer));
    uint32_t number = free_number(server);

    if (!peer || number == LIMIT_PEERS) {
        log_warning(NET, "%s: no room for another agent (LIMIT_PEERS, or memory), refused",
                    conn_peer(conn));
        mem_free(peer);
        conn_drop(conn);
        return;
    }
    *peer = (struct peer){ .server = server, .conn = conn, .number = number, .refs = 1 };
    server->peers.items[number] = peer;
    conn_own(conn, &peer_ops, peer);
}

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
    *ret_server = server;
    return 0;
}

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

static const struct place_to_dial *find_place(const struct server *server, const char *source)
{
    for (size_t i = 0; i < server->places.count; i++) {
        if (strcmp(server->places.items[i].source, source) == 0)
            return &server->places.items[i];
    }
    return NULL;
}

static int begin_to_listen(struct server *server, const char *source, uint16_t port,
                           struct listener **ret_listener, bool *ret_moved, struct hvd_err *err)
{
    bool bare = strchr(source, ':') != NULL; /* IPv6 */
    int rc = listener_tcp(server->base, source, port, server->tls, on_accepted, server,
                          ret_listener, err);

    *ret_moved = rc == HVD_E_BUSY && port;
    if (!*ret_moved)
        return rc;
    log_warning(NET, "%s%s%s:%u is taken by another program: agents are told another port",
                bare ? "[" : "", source, bare ? "]" : "", port);
    return listener_tcp(server->base, source, 0, server->tls, on_accepted, server, ret_listener,
                        err);
}

int server_listen(struct server *server, const char *source, uint16_t port,
                  const char **ret_address, bool *ret_moved, struct hvd_err *err)
{
    const struct place_to_dial *known = find_place(server, source);
    struct place_to_dial place = { 0 };
    int rc;

    *ret_moved = false;
    if (known) {
        *ret_address = listener_address(known->listener);
        return 0;
    }
    place.source = mem_strdup(source);
    if (!place.source || VEC_RESERVE(&server->places, 1, LIMIT_ADDRESSES)) {
        mem_free(place.source);
        return err_set(err, HVD_E_LIMIT,
                       "%s: no room to listen on another address (LIMIT_ADDRESSES)", source);
    }
    rc = begin_to_listen(server, source, port, &place.listener, ret_moved, err);
    if (rc) {
        mem_free(place.source);
        return rc;
    }
    server->places.items[server->places.count++] = place;
    *ret_address = listener_address(place.listener);
    log_info(NET, "agents dial %s", *ret_address);
    return 0;
}

bool server_has_inside(const struct server *server)
{
    for (size_t i = 0; i < server->peers.count; i++) {
        const struct peer *peer = server->peers.items[i];
        const char *from = peer && peer->conn ? conn_peer(peer->conn) : "";

        if (!strncmp(from, "127.", 4) || !strncmp(from, "[::1]:", 6))
            return true;
    }
    return false;
}

struct peer *server_peer(struct server *server, uint32_t number)
{
    struct peer *peer = number < server->peers.count ? server->peers.items[number] : NULL;

    if (peer)
        peer->refs++;
    return peer;
}

void server_mute(struct server *server, uint32_t number)
{
    struct peer *peer = number < server->peers.count ? server->peers.items[number] : NULL;

    if (!peer)
        return;
    peer->muted = true;
    leave_table(peer);
}

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

void peer_close(struct peer *peer)
{
    if (!peer->conn)
        return;
    conn_close(peer->conn);
    peer->conn = NULL;
}
