/*
 * thread.h: threads of ours, in our programs and in somebody's process: no signal is ever delivered
 * to them. And conditions whose timed waits are on the clock of clock.h.
 */
#ifndef OS_THREAD_H
#define OS_THREAD_H

#include "base/base.h"

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *thread_fn(void *arg);

/* To be joined, or detached. stack_bytes 0: as large as this machine makes them. HVD_E_LIMIT: no
 * further thread can be had; what a person can raise is the limit of processes (ulimit -u). */
int thread_start(pthread_t *ret_thread, size_t stack_bytes, thread_fn *run, void *arg) MUST_CHECK;

int thread_cond_init(pthread_cond_t *cond) MUST_CHECK; /* HVD_E_NOMEM */

/* Until deadline_us (by clock_now_us); true: it has passed. */
bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_us);

#ifdef __cplusplus
}
#endif
#endif
