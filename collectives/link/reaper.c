#include "collectives/link/reaper.h"

#include "base/mem.h"
#include "os/thread.h"

#include <sched.h>

struct reaper {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    struct reaper_job *head, **tail;
    bool closing;
};

static struct reaper_job *take(struct reaper *reaper)
{
    struct reaper_job *job;

    pthread_mutex_lock(&reaper->mutex);
    while (!reaper->head && !reaper->closing)
        pthread_cond_wait(&reaper->changed, &reaper->mutex);
    job = reaper->head;
    if (job) {
        reaper->head = job->next;
        if (!reaper->head)
            reaper->tail = &reaper->head;
    }
    pthread_mutex_unlock(&reaper->mutex);
    return job;
}

static void *reap(void *arg)
{
    const struct sched_param none = { 0 };
    struct reaper *reaper = arg;
    struct reaper_job *job;

    /* Where that is not allowed, it is slower. */
    (void)sched_setscheduler(0, SCHED_BATCH, &none);
    while ((job = take(reaper)))
        job->run(job->arg);
    return NULL;
}

static void release(struct reaper *reaper)
{
    pthread_cond_destroy(&reaper->changed);
    pthread_mutex_destroy(&reaper->mutex);
    mem_free(reaper);
}

int reaper_open(struct reaper **ret_reaper, struct hvd_err *err)
{
    struct reaper *reaper = mem_zalloc(sizeof(*reaper));
    int rc;

    if (!reaper)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    pthread_mutex_init(&reaper->mutex, NULL);
    pthread_cond_init(&reaper->changed, NULL);
    reaper->tail = &reaper->head;
    rc = thread_start(&reaper->thread, 0, reap, reaper);
    if (rc) {
        release(reaper);
        return err_set(err, rc, "cannot start a thread; raise the limit of processes (ulimit -u)");
    }
    *ret_reaper = reaper;
    return 0;
}

void reaper_add(struct reaper *reaper, struct reaper_job *job)
{
    pthread_mutex_lock(&reaper->mutex);
    job->next = NULL;
    *reaper->tail = job;
    reaper->tail = &job->next;
    pthread_cond_broadcast(&reaper->changed);
    pthread_mutex_unlock(&reaper->mutex);
}

void reaper_close(struct reaper *reaper)
{
    if (!reaper)
        return;
    pthread_mutex_lock(&reaper->mutex);
    reaper->closing = true;
    pthread_cond_broadcast(&reaper->changed);
    pthread_mutex_unlock(&reaper->mutex);
    pthread_join(reaper->thread, NULL);
    release(reaper);
}
