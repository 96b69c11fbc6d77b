#include "os/thread.h"

#include "base/err.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

/* A new thread inherits the mask. */
static int create(pthread_t *ret_thread, const pthread_attr_t *attr, thread_fn *run, void *arg)
{
    sigset_t all;
    sigset_t before;
    int number;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    number = pthread_create(ret_thread, attr, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return number ? HVD_E_LIMIT : 0;
}

int thread_start(pthread_t *ret_thread, size_t stack_bytes, thread_fn *run, void *arg)
{
    pthread_attr_t attr;
    int rc;

    if (!stack_bytes)
        return create(ret_thread, NULL, run, arg);
    if (pthread_attr_init(&attr))
        return HVD_E_LIMIT;
    (void)pthread_attr_setstacksize(&attr, stack_bytes);
    rc = create(ret_thread, &attr, run, arg);
    (void)pthread_attr_destroy(&attr);
    return rc;
}

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

bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_us)
{
    const struct timespec until = { deadline_us / 1000000, deadline_us % 1000000 * 1000 };

    return pthread_cond_timedwait(cond, mutex, &until) == ETIMEDOUT;
}
