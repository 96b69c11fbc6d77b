/*
 * thread.h: threads of hvd-elastic's programs, and of libhvd in the user's process. No signal is
 * ever delivered to these threads. Also condition variables whose timed waits use the clock of
 * clock.h.
 */
#ifndef OS_THREAD_H
#define OS_THREAD_H

#include "base/base.h"

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *thread_fn(void *arg);

/* Starts a thread, which the caller joins or detaches. stack_bytes 0: the default stack size of the
 * machine. HVD_E_LIMIT: no further thread can be had; the operator can raise the limit of processes
 * (ulimit -u). */
int thread_start(pthread_t *ret_thread, size_t stack_bytes, thread_fn *run, void *arg) MUST_CHECK;

/* Waits until the thread has ended. */
void thread_join(pthread_t thread);

/* Gives up a thread that hangs. The thread is not joined, and the process ends by
 * thread_end_process. */
void thread_abandon(pthread_t thread);

/* Ends the process, for main() of a program and for a forked child. If a thread was given up, no
 * exit handler runs, because the thread may still use memory that a handler frees (OpenSSL has such
 * a handler). */
NORETURN void thread_end_process(int status);

void thread_pause(int64_t us); /* the calling thread does nothing for `us` microseconds */

int thread_cond_init(pthread_cond_t *cond)
    MUST_CHECK; /* the timeouts of `cond` use the monotonic clock; HVD_E_NOMEM */

/* Waits until cond is signalled or until deadline_us (on the clock of clock_now_us); true:
 * deadline_us has passed. */
bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_us);

#ifdef __cplusplus
}
#endif
#endif
