#include "tests/chaos/chronicle.h"

#include "base/time.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEWS_BYTES 4096
#define TAIL_BYTES 65536 /* a last line is looked for in so much of the end */

int chronicle_open(struct chronicle *chronicle, const char *path, struct hvd_err *err)
{
    int rc = 0;

    *chronicle = (struct chronicle){ .fd = open(path, O_RDONLY | O_CLOEXEC),
                                     .notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK) };
    if (chronicle->fd < 0 || chronicle->notify < 0 ||
        inotify_add_watch(chronicle->notify, path, IN_MODIFY) < 0 ||
        lseek(chronicle->fd, 0, SEEK_END) < 0)
        rc = err_set(err, HVD_E_IO, "%s: %s", path, strerror(errno));
    if (rc)
        chronicle_close(chronicle);
    return rc;
}

void chronicle_close(struct chronicle *chronicle)
{
    if (chronicle->fd >= 0)
        close(chronicle->fd);
    if (chronicle->notify >= 0)
        close(chronicle->notify);
    chronicle->fd = chronicle->notify = -1;
}

/* True when a line is whole; byte by byte, as one is written at a time. */
static bool next_line(struct chronicle *chronicle)
{
    char byte;

    while (read(chronicle->fd, &byte, 1) == 1) {
        if (byte == '\n') {
            chronicle->line[chronicle->length] = '\0';
            chronicle->length = 0;
            return true;
        }
        if (chronicle->length < sizeof(chronicle->line) - 1)
            chronicle->line[chronicle->length++] = byte;
    }
    return false;
}

static bool await_news(const struct chronicle *chronicle, int64_t deadline_us)
{
    struct pollfd news = { .fd = chronicle->notify, .events = POLLIN };
    int64_t left_us = deadline_us - clock_now_us();
    char drained[NEWS_BYTES];

    if (left_us <= 0)
        return false;
    if (poll(&news, 1, (int)(left_us / TIME_MS) + 1) > 0)
        while (read(chronicle->notify, drained, sizeof(drained)) > 0)
            continue;
    return true;
}

bool chronicle_await(struct chronicle *chronicle, const char *text, int64_t deadline_us)
{
    do {
        while (next_line(chronicle))
            if (strstr(chronicle->line, text))
                return true;
    } while (await_news(chronicle, deadline_us));
    return false;
}

bool chronicle_last(const char *path, const char *text, char line[CHRONICLE_LINE])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char tail[TAIL_BYTES];
    struct stat stat;
    const char *found = NULL;
    ssize_t got = -1;

    if (fd >= 0 && !fstat(fd, &stat))
        got = pread(fd, tail, sizeof(tail) - 1,
                    stat.st_size >= TAIL_BYTES ? stat.st_size - (TAIL_BYTES - 1) : 0);
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return false;
    tail[got] = '\0';
    for (const char *at = tail; (at = strstr(at, text)) != NULL; at++)
        found = at;
    if (found)
        snprintf(line, CHRONICLE_LINE, "%.*s", (int)strcspn(found, "\n"), found);
    return found != NULL;
}
