#include "driver/ask/control.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "discovery/key.h"
#include "driver/ask/json.h"
#include "proto/catalog.h"
#include "wire/listener.h"

#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CHUNK_BYTES  (256 * 1024)
#define STUCK_S      30 /* a client that takes nothing of its answer for so long is dropped */
#define EVENTS_USUAL LIMIT_EVENTS_KEPT

/*
 *     ASKING    ──ASK──► WAITING      for the core, or for the driver's end
 *       │                  │ control_reply
 *       └────► ANSWERING ◄─┘          until all of it is sent, then it is closed
 *       └────► FOLLOWING              until it is closed, or cut off
 */
enum client_state { ASKING, WAITING, ANSWERING, FOLLOWING };

struct client {
    struct list link;
    struct control *control;
    struct conn *conn;
    struct event *stuck; /* while it does not take its answer */
    enum client_state state;
    uint64_t ask; /* the core's answer to this one is waited for; 0: none */
    bool json;
    int code;
    struct buf answer; /* what is not sent yet */
    size_t sent;       /* of answer */
    struct events_follower follower;
};

struct control {
    struct event_base *base;
    struct listener *listener;
    struct events *events;
    const struct control_ops *ops;
    void *arg;
    struct list clients;
    size_t count;
    uint64_t asks; /* the highest that was given */
};

static void client_free(struct client *client)
{
    events_unfollow(&client->follower);
    list_remove(&client->link);
    client->control->count--;
    if (client->stuck)
        event_free(client->stuck);
    buf_release(&client->answer);
    mem_free(client);
}

/* Without a word: there is no memory for one, or nobody who takes it. */
static void client_drop(struct client *client)
{
    conn_drop(client->conn);
    client_free(client);
}

static void client_close(struct client *client)
{
    conn_close(client->conn);
    client_free(client);
}

/* ---- answering ----------------------------------------------------------------------------------
 */

static int tell(struct conn *conn, int code, const char *text, size_t length, bool last)
{
    const struct msg msg = {
        .type = MSG_TELL,
        .u.tell = {.code = code, .text = { (const uint8_t *)text, length }, .last = last}
    };

    return conn_send(conn, &msg, NULL);
}

/* Sends as much as the connection takes. False: the client is no more. */
static bool pump(struct client *client)
{
    struct buf *answer = &client->answer;
    bool whole = client->state == ANSWERING;
    static const struct timeval patience = { .tv_sec = STUCK_S };
    bool last = false;

    while (!last && (client->sent < answer->length || whole) &&
           conn_unsent(client->conn) < CONN_HIGH_BYTES) {
        size_t length = answer->length - client->sent;

        if (length > CHUNK_BYTES)
            length = CHUNK_BYTES;
        last = whole && client->sent + length == answer->length;
        if (tell(client->conn, client->code, buf_text(answer) + client->sent, length, last)) {
            client_drop(client);
            return false;
        }
        client->sent += length;
    }
    if (last) {
        client_close(client);
        return false;
    }
    if (client->sent == answer->length) {
        buf_clear(answer);
        client->sent = 0;
        event_del(client->stuck);
    } else {
        event_add(client->stuck, &patience);
    }
    return true;
}

/* The whole answer, in place of what was there. */
static void finish(struct client *client, int code, const char *text)
{
    struct json json = { .out = &client->answer };
    int rc;

    buf_clear(&client->answer);
    client->sent = 0;
    client->state = ANSWERING;
    client->ask = 0;
    client->code = code;
    if (client->json) {
        json_open(&json, NULL, '{');
        json_bool(&json, "ok", code == 0);
        json_text(&json, "text", text);
        json_close(&json, '}');
        rc = json.rc ? json.rc : buf_append_text(&client->answer, "\n");
    } else {
        rc = buf_append_text(&client->answer, text);
    }
    if (rc)
        client_drop(client);
    else
        pump(client);
}

/* What is in the answer already, unless it could not be put together. */
static void finish_made(struct client *client, int rc)
{
    if (rc == HVD_E_LIMIT) {
        finish(client, rc, "the answer is longer than LIMIT_ANSWER_BYTES; ask for less");
    } else if (rc) {
        client_drop(client);
    } else {
        client->state = ANSWERING;
        pump(client);
    }
}

/* ---- questions that a view answers -------------------------------------------------------------
 */

typedef int table_fn(const struct core_view *, const struct table_facts *, bool, struct buf *);

static void show(struct client *client, table_fn *table)
{
    struct control *control = client->control;
    struct table_facts facts;
    struct core_view view;
    int rc;

    core_view_init(&view);
    rc = control->ops->view(control->arg, &view, &facts);
    if (!rc)
        rc = table(&view, &facts, client->json, &client->answer);
    core_view_release(&view);
    finish_made(client, rc);
}

static void on_status(struct client *client, const struct msg_ask *ask)
{
    (void)ask;
    show(client, table_status);
}

static void on_hosts(struct client *client, const struct msg_ask *ask)
{
    (void)ask;
    show(client, table_hosts);
}

static void on_changes(struct client *client, const struct msg_ask *ask)
{
    (void)ask;
    show(client, table_changes);
}

static void on_blacklist(struct client *client, const struct msg_ask *ask)
{
    (void)ask;
    show(client, table_blacklist);
}

/* ---- events ------------------------------------------------------------------------------------
 */

struct gathering {
    struct client *client;
    int rc;
};

static bool gather(void *arg, const struct event_line *line)
{
    struct gathering *gathering = arg;
    struct client *client = gathering->client;

    gathering->rc = table_event(line->wall_us, line->text, client->json, &client->answer);
    return !gathering->rc;
}

/* Called from the midst of a step: nothing but sending may happen here. */
static void on_line(void *arg, const struct event_line *line)
{
    struct client *client = arg;
    int rc = table_event(line->wall_us, line->text, client->json, &client->answer);

    if (rc)
        client_drop(client);
    else if (client->answer.length - client->sent > LIMIT_CLIENT_UNSENT_BYTES)
        finish(client, HVD_E_LIMIT, "events come faster than they are read; ask again");
    else
        pump(client);
}

static void on_events(struct client *client, const struct msg_ask *ask)
{
    struct gathering gathering = { .client = client };
    uint64_t most = EVENTS_USUAL;
    struct hvd_err err;

    if (ask->args.count &&
        text_parse_u64((struct span){ ask->args.items[0], strlen(ask->args.items[0]) }, 0,
                       LIMIT_EVENTS_KEPT, "how many lines", &most, &err)) {
        finish(client, HVD_E_INVAL, err.text);
        return;
    }
    events_each(client->control->events, most, gather, &gathering);
    if (gathering.rc || !ask->follow) {
        finish_made(client, gathering.rc);
        return;
    }
    client->state = FOLLOWING;
    events_follow(client->control->events, &client->follower);
    pump(client);
}

/* ---- questions that the core answers -----------------------------------------------------------
 */

/* What is said of it once the core has agreed; its text is not sent before. */
PRINTF_LIKE(2, 3)
static int prepare(struct client *client, const char *format, ...)
{
    char line[LIMIT_REASON_BYTES + LIMIT_HOST_NAME_BYTES];
    va_list args;

    va_start(args, format);
    text_line(line, sizeof(line), format, args);
    va_end(args);
    buf_clear(&client->answer);
    return buf_append_text(&client->answer, line);
}

/* The client may be no more when this returns. */
static void act(struct client *client, struct event *event)
{
    struct control *control = client->control;

    client->state = WAITING;
    client->ask = event->ask = ++control->asks;
    control->ops->act(control->arg, event);
}

static void on_seat(struct client *client, const struct msg_ask *ask, enum event_kind kind,
                    const char *what)
{
    struct event event = { .kind = kind, .left_us = TIME_NEVER };
    char left[TIME_TEXT_MAX];
    struct hvd_err err;
    struct key key;
    int rc = key_parse(ask->verb, ask->args.items[0], &key, &err);

    if (!rc && ask->args.count > 1)
        rc = time_parse(ask->args.items[1], &event.left_us, &err);
    if (rc) {
        finish(client, rc, err.text);
        return;
    }
    time_format(event.left_us, left);
    if (prepare(client, "%s: %s%s%s", ask->args.items[0], what,
                event.left_us == TIME_NEVER ? "" : " within ",
                event.left_us == TIME_NEVER ? "" : left)) {
        client_drop(client);
        return;
    }
    event.host = key.host;
    event.slot = key.slot;
    act(client, &event);
}

static void on_drain(struct client *client, const struct msg_ask *ask)
{
    on_seat(client, ask, EVENT_DRAIN, "is being drained");
}

static void on_undrain(struct client *client, const struct msg_ask *ask)
{
    on_seat(client, ask, EVENT_UNDRAIN, "is not drained");
}

static void on_clear(struct client *client, const struct msg_ask *ask)
{
    on_seat(client, ask, EVENT_CLEAR, "nothing is held against it any more");
}

/* The core does not answer this one: it says it in deeds. */
static void on_stop(struct client *client, const struct msg_ask *ask)
{
    static const char text[] = "the job is being stopped\n";
    struct control *control = client->control;
    struct event event = { .kind = EVENT_STOP, .text = "hvd-elastic stop" };

    if (!ask->follow)
        finish(client, 0, text);
    else if (tell(client->conn, 0, text, strlen(text), false))
        client_drop(client);
    else
        client->state = WAITING;
    control->ops->act(control->arg, &event);
}

void control_reply(struct control *control, uint64_t ask, int code, const char *text)
{
    LIST_EACH_SAFE (it, after, &control->clients) {
        struct client *client = CONTAINER_OF(it, struct client, link);
        char line[LIMIT_REASON_BYTES + LIMIT_HOST_NAME_BYTES];

        if (!ask || client->ask != ask)
            continue;
        if (code)
            snprintf(line, sizeof(line), "%s", *text ? text : err_text(code));
        else
            snprintf(line, sizeof(line), "%s", buf_text(&client->answer));
        finish(client, code, line);
        return;
    }
}

/* ---- connections --------------------------------------------------------------------------------
 */

static const struct verb {
    const char *name;
    void (*ask)(struct client *client, const struct msg_ask *ask);
    size_t least, most; /* arguments */
} verbs[] = {
    {"status",     on_status,    0, 0},
    { "hosts",     on_hosts,     0, 0},
    { "changes",   on_changes,   0, 0},
    { "blacklist", on_blacklist, 0, 0},
    { "events",    on_events,    0, 1},
    { "drain",     on_drain,     1, 2},
    { "undrain",   on_undrain,   1, 1},
    { "clear",     on_clear,     1, 1},
    { "stop",      on_stop,      0, 0},
};

static void on_ask(struct client *client, const struct msg_ask *ask)
{
    struct hvd_err err;
    char quoted[TEXT_QUOTE_MAX];

    client->json = ask->json;
    text_quote(ask->verb, strlen(ask->verb), quoted);
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (strcmp(verbs[i].name, ask->verb) != 0)
            continue;
        if (ask->args.count >= verbs[i].least && ask->args.count <= verbs[i].most) {
            verbs[i].ask(client, ask);
            return;
        }
        err_set(&err, HVD_E_INVAL, "%s: %zu arguments are not what it takes", quoted,
                ask->args.count);
        finish(client, err.code, err.text);
        return;
    }
    err_set(&err, HVD_E_UNSUPPORTED, "%s: the driver, version %s, knows no such question", quoted,
            HVD_VERSION_TEXT);
    finish(client, err.code, err.text);
}

static void on_msg(void *arg, const struct msg *msg)
{
    struct client *client = arg;
    struct hvd_err err;

    if (msg_allowed(msg->type, LINK_CLIENT_TO_DRIVER, WHEN_OPEN, &err)) {
        finish(client, err.code, err.text);
        return;
    }
    if (client->state != ASKING) {
        finish(client, HVD_E_PROTO, "one connection is for one question");
        return;
    }
    conn_greeted(client->conn);
    on_ask(client, &msg->u.ask);
}

static void on_closed(void *arg, const char *why)
{
    (void)why;
    client_free(arg);
}

static void on_drained(void *arg)
{
    pump(arg);
}

static void on_stuck(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    client_drop(arg);
}

static const struct conn_ops client_ops = { .msg = on_msg,
                                            .closed = on_closed,
                                            .drained = on_drained };

static void turn_away(struct conn *conn)
{
    static const char text[] = "too many ask at the same time; try again";

    if (tell(conn, HVD_E_LIMIT, text, strlen(text), true))
        conn_drop(conn);
    else
        conn_close(conn);
}

static void on_accepted(void *arg, struct conn *conn)
{
    struct control *control = arg;
    struct client *client;

    if (control->count >= LIMIT_CLIENTS) {
        turn_away(conn);
        return;
    }
    client = mem_zalloc(sizeof(*client));
    if (!client) {
        conn_drop(conn);
        return;
    }
    client->control = control;
    client->conn = conn;
    client->follower = (struct events_follower){ .line = on_line, .arg = client };
    list_init(&client->follower.link);
    buf_init(&client->answer, LIMIT_ANSWER_BYTES);
    list_append(&control->clients, &client->link);
    control->count++;
    client->stuck = event_new(control->base, -1, 0, on_stuck, client);
    if (client->stuck)
        conn_own(conn, &client_ops, client);
    else
        client_drop(client);
}

int control_create(struct event_base *base, const char *path, struct events *events,
                   const struct control_ops *ops, void *arg, struct control **ret_control,
                   struct hvd_err *err)
{
    struct control *control = mem_zalloc(sizeof(*control));
    int rc;

    if (!control)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    control->base = base;
    control->events = events;
    control->ops = ops;
    control->arg = arg;
    list_init(&control->clients);
    rc = listener_unix(base, path, on_accepted, control, &control->listener, err);
    if (rc) {
        mem_free(control);
        return rc;
    }
    *ret_control = control;
    return 0;
}

void control_free(struct control *control)
{
    if (!control)
        return;
    listener_free(control->listener);
    LIST_EACH_SAFE (it, after, &control->clients)
        client_close(CONTAINER_OF(it, struct client, link));
    mem_free(control);
}
