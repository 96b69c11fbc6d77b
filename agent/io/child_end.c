#include "agent/io/child.h"

#include "base/time.h"
#include "os/process.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The futex may come before the process shows that it ends: its threads end one by one. */
#define LOOK_FIRST_US 250
#define LOOKS         12 /* doubled each time: a second in all; then it was no end, but an exec */

/* A worker below a wrapper has ended by itself: what it said last may still be on its way through
 * the wrapper ("python train.py | tee log"), which ends now. */
#define LAST_WORDS_US (100 * TIME_MS)

static void tell(struct child *child, int status, enum msg_witness witness)
{
    const struct children *children = child->children;
    bool by_signal = WIFSIGNALED(status);

    if (child->state != CHILD_RUNS)
        return;
    child->state = CHILD_OVER;
    children->ops->dying(children->arg, child->incarnation);
    child_output_finish(child);
    children->ops->ended(children->arg, child->incarnation, by_signal ? ENDED_SIGNAL : ENDED_EXIT,
                         by_signal ? WTERMSIG(status) : WEXITSTATUS(status), witness);
}

/* Of a process that is waited for, without the reaping. */
static bool is_zombie(pid_t pid, int *ret_status)
{
    siginfo_t info = { .si_pid = 0 };

    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid != pid)
        return false;
    *ret_status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status & 0x7f;
    return true;
}

/* The joined one's own end, if it is known and an end of the worker. */
static int own_status(const struct child *child)
{
    struct process_state state;
    int status;

    if (child->joined_fd < 0)
        return 0;
    if (!process_status(child->joined_fd, &status))
        return status; /* even if its parent has put it away */
    if (!process_look(child->joined, &state))
        return state.ending ? state.wait_status : 0;
    return process_status(child->joined_fd, &status) ? 0 : status; /* put away since we asked */
}

void child_over(struct child *child)
{
    enum msg_witness witness = WITNESS_PIDFD;
    int status;

    if (child->reaped || !is_zombie(child->pid, &status))
        return;
    child_started(child);
    if (!child->joined_status)
        child->joined_status = own_status(child);
    if (child->joined_status) {
        status = child->joined_status;
        witness = child->joined_witness ? child->joined_witness : WITNESS_PIDFD;
    }
    tell(child, status, witness);
    orphans_doom(child); /* while the number of its group is still its own */
    child_event_off(&child->watch_ready);
    (void)waitid(P_PID, (id_t)child->pid, &(siginfo_t){ .si_pid = 0 }, WEXITED | WNOHANG);
    child->reaped = true;
}

static void on_watch(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    child_over(arg);
}

/* The joined one has ended, or is about to; the status is not 0. */
static void joined_ends(struct child *child, int status, enum msg_witness witness)
{
    bool wrapped = child->joined != child->pid;

    child->joined_status = status;
    child->joined_witness = witness;
    if (wrapped && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) {
        child_timer(&child->again, LAST_WORDS_US);
        return;
    }
    tell(child, status, witness);
    orphans_doom(child);
}

static void on_joined(evutil_socket_t fd, short what, void *arg)
{
    struct child *child = arg;
    int status = own_status(child);

    (void)fd;
    (void)what;
    if (status && !child->joined_status && child->state == CHILD_RUNS)
        joined_ends(child, status, WITNESS_PIDFD);
}

/* The owner of the life is dead. Ended with 0, or with what we cannot see, is for the pidfd. */
static void look(struct child *child)
{
    struct process_state state;

    if (child->state != CHILD_RUNS)
        return;
    if (process_look(child->joined, &state))
        state = (struct process_state){ .ending = true, .wait_status = own_status(child) };
    if (state.ending && state.wait_status)
        joined_ends(child, state.wait_status, WITNESS_MUTEX);
    else if (child->looks < LOOKS)
        child_timer(&child->again, LOOK_FIRST_US << child->looks++);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    struct child *child = arg;

    (void)fd;
    (void)what;
    if (child->state != CHILD_RUNS)
        return;
    if (!child->joined_status) {
        look(child);
        return;
    }
    tell(child, child->joined_status, child->joined_witness);
    orphans_doom(child);
}

void child_lives_check(struct children *children)
{
    LIST_EACH_SAFE (it, after, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        if (!life_watch_is_over(&child->life))
            continue;
        life_watch_stop(&child->life);
        child->looks = 0;
        if (!child->joined_status)
            look(child);
    }
}

void child_end_init(struct child *child)
{
    const struct children *children = child->children;

    evtimer_assign(&child->again, children->base, on_again, child);
    child->watch_fd = process_watch(child->pid);
    if (child->watch_fd < 0)
        return; /* SIGCHLD comes too */
    event_assign(&child->watch_ready, children->base, child->watch_fd, EV_READ, on_watch, child);
    (void)event_add(&child->watch_ready, NULL);
}

void child_joined_watch(struct child *child)
{
    child_event_off(&child->joined_ready);
    if (child->joined_fd >= 0)
        close(child->joined_fd);
    child->joined_fd = -1;
    if (child->joined == child->pid)
        return;
    child->joined_fd = process_watch(child->joined);
    if (child->joined_fd < 0)
        return; /* gone, or no descriptor left: the end of the wrapper will be seen */
    event_assign(&child->joined_ready, child->children->base, child->joined_fd, EV_READ, on_joined,
                 child);
    (void)event_add(&child->joined_ready, NULL);
}
