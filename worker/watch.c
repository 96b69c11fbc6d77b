/*
 * watch.c: the watchdog, which finds out that this worker makes no progress. It compares the counts
 * of calls and steps with those that it saw the last time.
 *
 * Called by the session's thread. Invariant: the watchdog takes no lock that another thread holds
 * while that thread waits for a peer. So the watchdog never waits, even when the training loop
 * hangs.
 */
#include "worker/watch.h"

#include "worker/persist.h"

#include <inttypes.h>
#include <stdio.h>

#define OPERATION_MAX 64

/* Looks whether the training loop or a collective makes progress. Returns true when nothing has
 * moved for the stall warning time: *ret_stalled then names the operation that waits, and the
 * workers for which it waits. The session's thread calls it about four times in that time. */
bool watch_stalled(void *worker_at, int64_t now_us, struct msg_stalled *ret_stalled)
{
    static const char *const names[] = {
        [WORKER_CONNECTS] = "connect",
        [WORKER_RESETS] = "reset callback",
        [WORKER_FETCHES] = "state",
        [WORKER_TRAINS] = "step",
    };
    static _Thread_local struct coll_wait wait;
    static _Thread_local char text[OPERATION_MAX];
    struct worker *worker = worker_at;
    bool collective = rounds_look(worker->rounds, &wait);
    unsigned doing = atomic_load(&worker->doing);
    uint64_t calls =
        atomic_load_explicit(&worker->calls, memory_order_relaxed) + rounds_calls(worker->rounds);
    uint64_t round = collective ? wait.round : 0;
    uint64_t number = collective ? wait.number : 0;
    uint64_t progress = collective ? wait.progress : 0;
    /* While a collective is in progress only its own counters count as progress: the training loop
     * may make other calls while a request hangs. A loop that waits for a checkpoint counts as
     * moving: it waits for a disk, and the driver ends the wait. */
    bool moved = (!collective && (calls != worker->seen.calls || rounds_persist(worker->rounds))) ||
                 round != worker->seen.round || number != worker->seen.number ||
                 progress != worker->seen.progress;

    worker->seen.calls = calls;
    worker->seen.round = round;
    worker->seen.number = number;
    worker->seen.progress = progress;
    if (moved || (!collective && doing == WORKER_RESTS)) {
        worker->seen.since_us = now_us;
        return false;
    }
    ret_stalled->waited_us = now_us - worker->seen.since_us;
    if (ret_stalled->waited_us < worker->welcome.u.welcome_worker.stall_warning_us)
        return false;
    ret_stalled->operation = collective ? wait.operation : names[doing];
    if (number) { /* the number lets an operator compare the reports of the ranks */
        snprintf(text, sizeof(text), "%s (number %" PRIu64 ")", wait.operation, wait.number);
        ret_stalled->operation = text;
    }
    /* a step or a reset callback waits for this worker itself; a fetch waits for agents, so no
     * worker is named */
    if (collective || doing == WORKER_CONNECTS)
        ret_stalled->missing = (struct msg_ids){ wait.missing, wait.missing_count };
    else if (doing != WORKER_FETCHES)
        ret_stalled->missing = (struct msg_ids){ &worker->incarnation, 1 };
    return true;
}
