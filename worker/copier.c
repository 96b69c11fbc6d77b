#include "worker/copier.h"

#include "os/clock.h"
#include "os/thread.h"

#include <string.h>
#include <unistd.h>

/* Whether the round is well is asked once the device has done what came before the copy, and not
 * later: then what was copied is what it computed, whatever happens to the round afterwards. */
static int await_device(const struct copier_job *job, struct hvd_err *err)
{
    int rc = job->copy.ferry ? ferry_await(job->copy.ferry, err) : 0;

    if (!rc && job->copy.ferry)
        rc = job->judge(job->arg, err);
    if (!rc && job->slot)
        slot_name(job->slot, job->commit);
    return rc;
}

int copier_make(const struct copier_job *job, struct hvd_err *err)
{
    int rc = await_device(job, err);

    if (rc || !job->snapshot)
        return rc;
    rc = copy_commit(job->snapshot, &job->copy, err);
    if (!rc)
        snapshot_end(job->snapshot, job->commit);
    return rc;
}

/* The lock is held, and let go while it copies. */
static void copy_one(struct copier *copier)
{
    struct hvd_err outcome = { 0 };
    int rc;

    pthread_mutex_unlock(&copier->lock);
    copier->begun_us = clock_now_us();
    rc = copier_make(&copier->job, &outcome);
    copier->ended_us = clock_now_us();
    pthread_mutex_lock(&copier->lock);
    outcome.code = rc;
    copier->outcome = outcome;
    copier->working = false;
    pthread_cond_broadcast(&copier->changed);
}

static void *run(void *arg)
{
    struct copier *copier = arg;

    pthread_mutex_lock(&copier->lock);
    while (!copier->closing || copier->working) {
        if (copier->working)
            copy_one(copier);
        else
            pthread_cond_wait(&copier->changed, &copier->lock);
    }
    pthread_mutex_unlock(&copier->lock);
    return NULL;
}

static int start(struct copier *copier, struct hvd_err *err)
{
    if (copier->started)
        return 0;
    pthread_mutex_init(&copier->lock, NULL);
    pthread_cond_init(&copier->changed, NULL);
    if (thread_start(&copier->thread, 0, run, copier)) {
        pthread_cond_destroy(&copier->changed);
        pthread_mutex_destroy(&copier->lock);
        return err_set(err, HVD_E_LIMIT, "no thread can be started; hvd_state_commit needs none");
    }
    copier->pid = getpid();
    copier->started = true;
    return 0;
}

int copier_begin(struct copier *copier, const struct copier_job *job, struct hvd_err *err)
{
    int rc = start(copier, err);

    if (rc)
        return rc;
    pthread_mutex_lock(&copier->lock);
    copier->job = *job;
    copier->working = true;
    pthread_cond_broadcast(&copier->changed);
    pthread_mutex_unlock(&copier->lock);
    return 0;
}

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
