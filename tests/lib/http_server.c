/*
 * http_server.c: the server of http_server.h. Each connection carries one request. The fields of
 * the struct may be read when http_send has returned, because the server has written the answer
 * after it had read the whole request; `bodies` when the server was stopped.
 */
#include "tests/lib/http_server.h"

#include "tests/lib/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Waits until the descriptor is readable. False: the server has to stop. */
static bool server_await(struct http_server *server, int fd)
{
    struct pollfd fds[] = {
        {.fd = fd,               .events = POLLIN},
        { .fd = server->stop_fd, .events = POLLIN}
    };

    while (poll(fds, 2, -1) < 0)
        ;
    return !fds[1].revents;
}

/* Reads a request to its end, which its Content-Length tells. */
static bool server_read(struct http_server *server, int fd)
{
    size_t most = sizeof(server->request) - 1;
    const char *body, *length;
    ssize_t got;

    server->length = 0;
    for (;;) {
        if (!server_await(server, fd) || server->length == most)
            return false;
        got = read(fd, server->request + server->length, most - server->length);
        if (got <= 0)
            return false;
        server->length += (size_t)got;
        server->request[server->length] = '\0';
        body = strstr(server->request, "\r\n\r\n");
        length = strstr(server->request, "Content-Length: ");
        if (body && strlen(body + 4) >= (length ? strtoul(length + 16, NULL, 10) : 0))
            return true;
    }
}

/* Writes the answer. A client that has hung up costs its own connection only. */
static void server_write(int fd, const char *answer)
{
    size_t left = strlen(answer);

    while (left > 0) {
        ssize_t put = send(fd, answer, left, MSG_NOSIGNAL);

        if (put <= 0)
            return;
        answer += put;
        left -= (size_t)put;
    }
}

static void *server_thread(void *arg)
{
    struct http_server *server = arg;
    size_t used = 0;

    while (server_await(server, server->fd)) {
        int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
        bool read_all = server_read(server, fd);
        const char *answer = server->answer, *body;

        if (read_all && server->answers && *server->answers)
            answer = *server->answers++;
        if (answer && !strcmp(answer, HTTP_SERVER_HANGS))
            answer = NULL;
        if (read_all && (body = strstr(server->request, "\r\n\r\n")) != NULL)
            used += (size_t)snprintf(server->bodies + used, sizeof(server->bodies) - used, "%s",
                                     body + 4);
        if (used >= sizeof(server->bodies))
            used = sizeof(server->bodies) - 1;
        server->requests++;
        if (answer && !strcmp(answer, HTTP_SERVER_WAITS) && server_await(server, server->go_fd))
            answer = *server->answers++;
        if (read_all && answer)
            server_write(fd, answer);
        else if (read_all)
            (void)server_await(server, fd); /* until the client hangs up */
        close(fd);
    }
    return NULL;
}

bool http_server_start(struct http_server *server, const char *answer)
{
    return http_server_start_list(server, NULL, answer, 0 /* any port */);
}

bool http_server_start_list(struct http_server *server, const char *const *answers,
                            const char *answer, uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    socklen_t size = sizeof(address);
    int one = 1;

    memset(server, 0, sizeof(*server));
    server->answers = answers;
    server->answer = answer;
    inet_pton(AF_INET, loopback_own(), &address.sin_addr);
    server->stop_fd = eventfd(0, EFD_CLOEXEC);
    server->go_fd = eventfd(0, EFD_CLOEXEC);
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(server->fd, (struct sockaddr *)&address, sizeof(address)) || listen(server->fd, 8) ||
        getsockname(server->fd, (struct sockaddr *)&address, &size))
        return false;
    snprintf(server->address, sizeof(server->address), "%s:%d", loopback_own(),
             ntohs(address.sin_port));
    return !pthread_create(&server->thread, NULL, server_thread, server);
}

void http_server_go(struct http_server *server)
{
    const uint64_t one = 1;

    (void)!write(server->go_fd, &one, sizeof(one));
}

void http_server_stop(struct http_server *server)
{
    const uint64_t one = 1;

    if (!server->thread)
        return;
    (void)!write(server->stop_fd, &one, sizeof(one));
    pthread_join(server->thread, NULL);
    close(server->fd);
    close(server->stop_fd);
    close(server->go_fd);
    server->thread = 0;
}
