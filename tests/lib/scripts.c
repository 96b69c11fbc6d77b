/*
 * scripts.c: writes the shell scripts that tests of discovery and launch run, and runs the event
 * loop until a line or the end of a script has come.
 */
#include "tests/lib/scripts.h"

#include "base/text.h"
#include "os/clock.h"
#include "os/process.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_US INT64_C(60000000)

const char *scripts_path(const char *folder, const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % ARRAY_SIZE(paths)];

    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

void scripts_put(const char *path, const char *text, mode_t mode)
{
    size_t length = strlen(text);
    char draft[600];
    int fd;

    snprintf(draft, sizeof(draft), "%s.new", path);
    fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    if (fd < 0 || write(fd, text, length) != (ssize_t)length || fchmod(fd, mode) || close(fd) ||
        rename(draft, path))
        abort();
}

const char *scripts_write(const char *folder, const char *name, const char *body)
{
    const char *path = scripts_path(folder, name);
    char text[4096];

    snprintf(text, sizeof(text), "#!/bin/sh\ncd '%s' || exit 99\n%s\n", folder, body);
    scripts_put(path, text, 0700);
    return path;
}

void scripts_say(const char *fifo, const char *text)
{
    size_t length = strlen(text);
    int fd = open(fifo, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, length) != (ssize_t)length || close(fd))
        abort();
}

void scripts_make_fifo(const char *fifo)
{
    if (mkfifo(fifo, 0600))
        abort();
}

void scripts_hear(const char *fifo)
{
    int fd = open(fifo, O_RDONLY | O_CLOEXEC); /* blocks until the FIFO has a writer */
    char byte;

    if (fd < 0 || read(fd, &byte, 1) != 1 || close(fd))
        abort();
}

const char *scripts_read(const char *path)
{
    static char text[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

static void nothing(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
}

/* Runs one iteration of the event loop, with a short time limit. */
static void turn(struct event_base *base)
{
    const struct timeval soon = { .tv_sec = 0, .tv_usec = 20000 };

    if (event_base_once(base, -1, EV_TIMEOUT, nothing, NULL, &soon) ||
        event_base_loop(base, EVLOOP_ONCE) < 0)
        abort();
}

bool scripts_wait(struct event_base *base, const unsigned *count, unsigned was)
{
    int64_t until_us = clock_now_us() + PATIENCE_US;

    while (*count == was && clock_now_us() < until_us)
        turn(base);
    return *count != was;
}

bool scripts_wait_line(struct event_base *base, const char *path)
{
    int64_t until_us = clock_now_us() + PATIENCE_US;

    while (!strchr(scripts_read(path), '\n') && clock_now_us() < until_us)
        turn(base);
    return strchr(scripts_read(path), '\n');
}

bool scripts_gone(const char *path)
{
    const char *text = scripts_read(path);
    struct span number = { text, strcspn(text, "\n") };
    struct pollfd watched = { .events = POLLIN };
    uint64_t pid;
    bool gone;

    if (text_parse_u64(number, 1, INT32_MAX, path, &pid, NULL))
        return false;
    watched.fd = process_watch((pid_t)pid);
    if (watched.fd < 0)
        return errno == ESRCH;
    gone = poll(&watched, 1, (int)(PATIENCE_US / 1000)) == 1;
    close(watched.fd);
    return gone;
}

bool scripts_no_children(void)
{
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}
