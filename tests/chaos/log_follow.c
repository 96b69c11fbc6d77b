/*
 * log_follow.c: reads events.log while the driver writes it, woken by inotify, so that a fault can
 * strike at a known moment of a change.
 */
#include "tests/chaos/log_follow.h"

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
#define TAIL_BYTES 65536 /* the last line is searched in this many bytes at the end of the file */

int log_follow_open(struct log_follow *follow, const char *path, struct hvd_err *err)
{
    int rc = 0;

    *follow = (struct log_follow){ .fd = open(path, O_RDONLY | O_CLOEXEC),
                                   .notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK) };
    if (follow->fd < 0 || follow->notify < 0 ||
        inotify_add_watch(follow->notify, path, IN_MODIFY) < 0 ||
        lseek(follow->fd, 0, SEEK_END) < 0)
        rc = err_set(err, HVD_E_IO, "%s: %s", path, strerror(errno));
    if (rc)
        log_follow_close(follow);
    return rc;
}

void log_follow_close(struct log_follow *follow)
{
    if (follow->fd >= 0)
        close(follow->fd);
    if (follow->notify >= 0)
        close(follow->notify);
    follow->fd = follow->notify = -1;
}

/* Reads up to the end of a line, byte by byte. true: the line is complete. */
static bool next_line(struct log_follow *follow)
{
    char byte;

    while (read(follow->fd, &byte, 1) == 1) {
        if (byte == '\n') {
            follow->line[follow->length] = '\0';
            follow->length = 0;
            return true;
        }
        if (follow->length < sizeof(follow->line) - 1)
            follow->line[follow->length++] = byte;
    }
    return false;
}

static bool await_news(const struct log_follow *follow, int64_t deadline_us)
{
    struct pollfd news = { .fd = follow->notify, .events = POLLIN };
    int64_t left_us = deadline_us - clock_now_us();
    char drained[NEWS_BYTES];

    if (left_us <= 0)
        return false;
    if (poll(&news, 1, (int)(left_us / TIME_MS) + 1) > 0)
        while (read(follow->notify, drained, sizeof(drained)) > 0)
            continue;
    return true;
}

bool log_follow_await(struct log_follow *follow, const char *text, int64_t deadline_us)
{
    do {
        while (next_line(follow))
            if (strstr(follow->line, text))
                return true;
    } while (await_news(follow, deadline_us));
    return false;
}

bool log_follow_last(const char *path, const char *text, char line[LOG_FOLLOW_LINE])
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
        snprintf(line, LOG_FOLLOW_LINE, "%.*s", (int)strcspn(found, "\t\n"), found);
    return found != NULL;
}
