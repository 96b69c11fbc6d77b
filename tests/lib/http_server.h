/*
 * http_server.h: a server of one thread that gives each HTTP request the same answer, and keeps the
 * last request.
 */
#ifndef TESTS_LIB_HTTP_SERVER_H
#define TESTS_LIB_HTTP_SERVER_H

#include "base/base.h"

#include <pthread.h>

struct http_server {
    const char
        *answer;      /* a whole answer with its head; NULL: the server reads, and never answers */
    char address[64]; /* "127.64.48.57:40001" */
    char request[65536]; /* the last request, head and body */
    size_t length;
    _Atomic unsigned requests; /* read while the thread runs */
    int fd;
    int stop_fd;
    pthread_t thread;
};

/* Starts the thread. `answer` is borrowed until http_server_stop. */
bool http_server_start(struct http_server *server, const char *answer);
void http_server_stop(struct http_server *server);

#endif
