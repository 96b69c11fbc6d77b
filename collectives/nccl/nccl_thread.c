/*
 * nccl_thread.c: the thread that makes all calls of NCCL for one device: its loop, and how it and
 * its two helpers (aborter.c, watchdog.c) begin and end. Opened and closed by engine_device.c.
 *
 * Each iteration advances all communicators (comm_state.c). While the state of a communicator
 * changes, the thread does not sleep. It wakes the threads that wait for a result.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "collectives/nccl/comm_state.h"
#include "os/clock.h"
#include "os/thread.h"

#include <sched.h>

/* How the NCCL thread waits for an event of NCCL or the device: it asks all the time for SPIN_US,
 * then in intervals that grow from LOOK_US to LOOK_MOST_US. */
#define SPIN_US      50
#define LOOK_US      200
#define LOOK_MOST_US TIME_MS

/* true: the thread may end: it was asked to (`closing`), and no communicator is left. If the device
 * is stuck, freed communicators stay for ever and do not count. */
static bool may_end(const struct nccl_thread *thread)
{
    if (!thread->closing)
        return false;
    LIST_EACH (it, &thread->comms)
        if (!thread->watch.stuck || !CONTAINER_OF(it, struct comm, among)->freed)
            return false;
    return true;
}

/* Main function of the NCCL thread: advances all communicators, again and again. It does not sleep
 * while a state changes. */
static void *nccl_thread_run(void *arg)
{
    struct nccl_thread *thread = arg;
    int64_t moved_us = clock_now_us(), now_us, look_us;

    /* if the device cannot be entered, each new communicator tries again */
    thread->entered = !gpu_enter(thread->options.device, NULL);
    pthread_mutex_lock(&thread->mutex);
    while (!may_end(thread)) {
        enum comm_activity most = COMM_IDLE;

        thread->kicked = false;
        LIST_EACH_SAFE (it, after, &thread->comms) {
            struct comm *comm = CONTAINER_OF(it, struct comm, among);
            enum comm_activity activity = comm_state_advance(comm);

            most = activity > most ? activity : most;
            after = it->next; /* read at the end, because a new communicator may have been appended
                                 while the lock was free */
            if (comm->phase == PHASE_GONE && comm->freed && !comm->stuck) {
                list_remove(&comm->among);
                nccl_call_begin(thread);
                comm_state_free(comm);
                nccl_call_end(thread);
            }
        }
        (void)watchdog_is_overdue(thread);
        now_us = clock_now_us();
        if (most == COMM_MOVED || thread->kicked) {
            moved_us = now_us;
            continue;
        }
        if (may_end(thread))
            break;
        /* Waits until there is something to do. Other threads wake this thread for their requests;
         * but NCCL and the device wake no thread, so they are asked again and again. */
        look_us = (now_us - moved_us) / 8;
        look_us = look_us < LOOK_US ? LOOK_US : look_us > LOOK_MOST_US ? LOOK_MOST_US : look_us;
        if (most == COMM_IDLE && (thread->watch.stuck || !thread->watch.aborting_us)) {
            pthread_cond_wait(&thread->wake, &thread->mutex);
        } else if (most == COMM_IDLE) {
            (void)thread_cond_wait(&thread->wake, &thread->mutex,
                                   watchdog_due(thread, thread->watch.aborting_us));
        } else if (now_us - moved_us < SPIN_US) {
            pthread_mutex_unlock(&thread->mutex);
            sched_yield();
            pthread_mutex_lock(&thread->mutex);
        } else {
            (void)thread_cond_wait(&thread->wake, &thread->mutex, now_us + look_us);
        }
    }
    thread->thread_done = true;
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
    if (thread->entered)
        gpu_leave(thread->options.device);
    return NULL;
}

/* Says that all members are in this round (nccl_thread.h): communicators of earlier rounds that
 * were freed may be aborted now. */
void nccl_thread_agreed(struct nccl_thread *thread, uint64_t round)
{
    pthread_mutex_lock(&thread->mutex);
    if (round > thread->agreed)
        thread->agreed = round;
    nccl_thread_kick(thread);
    pthread_mutex_unlock(&thread->mutex);
}

/* Frees the object. Its threads have ended, or have not begun. If the device cannot be entered, the
 * stream is not destroyed. */
static void nccl_thread_release(struct nccl_thread *thread)
{
    if (thread->stream && !gpu_enter(thread->options.device, NULL)) {
        (void)thread->cuda->stream_destroy(thread->stream);
        gpu_leave(thread->options.device);
    }
    pthread_cond_destroy(&thread->changed);
    pthread_cond_destroy(&thread->alarm);
    pthread_cond_destroy(&thread->feed);
    pthread_cond_destroy(&thread->wake);
    pthread_mutex_destroy(&thread->mutex);
    mem_free(thread);
}

/* Creates everything but the threads. On a failure the thread object is released already. */
static int init_parts(struct nccl_thread *thread, struct hvd_err *err)
{
    pthread_cond_t *const conds[] = { &thread->wake, &thread->feed, &thread->alarm,
                                      &thread->changed };
    const struct cuda *cuda = thread->cuda;
    int least = 0, greatest = 0, rc;

    list_init(&thread->comms);
    list_init(&thread->dying);
    for (size_t i = 0; i < ARRAY_SIZE(conds); i++) {
        if (!thread_cond_init(conds[i]))
            continue;
        while (i > 0)
            pthread_cond_destroy(conds[--i]);
        mem_free(thread);
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the thread that calls NCCL; free memory on this host");
    }
    pthread_mutex_init(&thread->mutex, NULL);

    /* a stream of the highest priority, because other members wait for the kernels in it */
    rc = gpu_enter(thread->options.device, err);
    if (!rc) {
        rc = cuda_judge(cuda, cuda->stream_priorities(&least, &greatest),
                        "the priorities of its streams", err);
        if (!rc)
            rc = cuda_judge(
                cuda, cuda->stream_create(&thread->stream, CUDA_STREAM_NON_BLOCKING, greatest),
                "a stream for collectives", err);
        gpu_leave(thread->options.device);
    }
    if (rc)
        nccl_thread_release(thread);
    return rc;
}

/* Wakes a thread that must end, and waits until it has ended (*done). false: the thread is stuck in
 * a call, and is left alone. The caller holds the lock. */
static bool end_thread(struct nccl_thread *thread, pthread_cond_t *wake, pthread_t id,
                       const bool *done)
{
    pthread_cond_broadcast(wake);
    while (!*done && !watchdog_is_overdue(thread))
        watchdog_wait(thread, TIME_NEVER);
    if (!*done) {
        (void)pthread_detach(id);
        return false;
    }
    pthread_mutex_unlock(&thread->mutex);
    pthread_join(id, NULL);
    pthread_mutex_lock(&thread->mutex);
    return true;
}

/* Ends the watchdog, which calls neither NCCL nor the driver and so always ends. */
static void end_watchdog(struct nccl_thread *thread)
{
    pthread_mutex_lock(&thread->mutex);
    thread->closing = true;
    pthread_cond_signal(&thread->alarm);
    pthread_mutex_unlock(&thread->mutex);
    pthread_join(thread->watchdog, NULL);
}

/* Starts the NCCL thread and its two helpers (nccl_thread.h). `watched`: the watchdog runs;
 * `aborts`: the aborter runs. If a later start fails, both must be ended. */
int nccl_thread_open(const struct nccl_thread_options *options, struct nccl_thread **ret_thread,
                     struct hvd_err *err)
{
    const struct nccl *nccl = NULL;
    struct nccl_thread *thread;
    bool watched, aborts;
    int rc = nccl_open(&nccl, err);

    if (rc)
        return rc;
    thread = mem_zalloc(sizeof(*thread));
    if (!thread)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the thread that calls NCCL; free memory on this host");
    thread->options = *options;
    thread->cuda = options->device->cuda;
    thread->nccl = nccl;
    rc = init_parts(thread, err);
    if (rc)
        return rc;
    rc = thread_start(&thread->watchdog, 0, watchdog_run, thread);
    watched = !rc;
    if (watched)
        rc = thread_start(&thread->aborter, 0, aborter_run, thread);
    aborts = !rc;
    if (aborts)
        rc = thread_start(&thread->id, 0, nccl_thread_run, thread);
    if (!rc) {
        *ret_thread = thread;
        return 0;
    }
    if (aborts) {
        pthread_mutex_lock(&thread->mutex);
        thread->closing = thread->thread_done = true;
        (void)end_thread(thread, &thread->feed, thread->aborter, &thread->aborter_done);
        pthread_mutex_unlock(&thread->mutex);
    }
    if (watched)
        end_watchdog(thread);
    nccl_thread_release(thread);
    return err_set(err, rc,
                   "no thread can be started for NCCL; raise the limit of processes (ulimit -u)");
}

/* The objects whose threads are stuck, linked by `left`. They are never freed, because a stuck
 * thread may go on later. */
static struct nccl_thread *_Atomic left_behind;

/* Ends the threads. If one of them hangs in NCCL or the driver, the object is never freed
 * (`left_behind`), because that thread may still use it. */
void nccl_thread_close(struct nccl_thread *thread)
{
    bool clean;

    if (!thread)
        return;
    end_watchdog(thread);
    pthread_mutex_lock(&thread->mutex);
    LIST_EACH (it, &thread->comms)
        ASSERT(CONTAINER_OF(it, struct comm, among)->freed);
    /* this counts as an agreement on every round, so that all communicators may be aborted */
    thread->agreed = UINT64_MAX;
    clean = end_thread(thread, &thread->wake, thread->id, &thread->thread_done);
    clean = end_thread(thread, &thread->feed, thread->aborter, &thread->aborter_done) && clean;
    clean = clean && list_empty(&thread->comms);
    pthread_mutex_unlock(&thread->mutex);
    if (clean)
        nccl_thread_release(thread);
    else
        thread->left = atomic_exchange(&left_behind, thread);
}
