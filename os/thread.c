#include "os/thread.h"

#include "base/err.h"

#include <signal.h>

int thread_start(pthread_t *ret_thread, thread_fn *run, void *arg)
{
    sigset_t all;
    sigset_t before;
    int number;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited by the new thread */
    number = pthread_create(ret_thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return number ? HVD_E_NOMEM : 0;
}
