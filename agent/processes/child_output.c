/*
 * child_output.c: the output of workers, read with back-pressure. Called by the event loop when a
 * pipe is readable, and by child_end.c for the rest when a worker has ended. Invariants: bytes that
 * were read are handed on in order, or counted in `dropped` and reported later; one iteration of
 * the event loop reads a bounded number of bytes.
 */
#include "agent/processes/child_internal.h"

#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The most bytes that are read from all workers together in one iteration of the event loop: four
 * times the most of one read. */
#define BUDGET_BYTES (4 * sizeof((struct children *)NULL)->chunk)

/* A worker that prints many short lines must not wake the agent for each line: after a read of less
 * than SMALL_BYTES the agent pauses, while the pipe fills. */
#define SMALL_BYTES ((size_t)16 * 1024)
#define PAUSE_US    (2 * TIME_MS)
#define PIPE_BYTES  (256 * 1024) /* size of a pipe, if the kernel grants it */

/* Hands bytes of output on to the owner, and notes whether they end in the middle of a line. */
static void output_deliver(struct child_output *output, const char *text, size_t length)
{
    const struct children *children = output->child->children;
    const struct msg_bytes data = { (const uint8_t *)text, length };

    children->ops->output(children->arg, output->child->incarnation, output->stream, data);
    output->mid_line = text[length - 1] != '\n';
}

/* If bytes were dropped, puts a line into the output that says how many. An unfinished line is
 * ended first. */
static void output_say_dropped(struct child_output *output)
{
    char line[128];
    int length;

    if (!output->dropped)
        return;
    length = snprintf(line, sizeof(line),
                      "%s[%" PRIu64
                      " bytes of output were left out here: the driver could not take them]\n",
                      output->mid_line ? "\n" : "", output->dropped);
    output->dropped = 0;
    output_deliver(output, line, (size_t)length);
}

/* Reads a pipe once, at most `most` bytes, and hands the bytes on; if `drop`, counts them and
 * throws them away. Returns the number of bytes; 0: the pipe has no bytes now, or was closed here
 * because no process can write to it any more. */
static size_t output_read(struct child_output *output, size_t most, bool drop)
{
    struct children *children = output->child->children;
    size_t kept;
    ssize_t got;

    if (most > sizeof(children->chunk))
        most = sizeof(children->chunk);
    got = TEMP_FAILURE_RETRY(read(output->fd, children->chunk, most));
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got <= 0) {
        output_say_dropped(output);
        child_output_close(output);
        return 0;
    }
    /* The last bytes are kept for children_remains. Without memory they have a gap. */
    kept = (size_t)got < LIMIT_STDERR_TAIL_BYTES ? (size_t)got : LIMIT_STDERR_TAIL_BYTES;
    if (output->tail.length + kept > LIMIT_STDERR_TAIL_BYTES)
        buf_consume(&output->tail, output->tail.length + kept - LIMIT_STDERR_TAIL_BYTES);
    (void)!buf_append(&output->tail, children->chunk + got - kept, kept);
    if (drop) {
        output->dropped += (uint64_t)got;
        return (size_t)got;
    }
    output_say_dropped(output);
    output_deliver(output, (const char *)children->chunk, (size_t)got);
    return (size_t)got;
}

/* A pipe is readable, or its pause is over (EV_TIMEOUT). Bytes that do not fit into this
 * iteration's budget stay in the pipe for the next iteration. epoll reports the pipes in turn, so
 * the pipes that came last in one iteration come first in the next. */
static void output_on_ready(evutil_socket_t fd, short what, void *arg)
{
    struct child_output *output = arg;
    struct children *children = output->child->children;
    size_t got;

    (void)fd;
    if (what & EV_TIMEOUT) {
        if (output->fd >= 0 && (!children->held || children->dropping))
            (void)event_add(&output->ready, NULL);
        return;
    }
    child_started(output->child);
    if (output->fd < 0 || (children->held && !children->dropping))
        return; /* a callback of child_started has closed the pipe or stopped the reading */
    /* the first read of this iteration: the budget is refilled at the end of the iteration */
    if (children->budget == BUDGET_BYTES)
        event_active(&children->refill, EV_TIMEOUT, 0);
    if (children->budget == 0)
        return;
    got = output_read(output, children->budget, children->dropping);
    children->budget -= got;
    if (output->fd >= 0 && got < SMALL_BYTES) {
        (void)event_del(&output->ready);
        child_timer(&output->pause, PAUSE_US);
    }
}

/* Refills the budget. libevent runs this event after all other events of the iteration, so the new
 * budget is for the next iteration. */
static void output_on_refill(evutil_socket_t fd, short what, void *arg)
{
    struct children *children = arg;

    (void)fd;
    (void)what;
    children->budget = BUDGET_BYTES;
}

/* Starts or stops the reading of all pipes; the bytes are read later, by output_on_ready. */
static void output_set_reading(struct children *children, bool read)
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

/* The driver has taken no output for CHILDREN_PATIENCE_US. From now on the pipes are read again,
 * and their bytes are thrown away, so that workers that print do not wait for ever. */
static void output_on_patience(evutil_socket_t fd, short what, void *arg)
{
    struct children *children = arg;

    (void)fd;
    (void)what;
    children->dropping = true;
    output_set_reading(children, true);
}

/* Stops the reading of all output (`hold`), because the driver takes none now, or begins it again.
 * After patience_us of a hold, output_on_patience lets output be dropped. */
void children_hold_output(struct children *children, bool hold)
{
    if (children->held == hold)
        return;
    children->held = hold;
    children->dropping = false;
    child_event_off(&children->patience);
    output_set_reading(children, !hold);
    if (hold)
        child_timer(&children->patience, children->patience_us);
}

/* Makes the two pipes for a worker's output. The caller gets the writing ends, for the worker, and
 * closes them. */
int child_output_open(struct child *child, int ret_writers[STREAM_COUNT], struct hvd_err *err)
{
    const struct children *children = child->children;
    int writers[STREAM_COUNT] = { -1, -1 };
    int rc = 0;

    for (int i = 0; !rc && i < STREAM_COUNT; i++) {
        struct child_output *output = &child->output[i];
        int fds[2];

        output->child = child;
        output->stream = (enum msg_stream)i;
        buf_init(&output->tail, LIMIT_STDERR_TAIL_BYTES);
        if (pipe2(fds, O_CLOEXEC)) {
            rc = err_set(err, HVD_E_LIMIT,
                         "a worker's output: no pipe can be made: %s; raise ulimit -n",
                         strerror(errno));
            break;
        }
        output->fd = fds[0];
        writers[i] = fds[1];
        (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
        /* the call may fail: the pipe then keeps its size */
        (void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES);
        evtimer_assign(&output->pause, children->base, output_on_ready, output);
        event_assign(&output->ready, children->base, fds[0], EV_READ | EV_PERSIST, output_on_ready,
                     output);
        /* The event is added even while output is held, so that no memory is needed when reading
         * starts. */
        if (event_add(&output->ready, NULL))
            rc = err_set(err, HVD_E_NOMEM,
                         "a worker's output: no memory to read it; free memory on this host");
        else if (children->held && !children->dropping)
            (void)event_del(&output->ready);
    }
    for (int i = 0; rc && i < STREAM_COUNT; i++) {
        if (writers[i] >= 0)
            close(writers[i]);
    }
    if (!rc)
        memcpy(ret_writers, writers, sizeof(writers));
    return rc;
}

/* Hands on the bytes that the pipes hold at this moment, also while output is held: these bytes are
 * few, and often say why the worker ended. The agent does not wait for output that an orphan writes
 * later. */
void child_output_finish(struct child *child)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        struct child_output *output = &child->output[i];
        size_t more = 1;
        int there = 0;

        if (output->fd >= 0 && ioctl(output->fd, FIONREAD, &there))
            there = 0;
        for (size_t rest = (size_t)there; output->fd >= 0 && rest > 0 && more > 0; rest -= more)
            more = output_read(output, rest, false); /* false: the bytes are handed on */
        child_output_close(output);
    }
}

/* Prepares the two events that belong to the output of all workers; none of them fires yet. */
void child_output_init(struct children *children)
{
    children->budget = BUDGET_BYTES;
    children->patience_us = CHILDREN_PATIENCE_US;
    evtimer_assign(&children->patience, children->base, output_on_patience, children);
    evtimer_assign(&children->refill, children->base, output_on_refill, children);
}
