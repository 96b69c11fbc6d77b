/*
 * watchdog.c: finds calls of NCCL and the driver that do not return. All files of nccl report their
 * calls here (nccl_call_begin, nccl_call_end); the watchdog's thread watches these calls while a
 * communicator ends.
 *
 * That thread calls nothing of NCCL or the driver, so neither can hold it up.
 */
#include "base/time.h"
#include "collectives/nccl/comm_state.h"
#include "os/clock.h"
#include "os/thread.h"

#include <stdarg.h>
#include <stdio.h>

/* A question to the driver usually takes a microsecond; after this time the driver counts as
 * blocked by another call. */
#define HELD_UP_US (100 * TIME_MS)

/* How often the watchdog's thread looks at the calls while a communicator ends. */
#define LOOK_US (100 * TIME_MS)

/* The NCCL thread calls NCCL or the driver next: notes the time, and releases the lock. */
void nccl_call_begin(struct nccl_thread *thread)
{
    thread->watch.inside_us = clock_now_us();
    pthread_mutex_unlock(&thread->mutex);
}

/* The NCCL thread's call of NCCL or the driver has returned: takes the lock again. */
void nccl_call_end(struct nccl_thread *thread)
{
    pthread_mutex_lock(&thread->mutex);
    thread->watch.inside_us = 0;
}

/* Reports once that the device is stuck (`told`, then `stuck`), and marks `comm`
 * (nccl_thread_internal.h). The lock is released during the callback. */
void watchdog_tell_stuck(struct nccl_thread *thread, struct comm *comm, const char *format, ...)
{
    char why[ERR_TEXT_MAX];
    int used = snprintf(why, sizeof(why), "%s: ", thread->options.device->name);
    va_list values;

    va_start(values, format);
    vsnprintf(why + used, sizeof(why) - (size_t)used, format, values);
    va_end(values);

    /* another thread has found the device stuck too: wait until that thread has reported it */
    while (thread->watch.told && !thread->watch.stuck)
        pthread_cond_wait(&thread->changed, &thread->mutex);
    if (!thread->watch.told) {
        thread->watch.told = true;
        pthread_mutex_unlock(&thread->mutex);
        thread->options.stuck(thread->options.arg, why);
        pthread_mutex_lock(&thread->mutex);
        thread->watch.stuck = true;
        nccl_thread_kick(thread);
    }
    if (comm)
        comm->stuck = true;
    pthread_cond_broadcast(&thread->changed);
}

/* Returns when a call that began at since_us is overdue. since_us 0: there is no call; returns
 * TIME_NEVER. */
int64_t watchdog_due(const struct nccl_thread *thread, int64_t since_us)
{
    return since_us ? since_us + thread->options.bound_us : TIME_NEVER;
}

/* true: the NCCL thread or the aborter is in a call that has taken longer than bound_us. Then the
 * device counts as stuck, which is reported here. */
bool watchdog_is_overdue(struct nccl_thread *thread)
{
    char bound[TIME_TEXT_MAX];
    int64_t now_us = clock_now_us();
    bool thread_is_late = now_us >= watchdog_due(thread, thread->watch.inside_us);

    if (!thread_is_late && now_us < watchdog_due(thread, thread->watch.aborting_us))
        return false;
    watchdog_tell_stuck(thread, NULL,
                        "%s does not return within %s, so the GPU may hang; check the GPU with "
                        "nvidia-smi, or give a longer --gpu-timeout",
                        thread_is_late ? "a call of NCCL" : "the abort of a communicator",
                        time_format(thread->options.bound_us, bound));
    return true;
}

/* true: the NCCL thread has asked the driver about an event for so long that another call of the
 * driver must be blocking it. */
bool watchdog_is_held_up(const struct nccl_thread *thread)
{
    return thread->watch.asking && clock_now_us() - thread->watch.inside_us >= HELD_UP_US;
}

/* Returns the earliest time at which a call of NCCL or of the driver can be overdue. Another
 * thread may begin a call at any moment without telling the caller: so the result is never later
 * than for a call that begins now. */
static int64_t watchdog_next_due(const struct nccl_thread *thread)
{
    int64_t due_us = watchdog_due(thread, clock_now_us());
    int64_t inside_us = watchdog_due(thread, thread->watch.inside_us);
    int64_t aborting_us = watchdog_due(thread, thread->watch.aborting_us);

    due_us = inside_us < due_us ? inside_us : due_us;
    return aborting_us < due_us ? aborting_us : due_us;
}

/* Waits until `changed` is signalled, until until_us, or until a call can be overdue, which the
 * caller then checks. */
void watchdog_wait(struct nccl_thread *thread, int64_t until_us)
{
    int64_t due_us = watchdog_next_due(thread);

    (void)thread_cond_wait(&thread->changed, &thread->mutex, due_us < until_us ? due_us : until_us);
}

/* The main function of the watchdog. It reports when the NCCL thread or the aborter does not return
 * from a call. A thread in comm_settle does the same, but perhaps no thread calls comm_settle: the
 * program itself may hang in a call of the CUDA driver that waits for the device, while the kernel
 * that should be revoked waits for a dead peer. Then the watchdog wakes the aborter, which revokes
 * the communicator. */
void *watchdog_run(void *arg)
{
    struct nccl_thread *thread = arg;

    pthread_mutex_lock(&thread->mutex);
    while (!thread->closing) {
        /* true: a kernel of a failed communicator may still use the program's memory */
        bool kernel_may_run = false;

        LIST_EACH (it, &thread->comms) {
            const struct comm *comm = CONTAINER_OF(it, struct comm, among);

            kernel_may_run =
                kernel_may_run || (comm->ran && comm->failed && !comm->ended && !comm->stuck);
        }
        if (thread->watch.told || !kernel_may_run) {
            pthread_cond_wait(&thread->alarm, &thread->mutex);
        } else if (!watchdog_is_overdue(thread)) {
            int64_t look_us = clock_now_us() + LOOK_US;
            int64_t due_us = watchdog_next_due(thread);

            if (watchdog_is_held_up(thread))
                pthread_cond_signal(&thread->feed); /* wakes the aborter */
            (void)thread_cond_wait(&thread->alarm, &thread->mutex,
                                   due_us < look_us ? due_us : look_us);
        }
    }
    pthread_mutex_unlock(&thread->mutex);
    return NULL;
}
