#include "worker/watch.h"

#include <inttypes.h>
#include <stdio.h>

#define OPERATION_MAX 64

/* What the loop does beside a collective that stands still (a request) is no progress of that. */
static bool has_moved(struct worker *worker, const struct coll_wait *wait)
{
    uint64_t calls =
        atomic_load_explicit(&worker->calls, memory_order_relaxed) + rounds_calls(worker->rounds);
    uint64_t round = wait->operation ? wait->round : 0;
    uint64_t number = wait->operation ? wait->number : 0;
    uint64_t progress = wait->operation ? wait->progress : 0;
    bool moved = (!wait->operation && calls != worker->seen.calls) || round != worker->seen.round ||
                 number != worker->seen.number || progress != worker->seen.progress;

    worker->seen.calls = calls;
    worker->seen.round = round;
    worker->seen.number = number;
    worker->seen.progress = progress;
    return moved;
}

/* "allreduce (number 17)": by it the ranks' reports, and the program's own log, can be told apart.
 */
static const char *operation_text(const struct coll_wait *wait, char text[OPERATION_MAX])
{
    if (!wait->number)
        return wait->operation;
    snprintf(text, OPERATION_MAX, "%s (number %" PRIu64 ")", wait->operation, wait->number);
    return text;
}

bool watch_stalled(struct worker *worker, int64_t now_us, struct msg_stalled *ret_stalled)
{
    static const char *const names[] = {
        [WORKER_CONNECTS] = "connect",
        [WORKER_RESETS] = "reset callback",
        [WORKER_FETCHES] = "state",
        [WORKER_TRAINS] = "step",
    };
    static _Thread_local struct coll_wait wait;
    static _Thread_local char text[OPERATION_MAX];
    bool collective = rounds_look(worker->rounds, &wait);
    unsigned doing = atomic_load(&worker->doing);

    if (has_moved(worker, &wait) || (!collective && doing == WORKER_RESTS)) {
        worker->seen.since_us = now_us;
        return false;
    }
    ret_stalled->waited_us = now_us - worker->seen.since_us;
    if (ret_stalled->waited_us < worker->welcome.u.welcome_worker.stall_warning_us)
        return false;
    ret_stalled->operation = collective ? operation_text(&wait, text) : names[doing];
    if (collective || doing == WORKER_CONNECTS)
        ret_stalled->missing = (struct msg_ids){ wait.missing, wait.missing_count };
    else if (doing != WORKER_FETCHES)
        ret_stalled->missing = (struct msg_ids){ &worker->incarnation, 1 };
    return true;
}
