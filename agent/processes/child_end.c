/*
 * child_end.c: the end of a worker. The agent sees the end by the futex in the worker's page
 * (life_watch.h), by a pidfd, or by SIGCHLD, whichever comes first; `ended` is called once, with
 * the status of the process that counts. Called by children.c for these events. Invariant: `ended`
 * is called after the worker's output and messages were handed on, and before the process is
 * reaped, while the number of its process group still belongs to it. children.h says which process
 * counts.
 */
#include "agent/processes/child_internal.h"

#include "base/time.h"
#include "os/owned_process.h"
#include "os/process.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kernel may release the futex of a worker some time before /proc shows that the process ends,
 * because its threads end one by one. So the agent looks at the process up to LOOKS times, and the
 * wait doubles each time (one second in all). If the process still runs then, it has replaced its
 * program (exec). LOOK_FIRST_US is the first wait. */
#define LOOK_FIRST_US 250
#define LOOKS         12

/* Tells the owner once that a worker has ended with this wait status. Before that, `dying` lets the
 * owner read the worker's last messages, and the last output is handed on. */
static void end_tell(struct child *child, int status, enum msg_witness witness)
{
    const struct children *children = child->children;
    bool by_signal = WIFSIGNALED(status);

    if (child->state != CHILD_RUNS)
        return;
    child->state = CHILD_OVER;
    child->status = status;
    children->ops->dying(children->arg, child->incarnation);
    child_output_finish(child);
    children->ops->ended(children->arg, child->incarnation, by_signal ? ENDED_SIGNAL : ENDED_EXIT,
                         by_signal ? WTERMSIG(status) : WEXITSTATUS(status), witness);
}

/* Returns the wait status of the joined process: the one that has said hello as the worker, and
 * which may run below the process that the agent has started (a wrapper, such as a shell). 0:
 * this status does not show the end of the worker, because the process still runs, has exited
 * with code 0 (then the end of the wrapper counts), has no pidfd, or its status cannot be seen. */
static int end_joined_status(const struct child *child)
{
    struct process_state state;
    int status;

    if (child->joined.fd < 0)
        return 0;
    if (!process_status(child->joined.fd, &status))
        return status; /* the kernel gives the status even if the parent has reaped the process */
    if (!process_look(child->joined.pid, &state))
        return state.ending ? state.wait_status : 0;
    /* /proc has no such process: it was reaped after the first look at its pidfd */
    return process_status(child->joined.fd, &status) ? 0 : status;
}

/* Checks whether the process that was started has ended. If so, tells the end of the worker, dooms
 * what the worker has left, and reaps the process. The end that counts is that of the joined
 * process (the one that said hello), if its status shows one. */
static void end_check(struct child *child)
{
    enum msg_witness witness = WITNESS_PIDFD;
    siginfo_t info = { .si_pid = 0 };
    int status;

    /* A zombie keeps its pid: so its status is read first, and the process is reaped last. */
    if (child->reaped || waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
        info.si_pid != child->pid)
        return;
    /* makes the wait status that waitpid would return: exit code, or signal and "core dumped" */
    status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status & 0x7f;
    if (info.si_code == CLD_DUMPED)
        status |= WCOREFLAG;
    child_started(child); /* the start is told before the end */
    if (!child->joined.status)
        child->joined.status = end_joined_status(child);
    if (child->joined.status) {
        status = child->joined.status;
        witness = child->joined.witness ? child->joined.witness : WITNESS_PIDFD;
    }
    end_tell(child, status, witness);
    /* done while the number of the process group still belongs to this worker */
    orphans_doom(child);
    child_event_off(&child->watch_ready);
    (void)waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG);
    child->reaped = true;
}

/* Reaps all child processes that have ended. For a worker, its end is told first. Any other child
 * is an orphan (a process that a worker has left behind), or a program that another thread of the
 * agent runs: owned_process_reap keeps the exit status of such a program for that thread. */
void child_reap_all(struct children *children)
{
    siginfo_t info = { .si_pid = 0 };
    bool any = false;

    while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) {
        struct child *child = child_find_pid(children, info.si_pid);

        if (child)
            end_check(child);
        else
            owned_process_reap(info.si_pid);
        any = true;
        info.si_pid = 0;
    }
    if (any)
        orphans_sweep_soon(children);
}

/* Called when the process that said hello as the worker (the joined process) has ended with a
 * status other than 0: that is the end of the worker. If another program, a wrapper, runs above
 * that process, the last output of the worker may still be on its way through the wrapper: it
 * gets last_words_us to arrive, unless the process was killed. */
static void end_of_joined(struct child *child, int status, enum msg_witness witness)
{
    bool wrapped = child->joined.pid != child->pid;

    child->joined.status = status;
    child->joined.witness = witness;
    if (wrapped && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) {
        child_timer(&child->again, child->children->last_words_us);
        return;
    }
    end_tell(child, status, witness);
    orphans_doom(child);
}

/* Called when the owner of the futex is dead: looks how the joined process has ended. If the status
 * is 0 or cannot be seen, the pidfd will show the end of the worker. A process that does not show
 * its end yet is looked at again, up to LOOKS times. */
static void end_look(struct child *child)
{
    struct process_state state;

    if (child->state != CHILD_RUNS)
        return;
    /* a reaped process is not in /proc any more, but its pidfd may still give the status */
    if (process_look(child->joined.pid, &state))
        state = (struct process_state){ .ending = true, .wait_status = end_joined_status(child) };
    if (state.ending && state.wait_status)
        end_of_joined(child, state.wait_status, WITNESS_MUTEX);
    else if (child->looks < LOOKS)
        child_timer(&child->again, LOOK_FIRST_US << child->looks++);
}

/* One of the child's descriptors is readable: the report of its start, its pidfd, or the pidfd of
 * the process that joined. Or the timer `again` fires (EV_TIMEOUT): the agent looks once more for
 * the end of the joined process; if the end is known, the wait for the last output is over. */
static void end_on_event(evutil_socket_t fd, short what, void *arg)
{
    struct child *child = arg;
    int status;

    if (what & EV_TIMEOUT) {
        if (!child->joined.status) {
            end_look(child);
        } else if (child->state == CHILD_RUNS) {
            end_tell(child, child->joined.status, child->joined.witness);
            orphans_doom(child);
        }
    } else if (fd == child->report_fd) {
        child_started(child);
    } else if (fd == child->watch_fd) {
        end_check(child);
    } else {
        status = end_joined_status(child);
        if (status && !child->joined.status && child->state == CHILD_RUNS)
            end_of_joined(child, status, WITNESS_PIDFD);
    }
}

/* Called when the futex of some worker has lost its owner: finds these workers, and begins to look
 * for the end of their joined processes. The first look is made here. */
void child_lives_check(struct children *children)
{
    LIST_EACH_SAFE (it, after, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        if (!life_watch_is_over(&child->life))
            continue;
        life_watch_stop(&child->life);
        child->looks = 0;
        if (!child->joined.status)
            end_look(child);
    }
}

/* Prepares the events that show the start and the end of a process that was just forked. */
void child_end_init(struct child *child)
{
    const struct children *children = child->children;

    evtimer_assign(&child->again, children->base, end_on_event, child);
    event_assign(&child->report_ready, children->base, child->report_fd, EV_READ, end_on_event,
                 child);
    child->watch_fd = process_watch(child->pid);
    if (child->watch_fd < 0)
        return; /* no pidfd can be opened: SIGCHLD shows the end of the process */
    event_assign(&child->watch_ready, children->base, child->watch_fd, EV_READ, end_on_event,
                 child);
    (void)event_add(&child->watch_ready, NULL);
}

/* A process has said hello as this worker (`joined.pid`): watches its end by a pidfd. Nothing is
 * opened if that process is the one that was started, which `watch_fd` watches. */
void child_joined_watch(struct child *child)
{
    struct child_joined *joined = &child->joined;

    child_event_off(&joined->ready);
    if (joined->fd >= 0)
        close(joined->fd);
    joined->fd = -1;
    if (joined->pid == child->pid)
        return;
    joined->fd = process_watch(joined->pid);
    if (joined->fd < 0)
        /* the process is gone, or no descriptor is left: the end of the wrapper will be seen */
        return;
    event_assign(&joined->ready, child->children->base, joined->fd, EV_READ, end_on_event, child);
    (void)event_add(&joined->ready, NULL);
}
