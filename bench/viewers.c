/*
 * viewers.c: the connections of bench_watch to the driver of its job. A viewer asks for the stream
 * of events and reads it as fast as it comes; a scrape reads one whole answer.
 */
#include "bench/viewers.h"

#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCRAPE_EVERY_US   TIME_S
#define POLL_MS           100
#define ANSWER_PATIENCE_S 30

/* Opens a connection to ADDRESS:PORT, and asks for the path. Returns the descriptor, or -1. */
static int viewers_ask(const char *address, const char *path, struct hvd_err *err)
{
    const struct timeval patience = { .tv_sec = ANSWER_PATIENCE_S };
    struct sockaddr_in to = { .sin_family = AF_INET };
    const char *colon = strrchr(address, ':');
    char host[64], request[256];
    uint64_t port;
    int fd, length;

    snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - address) : 0, address);
    if (!colon || inet_pton(AF_INET, host, &to.sin_addr) != 1 ||
        text_parse_u64((struct span){ colon + 1, strlen(colon + 1) }, 1, UINT16_MAX, address, &port,
                       err)) {
        (void)err_set(err, HVD_E_INVAL, "%s: not ADDRESS:PORT", address);
        return -1;
    }
    to.sin_port = htons((uint16_t)port);
    length = snprintf(request, sizeof(request),
                      "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, address);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
        connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
        send(fd, request, (size_t)length, MSG_NOSIGNAL) != length) {
        (void)err_set(err, HVD_E_IO, "http://%s%s: %s", address, path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

/* Reads the metrics once. */
static int viewers_scrape(struct viewers *viewers)
{
    static const char ok[] = "HTTP/1.1 200 ";
    char buffer[16384], head[sizeof(ok)] = "";
    size_t count = 0;
    ssize_t got;
    int fd = viewers_ask(viewers->metrics, "/metrics", &viewers->err);

    if (fd < 0)
        return HVD_E_IO;
    while ((got = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
        if (!count)
            snprintf(head, sizeof(head), "%.*s", (int)got, buffer);
        count += (size_t)got;
    }
    close(fd);
    if (got || strcmp(head, ok) != 0)
        return err_set(&viewers->err, HVD_E_IO, "http://%s/metrics: %s", viewers->metrics,
                       got ? strerror(errno) : head);
    viewers->scrapes++;
    return 0;
}

/* Reads what has come for the viewer `i`. */
static int viewers_read(struct viewers *viewers, size_t i)
{
    char buffer[65536];
    ssize_t got = recv(viewers->fds[i], buffer, sizeof(buffer), MSG_DONTWAIT);

    if (got > 0) {
        viewers->bytes[i] += (uint64_t)got;
        return 0;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return err_set(&viewers->err, HVD_E_IO, "viewer %zu was cut off: %s", i,
                   got ? strerror(errno) : "end of the stream");
}

static void *viewers_run(void *arg)
{
    struct viewers *viewers = arg;
    struct pollfd polled[VIEWERS_MAX];
    int rc = 0;

    for (size_t i = 0; i < viewers->count; i++)
        polled[i] = (struct pollfd){ .fd = viewers->fds[i], .events = POLLIN };
    while (!rc && !viewers->stop) {
        int ready = poll(polled, viewers->count, POLL_MS);

        for (size_t i = 0; !rc && ready > 0 && i < viewers->count; i++)
            rc = polled[i].revents ? viewers_read(viewers, i) : 0;
        if (!rc && clock_now_us() >= viewers->scrape_at_us) {
            rc = viewers_scrape(viewers);
            viewers->scrape_at_us += SCRAPE_EVERY_US;
        }
    }
    viewers->failed = rc != 0;
    return NULL;
}

static void viewers_close(struct viewers *viewers)
{
    while (viewers->count > 0)
        close(viewers->fds[--viewers->count]);
}

int viewers_begin(struct viewers *viewers, const char *page, const char *metrics, size_t count,
                  struct hvd_err *err)
{
    int rc = 0;

    memset(viewers, 0, sizeof(*viewers));
    snprintf(viewers->page, sizeof(viewers->page), "%s", page);
    snprintf(viewers->metrics, sizeof(viewers->metrics), "%s", metrics);
    viewers->scrape_at_us = clock_now_us();
    while (!rc && viewers->count < count && viewers->count < VIEWERS_MAX) {
        int fd = viewers_ask(page, "/live", err);

        if (fd < 0)
            rc = HVD_E_IO;
        else
            viewers->fds[viewers->count++] = fd;
    }
    if (!rc && thread_start(&viewers->thread, 0, viewers_run, viewers))
        rc = err_set(err, HVD_E_LIMIT, "no thread for the viewers can be had; raise ulimit -u");
    if (rc)
        viewers_close(viewers);
    return rc;
}

int viewers_end(struct viewers *viewers, struct hvd_err *err)
{
    int rc = 0;

    viewers->stop = true;
    thread_join(viewers->thread);
    if (viewers->failed)
        rc = err_set(err, HVD_E_IO, "%s", viewers->err.text);
    for (size_t i = 0; !rc && i < viewers->count; i++)
        if (!viewers->bytes[i])
            rc = err_set(err, HVD_E_IO, "viewer %zu has got nothing from http://%s/live", i,
                         viewers->page);
    if (!rc && !viewers->scrapes)
        rc = err_set(err, HVD_E_IO, "http://%s/metrics was not read once", viewers->metrics);
    viewers_close(viewers);
    return rc;
}
