/*
 * web.h: a small server for HTTP/1 in the driver's loop; --metrics and --page have one each. It
 * answers GET and HEAD, and POST if its owner allows it. Its owner makes the answers.
 *
 * The server never waits. A connection carries one request, and ends after LIMIT_WEB_US at the
 * latest, even if the client sends or reads nothing. If there are `clients_max` connections, the
 * oldest is closed for a new one. A request may become a stream, which stays open; a stream that
 * has not taken a message within LIMIT_WEB_US is closed.
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
    /* the text of the answer to a request that is refused before the owner sees it */
    const char *usage;
    size_t clients_max; /* how many connections without streams there may be */
    size_t streams_max; /* how many streams there may be */
    bool posts;         /* false: a POST is refused */
    /* Called for each request: answers it with one of the functions below, and returns the result
     * of that function. */
    int (*answer)(void *arg, struct web_client *client, const struct http_head *head);
};

/* Reads the value of an option, the address of a server: "9464", "127.0.0.1:9464" or "[::1]:0". A
 * port alone is on the loopback address. HVD_E_INVAL. */
int web_place(const char *option, const char *text, struct address *ret_address,
              struct hvd_err *err) MUST_CHECK;

/* Makes a server, which listens at `place`. `ops` is borrowed while the server lives. HVD_E_NOMEM,
 * HVD_E_BUSY, HVD_E_IO. */
int web_create(struct event_base *base, const struct address *place, const struct web_ops *ops,
               void *arg, struct web **ret_web, struct hvd_err *err) MUST_CHECK;

/* Closes all connections. */
void web_free(struct web *web);

/* Returns the address of the server, "127.0.0.1:9464". */
const char *web_address(const struct web *web);

/* Makes the answer to the client's request: a body with its Content-Type (`type`). `headers` are
 * further whole lines, or "". Returns 0 or HVD_E_NOMEM. */
int web_answer(struct web_client *client, int status, const char *type, const char *headers,
               const char *body, size_t length) MUST_CHECK;
/* Makes an answer of plain text. Returns 0 or HVD_E_NOMEM. */
int web_answer_text(struct web_client *client, int status, const char *text) MUST_CHECK;

/* Called after web_answer: the answer that was made waits for web_reply with the number `ask`,
 * which sends it if the status is 200, else another answer. Without a reply within LIMIT_WEB_US the
 * client gets the status 504, and at the end of the server 503. `ask` is not 0, and no other client
 * of this server has it. */
void web_wait(struct web_client *client, uint64_t ask);
/* Sends the answer to the client that waits for `ask`. If no client waits for it, nothing happens.
 */
void web_reply(struct web *web, uint64_t ask, int status, const char *text);

/* Turns the client's request into a stream of server-sent events, and sends it `text`, the first
 * message. If there are streams_max streams, the answer is 503. Returns 0 or HVD_E_NOMEM. */
int web_stream(struct web_client *client, const char *text, size_t length) MUST_CHECK;
/* True: one more stream may begin. */
bool web_has_room(const struct web *web);
/* True: there is at least one stream. */
bool web_has_streams(const struct web *web);

/* Sends a message to each stream that has taken the message before it completely. */
void web_publish(struct web *web, const char *text, size_t length);

#endif
