#include "agent/io/ask_agent.h"

#include "base/text.h"
#include "base/time.h"
#include "wire/conn.h"

#include <event2/event.h>
#include <sys/time.h>

#define ANSWER_S 10 /* longer than any turn of its loop takes */
#define ENDING_S 60 /* it gives its workers their grace first */

struct asking {
    struct event_base *base;
    struct conn *conn;
    const struct msg_texts *words;
    const char *socket;
    int64_t pid;
    bool ending; /* it has said so: its end is waited for */
    bool done;
    int code;
    struct hvd_err *err;
    struct event *timer;
};

static void finish(struct asking *asking, int code)
{
    asking->done = true;
    asking->code = code;
    event_base_loopbreak(asking->base);
}

static void wait_for(struct asking *asking, time_t seconds)
{
    struct timeval time = { .tv_sec = seconds };

    if (event_add(asking->timer, &time))
        finish(asking, err_set(asking->err, HVD_E_NOMEM, "no memory for a timer"));
}

static void on_opened(void *arg)
{
    struct asking *asking = arg;
    struct msg ask = {
        .type = MSG_ASK, .u.ask = {.verb = "driver", .args = *asking->words}
    };
    int rc;

    conn_greeted(asking->conn);
    rc = conn_send(asking->conn, &ask, asking->err);
    if (rc)
        finish(asking, rc);
}

static void on_msg(void *arg, const struct msg *msg)
{
    struct asking *asking = arg;
    const struct msg_tell *tell = &msg->u.tell;
    struct span text;
    uint64_t pid = 0;

    if (msg->type != MSG_TELL) {
        finish(asking, err_set(asking->err, HVD_E_PROTO,
                               "%s: whoever listens there is no agent of this version; end it",
                               asking->socket));
        return;
    }
    text = (struct span){ (const char *)tell->text.at, tell->text.length };
    if ((!tell->code || tell->code == HVD_E_STATE) &&
        !text_parse_u64(text, 1, INT32_MAX, "the pid", &pid, NULL))
        asking->pid = (int64_t)pid;
    if (tell->code == HVD_E_STATE) {
        asking->ending = true;
        wait_for(asking, ENDING_S);
    } else if (tell->code) {
        finish(asking, err_set(asking->err, tell->code, "the agent of this host: %.*s",
                               (int)text.length, text.at));
    } else {
        finish(asking, 0);
    }
}

static void on_closed(void *arg, const char *why)
{
    struct asking *asking = arg;

    asking->conn = NULL;
    finish(asking, err_set(asking->err, HVD_E_LOST, "the agent of this host is gone: %s", why));
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct asking *asking = arg;
    long pid = asking->conn ? (long)conn_peer_pid(asking->conn) : 0;

    (void)fd;
    (void)what;
    finish(asking, err_set(asking->err, HVD_E_TIMEOUT,
                           "the agent of this host (pid %ld) does not %s; if it is stopped or "
                           "hangs, kill it",
                           pid, asking->ending ? "end" : "answer"));
}

static const struct conn_ops conn_ops = { on_opened, on_msg, on_closed, NULL };

int ask_agent_driver(struct event_base *base, const char *socket, const struct msg_texts *words,
                     int64_t *ret_pid, struct hvd_err *err)
{
    struct asking asking = { .base = base, .words = words, .socket = socket, .err = err };

    asking.timer = evtimer_new(base, on_timer, &asking);
    if (!asking.timer)
        return err_set(err, HVD_E_NOMEM, "no memory for a timer");
    wait_for(&asking, ANSWER_S);
    if (!asking.done) {
        int rc = conn_dial_unix(base, socket, &conn_ops, &asking, &asking.conn, err);

        if (rc)
            finish(&asking, rc == HVD_E_NOTFOUND ? HVD_E_LOST : rc);
    }
    while (!asking.done && event_base_dispatch(base) == 0)
        ;
    if (!asking.done)
        asking.code = err_set(err, HVD_E_INTERNAL, "the loop ended");
    event_free(asking.timer);
    if (asking.conn)
        conn_drop(asking.conn);
    if (!asking.code)
        *ret_pid = asking.pid;
    return asking.code;
}
