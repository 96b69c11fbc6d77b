/*
 * arrivals.c: which worker was the last to come to each collective. hvd_timeline.c passes it the
 * lines of all files. The calls of all members of one operation are brought together by sorting;
 * a call is known by its round, its group (number and lowest rank) and its number. No line is
 * trusted.
 */
#include "tools/arrivals.h"

#include "base/limits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void arrivals_init(struct arrivals *arrivals)
{
    *arrivals = (struct arrivals){ .job = 0 };
    arena_init(&arrivals->memory, (size_t)LIMIT_AUDIT_BYTES);
    names_init(&arrivals->names);
}

void arrivals_release(struct arrivals *arrivals)
{
    VEC_RELEASE(&arrivals->workers);
    VEC_RELEASE(&arrivals->calls);
    names_release(&arrivals->names);
    arena_release(&arrivals->memory);
}

/* Finds the worker whose events have this "pid" in the timeline (see struct arrivals_event), or
 * adds the worker; *ret_worker is its index in `workers`. The keys of `names` are the 8 bytes of
 * this number. */
static int arrivals_find_worker(struct arrivals *arrivals, uint64_t process, uint32_t *ret_worker)
{
    uint32_t at = names_find(&arrivals->names, (const char *)&process, sizeof(process));
    uint64_t *key;
    int rc;

    if (at == NAMES_NONE) {
        rc = VEC_RESERVE(&arrivals->workers, 1, LIMIT_INCARNATIONS);
        if (rc)
            return rc;
        key = arena_alloc(&arrivals->memory, sizeof(*key));
        if (!key)
            return HVD_E_NOMEM;
        *key = process;
        at = (uint32_t)arrivals->workers.count;
        rc = names_put(&arrivals->names, (const char *)key, sizeof(*key), at);
        if (rc)
            return rc;
        arrivals->workers.items[arrivals->workers.count++] =
            (struct arrivals_worker){ .process = process, .name = "" };
    }
    *ret_worker = at;
    return 0;
}

/* Reads one line of a timeline. Three kinds of events count: the beginning of the job, the name of
 * a worker, and a collective of several members that is done. A join does not count, because a rank
 * may wait in it for long on purpose. */
int arrivals_line(struct arrivals *arrivals, struct span line, struct hvd_err *err)
{
    struct arrivals_event event;
    uint32_t worker;
    char *name;
    int rc = arrivals_read(line, &event, err);

    if (rc)
        return rc == HVD_DONE ? 0 : rc;
    if (span_is(event.category, "job")) {
        if (arrivals->job && arrivals->job != event.began_us)
            return err_set(err, HVD_E_INVAL,
                           "this is the timeline of another job than that of the earlier file; "
                           "name only files of one job");
        arrivals->job = event.began_us;
    } else if (span_is(event.phase, "M") && span_is(event.name, "process_name")) {
        name = arena_alloc(&arrivals->memory, event.text.length + 1);
        rc = name ? arrivals_find_worker(arrivals, event.process, &worker) : HVD_E_NOMEM;
        /* A name with control characters is not used: the name could disturb a terminal, and JSON
         * forbids even a tab. */
        if (!rc && text_is_clean(event.text.at, event.text.length) &&
            !(event.text.length && memchr(event.text.at, '\t', event.text.length))) {
            /* an empty text may have a NULL address, which memcpy must not get */
            if (event.text.length)
                memcpy(name, event.text.at, event.text.length);
            name[event.text.length] = 0;
            arrivals->workers.items[worker].name = name;
        }
    } else if (span_is(event.phase, "X") && span_is(event.category, "collectives") &&
               span_is(event.ended, "done") && event.members > 1 && !span_is(event.name, "join")) {
        struct arrivals_call call = { .round = event.round,
                                      .group = event.group,
                                      .lowest_rank = event.lowest_rank,
                                      .number = event.number,
                                      .members = event.members,
                                      .began_us = event.began_us,
                                      .ended_us = event.began_us + event.lasted_us,
                                      .needs_all = span_is(event.name, "allreduce") ||
                                                   span_is(event.name, "barrier") ||
                                                   span_is(event.name, "allgather") };

        rc = arrivals_find_worker(arrivals, event.process, &call.worker);
        if (!rc)
            rc = VEC_RESERVE(&arrivals->calls, 1, LIMIT_TIMELINE_CALLS);
        if (!rc)
            arrivals->calls.items[arrivals->calls.count++] = call;
    }
    if (rc == HVD_E_LIMIT)
        return err_set(err, rc,
                       "the timelines have more than %d collective calls, or more than %d workers; "
                       "turn the timeline on for fewer steps",
                       LIMIT_TIMELINE_CALLS, LIMIT_INCARNATIONS);
    return rc ? err_set(err, HVD_E_NOMEM,
                        "no memory for the calls of the timelines; free memory on this host")
              : 0;
}

/* Compares two numbers, in the form that qsort wants: -1, 0 or 1. */
static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Compares the operations of two calls; 0: both calls belong to one operation. */
static int compare_operations(const struct arrivals_call *a, const struct arrivals_call *b)
{
    int sign = order(a->round, b->round);

    sign = sign ? sign : order(a->group, b->group);
    sign = sign ? sign : order(a->lowest_rank, b->lowest_rank);
    return sign ? sign : order(a->number, b->number);
}

/* For qsort: by operation; calls of one operation by the time of arrival. */
static int compare_calls(const void *a_item, const void *b_item)
{
    const struct arrivals_call *a = a_item, *b = b_item;
    int sign = compare_operations(a, b);

    sign = sign ? sign : order(a->began_us, b->began_us);
    return sign ? sign : order(a->worker, b->worker);
}

/* For qsort: first the worker for which the other workers waited longest. */
static int compare_workers(const void *a_item, const void *b_item)
{
    const struct arrivals_worker *a = a_item, *b = b_item;
    int sign = order(b->alone_us, a->alone_us);

    sign = sign ? sign : order(b->last, a->last);
    return sign ? sign : order(a->process, b->process);
}

/* Computes the results: sorts the calls, takes all calls of one operation together, and finds
 * the worker that came last. An operation of which a member's call is missing counts as partial
 * only. */
int arrivals_judge(struct arrivals *arrivals, struct hvd_err *err)
{
    struct arrivals_call *calls = arrivals->calls.items;
    size_t count = arrivals->calls.count;

    if (count)
        qsort(calls, count, sizeof(*calls), compare_calls);
    for (size_t from = 0, to; from < count; from = to) {
        const struct arrivals_call *last;
        struct arrivals_worker *worker;
        uint64_t alone_us, spread_us;

        for (to = from + 1; to < count && !compare_operations(&calls[from], &calls[to]); to++) {
            /* After the sorting equal calls are neighbours. */
            if (!compare_calls(&calls[to - 1], &calls[to]))
                return err_set(err, HVD_E_INVAL,
                               "call %" PRIu64 " of round %" PRIu64
                               " is in the files twice for the same worker; name each file once",
                               calls[to].number, calls[to].round);
        }
        if (to - from != calls[from].members) {
            arrivals->partial++;
            continue;
        }
        /* The calls of one operation are sorted by arrival: all members waited for the last one. */
        last = &calls[to - 1];
        worker = &arrivals->workers.items[last->worker];
        alone_us = last->began_us - calls[to - 2].began_us;
        spread_us = last->began_us - calls[from].began_us;
        arrivals->compared++;
        arrivals->spread_us += spread_us;
        if (spread_us >= arrivals->worst.us) {
            arrivals->worst.us = spread_us;
            arrivals->worst.round = last->round;
            arrivals->worst.number = last->number;
        }
        worker->last++;
        worker->alone_us += alone_us;
        worker->most_us = alone_us > worker->most_us ? alone_us : worker->most_us;
        /* An operation with `needs_all` cannot end on one member before every member has called it.
         * If the times say so, the clocks of the machines differ. */
        for (size_t i = from; last->needs_all && i < to; i++) {
            if (calls[i].ended_us < last->began_us &&
                last->began_us - calls[i].ended_us > arrivals->clock_us)
                arrivals->clock_us = last->began_us - calls[i].ended_us;
        }
    }
    if (arrivals->workers.count)
        qsort(arrivals->workers.items, arrivals->workers.count, sizeof(*arrivals->workers.items),
              compare_workers);
    return 0;
}
