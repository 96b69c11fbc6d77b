#include "collectives/quiet.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

int quiet_thread(pthread_t *ret_thread, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(ret_thread, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc ? HVD_E_NOMEM : 0;
}

static void pipe_set(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGPIPE);
}

void quiet_pipe_begin(struct quiet_pipe *quiet)
{
    sigset_t pipe, before;

    pipe_set(&pipe);
    (void)pthread_sigmask(SIG_BLOCK, &pipe, &before);
    quiet->blocked_here = !sigismember(&before, SIGPIPE);
}

/* One that came meanwhile is taken: it was ours, as this thread has done nothing else. */
void quiet_pipe_end(struct quiet_pipe *quiet)
{
    const struct timespec at_once = { 0, 0 };
    sigset_t pipe;

    if (!quiet->blocked_here)
        return;
    pipe_set(&pipe);
    while (sigtimedwait(&pipe, NULL, &at_once) < 0 && errno == EINTR) {
    }
    (void)pthread_sigmask(SIG_UNBLOCK, &pipe, NULL);
}

int quiet_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    int rc;

    if (pthread_condattr_init(&attr))
        return HVD_E_NOMEM;
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    rc = pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    return rc ? HVD_E_NOMEM : 0;
}

bool quiet_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_us)
{
    const struct timespec until = { deadline_us / 1000000, deadline_us % 1000000 * 1000 };

    return pthread_cond_timedwait(cond, mutex, &until) == ETIMEDOUT;
}
