/*
 * web.c: the connections of --metrics and of --page. The driver's loop owns the servers. A request
 * is read whole, its owner (scrapes.c, page.c) makes one answer, and the connection ends; or it
 * becomes a stream, which gets each message that is published. libevent's own server (evhttp) is
 * not used: it has no limit on connections, and its bufferevents crash without memory. Invariant: a
 * connection is in the list `clients` or `streams` until it is freed, and has a timer while bytes
 * of either side are awaited.
 *
 *     READING ──the head has come──► SENDING ──all is sent──► CLOSING ──end of input──► freed
 *        │                        ├► WAITING ──reply, or LIMIT_WEB_US──► SENDING
 *        │                        └► STREAMING ──────────────── end of input ─────────► freed
 *        └───────────┴──────── LIMIT_WEB_US, an error, room for another ──┴────────► freed
 */
#include "driver/control/web.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long no connection is accepted after the process had no descriptor for one. */
#define PAUSE_US TIME_S
/* The most connections that are accepted in one iteration of the event loop. */
#define ACCEPTS   16
#define READ_SIZE 4096
/* The bytes that the kernel keeps for a client that does not read. */
#define KEPT_BYTES (16 * 1024)

enum web_state { READING, WAITING, SENDING, STREAMING, CLOSING };

/* One connection with its request, or with its stream. */
struct web_client {
    struct list link; /* in web->clients or web->streams, in the order of arrival */
    struct web *web;
    enum web_state state;
    bool only_head; /* the answer to HEAD has no body */
    uint64_t ask;   /* WAITING: the number of the client's request to the core */
    int fd;
    struct event *input, *output, *late; /* late: the timer of LIMIT_WEB_US */
    struct buf head, answer;
    size_t sent; /* how many bytes of `answer` were sent */
};

struct web {
    struct event_base *base;
    const struct web_ops *ops;
    void *arg;
    int fd;
    struct event *arrival, *pause; /* pause: the timer of PAUSE_US */
    struct list clients, streams;
    size_t client_count, stream_count;
    char address[ADDRESS_TEXT_MAX];
};

/* Closes the connection, and frees the client. state STREAMING: the client is in web->streams,
 * otherwise in web->clients. */
static void web_client_free(struct web_client *client)
{
    list_remove(&client->link);
    if (client->state == STREAMING)
        client->web->stream_count--;
    else
        client->web->client_count--;
    if (client->input)
        event_free(client->input);
    if (client->output)
        event_free(client->output);
    if (client->late)
        event_free(client->late);
    close(client->fd);
    buf_release(&client->head);
    buf_release(&client->answer);
    mem_free(client);
}

/* ---- answers -------------------------------------------------------------------------------- */

/* Puts a whole answer into client->answer; it is sent when the owner's callback has returned. The
 * answer to HEAD has the length of the body, but no body. */
int web_answer(struct web_client *client, int status, const char *type, const char *headers,
               const char *body, size_t length)
{
    int rc = buf_printf(&client->answer,
                        "HTTP/1.1 %d %s\r\n"
                        "Content-Type: %s\r\n"
                        "Content-Length: %zu\r\n"
                        "%s"
                        "Cache-Control: no-store\r\n"
                        "X-Content-Type-Options: nosniff\r\n"
                        "Connection: close\r\n\r\n",
                        status, http_status_text(status), type, length, headers);

    return rc || client->only_head ? rc : buf_append(&client->answer, body, length);
}

/* Makes an answer of plain text, with the further header that the status asks for. */
int web_answer_text(struct web_client *client, int status, const char *text)
{
    const char *headers = "";

    if (status == 405)
        headers = "Allow: GET, HEAD\r\n";
    else if (status == 503)
        headers = "Retry-After: 5\r\n";
    return web_answer(client, status, "text/plain; charset=utf-8", headers, text, strlen(text));
}

void web_wait(struct web_client *client, uint64_t ask)
{
    client->state = WAITING;
    client->ask = ask;
}

/* Sends the answer to the client that waits for `ask`: in the next iteration of the event loop,
 * because this function may be called from within web_client_on_input. If another answer than the
 * one that waits cannot be made, the client gets an empty answer. */
void web_reply(struct web *web, uint64_t ask, int status, const char *text)
{
    LIST_EACH_SAFE (it, after, &web->clients) {
        struct web_client *client = CONTAINER_OF(it, struct web_client, link);

        if (client->state != WAITING || client->ask != ask)
            continue;
        client->state = SENDING;
        if (status != 200) {
            buf_clear(&client->answer);
            if (web_answer_text(client, status, text))
                buf_clear(&client->answer);
        }
        event_active(client->output, EV_WRITE, 0);
    }
}

/* Turns the client's request into a stream. A stream no longer counts in client_count: many viewers
 * do not keep others from asking. */
int web_stream(struct web_client *client, const char *text, size_t length)
{
    struct web *web = client->web;
    int rc;

    if (client->only_head)
        return web_answer(client, 200, "text/event-stream", "", "", 0);
    if (!web_has_room(web))
        return web_answer_text(client, 503, "as many viewers as the driver serves are there\n");
    rc = buf_append_text(&client->answer, "HTTP/1.1 200 OK\r\n"
                                          "Content-Type: text/event-stream\r\n"
                                          "Cache-Control: no-store\r\n"
                                          "X-Content-Type-Options: nosniff\r\n"
                                          "Connection: close\r\n\r\n");
    if (!rc)
        rc = buf_append(&client->answer, text, length);
    if (rc || event_add(client->input, NULL)) /* the input says when the viewer is gone */
        return HVD_E_NOMEM;
    client->state = STREAMING;
    list_remove(&client->link);
    list_append(&web->streams, &client->link);
    web->client_count--;
    web->stream_count++;
    return 0;
}

/* ---- connections ---------------------------------------------------------------------------- */

/* Sends as much of the answer as the connection takes. When all is sent, the connection stays open
 * until the client has closed it: if this side closed a connection with bytes that were not read,
 * the kernel would reset it, and the answer could be lost. May free the client. */
static void web_client_send(struct web_client *client)
{
    struct buf *answer = &client->answer;
    ssize_t sent = 0;

    while (client->sent < answer->length && sent >= 0) {
        sent = send(client->fd, answer->data + client->sent, answer->length - client->sent,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            client->sent += (size_t)sent;
        else if (sent < 0 && errno == EINTR)
            sent = 0;
    }
    if (client->sent == answer->length && client->state == STREAMING) {
        buf_clear(answer);
        client->sent = 0;
        event_del(client->late);
    } else if (client->sent == answer->length) {
        client->state = CLOSING;
        buf_release(answer);
        shutdown(client->fd, SHUT_WR);
        if (event_add(client->input, NULL))
            web_client_free(client);
    } else if (errno != EAGAIN || event_add(client->output, NULL)) {
        web_client_free(client);
    }
}

/* Called when bytes have come from the client: reads the request, and has it answered when it is
 * complete. Also called when the client has closed the connection; frees the client then. */
static void web_client_on_input(evutil_socket_t fd, short what, void *arg)
{
    struct web_client *client = arg;
    struct http_head head = { .only_head = false };
    char bytes[READ_SIZE];
    ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    int status;

    (void)what;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        web_client_free(client);
        return;
    }
    if (client->state != READING) /* bytes behind the request are thrown away */
        return;
    if (buf_append(&client->head, bytes, (size_t)got)) {
        web_client_free(client);
        return;
    }
    status = http_head_read(buf_text(&client->head), client->head.length, client->web->ops->posts,
                            &head);
    if (!status)
        return;
    event_del(client->input);
    client->state = SENDING;
    buf_release(&client->head);
    client->only_head = head.only_head;
    if (status == 200 ? client->web->ops->answer(client->web->arg, client, &head)
                      : web_answer_text(client, status, client->web->ops->usage))
        web_client_free(client);
    /* WAITING: the answer comes later. `output` pending: web_reply was called meanwhile, and that
     * event sends the answer. */
    else if (client->state != WAITING && !event_pending(client->output, EV_WRITE, NULL))
        web_client_send(client);
}

/* Called when the connection takes more bytes, or when LIMIT_WEB_US is over: then a client that
 * waits for the core gets the status 504, and any other is dropped. */
static void web_client_on_turn(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval limit = clock_timeval(LIMIT_WEB_US);
    struct web_client *client = arg;

    (void)fd;
    /* The client that gets 504 has LIMIT_WEB_US once more to take this answer. */
    if ((what & EV_TIMEOUT) && client->state == WAITING && !event_add(client->late, &limit))
        web_reply(client->web, client->ask, 504,
                  "the driver has not answered in time; the page will show whether it was done\n");
    else if (what & EV_TIMEOUT)
        web_client_free(client);
    else
        web_client_send(client);
}

/* Called when connections have come: accepts them. If there are clients_max clients, the oldest is
 * dropped. Also called when PAUSE_US is over, in which nothing was accepted; the events then begin
 * again. */
static void web_on_arrival(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval limit = clock_timeval(LIMIT_WEB_US), pause = clock_timeval(PAUSE_US);
    struct web *web = arg;
    struct web_client *client;
    int accepted = 0, kept = KEPT_BYTES;

    (void)fd;
    if (what & EV_TIMEOUT) {
        if (event_add(web->arrival, NULL))
            event_add(web->pause, &pause);
        return;
    }
    for (int i = 0; i < ACCEPTS && accepted >= 0; i++) {
        accepted = accept4(web->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted < 0)
            break;
        client = mem_zalloc(sizeof(*client));
        if (!client) {
            close(accepted);
            continue;
        }
        setsockopt(accepted, SOL_SOCKET, SO_SNDBUF, &kept, sizeof(kept));
        while (web->client_count >= web->ops->clients_max)
            web_client_free(CONTAINER_OF(web->clients.next, struct web_client, link));
        client->web = web;
        client->fd = accepted;
        buf_init(&client->head, LIMIT_WEB_HEAD_BYTES + READ_SIZE);
        buf_init(&client->answer, LIMIT_LIVE_BYTES + READ_SIZE);
        list_append(&web->clients, &client->link);
        web->client_count++;
        client->input =
            event_new(web->base, accepted, EV_READ | EV_PERSIST, web_client_on_input, client);
        client->output = event_new(web->base, accepted, EV_WRITE, web_client_on_turn, client);
        client->late = event_new(web->base, -1 /* a timer */, 0, web_client_on_turn, client);
        if (!client->input || !client->output || !client->late || event_add(client->late, &limit) ||
            event_add(client->input, NULL))
            web_client_free(client);
    }
    /* Without a free descriptor the connection that waits would wake the loop again and again, so
     * none is accepted for PAUSE_US. */
    if (accepted < 0 &&
        (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) &&
        !event_add(web->pause, &pause))
        event_del(web->arrival);
}

/* ---- the server ----------------------------------------------------------------------------- */

/* Reads "PORT" or "ADDRESS:PORT"; without an address the port is on 127.0.0.1, so that only this
 * machine can connect. */
int web_place(const char *option, const char *text, struct address *ret_address,
              struct hvd_err *err)
{
    static const char loopback[] = "127.0.0.1";
    const char *colon = strrchr(text, ':');
    const char *digits = colon ? colon + 1 : text;
    bool alone = !colon || colon == text;
    struct hvd_err why;
    uint64_t port;

    if (text_parse_u64((struct span){ digits, strlen(digits) }, 0, UINT16_MAX, "the port", &port,
                       &why) ||
        address_make(alone ? loopback : text, alone ? strlen(loopback) : (size_t)(colon - text),
                     (uint16_t)port, ret_address, &why))
        return err_set(err, HVD_E_INVAL, "%s %s: %s; write 127.0.0.1:9464", option, text, why.text);
    return 0;
}

/* Makes a server that listens at `place`. port 0: the kernel chooses a port; web_address says
 * which. */
int web_create(struct event_base *base, const struct address *place, const struct web_ops *ops,
               void *arg, struct web **ret_web, struct hvd_err *err)
{
    struct address bound = { .length = sizeof(bound.at) };
    struct web *web = mem_zalloc(sizeof(*web));
    char text[ADDRESS_TEXT_MAX];
    int on = 1, rc = 0;

    if (!web)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    web->base = base;
    web->ops = ops;
    web->arg = arg;
    list_init(&web->clients);
    list_init(&web->streams);
    web->fd = socket(place->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (web->fd < 0 || setsockopt(web->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
        bind(web->fd, (const struct sockaddr *)&place->at, place->length) ||
        listen(web->fd, (int)ops->clients_max) ||
        getsockname(web->fd, (struct sockaddr *)&bound.at, &bound.length))
        rc = err_set(err, errno == EADDRINUSE ? HVD_E_BUSY : HVD_E_IO,
                     "%s %s: the driver cannot listen there: %s; name another port", ops->option,
                     address_show(place, text), strerror(errno));
    if (!rc) {
        address_show(&bound, web->address);
        web->arrival = event_new(base, web->fd, EV_READ | EV_PERSIST, web_on_arrival, web);
        web->pause = event_new(base, -1 /* a timer */, 0, web_on_arrival, web);
        if (!web->arrival || !web->pause || event_add(web->arrival, NULL))
            rc = err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    }
    if (rc) {
        web_free(web);
        return rc;
    }
    *ret_web = web;
    return 0;
}

/* Closes all connections. Clients that wait for the core get the status 503, if their connection
 * takes it at once. */
void web_free(struct web *web)
{
    if (!web)
        return;
    LIST_EACH_SAFE (it, after, &web->clients) {
        struct web_client *client = CONTAINER_OF(it, struct web_client, link);

        if (client->state == WAITING) {
            web_reply(web, client->ask, 503, "the driver has ended; the next one may know more\n");
            (void)send(client->fd, buf_text(&client->answer), client->answer.length,
                       MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        web_client_free(client);
    }
    LIST_EACH_SAFE (it, after, &web->streams)
        web_client_free(CONTAINER_OF(it, struct web_client, link));
    if (web->arrival)
        event_free(web->arrival);
    if (web->pause)
        event_free(web->pause);
    if (web->fd >= 0)
        close(web->fd);
    mem_free(web);
}

bool web_has_room(const struct web *web)
{
    return web->stream_count < web->ops->streams_max;
}

bool web_has_streams(const struct web *web)
{
    return web->stream_count > 0;
}

/* Sends a message to all streams. A stream that has not taken the message before gets no new one,
 * and its timer runs on. */
void web_publish(struct web *web, const char *text, size_t length)
{
    const struct timeval limit = clock_timeval(LIMIT_WEB_US);

    LIST_EACH_SAFE (it, after, &web->streams) {
        struct web_client *client = CONTAINER_OF(it, struct web_client, link);

        if (client->answer.length)
            continue;
        if (buf_append(&client->answer, text, length) || event_add(client->late, &limit))
            web_client_free(client);
        else
            web_client_send(client);
    }
}

const char *web_address(const struct web *web)
{
    return web->address;
}
