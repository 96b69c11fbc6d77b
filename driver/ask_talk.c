#include "driver/ask_talk.h"

#include "base/time.h"
#include "wire/conn.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>

struct talk {
    const struct msg_ask *ask;
    struct ask_outcome *outcome;
    struct event_base *base;
    struct event *patience;
    struct conn *conn; /* NULL: it is no more */
    bool newline;      /* what was printed ends in one */
    int rc;            /* why there was no talk at all */
    struct hvd_err *err;
};

static void leave(struct talk *talk)
{
    if (talk->conn)
        conn_drop(talk->conn);
    talk->conn = NULL;
    event_base_loopbreak(talk->base);
}

static void print(struct talk *talk, const struct msg_bytes *text)
{
    if (text->length) {
        fwrite(text->at, 1, text->length, stdout);
        talk->newline = text->at[text->length - 1] == '\n';
    }
    if (fflush(stdout) || ferror(stdout)) {
        talk->outcome->deaf = true;
        leave(talk);
    }
}

static void on_opened(void *arg)
{
    struct talk *talk = arg;
    const struct msg msg = { .type = MSG_ASK, .u.ask = *talk->ask };

    conn_greeted(talk->conn);
    talk->rc = conn_send(talk->conn, &msg, talk->err);
    if (talk->rc)
        leave(talk);
}

static void on_tell(struct talk *talk, const struct msg_tell *tell)
{
    talk->outcome->begun = true;
    talk->outcome->code = tell->code;
    event_del(talk->patience);
    if (tell->code && !talk->ask->json)
        err_set(talk->err, tell->code, "%.*s", (int)tell->text.length, (const char *)tell->text.at);
    else
        print(talk, &tell->text);
    if (tell->last && talk->conn) {
        talk->outcome->answered = true;
        leave(talk);
    }
}

static void on_msg(void *arg, const struct msg *msg)
{
    struct talk *talk = arg;

    if (msg->type == MSG_TELL) {
        on_tell(talk, &msg->u.tell);
        return;
    }
    talk->rc = err_set(talk->err, HVD_E_PROTO, "what listens there is not the driver of a job");
    leave(talk);
}

static void on_closed(void *arg, const char *why)
{
    struct talk *talk = arg;

    talk->conn = NULL;
    if (!talk->outcome->begun)
        err_set(talk->err, HVD_E_LOST, "the driver has closed the connection without an answer: %s",
                why);
    leave(talk);
}

static void on_impatient(evutil_socket_t fd, short what, void *arg)
{
    struct talk *talk = arg;

    (void)fd;
    (void)what;
    talk->rc = err_set(talk->err, HVD_E_TIMEOUT,
                       "the driver does not answer; it is stopped, or its disk is very slow");
    leave(talk);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
    struct talk *talk = arg;

    (void)fd;
    (void)what;
    talk->outcome->interrupted = true;
    leave(talk);
}

static int run(struct talk *talk, const char *name, int64_t patience_us)
{
    static const struct conn_ops ops = { .opened = on_opened, .msg = on_msg, .closed = on_closed };
    struct event *interrupt = evsignal_new(talk->base, SIGINT, on_signal, talk);
    const struct timeval patience = { .tv_sec = (time_t)(patience_us / TIME_S),
                                      .tv_usec = (suseconds_t)(patience_us % TIME_S) };
    int rc = 0;

    talk->patience = event_new(talk->base, -1, 0, on_impatient, talk);
    if (!interrupt || !talk->patience || event_add(interrupt, NULL) ||
        (patience_us != TIME_NEVER && event_add(talk->patience, &patience)))
        rc = err_set(talk->err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    if (!rc)
        rc = conn_dial_unix(talk->base, name, &ops, talk, &talk->conn, talk->err);
    if (!rc) {
        event_base_dispatch(talk->base);
        rc = talk->rc;
    }
    if (talk->conn)
        conn_drop(talk->conn);
    if (!talk->newline)
        puts("");
    if (interrupt)
        event_free(interrupt);
    if (talk->patience)
        event_free(talk->patience);
    return rc;
}

int ask_talk(const char *name, const struct msg_ask *ask, int64_t patience_us,
             struct ask_outcome *ret_outcome, struct hvd_err *err)
{
    struct ask_outcome outcome = { .code = 0 };
    struct talk talk = { .ask = ask, .outcome = &outcome, .newline = true, .err = err };
    int rc;

    talk.base = event_base_new();
    if (!talk.base)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    rc = run(&talk, name, patience_us);
    event_base_free(talk.base);
    if (!rc)
        *ret_outcome = outcome;
    return rc;
}
