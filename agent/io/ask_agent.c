/*
 * ask_agent.c: asks the agent that already runs on this host one question, and runs the event base
 * until the answer has come. Called by main.c when the socket's name is taken, and by healthy.c.
 * Invariant: on return, no event of this file is left in the event base.
 */
#include "agent/io/ask_agent.h"

#include "base/text.h"
#include "base/time.h"
#include "wire/conn.h"

#include <event2/event.h>
#include <stdio.h>
#include <sys/time.h>

/* time limit for the answer: longer than any iteration of the other agent's event loop */
#define ANSWER_S 10
/* time limit for the end of the other agent, which first gives its workers their grace time */
#define ENDING_S 60
/* time limit for the answer to "healthy": two answers fit into the time limit of a usual probe */
#define HEALTH_S 4

struct asking {
    struct event_base *base;
    struct conn *conn;
    const char *verb; /* "driver" or "healthy" */
    struct msg_texts words;
    const char *socket;
    int64_t pid; /* the answer to "driver": the pid of the other agent */
    char *text;  /* where the answer to "healthy" is written; NULL: the question is "driver" */
    bool ending; /* the other agent has said that it is ending, so this agent waits for its end */
    bool done;   /* the result is known: `code`, and *err if it is an error */
    int code;
    struct hvd_err *err;
    struct event *timer;
};

/* Sets the result of the question, and ends the event loop that waits for it. */
static void asking_finish(struct asking *asking, int code)
{
    asking->done = true;
    asking->code = code;
    event_base_loopbreak(asking->base);
}

/* Starts the time limit of what this process waits for: the other agent's answer or its end. A
 * second call replaces the time limit. */
static void asking_wait(struct asking *asking, time_t seconds)
{
    struct timeval time = { .tv_sec = seconds };

    if (event_add(asking->timer, &time))
        asking_finish(
            asking,
            err_set(
                asking->err, HVD_E_NOMEM,
                "no memory for the timer of a question to the agent; free memory on this host"));
}

/* The other agent is connected: asks it the question. A question needs no greeting, so conn_greeted
 * ends the greeting's time limit; `asking->timer` limits the wait. */
static void asking_on_opened(void *arg)
{
    struct asking *asking = arg;
    struct msg ask = {
        .type = MSG_ASK, .u.ask = {.verb = asking->verb, .args = asking->words}
    };
    int rc;

    conn_greeted(asking->conn);
    rc = conn_send(asking->conn, &ask, asking->err);
    if (rc)
        asking_finish(asking, rc);
}

/* Handles TELL, the answer of the other agent: its pid as a text, how it is, or why it refuses. An
 * agent that is ending answers "driver" with HVD_E_STATE, and closes the connection when it has
 * ended. */
static void asking_on_msg(void *arg, const struct msg *msg)
{
    struct asking *asking = arg;
    const struct msg_tell *tell = &msg->u.tell;
    struct span text;
    uint64_t pid = 0;

    if (msg->type != MSG_TELL) {
        asking_finish(asking, err_set(asking->err, HVD_E_PROTO,
                                      "%s: another program, or an agent of another version, "
                                      "listens at this socket; kill it",
                                      asking->socket));
        return;
    }
    text = (struct span){ (const char *)tell->text.at, tell->text.length };
    if (asking->text) {
        snprintf(asking->text, ERR_TEXT_MAX, "%.*s", (int)text.length, text.at);
        asking_finish(asking,
                      tell->code ? err_set(asking->err, tell->code, "%s", asking->text) : 0);
        return;
    }
    if ((!tell->code || tell->code == HVD_E_STATE) &&
        !text_parse_u64(text, 1, INT32_MAX, "the pid", &pid, NULL))
        asking->pid = (int64_t)pid;
    if (tell->code == HVD_E_STATE) {
        asking->ending = true;
        asking_wait(asking, ENDING_S);
    } else if (tell->code) {
        asking_finish(asking,
                      err_set(asking->err, tell->code, "the agent of this host answers: %.*s",
                              (int)text.length, text.at));
    } else {
        asking_finish(asking, 0);
    }
}

/* The other agent has closed the connection, or has ended. The result HVD_E_LOST lets the caller
 * become the agent of this host. The connection frees itself after this callback. */
static void asking_on_closed(void *arg, const char *why)
{
    struct asking *asking = arg;

    asking->conn = NULL;
    asking_finish(asking, err_set(asking->err, HVD_E_LOST,
                                  "another agent on this host has just ended: %s; try again", why));
}

/* The other agent has not answered, or has not ended, in time. */
static void asking_on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct asking *asking = arg;
    long pid = asking->conn ? (long)conn_peer_pid(asking->conn) : 0;

    (void)fd;
    (void)what;
    asking_finish(asking,
                  err_set(asking->err, HVD_E_TIMEOUT,
                          "the agent of this host (pid %ld) does not %s; if it is stopped or "
                          "hangs, kill it",
                          pid, asking->ending ? "end" : "answer"));
}

static const struct conn_ops asking_conn_ops = { asking_on_opened, asking_on_msg, asking_on_closed,
                                                 NULL };

/* Asks the agent the question, and runs the event base until the answer has come, or until the time
 * is over. HVD_E_LOST: that agent is gone; this includes a socket on which no process listens. */
static int asking_run(struct asking *asking, time_t seconds)
{
    int rc;

    /* The event base runs only for this question: every result breaks the loop. */
    asking->timer = evtimer_new(asking->base, asking_on_timer, asking);
    if (!asking->timer)
        return err_set(
            asking->err, HVD_E_NOMEM,
            "no memory for the timer of a question to the agent; free memory on this host");
    asking_wait(asking, seconds);
    if (!asking->done) { /* asking_wait has failed otherwise */
        rc = conn_dial_unix(asking->base, asking->socket, &asking_conn_ops, asking, &asking->conn,
                            asking->err);
        if (rc)
            asking_finish(asking, rc == HVD_E_NOTFOUND ? HVD_E_LOST : rc);
    }
    while (!asking->done && event_base_dispatch(asking->base) == 0)
        ;
    if (!asking->done)
        asking->code = err_set(asking->err, HVD_E_INTERNAL,
                               "the event loop has ended without an answer of the agent, which is "
                               "a bug of hvd-elastic; please report it");
    event_free(asking->timer);
    if (asking->conn)
        conn_drop(asking->conn);
    return asking->code;
}

/* Tells the agent at `socket` which driver it must dial; `words`: the job's id, the key, then the
 * driver's addresses. */
int ask_agent_driver(struct event_base *base, const char *socket, const struct msg_texts *words,
                     int64_t *ret_pid, struct hvd_err *err)
{
    struct asking asking = {
        .base = base, .verb = "driver", .words = *words, .socket = socket, .err = err
    };
    int rc = asking_run(&asking, ANSWER_S);

    if (!rc)
        *ret_pid = asking.pid;
    return rc;
}

/* Asks the process at `socket` how it is. Control characters in its answer become "?", because the
 * answer is printed on a terminal. */
int ask_agent_health(struct event_base *base, const char *socket, char ret_text[ERR_TEXT_MAX],
                     struct hvd_err *err)
{
    struct asking asking = {
        .base = base, .verb = "healthy", .socket = socket, .text = ret_text, .err = err
    };
    int rc = asking_run(&asking, HEALTH_S);

    for (char *at = ret_text; !rc && *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at == 0x7f)
            *at = '?';
    return rc;
}
