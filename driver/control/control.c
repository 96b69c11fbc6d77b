/*
 * control.c: the control socket: accepts clients, carries out their requests, and sends the
 * answers. The event loop (driver/io/loop.c) owns it. A connection carries one request. A new kind
 * of request needs a row in `requests`, and a table function if it shows a table. The driver never
 * waits for a reader: the part of an answer that the connection does not take stays in a buffer,
 * and a client that reads nothing for 30 s is dropped.
 *
 *     ASKING    ──ASK──► WAITING      for the core's answer, or for the end of the driver
 *       │                  │ control_reply
 *       └────► ANSWERING ◄─┘          until the whole answer is sent; then the connection is closed
 *       ├────► FOLLOWING              until the connection is closed or cut off
 *       └────► WAITING ──► REKEYING   until the core says that the change of keys is over
 */
#include "driver/control/control.h"
#include "driver/core/journal.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "discovery/key.h"
#include "driver/control/json.h"
#include "driver/control/live.h"
#include "driver/control/top.h"
#include "proto/catalog.h"
#include "wire/conn.h"
#include "wire/listener.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)256 * 1024) /* the most bytes of an answer in one TELL */
#define STUCK_S     30 /* a client that reads nothing for so many seconds is dropped */

/* The states of a client, as in the picture above. */
enum client_state {
    CLIENT_ASKING,
    CLIENT_WAITING,
    CLIENT_ANSWERING,
    CLIENT_FOLLOWING,
    CLIENT_REKEYING
};

struct client {
    struct list link;
    struct control *control;
    struct conn *conn;
    struct event *stuck; /* the timer that runs while the client does not read its answer */
    enum client_state state;
    /* the number of the client's request to the core, until the core has answered; 0: none */
    uint64_t ask;
    bool json;
    bool drains;   /* true: the client has sent a drain */
    bool deadline; /* true: that drain has a deadline */
    bool follow;   /* true: the client has sent a rekey, and waits until all hosts have new keys */
    int code;      /* the code of the answer; 0: the request was carried out */
    struct buf answer;
    size_t sent; /* how many bytes of `answer` were sent */
    struct events_follower follower;
};

struct control {
    struct event_base *base;
    struct listener *listener;
    struct events *events;
    const struct control_ops *ops;
    void *arg;
    struct list clients;
    size_t client_count;
    uint64_t last_ask; /* the number of the newest request to the core */
};

/* ---- the answer to a client ------------------------------------------------------------------ */

/* Frees a client whose connection has ended, or is closed by the caller. */
static void client_free(struct client *client)
{
    events_unfollow(&client->follower);
    list_remove(&client->link);
    client->control->client_count--;
    if (client->stuck)
        event_free(client->stuck);
    buf_release(&client->answer);
    mem_free(client);
}

/* Closes the client's connection at once, because memory is short or the client does not read, and
 * frees the client. */
static void client_drop(struct client *client)
{
    conn_drop(client->conn);
    client_free(client);
}

/* Frees the client. Its connection closes when all bytes are sent. */
static void client_close(struct client *client)
{
    conn_close(client->conn);
    client_free(client);
}

/* Sends one part of an answer. `code` is not 0: the request was refused, and the text says why.
 * `last`: true: no further part follows. Returns 0, or the code with which the connection has
 * failed. */
static int send_tell(struct conn *conn, int code, const char *text, size_t length, bool last)
{
    const struct msg msg = {
        .type = MSG_TELL,
        .u.tell = {.code = code, .text = { (const uint8_t *)text, length }, .last = last}
    };

    return conn_send(conn, &msg, NULL);
}

/* Sends a text that ends in NUL as one part of an answer (send_tell). */
static int client_tell(struct conn *conn, int code, const char *text, bool last)
{
    return send_tell(conn, code, text, strlen(text), last);
}

/* Sends as much of client->answer as the connection takes now; control_on_drained calls this
 * function again for the rest. May free the client: after the last part, or when the connection
 * fails. `complete`: nothing is added to the answer any more. */
static void client_pump(struct client *client)
{
    static const struct timeval timeout = { .tv_sec = STUCK_S };
    struct buf *answer = &client->answer;
    bool complete = client->state == CLIENT_ANSWERING;
    bool last = false;

    /* A complete answer ends with a TELL that is marked as the last, even if that TELL is empty. */
    while (!last && (client->sent < answer->length || complete) &&
           conn_unsent(client->conn) < CONN_HIGH_BYTES) {
        const char *text = buf_text(answer) + client->sent;
        size_t length = answer->length - client->sent;

        /* The client shows each part of the answer by itself, so no part ends inside a UTF-8
         * character: the cut moves back over continuation bytes, at most 4 bytes. */
        if (length > CHUNK_BYTES)
            for (length = CHUNK_BYTES; (text[length] & 0xc0) == 0x80 && length > CHUNK_BYTES - 4;)
                length--;
        last = complete && client->sent + length == answer->length;
        if (send_tell(client->conn, client->code, text, length, last)) {
            client_drop(client);
            return;
        }
        client->sent += length;
    }
    if (last) {
        client_close(client);
    } else if (client->sent == answer->length) {
        buf_clear(answer);
        client->sent = 0;
        event_del(client->stuck);
    } else {
        event_add(client->stuck, &timeout);
    }
}

/* Sends `text` as the whole answer, with `code` (0: the request was carried out). An answer that
 * was begun in client->answer is thrown away. May free the client. */
static void client_finish(struct client *client, int code, const char *text)
{
    struct json json = { .out = &client->answer };
    int rc;

    buf_clear(&client->answer);
    client->sent = 0;
    client->state = CLIENT_ANSWERING;
    client->ask = 0;
    client->code = code;
    if (client->json) {
        json_open(&json, NULL, '{');
        json_bool(&json, "ok", code == 0);
        json_text(&json, "text", text);
        rc = json_end(&json);
    } else {
        rc = buf_append_text(&client->answer, text);
    }
    if (rc)
        client_drop(client);
    else
        client_pump(client);
}

/* Sends the answer that was made in client->answer. rc is 0: the answer is complete; else it could
 * not be made, and the client gets the error `rc` in its place. May free the client. */
static void client_finish_answer(struct client *client, int rc)
{
    /* HVD_E_NOMEM drops the client: without memory for the answer there is none for an error text.
     */
    if (rc == HVD_E_LIMIT) {
        client_finish(client, rc, "the answer is longer than LIMIT_ANSWER_BYTES; ask for less");
    } else if (rc) {
        client_drop(client);
    } else {
        client->state = CLIENT_ANSWERING;
        client_pump(client);
    }
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Makes the answer to a request that shows a table, as text or as JSON (the bool). */
typedef int table_fn(const struct core_view *, const struct table_facts *, bool, struct buf *);

/* One kind of request, from args_min to args_max arguments. Exactly one of the fields `table`,
 * `done` and `carry_out` is set. */
struct request {
    const char *name;
    size_t args_min, args_max;
    table_fn *table;       /* makes the answer, a table */
    enum event_kind event; /* with `done`: the event for the core, about a host or slot */
    const char *done;      /* the text of the answer when the core has accepted the event */
    void (*carry_out)(struct client *client, const struct msg_ask *ask);
};

/* The argument of request_on_kept_line. */
struct event_search {
    struct client *client;
    int rc;
};

/* Appends a line of the event log to the client's answer, as text or as JSON. */
static int add_event_line(struct client *client, const struct event_line *line)
{
    char moment[TIME_STAMP_MAX];

    return table_event(time_stamp(line->wall_us, moment), line->level, line->text, line->facts,
                       client->json, &client->answer);
}

/* Called by events_each for each line that it finds. False ends the search: the line has no room.
 */
static bool request_on_kept_line(void *arg, const struct event_line *line)
{
    struct event_search *search = arg;

    search->rc = add_event_line(search->client, line);
    return !search->rc;
}

/* Called for each new line of the event log that the client follows. The core is in the middle of a
 * step then, so this function may send, but must not call the core. */
static void request_on_new_line(void *arg, const struct event_line *line)
{
    struct client *client = arg;

    if (add_event_line(client, line))
        client_drop(client);
    else if (client->answer.length - client->sent > LIMIT_CLIENT_UNSENT_BYTES)
        client_finish(client, HVD_E_LIMIT,
                      "the client reads events slower than they come, and its connection is "
                      "closed; ask again");
    else
        client_pump(client);
}

/* Carries out "events": sends the newest lines of the event log, as many as the argument says. With
 * ask->follow also each new line is sent, until the client goes. */
static void request_events(struct client *client, const struct msg_ask *ask)
{
    struct event_search search = { .client = client };
    uint64_t count = LIMIT_EVENTS_KEPT;
    struct hvd_err err;

    if (ask->args.count &&
        text_parse_u64((struct span){ ask->args.items[0], strlen(ask->args.items[0]) }, 0,
                       LIMIT_EVENTS_KEPT, "how many lines", &count, &err)) {
        client_finish(client, HVD_E_INVAL, err.text);
        return;
    }
    events_each(client->control->events, count, request_on_kept_line, &search);
    if (search.rc || !ask->follow) {
        client_finish_answer(client, search.rc);
        return;
    }
    client->state = CLIENT_FOLLOWING;
    client->follower.line = request_on_new_line;
    events_follow(client->control->events, &client->follower);
    client_pump(client);
}

/* Carries out "drain", "undrain" and "clear": gives the core an event about the host or slot in the
 * first argument. The second argument, if there is one, is the time until the deadline of a drain.
 * The text of the answer is made first, because the core may answer (control_reply) before ops->act
 * returns. */
static void request_tell_core(struct client *client, const struct msg_ask *ask,
                              const struct request *request)
{
    struct control *control = client->control;
    struct event event = { .kind = request->event, .left_us = TIME_NEVER };
    char left_text[TIME_TEXT_MAX];
    struct hvd_err err;
    struct key key;
    int rc = key_parse(ask->verb, ask->args.items[0], &key, &err);

    if (!rc && ask->args.count > 1)
        rc = time_parse(ask->args.items[1], &event.left_us, &err);
    if (rc) {
        client_finish(client, rc, err.text);
        return;
    }
    buf_clear(&client->answer);
    rc = buf_printf(&client->answer, "%s: %s", ask->args.items[0], request->done);
    if (!rc && event.left_us != TIME_NEVER)
        rc = buf_printf(&client->answer, " within %s", time_format(event.left_us, left_text));
    if (rc) {
        client_drop(client);
        return;
    }
    client->state = CLIENT_WAITING;
    client->drains = request->event == EVENT_DRAIN;
    client->deadline = event.left_us != TIME_NEVER;
    client->ask = event.ask = ++control->last_ask;
    event.host = key.host;
    event.slot = key.slot;
    control->ops->act(control->arg, &event);
}

/* Carries out "rekey": asks the core for new keys. The core answers (control_reply) when the new
 * keys are durable, and reports later steps by control_rekeying. */
static void request_rekey(struct client *client, const struct msg_ask *ask)
{
    struct control *control = client->control;
    struct event event = { .kind = EVENT_REKEY, .ask = ++control->last_ask };

    client->state = CLIENT_WAITING;
    client->follow = ask->follow;
    client->ask = event.ask;
    control->ops->act(control->arg, &event);
}

/* Carries out "token-create" and "token-revoke". The arguments of the first are the token, its
 * lifetime, how many hosts may use it, and the name of the only host that may use it ("": any
 * host). The argument of the second is the token. */
static void request_token(struct client *client, const struct msg_ask *ask)
{
    struct control *control = client->control;
    const char *const *args = ask->args.items;
    struct event event = { .kind = EVENT_TOKEN,
                           .code = TOKEN_REVOKED,
                           .left_us = TIME_NEVER,
                           .text = args[0],
                           .ask = ++control->last_ask };
    uint64_t uses = 0;
    struct hvd_err err;
    int rc = 0;

    if (!strcmp(ask->verb, "token-create")) {
        event.code = TOKEN_MADE;
        event.host = args[3];
        rc = time_parse(args[1], &event.left_us, &err);
        if (!rc)
            rc = text_parse_u64((struct span){ args[2], strlen(args[2]) }, 0, LIMIT_HOSTS,
                                "the number of hosts", &uses, &err);
        /* EVENT_TOKEN has the number of hosts in `slot`; 0: any number. */
        event.slot = (uint32_t)uses;
    }
    if (rc) {
        client_finish(client, rc, err.text);
        return;
    }
    client->state = CLIENT_WAITING;
    client->ask = event.ask;
    control->ops->act(control->arg, &event);
}

/* Carries out "checkpoint": asks the core for a checkpoint. With ask->follow the client gets an
 * empty part of the answer at once, which shows that the driver has its request, and the rest when
 * the checkpoint is complete. */
static void request_checkpoint(struct client *client, const struct msg_ask *ask)
{
    struct control *control = client->control;
    struct event event = { .kind = EVENT_WANT_CHECKPOINT,
                           .ask = ++control->last_ask,
                           .code = ask->follow };

    client->state = CLIENT_WAITING;
    client->ask = event.ask;
    if (ask->follow && client_tell(client->conn, 0, "", false /* not the last part */))
        client_drop(client);
    else
        control->ops->act(control->arg, &event);
}

/* Sends `text`, which says how far the change of keys is, to a client that waits for new keys. A
 * client that asked for JSON gets an empty part instead, which shows that the driver has its
 * request: only the last part of its answer has JSON. */
static void request_tell_rekeying(struct client *client, const char *text)
{
    char line[LIMIT_REASON_BYTES + 2] = "";

    if (!client->json)
        snprintf(line, sizeof(line), "%s\n", text);
    client->state = CLIENT_REKEYING;
    client->ask = 0;
    if (client_tell(client->conn, 0, line, false /* not the last part */))
        client_drop(client);
}

/* Carries out "top": sends one picture of the job, of the size that the arguments say. Also carries
 * out "live": sends the message of live.h, from which the verb "page" makes a file. */
static void request_picture(struct client *client, const struct msg_ask *ask)
{
    struct control *control = client->control;
    struct top_screen screen;
    struct table_facts facts;
    struct core_view view;
    struct hvd_err err;
    bool live = !strcmp(ask->verb, "live");
    int rc = live ? 0 : top_screen_parse(ask->args.items, &screen, &err);

    if (rc) {
        client_finish(client, rc, err.text);
        return;
    }
    core_view_init(&view);
    rc = control->ops->view(control->arg, &view, &facts);
    if (!rc && live)
        rc = live_write(&view, &facts, control->events, LIVE_EVENTS, &client->answer);
    else if (!rc)
        rc = top_draw(&view, &facts, control->events, &screen, &client->answer);
    core_view_release(&view);
    client_finish_answer(client, rc);
}

/* Carries out "stop": gives the stop to the core; with the argument "now" no checkpoint is written
 * before the end. The core does not answer a stop, so the answer is sent here. With ask->follow the
 * connection stays open until the driver ends. */
static void request_stop(struct client *client, const struct msg_ask *ask)
{
    static const char text[] = "the job is being stopped\n";
    struct control *control = client->control;
    bool now = ask->args.count && !strcmp(ask->args.items[0], "now");
    struct event event = { .kind = EVENT_STOP, .text = "hvd-elastic stop", .code = !now };

    if (!ask->follow)
        client_finish(client, 0, text);
    else if (client_tell(client->conn, 0, text, false /* not the last part */))
        client_drop(client);
    else
        client->state = CLIENT_WAITING;
    control->ops->act(control->arg, &event);
}

/* clang-format off */
static const struct request requests[] = {
    { "status",     0, 0, .table = table_status },
    { "hosts",      0, 0, .table = table_hosts },
    { "changes",    0, 0, .table = table_changes },
    { "blacklist",  0, 0, .table = table_blacklist },
    { "events",     0, 1, .carry_out = request_events },
    { "drain",      1, 2, .event = EVENT_DRAIN,   .done = "is being drained" },
    { "undrain",    1, 1, .event = EVENT_UNDRAIN, .done = "may be used again" },
    { "clear",      1, 1, .event = EVENT_CLEAR,   .done = "its failures are forgotten" },
    { "rekey",      0, 0, .carry_out = request_rekey },
    { "tokens",     0, 0, .table = table_tokens },
    { "token-create", 4, 4, .carry_out = request_token },
    { "token-revoke", 1, 1, .carry_out = request_token },
    { "checkpoint", 0, 0, .carry_out = request_checkpoint },
    { "top",        TOP_ARGS, TOP_ARGS, .carry_out = request_picture },
    { "live",       0, 0, .carry_out = request_picture },
    { "stop",       0, 1, .carry_out = request_stop },
};
/* clang-format on */

/* ---- connections ---------------------------------------------------------------------------- */

/* Called for each message of a client. The first must be an ASK, whose request is carried out. The
 * ASK takes the place of a greeting, so conn_greeted lifts the limits for connections that have not
 * greeted. */
static void control_on_msg(void *arg, const struct msg *msg)
{
    struct client *client = arg;
    struct control *control = client->control;
    const struct msg_ask *ask = &msg->u.ask;
    const struct request *request = NULL;
    struct table_facts facts;
    struct core_view view;
    char quoted[TEXT_QUOTE_MAX];
    struct hvd_err err;
    int rc;

    /* A connection carries only one ASK (PROTOCOL.md, "Operators"). msg_allowed returns 0 for a
     * message that a client may send. */
    if (msg_allowed(msg->type, LINK_CLIENT_TO_DRIVER, WHEN_OPEN, &err)) {
        client_finish(client, err.code, err.text);
        return;
    }
    if (client->state != CLIENT_ASKING) {
        client_finish(client, HVD_E_PROTO, "a client may send only one request on a connection");
        return;
    }
    conn_greeted(client->conn);
    for (size_t i = 0; i < ARRAY_SIZE(requests) && !request; i++)
        if (!strcmp(requests[i].name, ask->verb))
            request = &requests[i];
    client->json = ask->json;
    text_quote(ask->verb, strlen(ask->verb), quoted);
    if (!request) {
        err_set(&err, HVD_E_UNSUPPORTED,
                "%s: the driver has version %s, which does not know this request; use the "
                "hvd-elastic of that version",
                quoted, HVD_VERSION_TEXT);
        client_finish(client, err.code, err.text);
    } else if (ask->args.count < request->args_min || ask->args.count > request->args_max) {
        err_set(&err, HVD_E_INVAL,
                "%s: the request takes %zu to %zu arguments, not %zu; see hvd-elastic --help",
                quoted, request->args_min, request->args_max, ask->args.count);
        client_finish(client, err.code, err.text);
    } else if (request->table) {
        core_view_init(&view);
        rc = control->ops->view(control->arg, &view, &facts);
        if (!rc)
            rc = request->table(&view, &facts, client->json, &client->answer);
        core_view_release(&view);
        client_finish_answer(client, rc);
    } else if (request->done) {
        request_tell_core(client, ask, request);
    } else {
        request->carry_out(client, ask);
    }
}

/* Called when the client has closed the connection, or it has failed. */
static void control_on_closed(void *arg, const char *why)
{
    (void)why;
    client_free(arg);
}

/* Called when the connection can take more of the answer. */
static void control_on_drained(void *arg)
{
    client_pump(arg);
}

/* Called when the client has read nothing for STUCK_S seconds. */
static void control_on_stuck(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    client_drop(arg);
}

/* Called for each new connection: accepts the client, or refuses it if there are too many. */
static void control_on_accepted(void *arg, struct conn *conn)
{
    static const struct conn_ops ops = { .msg = control_on_msg,
                                         .closed = control_on_closed,
                                         .drained = control_on_drained };
    struct control *control = arg;
    struct client *client;

    /* The refused client gets the reason as its answer, so its user can try again. */
    if (control->client_count >= LIMIT_CLIENTS) {
        if (client_tell(conn, HVD_E_LIMIT, "too many requests at the same time; try again", true))
            conn_drop(conn);
        else
            conn_close(conn);
        return;
    }
    client = mem_zalloc(sizeof(*client));
    if (!client) {
        conn_drop(conn);
        return;
    }
    client->control = control;
    client->conn = conn;
    client->follower.arg = client;
    list_init(&client->follower.link);
    buf_init(&client->answer, LIMIT_ANSWER_BYTES);
    list_append(&control->clients, &client->link);
    control->client_count++;
    client->stuck = event_new(control->base, -1 /* a timer */, 0, control_on_stuck, client);
    if (client->stuck)
        conn_own(conn, &ops, client);
    else
        client_drop(client);
}

/* Makes the control server, which listens on the Unix socket `path` for clients. `ops` are the
 * functions with which it reaches the core. After a failure nothing is left open. */
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
    rc = listener_unix(base, path, control_on_accepted, control, &control->listener, err);
    if (rc) {
        mem_free(control);
        return rc;
    }
    *ret_control = control;
    return 0;
}

/* Closes the socket and all connections. Bytes that a connection has taken already are still sent
 * (client_close). */
void control_free(struct control *control)
{
    if (!control)
        return;
    listener_free(control->listener);
    LIST_EACH_SAFE (it, after, &control->clients)
        client_close(CONTAINER_OF(it, struct client, link));
    mem_free(control);
}

/* Appends to the answer of a drain how many workers stay all the same. The drain has begun, so the
 * answer is right without that, too, should the view fail for lack of memory. */
static void control_add_kept(struct control *control, bool deadline, char *line, size_t size)
{
    size_t length = strlen(line);
    char kept[TABLE_KEPT_MAX];
    struct table_facts facts;
    struct core_view view;

    core_view_init(&view);
    if (!control->ops->view(control->arg, &view, &facts) && *table_kept(&view, &facts, kept))
        snprintf(line + length, size - length, "; %s%s", kept,
                 deadline ? "; at the deadline they are killed" : "");
    core_view_release(&view);
}

/* Called when the core has answered the request with the number `ask`: sends the answer to the
 * client of that request. A client that waits for new keys (client->follow) gets only the first
 * part of its answer now. `ask` 0: no client has asked. */
void control_reply(struct control *control, uint64_t ask, int code, const char *text)
{
    /* No client is found if it has closed its connection meanwhile; the answer is then dropped. */
    LIST_EACH_SAFE (it, after, &control->clients) {
        struct client *client = CONTAINER_OF(it, struct client, link);
        char line[LIMIT_REASON_BYTES + LIMIT_HOST_NAME_BYTES];

        if (!ask || client->ask != ask)
            continue;
        if (!code && client->follow) {
            request_tell_rekeying(client, text);
            return;
        }
        if (code)
            snprintf(line, sizeof(line), "%s", *text ? text : err_text(code));
        else /* request_tell_core has put the text into client->answer; otherwise `text` is the
                answer */
            snprintf(line, sizeof(line), "%s",
                     client->answer.length ? buf_text(&client->answer) : text);
        if (!code && client->drains)
            control_add_kept(control, client->deadline, line, sizeof(line));
        client_finish(client, code, line);
        return;
    }
}

/* Called when the core says how far the change of keys is: tells all clients that wait for its end.
 * `over`: the change is complete, and `text` is the last part of their answers. */
void control_rekeying(struct control *control, const char *text, bool over)
{
    LIST_EACH_SAFE (it, after, &control->clients) {
        struct client *client = CONTAINER_OF(it, struct client, link);

        if (client->state != CLIENT_REKEYING)
            continue;
        if (over)
            client_finish(client, 0, text);
        else
            request_tell_rekeying(client, text);
    }
}
