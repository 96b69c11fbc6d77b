/*
 * http_server.h: a server of one thread that gives each HTTP request the same answer, or one
 * request after the other the answers of a list. It keeps the last request, and the bodies of all
 * requests.
 */
#ifndef TESTS_LIB_HTTP_SERVER_H
#define TESTS_LIB_HTTP_SERVER_H

#include "base/base.h"

#include <pthread.h>

/* Entries of `answers`: the server reads the request, and does not answer; the server waits for
 * http_server_go, and gives the answer of the next entry. */
#define HTTP_SERVER_HANGS "hangs"
#define HTTP_SERVER_WAITS "waits"

struct http_server {
    const char
        *answer; /* a whole answer with its head; NULL: the server reads, and never answers */
    /* If not NULL: the answer of each request, or one of the words below. After the last entry,
     * which is followed by a NULL, `answer` counts. */
    const char *const *answers;
    char address[64];    /* "127.64.48.57:40001" */
    char request[65536]; /* the last request, head and body */
    size_t length;
    char bodies[65536]; /* the bodies of the requests, one after the other, as far as they fit */
    _Atomic unsigned requests; /* read while the thread runs */
    int fd;
    int stop_fd, go_fd;
    pthread_t thread;
};

/* Starts the thread. `answer` is borrowed until http_server_stop. */
bool http_server_start(struct http_server *server, const char *answer);
void http_server_stop(struct http_server *server);

void http_server_go(struct http_server *server);

/* The same with a list of answers, and after them `answer`. port 0: any; otherwise the port of a
 * server that was stopped. */
bool http_server_start_list(struct http_server *server, const char *const *answers,
                            const char *answer, uint16_t port);

#endif
