/*
 * aborter.c: the aborter, a thread that aborts communicators, which gives their memory back. The
 * aborter also revokes a communicator while the CUDA driver blocks the NCCL thread. comm_state.c
 * puts the communicators that the aborter must abort into the list `dying`.
 *
 * An abort may wait for other communicators, so the NCCL thread never aborts one.
 */
#include "collectives/nccl/comm_state.h"

#include "os/clock.h"

/* Aborts all communicators of the list `dying` as one group of NCCL: if they were aborted one by
 * one, each abort could wait for kernels of the next one. */
static void abort_dying(struct nccl_thread *thread)
{
    const struct nccl *nccl = thread->nccl;
    struct hvd_err why = { .code = 0 };
    struct list them;
    int code, ended;

    list_init(&them);
    while (!list_empty(&thread->dying)) {
        struct list *it = thread->dying.next;

        list_remove(it);
        list_append(&them, it);
    }
    thread->watch.aborting_us = clock_now_us();
    nccl_thread_kick(thread); /* so that the NCCL thread watches how long the abort takes */
    pthread_mutex_unlock(&thread->mutex);

    /* without the lock, because no other thread touches a dying communicator */
    code = nccl->group_start();
    LIST_EACH (it, &them) {
        int one = nccl->comm_abort(CONTAINER_OF(it, struct comm, dying)->nccl);

        if (one != NCCL_OK && one != NCCL_IN_PROGRESS)
            code = one;
    }
    ended = nccl->group_end();
    if (code == NCCL_OK && ended != NCCL_IN_PROGRESS)
        code = ended;
    why.code = nccl_judge(nccl, code, "an abort", &why);

    pthread_mutex_lock(&thread->mutex);
    thread->watch.aborting_us = 0;
    while (!list_empty(&them)) {
        struct comm *comm = CONTAINER_OF(them.next, struct comm, dying);

        list_remove(&comm->dying);
        /* after a failed abort a kernel may still run, unless all kernels had ended before */
        if (comm->ran && !comm->ended && why.code)
            watchdog_tell_stuck(thread, comm, "%s", why.text);
        else
            comm_state_aborted(comm);
    }
}

/* Main function of the aborter, which does what may take long, or must not wait for the NCCL
 * thread. It aborts communicators, and revokes a failed one when the NCCL thread hangs in the CUDA
 * driver. Without work it sleeps on `feed`. */
void *aborter_run(void *arg)
{
    struct nccl_thread *thread = arg;
    /* if the device cannot be entered, the calls below fail */
    bool entered = !gpu_enter(thread->options.device, NULL);
    pthread_mutex_lock(&thread->mutex);
    for (;;) {
        struct comm *comm = NULL; /* the first communicator that this thread must revoke */
        int code;

        LIST_EACH (it, &thread->comms) {
            struct comm *one = CONTAINER_OF(it, struct comm, among);

            if (!comm && one->failed && one->phase == PHASE_RUNS && !one->tried)
                comm = one;
        }
        if (!list_empty(&thread->dying)) {
            abort_dying(thread);
        } else if (comm && thread->nccl->revoke_comm && watchdog_is_held_up(thread)) {
            /* The CUDA driver blocks the NCCL thread: a call of another thread has the driver's
             * lock, and may wait for the kernel that a revoke would end. If this revoke fails, the
             * NCCL thread revokes when its own call has returned. */
            comm_state_begin_revoke(comm);
            comm->tried = true;
            thread->watch.elsewhere = true;
            thread->watch.aborting_us = clock_now_us();
            pthread_mutex_unlock(&thread->mutex);
            code = thread->nccl->revoke_comm(comm->nccl, 0 /* no flags */);
            pthread_mutex_lock(&thread->mutex);
            thread->watch.aborting_us = 0;
            thread->watch.elsewhere = false;
            if (!comm_state_is_revoked(code)) /* the NCCL thread tries the revoke later */
                comm->phase = PHASE_RUNS;
            pthread_cond_broadcast(&thread->changed);
        } else if (thread->closing && (thread->thread_done || thread->watch.stuck)) {
            break;
        } else {
            pthread_cond_wait(&thread->feed, &thread->mutex);
        }
    }
    thread->aborter_done = true;
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
    if (entered)
        gpu_leave(thread->options.device);
    return NULL;
}
