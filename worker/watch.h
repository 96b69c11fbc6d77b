/*
 * watch.h: does train stand still? Asked by the session's thread a few times in each stall warning
 * time, and answered from counters alone.
 */
#ifndef WORKER_WATCH_H
#define WORKER_WATCH_H

#include "worker/worker.h"

/* True when the same collective has not moved a byte, or train has not called the library, for the
 * stall warning time. missing points into memory of the calling thread, until its next call. */
bool watch_stalled(struct worker *worker, int64_t now_us, struct msg_stalled *ret_stalled);

#endif
