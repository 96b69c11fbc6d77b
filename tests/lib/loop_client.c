/*
 * loop_client.c: plain sockets of a test, whose reads turn the event loop of the server that the
 * test asks. Called by tests of servers. A tick wakes the loop often, so a test of a server that
 * says nothing ends after its time limit.
 */
#include "tests/lib/loop_client.h"

#include "base/time.h"
#include "os/clock.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_US (100 * TIME_S)

static void loop_client_on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
}

bool loop_client_init(struct loop_client *client)
{
    const struct timeval often = { .tv_usec = 5000 };

    signal(SIGPIPE, SIG_IGN);
    client->base = event_base_new();
    client->tick =
        client->base ? event_new(client->base, -1, EV_PERSIST, loop_client_on_tick, NULL) : NULL;
    return client->tick && !event_add(client->tick, &often);
}

void loop_client_release(struct loop_client *client)
{
    if (client->tick)
        event_free(client->tick);
    if (client->base)
        event_base_free(client->base);
    *client = (struct loop_client){ .base = NULL };
}

int loop_client_ask(struct loop_client *client, const char *text)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&client->place.at, client->place.length) ||
        send(fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text)) {
        close(fd);
        return -1;
    }
    return fd;
}

const char *loop_client_read(struct loop_client *client, int fd, const char *word)
{
    static char text[8 << 20];
    int64_t until_us = clock_now_us() + PATIENCE_US;
    size_t used = 0;
    ssize_t got = -1;

    text[0] = '\0';
    while (got != 0 && !(word && strstr(text, word)) && clock_now_us() < until_us) {
        event_base_loop(client->base, EVLOOP_ONCE);
        got = recv(fd, text + used, sizeof(text) - 1 - used, MSG_DONTWAIT);
        used += got > 0 ? (size_t)got : 0;
        text[used] = '\0';
        if (got < 0 && errno != EAGAIN)
            break;
    }
    if (!word)
        close(fd);
    return text;
}
