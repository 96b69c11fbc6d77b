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

/* The settings of a client. http_client_create copies all texts. */
struct http_config {
    int64_t connect_us;    /* the time limit for connecting, with the TLS handshake */
    int64_t request_us;    /* the time limit of a whole request that sets no limit_us of its own */
    const char *ca_file;   /* NULL: the certificate authorities of the system */
    const char *cert_file; /* the certificate of this client; NULL: none */
    const char *key_file;  /* the key of that certificate; NULL: the key is in cert_file */
    bool use_proxy;        /* follow the variables http_proxy, https_proxy and no_proxy */
    const char *remedy;    /* the end of each error text: "check --store"; NULL: none */
};

/* Called for the next bytes of a request's body: writes at most `room` bytes to `into` and returns
 * their number, or 0 at the end of the body. A negative result is an error code: it ends the
 * request, and http_send returns it. `at`: how many bytes of the body were given before; `at` is 0
 * again when libcurl repeats the request on another connection. */
typedef ptrdiff_t http_give_fn(void *arg, char *into, size_t room, uint64_t at);

/* Called with the next bytes of an answer's body, if the status is 200 to 299. A result other than
 * 0 is an error code: it ends the request, and http_send returns it. */
typedef int http_take_fn(void *arg, const char *bytes, size_t length);

/* Called with each header of an answer. `name` and `value` are valid only during the call; `value`
 * has no end of line. */
typedef void http_header_fn(void *arg, const char *name, const char *value);

/* One request. http_send borrows all pointers. */
struct http_request {
    enum http_method method;
    const char *url;            /* "http://" or "https://" */
    const char *const *headers; /* each is "Name: value" */
    size_t header_count;
    const char *body;       /* the body of the request in memory, if `give` is NULL */
    uint64_t body_length;   /* the length of the request's body, in `body` or from `give` */
    http_give_fn *give;     /* gives the body of the request; NULL: it is in `body` */
    struct buf *body_to;    /* the answer's body is appended here, at most up to body_to->max; NULL:
                               the answer's body is not kept */
    http_take_fn *take;     /* if not NULL, it gets the body of an answer with status 200 to 299 in
                               place of body_to */
    uint64_t take_max;      /* the most bytes that `take` is given */
    bool head_counts;       /* an answer counts as soon as its status has come, also if its body is
                               cut or very long; `body_to` and `take` are NULL */
    http_header_fn *header; /* NULL: no header is wanted */
    void *arg;              /* the first argument of give, take and header */
    int64_t limit_us;       /* the time limit of this request; 0: request_us of the client */
    const char *aws_sigv4;  /* "aws:amz:REGION:s3" signs the request; NULL: no signature */
    const char *user_password; /* "KEY:SECRET" for aws_sigv4, or for basic authentication */
};

struct http_answer {
    long status;            /* 200, 404 ... */
    int64_t retry_after_us; /* the header Retry-After, a time or a date; 0: none, or a past date */
};

int http_client_create(const struct http_config *config, struct http_client **ret_client,
                       struct hvd_err *err) MUST_CHECK;
void http_client_free(struct http_client *client);

/* Called by another thread than the one that uses the client, before it waits for the end of that
 * thread. The request that is being sent, and every later one, fails: http_send returns HVD_E_BUSY.
 */
void http_client_stop(struct http_client *client);

/* Sends the request and waits for the whole answer. Returns 0 for an answer with any status, 404
 * too; the caller judges the status. If the status is not 200 to 299, the answer's body goes into
 * body_to, even when the request has `take`.
 *
 * HVD_E_BUSY: no connection, or no whole answer within the limit; a later request may succeed. With
 * head_counts an answer whose status has come is enough, and the rest of it is not waited for.
 * HVD_E_LIMIT: the answer is longer than body_to or take_max allows. HVD_E_DENIED: the TLS
 * handshake failed. HVD_E_INVAL: the URL or a file of the client cannot be used. After a failure
 * the server may have carried out the request. The error's text begins with the server, and ends
 * with the client's remedy. The text has neither the path of the URL nor a user's name and password
 * in it. */
int http_send(struct http_client *client, const struct http_request *request,
              struct http_answer *ret_answer, struct hvd_err *err) MUST_CHECK;

#endif
