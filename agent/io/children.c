#include "agent/io/child.h"

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

/* Longer than the kernel takes for anything but a disk that does not answer. */
#define FREE_PATIENCE_US (30 * TIME_S)
#define FREE_LOOK_MS     2

void child_event_off(struct event *event)
{
    if (event_initialized(event))
        (void)event_del(event);
}

void child_timer(struct event *event, int64_t after_us)
{
    const struct timeval after = { after_us / TIME_S, after_us % TIME_S };

    if (event_add(event, &after))
        event_active(event, EV_TIMEOUT, 0); /* no memory for a timer: at once, then */
}

struct child *child_find(const struct children *children, uint64_t incarnation)
{
    LIST_EACH (it, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        if (child->incarnation == incarnation && child->state != CHILD_OVER)
            return child;
    }
    return NULL;
}

struct child *child_find_pid(const struct children *children, pid_t pid)
{
    LIST_EACH (it, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        if (child->pid == pid && !child->reaped)
            return child;
    }
    return NULL;
}

static void on_child_signal(evutil_socket_t number, short what, void *arg)
{
    (void)number;
    (void)what;
    orphans_reap(arg);
}

static void on_life(evutil_socket_t fd, short what, void *arg)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof(count));

    (void)what;
    (void)got; /* whose it was is looked up in any case */
    child_lives_check(arg);
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    orphans_sweep(arg);
}

int children_create(struct event_base *base, const struct children_ops *ops, void *arg,
                    struct children **ret_children, struct hvd_err *err)
{
    struct children *children = mem_zalloc(sizeof(*children));

    if (!children)
        return err_set(err, HVD_E_NOMEM, "the workers' processes: no memory to watch them");
    children->base = base;
    children->ops = ops;
    children->arg = arg;
    list_init(&children->all);
    children->life_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (children->life_fd < 0) {
        mem_free(children);
        return err_set(err, HVD_E_LIMIT, "the workers' processes: %s; raise ulimit -n",
                       strerror(errno));
    }
    evsignal_assign(&children->child_signal, base, SIGCHLD, on_child_signal, children);
    event_assign(&children->life_ready, base, children->life_fd, EV_READ | EV_PERSIST, on_life,
                 children);
    evtimer_assign(&children->sweep, base, on_sweep, children);
    child_output_init(children);
    if (event_add(&children->child_signal, NULL) || event_add(&children->life_ready, NULL)) {
        children_free(children);
        return err_set(err, HVD_E_NOMEM, "the workers' processes: no memory to watch them");
    }
    /* What workers leave behind becomes our child, and so can be found. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    *ret_children = children;
    return 0;
}

void child_free(struct child *child)
{
    ASSERT(child->reaped);
    child_output_close(child);
    child_event_off(&child->report_ready);
    child_event_off(&child->watch_ready);
    child_event_off(&child->joined_ready);
    child_event_off(&child->again);
    for (size_t i = 0; i < 3; i++) {
        int fd = (const int[]){ child->report_fd, child->watch_fd, child->joined_fd }[i];

        if (fd >= 0)
            close(fd);
    }
    life_watch_stop(&child->life);
    life_page_free(child->page, child->page_fd);
    list_remove(&child->link);
    mem_free(child);
}

static void doom_all(struct children *children)
{
    LIST_EACH (it, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        child->state = CHILD_OVER; /* nobody is told any more */
        orphans_doom(child);
    }
}

void children_free(struct children *children)
{
    int64_t until_us = clock_now_us() + FREE_PATIENCE_US;

    if (!children)
        return;
    doom_all(children);
    for (int i = 1; !orphans_gone(children, i % 8 == 0) && clock_now_us() < until_us; i++)
        (void)poll(NULL, 0, FREE_LOOK_MS);
    LIST_EACH_SAFE (it, after, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        if (!child->reaped)
            log_error(WORKER, "%" PRIu64 ": process %d does not die of SIGKILL: left to the kernel",
                      child->incarnation, (int)child->pid);
        child->reaped = true;
        child_free(child);
    }
    child_output_release(children);
    child_event_off(&children->child_signal);
    child_event_off(&children->life_ready);
    child_event_off(&children->sweep);
    close(children->life_fd);
    mem_free(children);
}

static void on_report(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    child_started(arg);
}

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
        return; /* nobody is told any more */
    child->state = rc ? CHILD_OVER : CHILD_RUNS;
    if (!rc) {
        children->ops->spawned(children->arg, child->incarnation, child->pid);
        return;
    }
    child_output_close(child);
    children->ops->spawn_failed(children->arg, child->incarnation, rc, err.text);
}

static int start(struct child *child, const struct msg_launch *launch, const char *const *env,
                 struct hvd_err *err)
{
    const char **argv = mem_zalloc_array(launch->argv.count + 1, sizeof(*argv));
    int writers[STREAM_COUNT];
    struct process_spec spec = {
        .argv = argv,
        .envp = env,
        .cwd = launch->cwd && *launch->cwd ? launch->cwd : NULL,
        .in = -1,
        .group = true,
        .dies_with_us = SIGKILL,
        .plain_priority = true,
    };
    int rc;

    if (!argv)
        return err_set(err, HVD_E_NOMEM, "a worker: no memory to start it");
    for (size_t i = 0; i < launch->argv.count; i++)
        argv[i] = launch->argv.items[i];
    rc = child_output_open(child, writers, err);
    if (!rc) {
        spec.out = writers[STREAM_STDOUT];
        spec.err = writers[STREAM_STDERR];
        rc = process_start(&spec, &child->pid, &child->report_fd, err);
        close(spec.out);
        close(spec.err);
    }
    mem_free(argv);
    return rc;
}

static int spawn(struct child *child, const struct msg_launch *launch, const char *const *env,
                 struct hvd_err *err)
{
    int rc = life_page_make(child->incarnation, &child->page, &child->page_fd, err);

    if (!rc)
        rc = start(child, launch, env, err);
    if (rc)
        return rc;
    child->reaped = false;
    event_assign(&child->report_ready, child->children->base, child->report_fd, EV_READ, on_report,
                 child);
    child_end_init(child);
    if (event_add(&child->report_ready, NULL))
        child_started(child); /* then it is waited for */
    return 0;
}

void children_spawn(struct children *children, const struct msg *launch, const char *const *env)
{
    struct child *child = mem_zalloc(sizeof(*child));
    struct hvd_err err = { 0 };
    int rc;

    ASSERT(launch->type == MSG_LAUNCH && !child_find(children, launch->incarnation));
    if (!child) {
        children->ops->spawn_failed(children->arg, launch->incarnation, HVD_E_NOMEM,
                                    "a worker: no memory to start it");
        return;
    }
    child->children = children;
    child->incarnation = launch->incarnation;
    child->reaped = true; /* there is nothing to reap yet */
    child->report_fd = child->watch_fd = child->joined_fd = child->page_fd = -1;
    for (int i = 0; i < STREAM_COUNT; i++)
        child->output[i].fd = -1;
    list_append(&children->all, &child->link);
    rc = spawn(child, &launch->u.launch, env, &err);
    if (rc) {
        child_free(child);
        children->ops->spawn_failed(children->arg, launch->incarnation, rc, err.text);
    }
}

void children_term(struct children *children, uint64_t incarnation)
{
    const struct child *child = child_find(children, incarnation);

    if (child && kill(-child->pid, SIGTERM))
        (void)kill(child->pid, SIGTERM); /* it has left its own group */
}

void children_kill(struct children *children, uint64_t incarnation)
{
    struct child *child = child_find(children, incarnation);

    if (child)
        orphans_doom(child);
}

int children_page(const struct children *children, uint64_t incarnation)
{
    const struct child *child = child_find(children, incarnation);

    return child ? child->page_fd : -1;
}

void children_joined(struct children *children, uint64_t incarnation, pid_t pid)
{
    struct child *child = child_find(children, incarnation);
    struct hvd_err err = { 0 };

    if (!child)
        return;
    if (child->joined != pid) {
        child->joined = pid;
        child_joined_watch(child);
    }
    if (child->life.runs && !life_watch_is_over(&child->life))
        return;
    life_watch_stop(&child->life);
    if (life_watch_start(&child->life, child->page, children->life_fd, &err))
        log_warning(WORKER, "%" PRIu64 ": %s; its end will be seen later than it could be",
                    incarnation, err.text);
}
