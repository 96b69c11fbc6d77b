/*
 * children.c: the processes of all workers: started, signalled, joined, freed. Called by the event
 * loop (agent/io) only; the events that arrive here are passed to the other files behind
 * children.h. Invariant: workers are children of this process, which is a subreaper, so a process
 * that a worker leaves behind becomes a child of this process, too, and can be found.
 */
#include "agent/processes/child_internal.h"

#include "agent/processes/tree.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long the agent waits for the end of a wrapper when the worker below it has ended by itself:
 * the last output may still be on its way through the wrapper ("python train.py | tee log"). */
#define LAST_WORDS_US (100 * TIME_MS)
/* How long children_free waits for the end of processes: longer than the kernel needs to end a
 * process, unless a disk does not answer. */
#define FREE_PATIENCE_US (30 * TIME_S)
#define FREE_LOOK_MS     2    /* the wait between two looks whether they have ended */
#define PARENTS          1024 /* longest chain of parents that is followed */

/* A futex has lost its owner (EV_READ), a child has ended (EV_SIGNAL), or a sweep is due
 * (EV_TIMEOUT). */
static void children_on_event(evutil_socket_t fd, short what, void *arg)
{
    eventfd_t ignored; /* the value does not matter, because every worker is checked */

    if (what & EV_READ) {
        (void)eventfd_read(fd, &ignored);
        child_lives_check(arg);
        return;
    }
    child_reap_all(arg);
    if (what & EV_TIMEOUT)
        orphans_sweep(arg);
}

/* Makes the watch over worker processes. This process becomes a subreaper: processes that lose
 * their parent become its children, so that it can find and kill them. */
int children_create(struct event_base *base, const struct children_ops *ops, void *arg,
                    struct children **ret_children, struct hvd_err *err)
{
    struct children *children = mem_zalloc(sizeof(*children));

    if (!children)
        return err_set(err, HVD_E_NOMEM,
                       "the workers' processes: no memory to watch them; free memory on this host");
    children->base = base;
    children->ops = ops;
    children->arg = arg;
    children->last_words_us = LAST_WORDS_US;
    list_init(&children->all);
    children->life_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (children->life_fd < 0) {
        mem_free(children);
        return err_set(
            err, HVD_E_LIMIT,
            "the workers' processes: no file descriptor is left to watch them: %s; raise ulimit -n",
            strerror(errno));
    }
    evsignal_assign(&children->child_signal, base, SIGCHLD, children_on_event, children);
    event_assign(&children->life_ready, base, children->life_fd, EV_READ | EV_PERSIST,
                 children_on_event, children);
    evtimer_assign(&children->sweep, base, children_on_event, children);
    child_output_init(children);
    if (event_add(&children->child_signal, NULL) || event_add(&children->life_ready, NULL)) {
        children_free(children);
        return err_set(err, HVD_E_NOMEM,
                       "the workers' processes: no memory to watch them; free memory on this host");
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    *ret_children = children;
    return 0;
}

/* Kills all processes of all workers, and waits for their end, for FREE_PATIENCE_US at most. */
void children_free(struct children *children)
{
    int64_t until_us = clock_now_us() + FREE_PATIENCE_US;

    if (!children)
        return;
    LIST_EACH (it, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        child->state = CHILD_OVER; /* no callback is called any more */
        orphans_doom(child);
    }
    for (int i = 1; clock_now_us() < until_us; i++) {
        child_reap_all(children);
        /* every 8th time, because a look for orphans reads all of /proc */
        if (orphans_gone(children, i % 8 == 0))
            break;
        (void)poll(NULL, 0, FREE_LOOK_MS);
    }
    LIST_EACH_SAFE (it, after, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        if (!child->reaped)
            log_error(WORKER,
                      "incarnation %" PRIu64
                      ": process %d of this worker has not ended after SIGKILL; it may hang in the "
                      "kernel and still hold its GPU: look at it with ps, or restart the host; the "
                      "agent stops waiting for the process",
                      child->incarnation, (int)child->pid);
        child->reaped = true;
        child_free(child);
    }
    child_event_off(&children->patience);
    child_event_off(&children->refill);
    child_event_off(&children->child_signal);
    child_event_off(&children->life_ready);
    child_event_off(&children->sweep);
    close(children->life_fd);
    mem_free(children);
}

/* Starts the program of a LAUNCH. The fork is done on return; `spawned` or `spawn_failed` says
 * later whether the program runs. */
void children_spawn(struct children *children, const struct msg *launch, const char *const *env)
{
    const struct msg_launch *wanted = &launch->u.launch;
    struct child *child = mem_zalloc(sizeof(*child));
    const char **argv = NULL;
    int writers[STREAM_COUNT];
    struct hvd_err err = { 0 };
    int rc;

    ASSERT(launch->type == MSG_LAUNCH && !child_find(children, launch->incarnation));
    if (!child) {
        children->ops->spawn_failed(children->arg, launch->incarnation, HVD_E_NOMEM,
                                    "no memory to start the worker; free memory on this host");
        return;
    }
    child->children = children;
    child->incarnation = launch->incarnation;
    child->reaped = true; /* no process to reap exists yet */
    child->report_fd = child->watch_fd = child->joined.fd = child->page_fd = -1;
    for (int i = 0; i < STREAM_COUNT; i++)
        child->output[i].fd = -1;
    list_append(&children->all, &child->link);

    rc = life_page_make(child->incarnation, &child->page, &child->page_fd, &err);
    if (!rc)
        argv = mem_zalloc_array(wanted->argv.count + 1, sizeof(*argv));
    if (!rc && !argv)
        rc = err_set(&err, HVD_E_NOMEM, "no memory to start the worker; free memory on this host");
    for (size_t i = 0; argv && i < wanted->argv.count; i++)
        argv[i] = wanted->argv.items[i];
    if (!rc)
        rc = child_output_open(child, writers, &err);
    /* Starts the program with pipes for its output. The result comes with the report. */
    if (!rc) {
        const struct process_spec spec = {
            .argv = argv,
            .envp = env,
            .cwd = wanted->cwd && *wanted->cwd ? wanted->cwd : NULL,
            .in = -1,
            .out = writers[STREAM_STDOUT],
            .err = writers[STREAM_STDERR],
            .group = true,
            .dies_with_us = SIGKILL,
            .plain_priority = true,
        };

        rc = process_start(&spec, &child->pid, &child->report_fd, &err);
        close(spec.out);
        close(spec.err);
    }
    mem_free(argv);
    if (rc) {
        child_free(child);
        children->ops->spawn_failed(children->arg, launch->incarnation, rc, err.text);
        return;
    }
    child->reaped = false;
    child_end_init(child);
    if (event_add(&child->report_ready, NULL))
        child_started(child); /* no memory for the event: the report is awaited here */
}

/* Sends SIGTERM to the process group of a worker that has not ended. */
void children_term(struct children *children, uint64_t incarnation)
{
    const struct child *child = child_find(children, incarnation);

    if (child && kill(-child->pid, SIGTERM))
        (void)kill(child->pid, SIGTERM); /* the process has left its own group */
}

/* Sends SIGKILL to all processes of a worker that has not ended. */
void children_kill(struct children *children, uint64_t incarnation)
{
    struct child *child = child_find(children, incarnation);

    if (child)
        orphans_doom(child);
}

/* Returns the descriptor of the memory that agent and worker share (life_watch.h); -1: no such
 * worker. The agent sends it with the welcome; the worker then holds the futex in this memory while
 * it lives. */
int children_page(const struct children *children, uint64_t incarnation)
{
    const struct child *child = child_find(children, incarnation);

    return child ? child->page_fd : -1;
}

/* Lists the values that workers have reported in their pages: those of one incarnation, also if
 * that worker is just ending (CHILD_OVER), or with 0 those of all workers that run. The pages are
 * read twice, first to count the values, because most workers have none. A worker may write a value
 * between the two: `room` may then be too small, and the value is left for the next call. */
int children_reports(const struct children *children, uint64_t incarnation, struct arena *arena,
                     struct report_list *ret_reports)
{
    struct report_seen *items = NULL;
    struct report report;
    size_t room = 0, count = 0;

    for (int pass = 0; pass < 2; pass++) {
        LIST_EACH (it, &children->all) {
            const struct child *child = CONTAINER_OF(it, struct child, link);

            if (incarnation ? child->incarnation != incarnation : child->state != CHILD_RUNS)
                continue;
            for (uint32_t i = 0; i < LIMIT_REPORTS; i++) {
                uint64_t said = report_get(&child->page->reports[i], &report);

                if (said && !pass)
                    room++;
                else if (said && count < room)
                    items[count++] = (struct report_seen){ child->incarnation, i, said, report };
            }
        }
        if (!pass && room && !(items = arena_alloc_array(arena, room, sizeof(*items))))
            return HVD_E_NOMEM;
    }
    *ret_reports = (struct report_list){ items, count };
    return 0;
}

/* child_find does not find a worker whose end is being told, so this function looks by itself. */
bool children_remains(const struct children *children, uint64_t incarnation,
                      struct children_remains *ret_remains)
{
    LIST_EACH (it, &children->all) {
        const struct child *child = CONTAINER_OF(it, struct child, link);

        if (child->incarnation != incarnation || !child->page)
            continue;
        recorder_read(&child->page->recorder, &ret_remains->recorded);
        ret_remains->pid = child->joined.pid ? child->joined.pid : child->pid;
        for (int i = 0; i < STREAM_COUNT; i++)
            ret_remains->output[i] =
                (struct msg_bytes){ (const uint8_t *)child->output[i].tail.data,
                                    child->output[i].tail.length };
        ret_remains->dumped =
            child->state == CHILD_OVER && WIFSIGNALED(child->status) && WCOREDUMP(child->status);
        return true;
    }
    return false;
}

/* The process `pid` has said hello as this worker: from now on its end is watched by a pidfd, and
 * by the futex in the worker's page. */
void children_joined(struct children *children, uint64_t incarnation, pid_t pid)
{
    struct child *child = child_find(children, incarnation);
    struct hvd_err err = { 0 };

    if (!child)
        return;
    if (child->joined.pid != pid) {
        child->joined.pid = pid;
        child_joined_watch(child);
    }
    if (child->life.runs && !life_watch_is_over(&child->life))
        /* the futex is watched already: a program that replaced another program (exec) joins
         * again */
        return;
    life_watch_stop(&child->life);
    if (life_watch_start(&child->life, child->page, children->life_fd, &err))
        log_warning(WORKER,
                    "incarnation %" PRIu64
                    ": %s; the agent will notice the end of this worker later",
                    incarnation, err.text);
}

/* true: the process belongs to this worker: the process is the started process, a descendant of
 * that process, a member of that process's group, or was started with this incarnation in its
 * environment. */
bool children_owns(const struct children *children, uint64_t incarnation, pid_t pid)
{
    const struct child *child = child_find(children, incarnation);
    struct process_state state;
    pid_t at = pid;

    if (!child)
        return false;
    for (int i = 0; i < PARENTS && at > 1 && at != getpid(); i++) {
        if (at == child->pid)
            return true;
        if (process_look(at, &state))
            break;
        if (state.group == child->pid)
            return true;
        at = state.parent;
    }
    /* the chain of parents is broken, because one of them has ended: the environment decides */
    return tree_incarnation(pid) == incarnation;
}
