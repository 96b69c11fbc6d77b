/*
 * child.c: one worker's process: found by its incarnation or pid, known to run, freed. Called by
 * the files above it (README.md has their order). Invariant: `spawned` or `spawn_failed` is called
 * exactly once for each child, before any other callback about the child.
 */
#include "agent/processes/child_internal.h"

#include "base/mem.h"
#include "base/panic.h"
#include "os/clock.h"
#include "os/process.h"

#include <unistd.h>

/* Takes an event out of the event loop, also one that was never prepared (memory of zeros). */
void child_event_off(struct event *event)
{
    if (event_initialized(event))
        (void)event_del(event);
}

/* Makes the timer fire after this time. */
void child_timer(struct event *event, int64_t after_us)
{
    const struct timeval after = clock_timeval(after_us);

    if (event_add(event, &after))
        event_active(event, EV_TIMEOUT, 0); /* no memory for a timer: the event fires at once */
}

/* Returns the child of that incarnation whose end was not told yet; NULL: none. */
struct child *child_find(const struct children *children, uint64_t incarnation)
{
    LIST_EACH (it, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        if (child->incarnation == incarnation && child->state != CHILD_OVER)
            return child;
    }
    return NULL;
}

/* Returns the child whose started process has this pid; NULL: none. The pid of a reaped process may
 * be another process by now, so reaped children are left out. */
struct child *child_find_pid(const struct children *children, pid_t pid)
{
    LIST_EACH (it, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        if (child->pid == pid && !child->reaped)
            return child;
    }
    return NULL;
}

/* Closes the pipes of both output streams of a worker. */
static void child_close_output(struct child *child)
{
    for (int i = 0; i < STREAM_COUNT; i++)
        child_output_close(&child->output[i]);
}

/* Reads from the report pipe of process_start whether the worker's program runs, and tells the
 * owner: spawned or spawn_failed. Called when the report is there. Also called before any other
 * callback about the child, because the event loop may see the child's end or output first. A
 * second call does nothing. */
void child_started(struct child *child)
{
    const struct children *children = child->children;
    struct hvd_err err = { 0 };
    int rc;

    if (child->report_fd < 0)
        return;
    rc = process_report(child->report_fd, &err);
    child_event_off(&child->report_ready);
    close(child->report_fd);
    child->report_fd = -1;
    if (child->state != CHILD_STARTING)
        return; /* children_free has set CHILD_OVER: no callback may be called any more */
    child->state = rc ? CHILD_OVER : CHILD_RUNS;
    if (rc) {
        child_close_output(child);
        children->ops->spawn_failed(children->arg, child->incarnation, rc, err.text);
    } else {
        children->ops->spawned(children->arg, child->incarnation, child->pid);
    }
}

/* Frees a child whose process was reaped. No event of the child fires afterwards. */
void child_free(struct child *child)
{
    int fds[] = { child->report_fd, child->watch_fd, child->joined.fd };

    ASSERT(child->reaped);
    child_close_output(child);
    child_event_off(&child->report_ready);
    child_event_off(&child->watch_ready);
    child_event_off(&child->joined.ready);
    child_event_off(&child->again);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_release(&child->output[i].tail);
    life_watch_stop(&child->life);
    life_page_free(child->page, child->page_fd);
    list_remove(&child->link);
    mem_free(child);
}

/* Closes the pipe of one output stream; a closed one is left as it is. */
void child_output_close(struct child_output *output)
{
    if (output->fd < 0)
        return;
    child_event_off(&output->ready);
    child_event_off(&output->pause);
    close(output->fd);
    output->fd = -1;
}
