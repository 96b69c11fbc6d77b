/*
 * watch.h: does the loop stand still, and for whom does it wait? Asked by the session's thread a
 * few times in each stall warning time, and answered from counters alone.
 */
#ifndef WORKER_WATCH_H
#define WORKER_WATCH_H

#include "worker/worker.h"

/* True when for the stall warning time the same collective has not moved a byte, or the loop has
 * done nothing else. Who computes, or is in a reset callback, is itself who is missing. What
 * missing points to is valid until the thread's next call. */
bool watch_stalled(struct worker *worker, int64_t now_us, struct msg_stalled *ret_stalled);

#endif
