/*
 * thread.h: threads of ours in somebody's process: no signal is ever delivered to them.
 */
#ifndef OS_THREAD_H
#define OS_THREAD_H

#include "base/base.h"

#include <pthread.h>

typedef void *thread_fn(void *arg);

/* 0 or HVD_E_NOMEM: no thread can be had (memory, or a limit of this machine). To be joined. */
int thread_start(pthread_t *ret_thread, thread_fn *run, void *arg) MUST_CHECK;

#endif
