/*
 * join_health.c: answers the question "healthy" to a process that joins a job. join.c opens it. A
 * connection has one question, and is closed with its answer. Invariant: the answer comes from
 * the event loop that also dials and sends heartbeats, so a loop that hangs does not answer.
 */
#include "agent/join/join_health.h"

#include "base/log.h"
#include "wire/listener.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define NO_JOB   ".join" /* stands for the name of a job, which cannot begin with a dot */
#define TRIES    50      /* attempts to take the name from a process that ends, or looks */
#define RETRY_MS 10      /* the time between two such attempts */

/* Answers the one question of a process that has connected, and closes the connection. */
static void health_on_msg(void *arg, const struct msg *msg)
{
    struct join_prober *prober = arg;
    struct msg tell = { .type = MSG_TELL };
    char text[ERR_TEXT_MAX] = "";

    if (msg->type == MSG_ASK && !strcmp(msg->u.ask.verb, "healthy")) {
        join_say_health(prober->health->arg, text);
    } else {
        tell.u.tell.code = HVD_E_INVAL;
        snprintf(text, sizeof(text), "hvd-agent --join answers only the question \"healthy\"");
    }
    tell.u.tell.text = (struct msg_bytes){ (const uint8_t *)text, strlen(text) };
    tell.u.tell.last = true;
    (void)!conn_send(prober->conn, &tell, NULL);
    conn_close(prober->conn); /* sends the answer first */
    prober->conn = NULL;
}

/* The process that asks has gone: its entry is free. */
static void health_on_closed(void *arg, const char *why)
{
    struct join_prober *prober = arg;

    (void)why;
    prober->conn = NULL;
}

/* A process has connected, to ask how this one is. The entries of `probers` are used in turn: a
 * process that has still not asked when JOIN_PROBERS later ones have come is disconnected. */
static void health_on_accepted(void *arg, struct conn *conn)
{
    static const struct conn_ops ops = { NULL, health_on_msg, health_on_closed, NULL };
    struct join_health *health = arg;
    struct join_prober *prober = &health->probers[health->accepted++ % JOIN_PROBERS];

    if (prober->conn)
        conn_drop(prober->conn);
    *prober = (struct join_prober){ .health = health, .conn = conn };
    conn_own(conn, &ops, prober);
}

/* Opens the socket at which this process is asked how it is. A failure is only logged: the process
 * joins its job without the socket. */
void join_health_open(struct join_health *health, struct event_base *base, const char *host)
{
    struct hvd_err err = { 0 };
    int rc = HVD_E_LOST;

    health->socket.fd = -1;
    /* HVD_E_BUSY: another process has the name, or has left its file when it was killed, and a
     * probe holds the lock of that file for the moment in which it looks at it (agent_find.c). */
    for (int i = 0; (rc == HVD_E_LOST || rc == HVD_E_BUSY) && i < TRIES; i++) {
        if (i > 0) /* no event tells that the other process has ended, or that a probe has looked */
            poll(NULL, 0, RETRY_MS);
        rc = agent_socket_take(NO_JOB, host, &health->socket, &err);
    }
    if (rc == HVD_E_BUSY)
        err_set(&err, rc,
                "another hvd-agent --join of this user has the name %s on this machine; give "
                "--name",
                host);
    if (!rc)
        rc = listener_unix(base, health->socket.name, health_on_accepted, health, &health->listener,
                           &err);
    if (rc)
        log_warning(AGENT, "hvd-agent --healthy cannot ask this process: %s", err.text);
}

/* Closes the socket and its connections. An empty path means that the socket was never taken. */
void join_health_close(struct join_health *health)
{
    for (size_t i = 0; i < JOIN_PROBERS; i++)
        if (health->probers[i].conn)
            conn_drop(health->probers[i].conn);
    listener_free(health->listener);
    health->listener = NULL;
    if (health->socket.path[0])
        agent_socket_release(&health->socket);
}
