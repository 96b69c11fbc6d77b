/*
 * waits.c: finds which worker waits for which, from the STALLED messages of workers. stall.c warns
 * and judges by these waits; lease.c asks whether a host is waited for. PROTOCOL.md, STALLED: a
 * worker that waits reports again in each --stall-warning interval, otherwise it counts as not
 * waiting; a worker that names itself waits for no other worker.
 */
#include "driver/core/waits.h"

#include "driver/core/roster.h"
#include "driver/core/step.h"

#define LATE_US (2 * TIME_S) /* the longest time that a repeated report needs on its way */

/* Returns how long a report of a wait counts: a worker that still waits repeats its report in each
 * --stall-warning interval, and half an interval and LATE_US are added for a late one. */
int64_t waits_repeat_us(const struct core *core)
{
    int64_t warning_us = core->config.stall_warning_us;

    return time_add(warning_us, warning_us / 2 + LATE_US);
}

/* True: the worker has reported a wait, and the report is fresh enough to count. */
bool waits_is_reported(const struct core *core, const struct worker *worker)
{
    return worker->wait.waited_us &&
           time_add(worker->wait.said_us, waits_repeat_us(core)) >= core->now_us;
}

/* True: the worker has reported that it waits for another worker, not for its own training loop. */
bool waits_is_waiting(const struct core *core, const struct worker *worker)
{
    return waits_is_reported(core, worker) && !worker->wait.itself;
}

/* True: the worker has reported that it waits at a check (a call of hvd_state_check or
 * hvd_state_commit), where all members meet. */
bool waits_is_at_check(const struct core *core, const struct worker *worker)
{
    return waits_is_waiting(core, worker) && worker->wait.at_check;
}

/* True: other members may wait for this worker: it is a member, or it leaves by a switch that is
 * not complete. */
bool waits_is_in_round(const struct worker *worker)
{
    return worker->state == WORKER_MEMBER || worker->may_block_switch;
}

int64_t waits_stood_since(const struct core *core, const struct worker *lost)
{
    const struct core_pace *pace = &core->rounds.pace;
    const struct round *round = &core->current;
    const struct worker *worker;
    int64_t since_us = core->now_us;

    if (round->trains_us == TIME_NEVER)
        return core->now_us;
    if (lost && lost->pulse.heard_us < since_us)
        since_us = lost->pulse.heard_us;
    for (size_t i = 0; (worker = roster_next_member(core, round, &i));)
        if (waits_is_waiting(core, worker) &&
            worker->wait.said_us - worker->wait.waited_us < since_us)
            since_us = worker->wait.said_us - worker->wait.waited_us;
    if (COMMIT_ROUND_OF(pace->newest) == round->number && pace->newest_us > since_us)
        since_us = pace->newest_us;
    return since_us > round->trains_us ? since_us : round->trains_us;
}

/* The worker has made progress, so the wait that it last reported is over. */
void waits_moved(struct worker *worker)
{
    worker->wait.waited_us = 0;
}

/* Begins to watch a wait of the driver for workers. The first warning about it comes one and a
 * half times --stall-warning later: by then the workers that wait themselves have reported that,
 * and the warning does not name them as the cause. */
void waits_watch(struct core *core)
{
    int64_t warning_us = core->config.stall_warning_us;

    core->stalls.watch.since_us = core->now_us;
    waits_watch_again(core, time_add(core->now_us, warning_us + warning_us / 2));
}

/* Sets the time of the next warning about workers for which the driver itself waits (stall_expire);
 * TIME_NEVER: none. */
void waits_watch_again(struct core *core, int64_t warn_us)
{
    core->stalls.watch.warn_us = warn_us;
    core_want_timer(core, warn_us);
}

/* A search for the workers that others wait for. If such a worker waits itself, the search goes on
 * to the workers that it waits for. */
struct search {
    struct core *core;
    /* marked workers (`missing`) whose own waits the search has not followed yet */
    struct worker *unasked;
    size_t guilty; /* how many of the marked workers do not wait for others */
};

/* Marks a worker as missing (another worker waits for it), if it is in the round and not marked
 * yet. Counts it as guilty if it does not wait itself. Puts it into `unasked`, so that the workers
 * that it waits for are marked next. */
static void search_mark(struct search *all, struct worker *worker)
{
    if (!worker || worker->missing || !waits_is_in_round(worker))
        return;
    worker->missing = true;
    all->guilty += !waits_is_waiting(all->core, worker);
    worker->next_missing = all->unasked;
    all->unasked = worker;
}

/* Marks the workers that `waiter` waits for. */
static void search_mark_awaited(struct search *all, const struct worker *waiter)
{
    for (size_t i = 0; i < waiter->wait.count; i++)
        search_mark(all, roster_worker(all->core, waiter->wait.missing[i]));
}

/* Marks (`missing`) the workers that others wait for, and returns how many of these do not wait
 * themselves. A report of a wait is used if it fulfils three conditions: the report is fresh; the
 * wait had lasted for waited_us or longer; and the driver has known of this long wait since
 * long_by_us or earlier (`long_us`). */
size_t waits_mark_missing(struct core *core, int64_t waited_us, int64_t long_by_us)
{
    struct search all = { .core = core };
    struct worker *worker;
    bool at_check = false;

    for (size_t i = 0; (worker = roster_next(core, &i));)
        worker->missing = false;
    for (size_t i = 0; (worker = roster_next(core, &i));) {
        if (!waits_is_reported(core, worker) || worker->wait.waited_us < waited_us ||
            worker->wait.long_us > long_by_us)
            continue;
        at_check |= worker->wait.at_check;
        search_mark_awaited(&all, worker);
    }
    /* PROTOCOL.md, STALLED: at a check a worker cannot name the missing workers. These are the
     * members that have not said NEXT_CHECK. */
    for (size_t i = 0; at_check && (worker = roster_next_member(core, &core->current, &i));)
        if (core->job == JOB_PENDING && !worker->at_sent)
            search_mark(&all, worker);
    /* A missing worker that waits itself is not guilty; the workers that it waits for may be. */
    while (all.unasked) {
        worker = all.unasked;
        all.unasked = worker->next_missing;
        if (waits_is_waiting(core, worker))
            search_mark_awaited(&all, worker);
    }
    return all.guilty;
}

/* True: the worker is guilty: other workers wait for it (`missing`), but it waits for none. */
bool waits_is_guilty(const struct core *core, const struct worker *worker)
{
    return worker->missing && !waits_is_waiting(core, worker);
}

/* Returns a host if only workers of this host say that they wait, although the round has members on
 * at least two other hosts; otherwise NULL. A true wait would hold the members of the other hosts
 * up too, so the agent of the one host may lie. */
const struct core_host *waits_of_one_host(const struct core *core)
{
    const struct core_host *one = NULL, *other = NULL;
    const struct worker *worker;
    bool more = false;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        if (!waits_is_waiting(core, worker))
            continue;
        if (one && one != worker->host)
            return NULL;
        one = worker->host;
    }
    for (size_t i = 0; (worker = roster_next_member(core, &core->current, &i));) {
        if (worker->host == one)
            continue;
        more |= other && other != worker->host;
        other = worker->host;
    }
    return more ? one : NULL;
}

/* True: other workers wait for a worker of this host, and this worker does not wait itself. */
bool waits_for_host(struct core *core, const struct core_host *host)
{
    const struct worker *worker;
    bool waits = false;

    /* 0 and the present time: each fresh report of a wait counts, however short the wait is */
    (void)waits_mark_missing(core, 0, core->now_us);
    for (size_t slot = 0; (worker = roster_next_on(host, &slot));)
        waits |= waits_is_guilty(core, worker);
    return waits;
}

/* Among the workers for which `is` returns true, returns the worker with the longest wait; NULL:
 * there is none. *ret_count: how many there are. */
struct worker *waits_longest(const struct core *core, worker_is_fn *is, size_t *ret_count)
{
    struct worker *worker, *longest = NULL;

    *ret_count = 0;
    for (size_t i = 0; (worker = roster_next(core, &i));) {
        if (!is(core, worker))
            continue;
        ++*ret_count;
        if (!longest || worker->wait.waited_us > longest->wait.waited_us)
            longest = worker;
    }
    return longest;
}

/* Returns the text of the last warning about waiting workers; "" if no worker reports a wait
 * now. */
const char *waits_said(const struct core *core)
{
    size_t count;

    return waits_longest(core, waits_is_reported, &count) ? core->stalls.said : "";
}
