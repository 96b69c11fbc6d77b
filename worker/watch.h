/*
 * watch.h: the watchdog, which finds out whether the training loop or a collective makes progress
 * and, if not, for which members it waits. The session's thread asks it about four times in each
 * stall warning time.
 */
#ifndef WORKER_WATCH_H
#define WORKER_WATCH_H

#include "worker/worker.h"

/* The hook `stalled` of session_thread.h. Returns true if there was no progress for the stall
 * warning time: the same collective has moved no byte, or the training loop has made no call.
 * *ret_stalled names the members that are missing; a worker that computes, or is in a reset
 * callback, names itself as missing. The memory that *ret_stalled points to is valid until this
 * thread's next call. */
bool watch_stalled(void *worker, int64_t now_us, struct msg_stalled *ret_stalled);

#endif
