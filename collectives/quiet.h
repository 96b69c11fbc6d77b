/*
 * quiet.h: threads of the library. They have every signal blocked: the program's handlers run on
 * the program's threads, and a write to a peer that is gone kills nobody.
 */
#ifndef COLLECTIVES_QUIET_H
#define COLLECTIVES_QUIET_H

#include "base/err.h"

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

int quiet_thread(pthread_t *ret_thread, void *(*run)(void *arg), void *arg) MUST_CHECK;

/* For a thread of the program that is about to write to a peer: no SIGPIPE of ours gets through in
 * between. */
struct quiet_pipe {
    bool blocked_here; /* it was not blocked before */
};
void quiet_pipe_begin(struct quiet_pipe *quiet);
void quiet_pipe_end(struct quiet_pipe *quiet);

/* A condition whose timed waits are on the clock of os/clock.h. */
int quiet_cond_init(pthread_cond_t *cond) MUST_CHECK;

/* Until deadline_us; true: it has passed. */
bool quiet_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_us);

#ifdef __cplusplus
}
#endif
#endif
