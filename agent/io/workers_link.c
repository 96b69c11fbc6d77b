#include "agent/io/workers_link.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "wire/address.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PID_TEXT_BYTES 24

struct peer {
    struct workers_link *link;
    struct conn *conn;
    uint32_t number;
    uint64_t incarnation; /* 0: it has not said hello */
    uint64_t who;         /* once it is welcome: no other connection ever has the same; 0 */
    bool client;
    bool fetches;               /* it has asked for a fetch */
    bool grant_waits;           /* until what was sent before it is out */
    struct msg_snapshot wanted; /* what is to be granted then */
};

struct workers_link {
    struct listener *listener;
    struct children *children;
    const struct workers_link_ops *ops;
    void *arg;
    struct VEC(struct peer *) peers; /* by number; NULL: free */
    uint64_t last_who;
};

static struct peer *find(const struct workers_link *link, uint32_t number)
{
    return number < link->peers.count ? link->peers.items[number] : NULL;
}

/* The connection is somebody else's by now, or no more. */
static void forget(struct peer *peer)
{
    peer->link->peers.items[peer->number] = NULL;
    if (peer->fetches)
        peer->link->ops->hung_up(peer->link->arg, peer->who);
    mem_free(peer);
}

static void close_peer(struct peer *peer)
{
    conn_close(peer->conn);
    forget(peer);
}

static void refuse(struct peer *peer, const char *why)
{
    struct msg msg = {
        .type = MSG_REFUSED, .u.refused = {HVD_E_DENIED, why}
    };
    struct hvd_err err;

    log_warning(WORKER, "%s: refused: %s", conn_peer(peer->conn), why);
    if (conn_send(peer->conn, &msg, &err))
        log_warning(WORKER, "%s: cannot be told so: %s", conn_peer(peer->conn), err.text);
    close_peer(peer);
}

/* ---- clients --------------------------------------------------------------------------------- */

static int answer(struct peer *peer, const struct msg_ask *ask, struct hvd_err *err)
{
    const struct msg_texts addresses = { ask->args.items + 1,
                                         ask->args.count ? ask->args.count - 1 : 0 };
    struct address address;
    int rc = 0;

    if (strcmp(ask->verb, "driver") != 0)
        return err_set(err, HVD_E_INVAL, "%s: an agent is asked for \"driver\" and nothing else",
                       ask->verb);
    if (!addresses.count || addresses.count > LIMIT_ADDRESSES)
        return err_set(err, HVD_E_INVAL, "driver: give a key's name and 1 to %d addresses",
                       LIMIT_ADDRESSES);
    for (size_t i = 0; !rc && i < addresses.count; i++)
        rc = address_parse(addresses.items[i], &address, err);
    return rc ? rc : peer->link->ops->point(peer->link->arg, ask->args.items[0], &addresses, err);
}

static void on_ask(struct peer *peer, const struct msg *msg)
{
    struct hvd_err err = { 0 };
    char text[PID_TEXT_BYTES];
    const char *said = text;
    struct msg tell = { .type = MSG_TELL };
    int rc = answer(peer, &msg->u.ask, &err);

    snprintf(text, sizeof(text), "%ld", (long)getpid());
    if (rc && rc != HVD_E_STATE) /* of one that is ending, the pid is still of use */
        said = err.text;
    tell.u.tell = (struct msg_tell){
        .code = rc, .text = {(const uint8_t *)said, strlen(said)},
             .last = true
    };
    peer->client = true;
    conn_greeted(peer->conn);
    if (conn_send(peer->conn, &tell, &err)) {
        log_warning(AGENT, "%s: cannot be answered: %s", conn_peer(peer->conn), err.text);
        close_peer(peer);
    }
}

/* ---- workers --------------------------------------------------------------------------------- */

/* Why this process may not speak for that worker; NULL: it may. */
static const char *doubt(const struct peer *peer, const struct msg *hello, uint64_t started)
{
    pid_t pid = conn_peer_pid(peer->conn);

    if (hello->u.hello_worker.pid != (uint64_t)pid)
        return "the pid in its hello is not its own";
    if (!started)
        return "no such incarnation runs here";
    if (!children_owns(peer->link->children, hello->incarnation, pid))
        return "it is no process of this incarnation";
    return NULL;
}

/* Below a wrapper (a shell, a profiler) another process than the one that was started says hello.
 * The kernel has vouched for it here; the mind knows each worker by the process that it started,
 * and is told of that one. */
static void on_hello(struct peer *peer, const struct msg *msg)
{
    uint64_t started = peer->link->ops->pid_of(peer->link->arg, msg->incarnation);
    const char *why = doubt(peer, msg, started);
    struct msg vouched = *msg;

    if (why) {
        refuse(peer, why);
        return;
    }
    vouched.u.hello_worker.pid = started;
    peer->incarnation = msg->incarnation;
    peer->link->ops->msg(peer->link->arg, peer->number, &vouched);
}

static void break_with(struct peer *peer, const char *why)
{
    struct workers_link *link = peer->link;
    uint32_t number = peer->number;

    log_warning(WORKER, "incarnation %" PRIu64 ": its connection is closed: %s", peer->incarnation,
                why);
    close_peer(peer);
    link->ops->down(link->arg, number);
}

/* ---- their state ----------------------------------------------------------------------------- */

/* A descriptor goes only where nothing is unsent: 0, also when the grant has to wait for that. */
static int send_grant(struct peer *peer, const struct msg *msg, int fd, struct hvd_err *err)
{
    int rc = fd < 0 ? conn_send(peer->conn, msg, err) : conn_send_with_fd(peer->conn, msg, fd, err);

    peer->grant_waits = fd >= 0 && (rc == HVD_E_STATE || rc == HVD_E_BUSY);
    if (!peer->grant_waits)
        return rc;
    conn_when_sent(peer->conn);
    return 0;
}

static void grant(struct peer *peer)
{
    struct workers_link *link = peer->link;
    struct hvd_err err = { 0 };
    struct msg msg = { .type = MSG_GRANTED, .incarnation = peer->incarnation };
    int fd = -1;
    int rc = link->ops->snapshot(link->arg, peer->incarnation, &peer->wanted, &fd, &err);

    if (rc)
        log_warning(STATE, "incarnation %" PRIu64 ": no snapshot for it: %s", peer->incarnation,
                    err.text);
    msg.u.granted = (struct msg_granted){ .code = rc, .text = rc ? err.text : "" };
    if (send_grant(peer, &msg, rc ? -1 : fd, &err))
        break_with(peer, err.text);
}

static void on_state(struct peer *peer, const struct msg *msg)
{
    struct workers_link *link = peer->link;

    if (!peer->who || msg->incarnation != peer->incarnation) {
        break_with(peer, peer->who ? "it speaks for another incarnation"
                                   : "it says something else before its welcome");
    } else if (msg->type == MSG_FETCH) {
        peer->fetches = true;
        link->ops->fetch(link->arg, peer->who, msg);
    } else {
        peer->wanted = msg->u.snapshot;
        grant(peer);
    }
}

static void on_drained(void *arg)
{
    struct peer *peer = arg;

    if (peer->grant_waits)
        grant(peer);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void on_msg(void *arg, const struct msg *msg)
{
    struct peer *peer = arg;

    if (peer->incarnation && (msg->type == MSG_SNAPSHOT || msg->type == MSG_FETCH))
        on_state(peer, msg);
    else if (peer->incarnation)
        peer->link->ops->msg(peer->link->arg, peer->number, msg);
    else if (msg->type == MSG_ASK)
        on_ask(peer, msg);
    else if (msg->type == MSG_HELLO_WORKER && !peer->client)
        on_hello(peer, msg);
    else
        refuse(peer, "it must say hello before anything else");
}

static void on_closed(void *arg, const char *why)
{
    struct peer *peer = arg;
    struct workers_link *link = peer->link;
    uint64_t incarnation = peer->incarnation;
    uint32_t number = peer->number;

    forget(peer);
    if (!incarnation)
        return;
    log_debug(WORKER, "incarnation %" PRIu64 ": its connection is gone: %s", incarnation, why);
    link->ops->down(link->arg, number);
}

static const struct conn_ops conn_ops = { NULL, on_msg, on_closed, on_drained };

/* The lowest free number, with its place in the table. */
static int take_number(struct workers_link *link, uint32_t *ret_number)
{
    uint32_t number = 0;
    int rc;

    while (number < link->peers.count && link->peers.items[number])
        number++;
    if (number == link->peers.count) {
        rc = VEC_RESERVE(&link->peers, 1, LIMIT_LOCAL_PEERS);
        if (rc)
            return rc;
        link->peers.items[link->peers.count++] = NULL;
    }
    *ret_number = number;
    return 0;
}

static void on_accepted(void *arg, struct conn *conn)
{
    struct workers_link *link = arg;
    struct peer *peer = mem_zalloc(sizeof(*peer));
    uint32_t number;

    if (!peer || take_number(link, &number)) {
        log_warning(WORKER, "%s: turned away: no room for another connection", conn_peer(conn));
        mem_free(peer);
        conn_drop(conn);
        return;
    }
    *peer = (struct peer){ .link = link, .conn = conn, .number = number };
    link->peers.items[number] = peer;
    conn_own(conn, &conn_ops, peer);
}

/* ---- from outside ---------------------------------------------------------------------------- */

int workers_link_create(struct event_base *base, const char *name, struct children *children,
                        const struct workers_link_ops *ops, void *arg,
                        struct workers_link **ret_link, struct hvd_err *err)
{
    struct workers_link *link = mem_zalloc(sizeof(*link));
    int rc;

    if (!link)
        return err_set(err, HVD_E_NOMEM, "no memory for the socket of the workers");
    *link = (struct workers_link){ .children = children, .ops = ops, .arg = arg };
    rc = listener_unix(base, name, on_accepted, link, &link->listener, err);
    if (rc) {
        mem_free(link);
        return rc;
    }
    *ret_link = link;
    return 0;
}

void workers_link_free(struct workers_link *link)
{
    if (!link)
        return;
    listener_free(link->listener);
    for (uint32_t i = 0; i < link->peers.count; i++)
        workers_link_drop(link, i);
    VEC_RELEASE(&link->peers);
    mem_free(link);
}

/* The welcome brings the page; from then on the worker's life is watched there. */
static int send_welcome(struct peer *peer, const struct msg *msg, struct hvd_err *err)
{
    struct children *children = peer->link->children;
    int page = children_page(children, peer->incarnation);
    int rc;

    if (page >= 0)
        rc = conn_send_with_fd(peer->conn, msg, page, err);
    else
        rc = conn_send(peer->conn, msg, err);
    if (rc)
        return rc;
    conn_greeted(peer->conn);
    peer->who = ++peer->link->last_who;
    children_joined(children, peer->incarnation, conn_peer_pid(peer->conn));
    return 0;
}

int workers_link_send(struct workers_link *link, uint32_t worker, const struct msg *msg,
                      struct hvd_err *err)
{
    struct peer *peer = find(link, worker);

    if (!peer)
        return 0;
    if (msg->type == MSG_WELCOME_WORKER)
        return send_welcome(peer, msg, err);
    return conn_send(peer->conn, msg, err);
}

int workers_link_send_frame(struct workers_link *link, uint32_t worker, const void *frame,
                            size_t length)
{
    struct peer *peer = find(link, worker);

    return peer ? conn_send_frame(peer->conn, frame, length) : 0;
}

void workers_link_fetched(struct workers_link *link, uint64_t who, const struct msg *msg)
{
    struct hvd_err err = { 0 };

    for (size_t i = 0; i < link->peers.count; i++) {
        struct peer *peer = link->peers.items[i];

        if (!peer || !peer->who || peer->who != who)
            continue;
        if (conn_send(peer->conn, msg, &err))
            break_with(peer, err.text);
        return;
    }
}

void workers_link_drop(struct workers_link *link, uint32_t worker)
{
    struct peer *peer = find(link, worker);

    if (peer)
        close_peer(peer);
}

void workers_link_read_now(struct workers_link *link, uint64_t incarnation)
{
    for (uint32_t i = 0; i < link->peers.count; i++) {
        struct peer *peer = link->peers.items[i];

        if (peer && peer->incarnation == incarnation) {
            conn_read_now(peer->conn);
            return;
        }
    }
}
