/* part.c: members of a round leave it together, in order. */
#include "base/time.h"
#include "collectives/operation.h"
#include "os/clock.h"
#include "os/thread.h"

/* One that has its result may be needed by others that do not have theirs yet: NCCL reads and sends
 * what it has brought out of its memory, by its threads. So nobody ends them, or itself, before all
 * have come here, which says that they are settled. */

struct parting {
    struct coll *coll;
    bool done; /* under the mutex of coll */
};

/* Whoever of this process waits for others does not any more. They do not hear of it. */
static void stop_waiting(struct coll *coll)
{
    if (coll->segment)
        segment_leave(coll->segment);
    if (coll->link)
        coll->link->ops->cancel(coll->link);
}

static void *limit(void *arg)
{
    struct parting *parting = arg;
    struct coll *coll = parting->coll;
    int64_t until_us = clock_now_us() + coll_engine_bound_us(coll->engine);

    pthread_mutex_lock(&coll->mutex);
    while (!parting->done && clock_now_us() < until_us)
        (void)thread_cond_wait(&coll->changed, &coll->mutex, until_us);
    if (!parting->done)
        stop_waiting(coll);
    pthread_mutex_unlock(&coll->mutex);
    return NULL;
}

/* In the order that all have. What it comes to does not matter: who has come here is done. */
static void meet_in_groups(struct coll *coll)
{
    int rc = 0;

    for (size_t i = 0; i < coll->group_count && !rc; i++) {
        const struct coll_call call = { .kind = COLL_END, .group = i };

        if (atomic_load(&coll->groups[i].used))
            rc = operation_inside(coll, &coll->groups[i], &call);
    }
}

void coll_part(struct coll *coll)
{
    struct parting parting = { .coll = coll };
    pthread_t thread;

    if (!coll->by_nccl || coll_has_failed(coll) || thread_start(&thread, 0, limit, &parting))
        return;
    meet_in_groups(coll);
    pthread_mutex_lock(&coll->mutex);
    parting.done = true;
    pthread_cond_broadcast(&coll->changed);
    pthread_mutex_unlock(&coll->mutex);
    pthread_join(thread, NULL);
}
