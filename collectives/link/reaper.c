/*
 * reaper.c: a thread that runs tasks in order; the engine of a process has one. Callers add what
 * may take time (closing Gloo's pairs, freeing a round), so that no training thread waits for it.
 */
#include "collectives/link/reaper.h"

#include "base/mem.h"
#include "os/thread.h"

#include <sched.h>

struct reaper {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    struct reaper_task *head, **tail;
    bool closing;
};

/* Main function of the reaper's thread: runs the tasks in the order in which they were added. When
 * the reaper closes, all remaining tasks still run. */
static void *reaper_work(void *arg)
{
    const struct sched_param none = { 0 };
    struct reaper *reaper = arg;

    /* The thread that Gloo starts in a task inherits SCHED_BATCH and is faster with it. If the
     * system refuses SCHED_BATCH, Gloo is only slower. */
    (void)sched_setscheduler(0, SCHED_BATCH, &none);
    pthread_mutex_lock(&reaper->mutex);
    while (reaper->head || !reaper->closing) {
        struct reaper_task *task = reaper->head;

        if (!task) {
            pthread_cond_wait(&reaper->changed, &reaper->mutex);
            continue;
        }
        reaper->head = task->next;
        if (!reaper->head)
            reaper->tail = &reaper->head;
        pthread_mutex_unlock(&reaper->mutex);
        task->run(task->arg); /* run may free the task, so nothing reads the task after it */
        pthread_mutex_lock(&reaper->mutex);
    }
    pthread_mutex_unlock(&reaper->mutex);
    return NULL;
}

/* Frees the memory of a reaper whose thread has ended or was never started. */
static void reaper_release(struct reaper *reaper)
{
    pthread_cond_destroy(&reaper->changed);
    pthread_mutex_destroy(&reaper->mutex);
    mem_free(reaper);
}

/* Starts the thread that runs slow tasks one after another: to close links, and to free rounds. */
int reaper_open(struct reaper **ret_reaper, struct hvd_err *err)
{
    struct reaper *reaper = mem_zalloc(sizeof(*reaper));
    int rc;

    if (!reaper)
        return err_set(
            err, HVD_E_NOMEM,
            "no memory for the thread that closes connections; free memory on this host");
    pthread_mutex_init(&reaper->mutex, NULL);
    pthread_cond_init(&reaper->changed, NULL);
    reaper->tail = &reaper->head;
    rc = thread_start(&reaper->thread, 0, reaper_work, reaper);
    if (rc) {
        reaper_release(reaper);
        return err_set(err, rc,
                       "the thread that closes connections cannot be started; raise the limit of "
                       "processes (ulimit -u)");
    }
    *ret_reaper = reaper;
    return 0;
}

/* Adds a task, which belongs to the reaper until it runs (reaper.h). Does not wait. */
void reaper_add(struct reaper *reaper, struct reaper_task *task)
{
    pthread_mutex_lock(&reaper->mutex);
    task->next = NULL;
    *reaper->tail = task;
    reaper->tail = &task->next;
    pthread_cond_broadcast(&reaper->changed);
    pthread_mutex_unlock(&reaper->mutex);
}

/* Waits until all tasks have run, ends the thread, and frees the reaper. */
void reaper_close(struct reaper *reaper)
{
    if (!reaper)
        return;
    pthread_mutex_lock(&reaper->mutex);
    reaper->closing = true;
    pthread_cond_broadcast(&reaper->changed);
    pthread_mutex_unlock(&reaper->mutex);
    pthread_join(reaper->thread, NULL);
    reaper_release(reaper);
}
