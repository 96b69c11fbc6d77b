/*
 * client.h: a blocking HTTP client for a thread of its own: each request has a time limit, and each
 * answer a limit on its size. libcurl does the work.
 *
 *     rc = http_client_create(&config, &client, &err);
 *     buf_init(&body, 1 << 20);
 *     const struct http_request get = { .method = HTTP_GET, .url = url, .body_to = &body };
 *     rc = http_send(client, &get, &answer, &err);       answer.status is 200, 404 ...
 *
 * A client keeps its connections open, so many requests to the same server cost one handshake. Only
 * one thread at a time may use a client; any other thread may stop it.
 */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include "base/buf.h"
#include "base/err.h"

struct http_client;

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_PUT, HTTP_POST, HTTP_DELETE };

/* All texts are copied. */
struct http_config {
    int64_t connect_us;    /* the limit until a connection is there, with its TLS handshake */
    int64_t request_us;    /* the limit of a whole request; a request may have a limit of its own */
    const char *ca_file;   /* NULL: the certificate authorities of the system */
    const char *cert_file; /* the certificate of this client; NULL: none */
    const char *key_file;  /* the key of that certificate; NULL: the key is in cert_file */
    bool use_proxy;        /* follow the variables http_proxy, https_proxy and no_proxy */
    const char *remedy;    /* the end of each error text: "check --store"; NULL: none */
};

/* Gives the next bytes of the body of a request: at most `room`, 0 at the end. A negative result
 * ends the request with that code. `at`: the number of bytes that were given before; `at` is 0
 * again when a request is repeated on another connection. */
typedef ptrdiff_t http_give_fn(void *arg, char *into, size_t room, uint64_t at);

/* Takes bytes of the body of an answer whose status is 200 to 299. Another result than 0 ends the
 * request with that code. */
typedef int http_take_fn(void *arg, const char *bytes, size_t length);

/* Takes one header of an answer, without the end of its line. Both texts are borrowed. */
typedef void http_header_fn(void *arg, const char *name, const char *value);

/* All pointers are borrowed during http_send. */
struct http_request {
    enum http_method method;
    const char *url;            /* "http://" or "https://" */
    const char *const *headers; /* "Name: value" */
    size_t header_count;
    const char *body; /* the body in memory, or `give` with its length */
    uint64_t body_length;
    http_give_fn *give;        /* NULL: the body is in `body` */
    struct buf *body_to;       /* takes the answer's body, at most its `max`; NULL: none */
    http_take_fn *take;        /* takes the body of a good answer in place of body_to */
    uint64_t take_max;         /* the most bytes that `take` is given */
    http_header_fn *header;    /* NULL: no header is wanted */
    void *arg;                 /* of give, take and header */
    int64_t limit_us;          /* the time limit of this request; 0: that of the client */
    const char *aws_sigv4;     /* "aws:amz:REGION:s3" signs the request; NULL: no signature */
    const char *user_password; /* "KEY:SECRET" for aws_sigv4, or for basic authentication */
};

struct http_answer {
    long status; /* 200, 404 ... */
};

int http_client_create(const struct http_config *config, struct http_client **ret_client,
                       struct hvd_err *err) MUST_CHECK;
void http_client_free(struct http_client *client);

/* Ends the request that is being sent, and every later one: http_send returns HVD_E_BUSY. Called by
 * another thread, before it waits for the one that uses the client. */
void http_client_stop(struct http_client *client);

/* Sends the request and waits for the whole answer. Returns 0 for an answer with any status; the
 * caller judges the status. A body of another status than 200 to 299 goes into body_to, also when
 * the request has `take`.
 *
 * HVD_E_BUSY: no connection, or no whole answer within the limit; a later request may succeed.
 * HVD_E_LIMIT: the answer is longer than body_to or take_max allows. HVD_E_DENIED: the TLS
 * handshake failed. HVD_E_INVAL: the URL or a file of the client cannot be used. After a failure
 * the server may have carried out the request. Errors name the server, and end with the remedy. */
int http_send(struct http_client *client, const struct http_request *request,
              struct http_answer *ret_answer, struct hvd_err *err) MUST_CHECK;

#endif
