#include "collectives/link/quiet.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

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
