#include "agent/io/child.h"

#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Of all workers together, so that a turn of the loop is short whatever they print. */
#define TURN_BYTES (4 * sizeof((struct children *)NULL)->chunk)

/* An agent that is woken for every line of a worker that prints a lot would keep both from their
 * work: after less than a sip it waits a moment, while the pipe holds more. */
#define SIP_BYTES  ((size_t)16 * 1024)
#define SIP_US     (2 * TIME_MS)
#define PIPE_BYTES (256 * 1024)

static void deliver(struct child_output *output, const char *text, size_t length)
{
    const struct children *children = output->child->children;
    const struct msg_bytes data = { (const uint8_t *)text, length };

    children->ops->output(children->arg, output->child->incarnation, output->stream, data);
    output->mid_line = text[length - 1] != '\n';
}

static void say_dropped(struct child_output *output)
{
    char line[128];
    int length;

    if (!output->dropped)
        return;
    length = snprintf(line, sizeof(line),
                      "%s[%" PRIu64 " bytes were left out here: the driver could not take them]\n",
                      output->mid_line ? "\n" : "", output->dropped);
    output->dropped = 0;
    deliver(output, line, (size_t)length);
}

static void close_one(struct child_output *output)
{
    if (output->fd < 0)
        return;
    child_event_off(&output->ready);
    child_event_off(&output->sip);
    close(output->fd);
    output->fd = -1;
}

/* At most `most` bytes, given on or thrown away; 0 when there is nothing more. */
static size_t read_some(struct child_output *output, size_t most, bool drop)
{
    struct children *children = output->child->children;
    ssize_t got;

    if (most > sizeof(children->chunk))
        most = sizeof(children->chunk);
    do
        got = read(output->fd, children->chunk, most);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got <= 0) {
        say_dropped(output);
        close_one(output);
        return 0;
    }
    if (drop) {
        output->dropped += (uint64_t)got;
        return (size_t)got;
    }
    say_dropped(output);
    deliver(output, (const char *)children->chunk, (size_t)got);
    return (size_t)got;
}

/* It stays readable, so that what this turn has no time for comes in the next one. Those who are
 * last in one turn are first then: epoll sees to that. */
static void on_ready(evutil_socket_t fd, short what, void *arg)
{
    struct child_output *output = arg;
    struct children *children = output->child->children;
    size_t got;

    (void)fd;
    (void)what;
    child_started(output->child);
    if (output->fd < 0 || (children->held && !children->dropping))
        return; /* since this turn began */
    if (children->budget == TURN_BYTES)
        event_active(&children->refill, EV_TIMEOUT, 0);
    if (children->budget == 0)
        return;
    got = read_some(output, children->budget, children->dropping);
    children->budget -= got;
    if (output->fd >= 0 && got < SIP_BYTES) {
        (void)event_del(&output->ready);
        child_timer(&output->sip, SIP_US);
    }
}

static void on_sip(evutil_socket_t fd, short what, void *arg)
{
    struct child_output *output = arg;
    const struct children *children = output->child->children;

    (void)fd;
    (void)what;
    if (output->fd >= 0 && (!children->held || children->dropping))
        (void)event_add(&output->ready, NULL);
}

/* Was made active within the turn, behind all that were active already. */
static void on_refill(evutil_socket_t fd, short what, void *arg)
{
    struct children *children = arg;

    (void)fd;
    (void)what;
    children->budget = TURN_BYTES;
}

static void read_all(struct children *children, bool read)
{
    LIST_EACH (it, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        for (int i = 0; i < STREAM_COUNT; i++) {
            struct child_output *output = &child->output[i];

            if (output->fd < 0)
                continue;
            if (read)
                (void)event_add(&output->ready, NULL);
            else
                (void)event_del(&output->ready);
        }
    }
}

static void on_patience(evutil_socket_t fd, short what, void *arg)
{
    struct children *children = arg;

    (void)fd;
    (void)what;
    children->dropping = true;
    read_all(children, true);
}

void children_hold_output(struct children *children, bool hold)
{
    if (children->held == hold)
        return;
    children->held = hold;
    children->dropping = false;
    child_event_off(&children->patience);
    read_all(children, !hold);
    if (hold)
        child_timer(&children->patience, children->patience_us);
}

/* The event is added in any case: later, when it is to be read again, there is memory for that. */
static int open_one(struct child_output *output, int *ret_writer, struct hvd_err *err)
{
    const struct children *children = output->child->children;
    int fds[2];

    if (pipe2(fds, O_CLOEXEC))
        return err_set(err, HVD_E_LIMIT, "a worker's output: %s; raise ulimit -n", strerror(errno));
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES); /* as far as the system allows */
    evtimer_assign(&output->sip, children->base, on_sip, output);
    event_assign(&output->ready, children->base, fds[0], EV_READ | EV_PERSIST, on_ready, output);
    if (event_add(&output->ready, NULL)) {
        close(fds[0]);
        close(fds[1]);
        return err_set(err, HVD_E_NOMEM, "a worker's output: no memory to read it");
    }
    if (children->held && !children->dropping)
        (void)event_del(&output->ready);
    output->fd = fds[0];
    *ret_writer = fds[1];
    return 0;
}

int child_output_open(struct child *child, int ret_writers[STREAM_COUNT], struct hvd_err *err)
{
    int writers[STREAM_COUNT] = { -1, -1 };

    for (int i = 0; i < STREAM_COUNT; i++) {
        struct child_output *output = &child->output[i];
        int rc;

        output->child = child;
        output->stream = (enum msg_stream)i;
        rc = open_one(output, &writers[i], err);
        if (rc) {
            while (i-- > 0)
                close(writers[i]);
            return rc;
        }
    }
    memcpy(ret_writers, writers, sizeof(writers));
    return 0;
}

/* What the pipe holds at this moment, whether output is held or not: it is little, and it says why.
 * What an orphan writes meanwhile is not waited for. */
void child_output_finish(struct child *child)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        struct child_output *output = &child->output[i];
        size_t more = 1;
        int there = 0;

        if (output->fd >= 0 && ioctl(output->fd, FIONREAD, &there))
            there = 0;
        for (size_t rest = (size_t)there; output->fd >= 0 && rest > 0 && more > 0; rest -= more)
            more = read_some(output, rest, false);
    }
    child_output_close(child);
}

void child_output_close(struct child *child)
{
    for (int i = 0; i < STREAM_COUNT; i++)
        close_one(&child->output[i]);
}

void child_output_init(struct children *children)
{
    children->budget = TURN_BYTES;
    children->patience_us = CHILDREN_PATIENCE_US;
    evtimer_assign(&children->patience, children->base, on_patience, children);
    evtimer_assign(&children->refill, children->base, on_refill, children);
}

void child_output_release(struct children *children)
{
    child_event_off(&children->patience);
    child_event_off(&children->refill);
}
