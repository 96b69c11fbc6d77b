#include "worker/watch.h"

static bool has_moved(struct worker *worker, const struct coll_wait *wait)
{
    uint64_t calls = atomic_load_explicit(&worker->calls, memory_order_relaxed);
    uint64_t number = wait->operation ? wait->number : 0;
    uint64_t progress = wait->operation ? wait->progress : 0;
    bool moved = calls != worker->seen.calls || number != worker->seen.number ||
                 progress != worker->seen.progress;

    worker->seen.calls = calls;
    worker->seen.number = number;
    worker->seen.progress = progress;
    return moved;
}

bool watch_stalled(struct worker *worker, int64_t now_us, struct msg_stalled *ret_stalled)
{
    static _Thread_local struct coll_wait wait;
    bool collective = rounds_look(worker->rounds, &wait);

    if (has_moved(worker, &wait) || (!collective && !atomic_load(&worker->training))) {
        worker->seen.since_us = now_us;
        return false;
    }
    ret_stalled->waited_us = now_us - worker->seen.since_us;
    if (ret_stalled->waited_us < worker->welcome.u.welcome_worker.stall_warning_us)
        return false;
    if (collective) {
        ret_stalled->operation = wait.operation;
        ret_stalled->missing = (struct msg_ids){ wait.missing, wait.missing_count };
    } else {
        ret_stalled->operation = "step";
        ret_stalled->missing = (struct msg_ids){ &worker->incarnation, 1 };
    }
    return true;
}
