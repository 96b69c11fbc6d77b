/*
 * http_head.h: the head of an HTTP request: the path that it asks for, in which form, and what a
 * POST sends. The bytes come from outside; what no request of ours needs is refused with a status
 * of HTTP.
 */
#ifndef DRIVER_CONTROL_HTTP_HEAD_H
#define DRIVER_CONTROL_HTTP_HEAD_H

#include "base/base.h"

#define HTTP_PATH_MAX  64
#define HTTP_HOST_MAX  256
#define HTTP_TOKEN_MAX 65
#define HTTP_BODY_MAX  512 /* bytes of the body of a POST */

struct http_head {
    bool only_head;   /* the method is HEAD: the answer has no body */
    bool openmetrics; /* the client accepts the format OpenMetrics */
    bool post;
    bool own_origin;             /* the header Origin is missing, or names the server of Host */
    char path[HTTP_PATH_MAX];    /* the path of the request, without the query behind "?" */
    char token[HTTP_TOKEN_MAX];  /* the value of "token" in the query; "": there is none, or it is
                                    too long */
    char host[HTTP_HOST_MAX];    /* the header Host; "": there is none, or it is too long */
    char bearer[HTTP_TOKEN_MAX]; /* the token of "Authorization: Bearer"; "": there is none, or it
                                    is too long */
    char body[HTTP_BODY_MAX + 1];
};

/* Reads the head of a request at the beginning of the bytes, and the body of a POST behind it.
 * posts false: a POST is refused. Returns 0: head and body have not come completely; 200: *ret_head
 * is the request; else the HTTP status with which the request is refused. */
int http_head_read(const char *bytes, size_t length, bool posts, struct http_head *ret_head);

/* True: `host`, the header Host with or without a port, is "localhost" or a numeric address. A page
 * of another site can lead a browser to this port by a host name of that site (DNS rebinding): Host
 * is then that name, and the caller refuses the request. */
bool http_host_is_plain(const char *host);

const char *http_status_text(int status);

#endif
