/*
 * workers_link.c: the agent's own socket: connections of workers and of clients. Called by the
 * event loop's files to send, and by the connections when a message comes in. A peer is the other
 * side of one connection. Invariant: a connection speaks for a worker only after the kernel has
 * vouched for its process (PROTOCOL.md, HELLO_WORKER), and from then on for no other worker.
 */
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

/* The other side of one connection: a worker, or a process that asks a question. */
struct peer {
    struct workers_link *link;
    struct conn *conn;
    uint32_t number;      /* index in link->peers; the core knows the connection by it */
    uint64_t incarnation; /* 0: the worker has not said hello */
    /* a number that no other connection ever has, set when the worker gets its welcome; 0: no
     * welcome was sent yet */
    uint64_t requester;
    bool client;                /* the process has asked a question: it is no worker */
    bool fetches;               /* the worker has sent a FETCH on this connection */
    bool grant_waits;           /* a GRANTED waits until all earlier messages are sent */
    struct msg_snapshot wanted; /* the SNAPSHOT request that the waiting GRANTED answers */
};

struct workers_link {
    struct listener *listener;
    struct children *children;
    const struct workers_link_ops *ops;
    void *arg;
    struct VEC(struct peer *) peers; /* indexed by worker number; NULL: the number is free */
    uint64_t last_requester;         /* the highest peer.requester so far */
};

static struct peer *link_find(const struct workers_link *link, uint32_t number)
{
    return number < link->peers.count ? link->peers.items[number] : NULL;
}

/* Frees a peer whose connection this agent closes, or the other side has closed. The owner of a
 * FETCH of this peer is told, so that nothing more is written for that FETCH. */
static void peer_forget(struct peer *peer)
{
    peer->link->peers.items[peer->number] = NULL;
    if (peer->fetches)
        peer->link->ops->hung_up(peer->link->arg, peer->requester);
    mem_free(peer);
}

/* Closes the connection when its unsent messages are sent, and frees the peer now. The core gets no
 * event. */
static void peer_close(struct peer *peer)
{
    conn_close(peer->conn);
    peer_forget(peer);
}

/* Sends a process the reason why it may not connect, and closes the connection. The process has not
 * become a worker, so the core never hears of it. */
static void peer_refuse(struct peer *peer, const char *why)
{
    struct msg msg = {
        .type = MSG_REFUSED, .u.refused = {HVD_E_DENIED, why}
    };
    struct hvd_err err;

    log_warning(WORKER, "%s: the connection is refused: %s", conn_peer(peer->conn), why);
    if (conn_send(peer->conn, &msg, &err))
        log_warning(WORKER, "%s: the reason for the refusal cannot be sent: %s",
                    conn_peer(peer->conn), err.text);
    peer_close(peer);
}

/* Answers a process of this host that has asked one question. The connection stays open until that
 * process closes it: an agent that waits for the end of this one sees the end there. */
static void peer_tell(struct peer *peer, int code, const char *text)
{
    const struct msg tell = {
        .type = MSG_TELL,
        .u.tell = {.code = code, .text = { (const uint8_t *)text, strlen(text) }, .last = true}
    };
    struct hvd_err err = { 0 };

    peer->client = true;
    conn_greeted(peer->conn);
    /* The process is no worker, so the core hears nothing of the closed connection. */
    if (conn_send(peer->conn, &tell, &err)) {
        log_warning(AGENT,
                    "%s: this process has asked the agent a question, and the answer cannot be "
                    "sent: %s; the connection is closed",
                    conn_peer(peer->conn), err.text);
        peer_close(peer);
    }
}

/* Answers a question. "driver JOB KEY ADDRESS...": a new agent of this host tells which job it is
 * of, its key and the driver's addresses. "healthy": the answer proves that the event loop runs. */
static void peer_on_ask(struct peer *peer, const struct msg *msg)
{
    struct workers_link *link = peer->link;
    const struct msg_ask *ask = &msg->u.ask;
    const struct msg_texts addresses = { ask->args.items + 2,
                                         ask->args.count > 2 ? ask->args.count - 2 : 0 };
    char pid[PID_TEXT_BYTES];
    const char *text = pid;
    struct address address;
    struct hvd_err err = { 0 };
    int rc = 0;

    if (!strcmp(ask->verb, "healthy")) {
        link->ops->health(link->arg, err.text);
        peer_tell(peer, 0, err.text);
        return;
    }
    if (strcmp(ask->verb, "driver") != 0)
        rc = err_set(&err, HVD_E_INVAL,
                     "%s: unknown question; an agent answers only \"driver\" and \"healthy\"",
                     ask->verb);
    else if (!addresses.count || addresses.count > LIMIT_ADDRESSES)
        rc = err_set(&err, HVD_E_INVAL,
                     "driver: the question must have the id of a job, a key and 1 to %d addresses",
                     LIMIT_ADDRESSES);
    for (size_t i = 0; !rc && i < addresses.count; i++)
        rc = address_parse(addresses.items[i], &address, &err);
    if (!rc)
        rc = link->ops->point(link->arg, ask->args.items[0], ask->args.items[1], &addresses, &err);

    /* The answer is this agent's pid, also while the agent is ending: the other agent can then wait
     * for the end. */
    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    if (rc && rc != HVD_E_STATE)
        text = err.text;
    peer_tell(peer, rc, text);
}

/* Closes the connection of a worker that breaks the protocol or cannot be served, and tells the
 * core. */
static void peer_break_off(struct peer *peer, const char *why)
{
    struct workers_link *link = peer->link;
    uint32_t number = peer->number;

    log_warning(WORKER,
                "incarnation %" PRIu64 ": the agent closes the connection of this worker: %s",
                peer->incarnation, why);
    peer_close(peer);
    link->ops->down(link->arg, number);
}

/* Answers the SNAPSHOT request of a worker with a GRANTED and the descriptor of its slot's memory.
 * While earlier bytes are unsent, the answer waits (`grant_waits`), and the next call asks for the
 * descriptor anew. */
static void peer_grant(struct peer *peer)
{
    struct workers_link *link = peer->link;
    struct msg msg = { .type = MSG_GRANTED, .incarnation = peer->incarnation };
    struct hvd_err err = { 0 };
    int fd = -1;
    int rc = link->ops->snapshot(link->arg, peer->incarnation, &peer->wanted, &fd, &err);

    if (rc)
        log_warning(STATE, "incarnation %" PRIu64 ": this worker gets no snapshot: %s",
                    peer->incarnation, err.text);
    msg.u.granted = (struct msg_granted){ .code = rc, .text = rc ? err.text : "" };
    if (rc) { /* a GRANTED with an error carries no descriptor, so it need not wait */
        rc = conn_send(peer->conn, &msg, &err);
        peer->grant_waits = false;
    } else {
        /* A descriptor can be sent only when no byte is unsent: otherwise peer_on_drained tries
         * again. */
        rc = conn_send_with_fd(peer->conn, &msg, fd, &err);
        peer->grant_waits = rc == HVD_E_STATE || rc == HVD_E_BUSY;
        if (peer->grant_waits) {
            conn_when_sent(peer->conn);
            return;
        }
    }
    if (rc)
        peer_break_off(peer, err.text);
}

/* All bytes to this peer are sent: a GRANTED that has waited for that is sent now. */
static void peer_on_drained(void *arg)
{
    struct peer *peer = arg;

    if (peer->grant_waits)
        peer_grant(peer);
}

/* Called for each message on a connection of the socket. The messages of a process go to the core
 * only when the process has proved, by its pid, that it is the worker whose incarnation it names.
 */
static void peer_on_msg(void *arg, const struct msg *msg)
{
    struct peer *peer = arg;
    struct workers_link *link = peer->link;

    /* The first message says what the other side is (PROTOCOL.md, section 4). */
    if (!peer->incarnation && msg->type == MSG_ASK) {
        peer_on_ask(peer, msg);
        return;
    }
    /* The message must be HELLO_WORKER. Below a wrapper (a shell, a profiler) the process that says
     * hello is not the process that was started. The kernel tells the sender's pid; the core gets
     * the pid of the process that was started, because the core knows workers by that pid. */
    if (!peer->incarnation) {
        uint64_t started = link->ops->pid_of(link->arg, msg->incarnation);
        pid_t pid = conn_peer_pid(peer->conn);
        struct msg vouched = *msg;

        /* `client`: the process has asked a question, and cannot be a worker any more */
        if (msg->type != MSG_HELLO_WORKER || peer->client) {
            peer_refuse(
                peer, "the process must say hello before anything else; the agent and libhvd must "
                      "be of the same release");
        } else if (msg->u.hello_worker.pid != (uint64_t)pid) {
            peer_refuse(peer,
                        "the pid in the hello is not that of the process; run the worker in the "
                        "pid namespace of its agent");
        } else if (!started) {
            peer_refuse(peer, "no worker of this incarnation runs on this host; start the program "
                              "with hvd-elastic");
        } else if (!children_owns(link->children, msg->incarnation, pid)) {
            peer_refuse(peer,
                        "the process does not belong to this incarnation; only the process that "
                        "the agent has started, or a descendant of it, may be this worker");
        } else {
            vouched.u.hello_worker.pid = started;
            peer->incarnation = msg->incarnation;
            link->ops->msg(link->arg, peer->number, &vouched);
        }
        return;
    }
    if (msg->type != MSG_SNAPSHOT && msg->type != MSG_FETCH) {
        link->ops->msg(link->arg, peer->number, msg);
        return;
    }
    /* SNAPSHOT and FETCH, the messages about commits, do not go to the core. They are taken from a
     * worker that has its welcome (`requester`), for this worker only. */
    if (!peer->requester || msg->incarnation != peer->incarnation) {
        peer_break_off(peer,
                       peer->requester
                           ? "the worker has sent a message in the name of another worker"
                           : "the process has asked for commits before the agent has welcomed it");
    } else if (msg->type == MSG_FETCH) {
        peer->fetches = true;
        link->ops->fetch(link->arg, peer->requester, msg);
    } else {
        peer->wanted = msg->u.snapshot;
        peer_grant(peer);
    }
}

/* The other side has closed the connection. Only a worker that has said hello (`incarnation` is not
 * 0) is known to the core. */
static void peer_on_closed(void *arg, const char *why)
{
    struct peer *peer = arg;
    struct workers_link *link = peer->link;
    uint64_t incarnation = peer->incarnation;
    uint32_t number = peer->number;

    peer_forget(peer);
    if (!incarnation)
        return;
    log_debug(WORKER, "the connection of the worker with incarnation %" PRIu64 " is gone: %s",
              incarnation, why);
    link->ops->down(link->arg, number);
}

static const struct conn_ops peer_conn_ops = { NULL, peer_on_msg, peer_on_closed, peer_on_drained };

/* Called for each new connection: gives it the lowest free number. */
static void link_on_accepted(void *arg, struct conn *conn)
{
    struct workers_link *link = arg;
    struct peer *peer = mem_zalloc(sizeof(*peer));
    uint32_t number = 0;

    /* Finds the lowest free number and its entry in the table. */
    while (number < link->peers.count && link->peers.items[number])
        number++;
    if (peer && number == link->peers.count) {
        if (VEC_RESERVE(&link->peers, 1, LIMIT_LOCAL_PEERS)) {
            mem_free(peer);
            peer = NULL;
        } else {
            link->peers.count++;
        }
    }
    if (!peer) {
        log_warning(WORKER, "%s: the connection is refused: %s", conn_peer(conn),
                    number >= LIMIT_LOCAL_PEERS ? "too many connections to this agent are open"
                                                : "no memory");
        conn_drop(conn);
        return;
    }
    *peer = (struct peer){ .link = link, .conn = conn, .number = number };
    link->peers.items[number] = peer;
    conn_own(conn, &peer_conn_ops, peer);
}

/* Opens the agent's socket, at which workers and clients connect. */
int workers_link_create(struct event_base *base, const char *name, struct children *children,
                        const struct workers_link_ops *ops, void *arg,
                        struct workers_link **ret_link, struct hvd_err *err)
{
    struct workers_link *link = mem_zalloc(sizeof(*link));
    int rc;

    if (!link)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the socket of the workers; free memory on this host");
    *link = (struct workers_link){ .children = children, .ops = ops, .arg = arg };
    rc = listener_unix(base, name, link_on_accepted, link, &link->listener, err);
    if (rc) {
        mem_free(link);
        return rc;
    }
    *ret_link = link;
    return 0;
}

/* Closes the socket and all connections; messages that are queued are still sent. */
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

/* Sends a message to the worker on this connection. A connection that is gone takes no message,
 * which is no error. The welcome also makes the process a full peer: it gets a `requester`, and may
 * ask for commits. */
int workers_link_send(struct workers_link *link, uint32_t worker, const struct msg *msg,
                      struct hvd_err *err)
{
    struct peer *peer = link_find(link, worker);
    int page, rc;

    if (!peer)
        return 0;
    if (msg->type != MSG_WELCOME_WORKER)
        return conn_send(peer->conn, msg, err);

    /* The welcome carries the page; from then on the agent watches the worker's futex in the
     * page. */
    page = children_page(link->children, peer->incarnation);
    if (page >= 0) /* below 0: the worker has ended meanwhile */
        rc = conn_send_with_fd(peer->conn, msg, page, err);
    else
        rc = conn_send(peer->conn, msg, err);
    if (rc)
        return rc;
    conn_greeted(peer->conn);
    peer->requester = ++link->last_requester;
    children_joined(link->children, peer->incarnation, conn_peer_pid(peer->conn));
    return 0;
}

/* Sends an encoded message to the worker on this connection. A connection that is gone takes no
 * message, which is no error. */
int workers_link_send_frame(struct workers_link *link, uint32_t worker, const void *frame,
                            size_t length)
{
    struct peer *peer = link_find(link, worker);

    return peer ? conn_send_frame(peer->conn, frame, length) : 0;
}

/* Sends the answer of a FETCH to the worker that asked. The `requester` of a connection is never
 * used again, so a worker on a later connection does not get the answer. */
void workers_link_fetched(struct workers_link *link, uint64_t requester, const struct msg *msg)
{
    struct hvd_err err = { 0 };

    for (size_t i = 0; i < link->peers.count; i++) {
        struct peer *peer = link->peers.items[i];

        if (!peer || !peer->requester || peer->requester != requester)
            continue;
        if (conn_send(peer->conn, msg, &err))
            peer_break_off(peer, err.text);
        return;
    }
}

/* Closes a connection because the core wants it; `ops->down` is not called. */
void workers_link_drop(struct workers_link *link, uint32_t worker)
{
    struct peer *peer = link_find(link, worker);

    if (peer)
        peer_close(peer);
}

/* Reads what a dying worker has sent. The loop ends after the call, because conn_read_now may have
 * removed the peer. */
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
