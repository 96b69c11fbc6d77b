/*
 * orphans.c: kills processes that a worker has started and left behind, when the worker ends. This
 * file finds such processes by process group, by parents, and by HVD_INCARNATION in their
 * environment. Called by child_end.c and children.c. Invariant: a doomed child is freed only after
 * a look at all processes has found no process of that worker.
 */
#include "agent/processes/child_internal.h"

#include "agent/processes/tree.h"
#include "base/time.h"
#include "os/clock.h"

#include <signal.h>
#include <unistd.h>

/* Wait between the end of a worker and the first look for processes outside its group: these
 * processes often end by themselves meanwhile, and then the look, which reads all processes of the
 * machine, is not needed. */
#define SWEEP_FIRST_US (10 * TIME_MS)
#define SWEEP_SURE_US  (100 * TIME_MS) /* an exec takes less: after this wait a look is sure */
#define SWEEP_LAST_US  TIME_S          /* the longest wait between two looks */

/* Plans a sweep after this time, unless an earlier sweep is planned already. */
static void orphans_sweep_within(struct children *children, int64_t after_us)
{
    int64_t at_us = clock_now_us() + after_us;

    if (event_pending(&children->sweep, EV_TIMEOUT, NULL) && children->sweep_at_us <= at_us)
        return;
    children->sweep_at_us = at_us;
    child_timer(&children->sweep, after_us);
}

/* Plans a sweep: called when child processes have ended, as they may have left others behind. */
void orphans_sweep_soon(struct children *children)
{
    orphans_sweep_within(children, SWEEP_FIRST_US);
}

/* Dooms a worker: kills its process and its process group now. Its processes outside of that group
 * are found and killed by sweeps (orphans_sweep), until none is left. */
void orphans_doom(struct child *child)
{
    struct children *children = child->children;

    child->doomed = true;
    if (!child->reaped) {
        (void)kill(-child->pid, SIGKILL);
        (void)kill(child->pid, SIGKILL); /* the process may have left its own group */
    }
    children->sweep_wait_us = SWEEP_FIRST_US;
    orphans_sweep_soon(children);
}

/* With `doomed` true: is there a worker that is being killed? With false: one that is not? */
static bool orphans_any(const struct children *children, bool doomed)
{
    LIST_EACH (it, &children->all) {
        if (CONTAINER_OF(it, struct child, link)->doomed == doomed)
            return true;
    }
    return false;
}

/* Kills the processes that doomed workers have started. Only children of this process are judged,
 * and tree_kill kills their descendants with them. A child that is no worker's own process has lost
 * its parent: it belongs to the worker whose incarnation is in its environment. If its environment
 * has none, it is not killed while a worker lives to which it could belong. Returns true if no
 * process was killed, and none was just ending: the children of an ending process cannot be seen
 * yet. */
static bool orphans_kill(const struct children *children)
{
    struct tree tree;
    struct tree_process *it;
    pid_t self = getpid();
    bool clean = true;

    if (!tree_have_children())
        return true;
    if (tree_read(&tree))
        return false;
    VEC_EACH (it, &tree) {
        const struct child *owner;
        uint64_t incarnation = 0;

        if (it->parent != self)
            continue;
        owner = child_find_pid(children, it->pid);
        if (!owner) {
            incarnation = tree_incarnation(it->pid);
            /* The first looks are not sure: the process may just be replacing its program (exec),
             * and then has no environment. */
            clean &= incarnation != 0 || children->sweep_wait_us >= SWEEP_SURE_US;
            LIST_EACH (other, &children->all) {
                const struct child *child = CONTAINER_OF(other, struct child, link);

                if (!owner && child->incarnation == incarnation)
                    owner = child;
            }
        }
        /* A process without an owner is killed if it names a worker, because that worker is freed
         * already. A process that names no worker is killed when all workers are doomed. */
        it->marked = owner
                         ? owner->doomed
                         : incarnation != 0 || !orphans_any(children, false /* not being killed */);
        clean &= !it->marked && !it->ending;
    }
    tree_kill(&tree);
    tree_release(&tree);
    return clean;
}

/* Kills the processes of doomed workers. A worker is freed when it is reaped and no process of it
 * was found; otherwise the next sweep follows after a longer wait. */
void orphans_sweep(struct children *children)
{
    bool clean;

    child_event_off(&children->sweep);
    if (!orphans_any(children, true)) /* no worker is doomed */
        return;
    clean = orphans_kill(children);
    LIST_EACH_SAFE (it, after, &children->all) {
        struct child *child = CONTAINER_OF(it, struct child, link);

        if (clean && child->doomed && child->reaped)
            child_free(child);
    }
    if (!orphans_any(children, true))
        return;
    orphans_sweep_within(children, children->sweep_wait_us);
    children->sweep_wait_us *= 2;
    if (children->sweep_wait_us > SWEEP_LAST_US)
        children->sweep_wait_us = SWEEP_LAST_US;
}

/* Kills all processes that descend from workers, and returns true when no process is left. Called
 * when all workers are doomed. While some worker is not reaped yet, the function does nothing and
 * returns false, unless `look` is true. */
bool orphans_gone(struct children *children, bool look)
{
    LIST_EACH (it, &children->all) {
        if (!look && !CONTAINER_OF(it, struct child, link)->reaped)
            return false;
    }
    (void)orphans_kill(children);
    return !tree_have_children();
}
