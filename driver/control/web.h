/*
 * web.h: a small server for HTTP/1 in the driver's loop, of which --metrics and --page each have
 * one. It answers GET and HEAD, and POST if its owner wants it. Its owner makes the answers.
 *
 * The server never waits. A connection carries one request and ends at the latest after
 * LIMIT_WEB_US, also if the client sends or reads nothing. Of `clients_max` connections the
 * oldest one leaves for a new one. A request may become a stream, which stays; a stream that has
 * not taken a message within LIMIT_WEB_US is dropped.
 */
#ifndef DRIVER_CONTROL_WEB_H
#define DRIVER_CONTROL_WEB_H

#include "driver/control/http_head.h"
#include "wire/address.h"

struct event_base;
struct web;
struct web_client;

struct web_ops {
    const char *option; /* "--metrics" */
    const char *usage;  /* a line for a client whose request is no GET of HTTP/1 */
    size_t clients_max; /* connections that are no streams */
    size_t streams_max;
    bool posts; /* false: a POST is refused */
    /* Answers a request with one of the calls below, and returns what that call has returned. */
    int (*answer)(void *arg, struct web_client *client, const struct http_head *head);
};

/* Reads the place of an option: "9464", "127.0.0.1:9464" or "[::1]:0". Without an address it is
 * the loopback. HVD_E_INVAL. */
int web_place(const char *option, const char *text, struct address *ret_address,
              struct hvd_err *err) MUST_CHECK;

/* Listens. `ops` is borrowed while the server lives. HVD_E_NOMEM, HVD_E_BUSY, HVD_E_IO. */
int web_create(struct event_base *base, const struct address *place, const struct web_ops *ops,
               void *arg, struct web **ret_web, struct hvd_err *err) MUST_CHECK;

/* Closes all connections. */
void web_free(struct web *web);

/* Returns "127.0.0.1:9464". */
const char *web_address(const struct web *web);

/* Answers with a body of a type. `headers` are whole lines, or "". Returns 0 or HVD_E_NOMEM. */
int web_answer(struct web_client *client, int status, const char *type, const char *headers,
               const char *body, size_t length) MUST_CHECK;
int web_answer_text(struct web_client *client, int status, const char *text) MUST_CHECK;

/* The answer that was made waits for web_reply, which sends it if the status is 200, else another
 * one. Without a reply within LIMIT_WEB_US the client is told so (504), and at the end of the
 * server 503. `ask` is not 0, and no other client of this server has it. */
void web_wait(struct web_client *client, uint64_t ask);
/* No client waits for this ask: nothing happens. */
void web_reply(struct web *web, uint64_t ask, int status, const char *text);

/* Begins a stream of server-sent events with a first message; if there is no room, the answer is
 * 503. Returns 0 or HVD_E_NOMEM. */
int web_stream(struct web_client *client, const char *text, size_t length) MUST_CHECK;
bool web_has_room(const struct web *web);
bool web_has_streams(const struct web *web);

/* Sends a message to each stream that has taken the one before. */
void web_publish(struct web *web, const char *text, size_t length);

#endif
