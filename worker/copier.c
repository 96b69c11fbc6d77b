/*
 * copier.c: the thread that copies commits to the snapshot while train runs.
 *
 * Called by commit.c. Invariant: one task at a time. The training loop calls copier_wait before it
 * begins another task, restores, or changes state that is being copied.
 */
#include "worker/copier.h"

#include "os/clock.h"
#include "os/thread.h"

#include <unistd.h>

/* Makes the commit of this task. If the state was copied into a slot on the GPU, that slot gets
 * the number of the commit. Then the state is copied to the snapshot, unless the task says that
 * the commit stays in the slot (`snapshot` is NULL). */
int copier_make(const struct copier_task *task, struct hvd_err *err)
{
    int rc = 0;

    /* Once the round has failed, the results in GPU memory are undefined, and must not become a
     * commit. `judge` is asked when the GPU has done all work that was queued before the copy, and
     * the copy: a later failure of the round cannot have spoilt the bytes that were copied. */
    if (task->copy.device_copy) {
        rc = device_copy_await(task->copy.device_copy, err);
        if (!rc)
            rc = task->judge(task->arg, err);
    }
    if (!rc && task->slot)
        slot_name(task->slot, task->commit);
    if (rc || !task->snapshot)
        return rc;
    rc = copy_commit(task->snapshot, &task->copy, err);
    if (!rc)
        snapshot_end(task->snapshot, task->commit);
    return rc;
}

/* The copier's thread: makes one task after another until copier_stop. The lock is released while a
 * task is made. */
static void *copy_tasks(void *arg)
{
    struct copier *copier = arg;
    struct hvd_err outcome;

    pthread_mutex_lock(&copier->lock);
    while (!copier->closing || copier->working) {
        if (!copier->working) {
            pthread_cond_wait(&copier->changed, &copier->lock);
            continue;
        }
        pthread_mutex_unlock(&copier->lock);
        outcome = (struct hvd_err){ 0 };
        copier->begun_us = clock_now_us();
        outcome.code = copier_make(&copier->task, &outcome);
        copier->ended_us = clock_now_us();
        pthread_mutex_lock(&copier->lock);
        copier->outcome = outcome;
        copier->working = false;
        pthread_cond_broadcast(&copier->changed);
    }
    pthread_mutex_unlock(&copier->lock);
    return NULL;
}

/* Gives a task to the copier's thread, which the first call starts. No other task may be
 * running. */
int copier_begin(struct copier *copier, const struct copier_task *task, struct hvd_err *err)
{
    if (!copier->started) {
        pthread_mutex_init(&copier->lock, NULL);
        pthread_cond_init(&copier->changed, NULL);
        if (thread_start(&copier->thread, 0, copy_tasks, copier)) {
            pthread_cond_destroy(&copier->changed);
            pthread_mutex_destroy(&copier->lock);
            return err_set(err, HVD_E_LIMIT,
                           "no thread can be started for a commit; raise the limit of processes "
                           "(ulimit -u), or use hvd_state_commit, which needs no thread");
        }
        copier->pid = getpid();
        copier->started = true;
    }
    pthread_mutex_lock(&copier->lock);
    copier->task = *task;
    copier->working = true;
    pthread_cond_broadcast(&copier->changed);
    pthread_mutex_unlock(&copier->lock);
    return 0;
}

/* Waits until no task is running, and returns the result of the last task. Only one caller gets
 * that result: the next call returns 0. */
int copier_wait(struct copier *copier, struct hvd_err *err)
{
    int rc;

    if (!copier->started)
        return 0;
    pthread_mutex_lock(&copier->lock);
    while (copier->working)
        pthread_cond_wait(&copier->changed, &copier->lock);
    rc = copier->outcome.code;
    if (rc && err)
        *err = copier->outcome;
    copier->outcome.code = 0;
    pthread_mutex_unlock(&copier->lock);
    return rc;
}

/* Ends the copier's thread, after the task that it still makes. In a forked child there is no such
 * thread, so nothing happens. */
void copier_stop(struct copier *copier)
{
    if (!copier->started || copier->pid != getpid())
        return;
    pthread_mutex_lock(&copier->lock);
    copier->closing = true;
    pthread_cond_broadcast(&copier->changed);
    pthread_mutex_unlock(&copier->lock);
    pthread_join(copier->thread, NULL);
    pthread_cond_destroy(&copier->changed);
    pthread_mutex_destroy(&copier->lock);
    copier->started = false;
}
