/*
 * client.c: the operator's side of a control connection: sends one request (the message ASK) and
 * gets parts of the answer (TELL) until one is marked as the last. The driver's side is
 * driver/control/control.h. cli.c calls it. It runs an event loop of its own, which ends when the
 * connection is closed, the user presses Ctrl-C, the timeout has passed, or the reader of standard
 * output has ended.
 */
#include "driver/cli/client.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text_show.h"
#include "base/time.h"
#include "driver/cli/find_job.h"
#include "os/clock.h"
#include "wire/conn.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

struct client {
    const struct msg_ask *ask;
    struct client_outcome outcome;
    struct buf *answer; /* the answer is appended here; NULL: it is printed */
    struct event_base *base;
    struct event *timeout; /* fires if the first part of the answer does not come in time */
    struct conn *conn;     /* the connection to the driver; NULL: it is closed */
    bool at_line_start;    /* the text printed so far ends in a newline */
    int rc;                /* the code with which the request has failed; 0: it has not */
    struct hvd_err *err;
};

/* Closes the connection and ends the event loop, so that client_ask returns. */
static void client_leave(struct client *client)
{
    if (client->conn)
        conn_drop(client->conn);
    client->conn = NULL;
    event_base_loopbreak(client->base);
}

/* Called when the connection to the driver is open: sends the request (ASK). On this connection the
 * request takes the place of a greeting, so conn_greeted lifts the limits for connections that have
 * not greeted. Answers come to client_on_msg. */
static void client_on_opened(void *arg)
{
    struct client *client = arg;
    const struct msg msg = { .type = MSG_ASK, .u.ask = *client->ask };

    conn_greeted(client->conn);
    client->rc = conn_send(client->conn, &msg, client->err);
    if (client->rc)
        client_leave(client);
}

/* Prints a text of another process. text_show makes control characters visible, so the text cannot
 * control the terminal. */
int client_print(const char *text, size_t length)
{
    struct buf shown;
    int rc;

    buf_init(&shown, 4 * LIMIT_FRAME_BODY_BYTES); /* an escaped byte is printed as four bytes */
    rc = text_show(&shown, text, length, false /* no colours */);
    if (!rc)
        fwrite(buf_text(&shown), 1, shown.length, stdout);
    buf_release(&shown);
    return rc;
}

/* Called for each message of the driver: prints or keeps one part of the answer (TELL). A part with
 * a code other than 0 is a refusal: its text goes to client->err, but with --json it is printed or
 * kept as any part. The first part ends the timeout. */
static void client_on_msg(void *arg, const struct msg *msg)
{
    struct client *client = arg;
    struct client_outcome *outcome = &client->outcome;
    const struct msg_tell *tell = &msg->u.tell;

    if (msg->type != MSG_TELL) {
        client->rc = err_set(client->err, HVD_E_PROTO,
                             "another program, or a driver of another version, listens on the "
                             "job's socket; use the hvd-elastic that has started the job");
        client_leave(client);
        return;
    }
    outcome->begun = true;
    outcome->code = tell->code;
    event_del(client->timeout);
    if (tell->code && !client->ask->json) {
        err_set(client->err, tell->code, "%.*s", (int)tell->text.length,
                (const char *)tell->text.at);
    } else if (client->answer) {
        client->rc = buf_append(client->answer, (const char *)tell->text.at, tell->text.length);
        if (client->rc) {
            err_set(client->err, client->rc,
                    "no memory to keep the answer; free memory on this host");
            client_leave(client);
            return;
        }
    } else {
        if (tell->text.length) {
            client->rc = client_print((const char *)tell->text.at, tell->text.length);
            if (client->rc) {
                err_set(client->err, client->rc,
                        "no memory to show the answer; free memory on this host");
                client_leave(client);
                return;
            }
            client->at_line_start = tell->text.at[tell->text.length - 1] == '\n';
        }
        outcome->reader_gone = fflush(stdout) || ferror(stdout);
    }
    outcome->answered = tell->last && !outcome->reader_gone;
    if (tell->last || outcome->reader_gone)
        client_leave(client);
}

/* Called when the driver has closed the connection. If no part of the answer has come, the error
 * text says so; client->rc stays 0, because the driver was reached. */
static void client_on_closed(void *arg, const char *why)
{
    struct client *client = arg;

    client->conn = NULL;
    if (!client->outcome.begun)
        err_set(client->err, HVD_E_LOST,
                "the driver has closed the connection without an answer: %s; ask again", why);
    client_leave(client);
}

/* Called when the timeout has passed, or when the user has pressed Ctrl-C. */
static void client_on_event(evutil_socket_t fd, short what, void *arg)
{
    struct client *client = arg;

    (void)fd;
    if (what & EV_TIMEOUT)
        client->rc =
            err_set(client->err, HVD_E_TIMEOUT,
                    "the driver runs, but has not answered in time, because its process is "
                    "suspended (SIGSTOP) or its disk is very slow; continue a suspended "
                    "driver with kill -CONT, or try again");
    else
        client->outcome.interrupted = true;
    client_leave(client);
}

/* Sends the request to the control socket in the folder, and prints or keeps the answer. Returns 0
 * if the driver was reached; *ret_outcome then says how the request ended, and `err` may have the
 * text of a refusal. */
int client_ask(const char *folder, const struct msg_ask *ask, int64_t timeout_us,
               struct client_outcome *ret_outcome, struct buf *ret_answer, struct hvd_err *err)
{
    static const struct conn_ops ops = { .opened = client_on_opened,
                                         .msg = client_on_msg,
                                         .closed = client_on_closed };
    const struct timeval timeout = clock_timeval(timeout_us);
    struct client client = { .ask = ask, .answer = ret_answer, .at_line_start = true, .err = err };
    struct event *interrupt;
    int folder_fd; /* a descriptor of the folder, if the socket's path is too long; -1: none */
    char *name;
    int rc = cli_socket_name(folder, &name, &folder_fd, err);

    if (rc)
        return rc;
    client.base = event_base_new();
    if (!client.base) {
        rc = err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
        goto out;
    }
    interrupt = evsignal_new(client.base, SIGINT, client_on_event, &client);
    client.timeout = event_new(client.base, -1 /* a timer */, 0, client_on_event, &client);
    if (!interrupt || !client.timeout || event_add(interrupt, NULL) ||
        (timeout_us != TIME_NEVER && event_add(client.timeout, &timeout)))
        rc = err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    if (!rc)
        rc = conn_dial_unix(client.base, name, &ops, &client, &client.conn, err);
    if (!rc) {
        event_base_dispatch(client.base);
        rc = client.rc;
    }
    if (client.conn)
        conn_drop(client.conn);
    if (!client.at_line_start)
        puts("");
    if (interrupt)
        event_free(interrupt);
    if (client.timeout)
        event_free(client.timeout);
    event_base_free(client.base);
    if (!rc)
        *ret_outcome = client.outcome;
out:
    mem_free(name);
    if (folder_fd >= 0)
        close(folder_fd);
    return rc;
}
