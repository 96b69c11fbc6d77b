/*
 * thread.c: threads of libhvd and of the programs, and condition variables with a deadline. libhvd
 * runs in the user's process, so its threads take no signals, and the signal mask of the caller is
 * restored.
 */
#include "os/thread.h"

#include "base/err.h"
#include "base/panic.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static atomic_bool thread_was_abandoned; /* thread_abandon was called for some thread */

/* Starts a thread that runs run(arg) with all signals blocked: they are blocked while the thread is
 * created, because a new thread inherits the signal mask of its creator. `stack_bytes` 0: the usual
 * size. HVD_E_LIMIT: no thread is left. */
int thread_start(pthread_t *ret_thread, size_t stack_bytes, thread_fn *run, void *arg)
{
    pthread_attr_t attr;
    sigset_t all;
    sigset_t before;
    int number;

    if (pthread_attr_init(&attr))
        return HVD_E_LIMIT;
    if (stack_bytes)
        (void)pthread_attr_setstacksize(&attr, stack_bytes);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    number = pthread_create(ret_thread, &attr, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return number ? HVD_E_LIMIT : 0;
}

/* Waits until the thread has ended. A failure is a bug of the caller. */
void thread_join(pthread_t thread)
{
    int number = pthread_join(thread, NULL);

    ASSERT(number == 0);
}

/* Lets a thread run that hangs and that no thread waits for. thread_end_process must then end the
 * process. */
void thread_abandon(pthread_t thread)
{
    atomic_store(&thread_was_abandoned, true);
    (void)pthread_detach(thread);
}

/* Ends the process. An abandoned thread may still use memory that exit handlers free, so no handler
 * runs then; only standard output is written. */
void thread_end_process(int status)
{
    if (!atomic_load(&thread_was_abandoned))
        exit(status);
    (void)fflush(stdout);
    _exit(status);
}

/* The calling thread waits for `us` microseconds. A signal does not shorten the pause:
 * clock_nanosleep then continues with the time that is left. */
void thread_pause(int64_t us)
{
    struct timespec left = { us / 1000000, us % 1000000 * 1000 };

    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

/* Makes a condition variable whose timeouts count on the monotonic clock, so a jump of the wall
 * clock changes none of them. */
int thread_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    int number;

    if (pthread_condattr_init(&attr))
        return HVD_E_NOMEM;
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    number = pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    return number ? HVD_E_NOMEM : 0;
}

/* Waits until `cond` is signalled or the monotonic clock has reached `deadline_us`. true: the
 * deadline has passed. The caller looks at its condition again also if it is false. */
bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_us)
{
    const struct timespec until = { deadline_us / 1000000, deadline_us % 1000000 * 1000 };

    return pthread_cond_timedwait(cond, mutex, &until) == ETIMEDOUT;
}
