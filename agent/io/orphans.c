#include "agent/io/child.h"

#include "agent/io/tree.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Between the end of a worker and the first look for what has left its group: often the others end
 * too meanwhile, and then no look is needed, which reads all processes of the machine. */
#define SWEEP_FIRST_US (10 * TIME_MS)
#define SWEEP_SURE_US  (100 * TIME_MS)
#define SWEEP_LAST_US  TIME_S
#define PARENTS        1024 /* no chain of parents is longer */

static void sweep_within(struct children *children, int64_t after_us)
{
    int64_t at_us = clock_now_us() + after_us;

    if (event_pending(&children->sweep, EV_TIMEOUT, NULL) && children->sweep_at_us <= at_us)
        return;
    children->sweep_at_us = at_us;
    child_timer(&children->sweep, after_us);
}

/* A worker's process is told of; anybody else's (an orphan that became ours) is just put away. */
void orphans_reap(struct children *children)
{
    bool any = false;

    for (;;) {
        siginfo_t info = { .si_pid = 0 };
        struct child *child;

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
            break;
        child = child_find_pid(children, info.si_pid);
        if (child)
            child_over(child);
        else
            (void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
        any = true;
    }
    if (any)
        sweep_within(children, SWEEP_FIRST_US);
}

/* Dead or alive. */
static bool have_children(void)
{
    siginfo_t info;

    return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
}

void orphans_doom(struct child *child)
{
    struct children *children = child->children;

    child->doomed = true;
    if (!child->reaped) {
        (void)kill(-child->pid, SIGKILL);
        (void)kill(child->pid, SIGKILL); /* it may have left its own group */
    }
    children->sweep_wait_us = SWEEP_FIRST_US;
    sweep_within(children, SWEEP_FIRST_US);
}

static bool is_child_of(const struct children *children, uint64_t incarnation, bool *ret_doomed)
{
    LIST_EACH (it, &children->all) {
        const struct child *child = CONTAINER_OF(it, struct child, link);

        if (child->incarnation == incarnation) {
            *ret_doomed = child->doomed;
            return true;
        }
    }
    return false;
}

static bool any_lives(const struct children *children)
{
    LIST_EACH (it, &children->all)
        if (!CONTAINER_OF(it, struct child, link)->doomed)
            return true;
    return false;
}

/* A child process of ours: a worker, or an orphan, which belongs to the worker whose environment it
 * has. One that has none stays as long as there is a worker that it could belong to; it may just be
 * becoming another program, so it is asked more than once. */
static bool is_doomed(const struct children *children, pid_t pid, bool *ret_sure)
{
    const struct child *child = child_find_pid(children, pid);
    uint64_t incarnation;
    bool doomed;

    if (child)
        return child->doomed;
    incarnation = tree_incarnation(pid);
    *ret_sure = incarnation != 0 || children->sweep_wait_us >= SWEEP_SURE_US;
    if (is_child_of(children, incarnation, &doomed))
        return doomed;
    return incarnation != 0 || !any_lives(children);
}

/* Kills what is there now of the doomed ones. True when that was nothing, and nothing is just being
 * taken apart whose children we would not see yet. */
static bool kill_doomed(const struct children *children)
{
    struct tree tree;
    struct tree_process *it;
    pid_t self = getpid();
    bool clean = true;

    if (!have_children())
        return true;
    if (tree_read(&tree))
        return false;
    VEC_EACH (it, &tree)
        if (it->parent == self) {
            bool sure = true;

            it->marked = is_doomed(children, it->pid, &sure);
            clean &= !it->marked && !it->ending && sure;
        }
    tree_spread(&tree);
    tree_kill(&tree);
    tree_release(&tree);
    return clean;
}

static bool any_doomed(const struct children *children)
{
    LIST_EACH (it, &children->all)
        if (CONTAINER_OF(it, struct child, link)->doomed)
            return true;
    return false;
}

void orphans_sweep(struct children *children)
{
    bool clean;

    orphans_reap(children);
    child_event_off(&children->sweep);
    if (!any_doomed(children))
        return;
    clean = kill_doomed(children);
    LIST_EACH_SAFE (it, after, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        if (clean && child->doomed && child->reaped)
            child_free(child);
    }
    if (!any_doomed(children))
        return;
    sweep_within(children, children->sweep_wait_us);
    children->sweep_wait_us *= 2;
    if (children->sweep_wait_us > SWEEP_LAST_US)
        children->sweep_wait_us = SWEEP_LAST_US;
}

bool orphans_gone(struct children *children, bool look)
{
    orphans_reap(children);
    LIST_EACH (it, &children->all)
        if (!look && !CONTAINER_OF(it, struct child, link)->reaped)
            return false;
    (void)kill_doomed(children);
    return !have_children();
}

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
    return tree_incarnation(pid) == incarnation; /* its parent has gone before it */
}
