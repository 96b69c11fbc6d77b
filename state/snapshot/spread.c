#include "state/snapshot/spread.h"
#include "os/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct spread {
    _Atomic uint64_t next;
    uint64_t end;
    atomic_bool failed;
    spread_fn *work;
    void *arg;
};

/* What one of the threads came to. Numbers are given out in order, and one that was given out is
 * done: so the lowest that fails is the same, whoever is faster. */
struct share {
    struct spread *spread;
    pthread_t thread;
    uint64_t number;
    int rc;
};

static void *work(void *share_at)
{
    struct share *share = share_at;
    struct spread *spread = share->spread;

    while (!share->rc && !atomic_load(&spread->failed)) {
        uint64_t number = atomic_fetch_add(&spread->next, 1);

        if (number >= spread->end)
            break;
        share->rc = spread->work(spread->arg, number);
        share->number = number;
    }
    if (share->rc)
        atomic_store(&spread->failed, true);
    return NULL;
}

static unsigned processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

/* How many were started. */
static unsigned start(struct share *shares, unsigned count)
{
    unsigned started = 0;

    while (started < count && !thread_start(&shares[started].thread, 0, work, &shares[started]))
        started++;
    return started;
}

int spread(uint64_t first, uint64_t end, unsigned threads, spread_fn *fn, void *arg,
           uint64_t *ret_failed)
{
    struct spread spread = { .next = first, .end = end, .work = fn, .arg = arg };
    struct share shares[LIMIT_COPY_THREADS];
    struct share *lowest = &shares[0];
    unsigned started;

    if (threads == 0)
        threads = processors();
    if (threads > LIMIT_COPY_THREADS)
        threads = LIMIT_COPY_THREADS;
    if (end <= first || threads > end - first)
        threads = end <= first ? 1 : (unsigned)(end - first);
    for (unsigned i = 0; i < threads; i++)
        shares[i] = (struct share){ .spread = &spread };
    started = start(&shares[1], threads - 1);
    work(&shares[0]);
    for (unsigned i = 1; i <= started; i++) {
        pthread_join(shares[i].thread, NULL);
        if (shares[i].rc && (!lowest->rc || shares[i].number < lowest->number))
            lowest = &shares[i];
    }
    if (lowest->rc)
        *ret_failed = lowest->number;
    return lowest->rc;
}
