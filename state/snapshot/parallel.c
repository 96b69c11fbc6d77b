/*
 * parallel.c: a parallel loop without a thread pool: copies are rare and long, so starting threads
 * costs little beside them.
 *
 * Called by copy.c. Invariant: numbers are given out in rising order, and each number that was
 * given out is done. So the lowest number that fails is the same in every run, however fast each
 * thread is.
 */
#include "state/snapshot/parallel.h"
#include "os/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* A loop that is running, as all its threads see it. */
struct parallel {
    _Atomic uint64_t next; /* the next number to give out */
    uint64_t end;          /* the number after the last */
    atomic_bool failed;    /* some number has failed, so no further number is given out */
    parallel_fn *fn;
    void *arg;
};

/* One thread of the loop: the last number that it has handled, and the result for that number. */
struct parallel_worker {
    struct parallel *parallel;
    pthread_t thread;
    uint64_t number;
    int rc;
};

/* Runs on each thread: takes the next number and handles it, until no number is left or a thread
 * has failed. */
static void *parallel_work(void *worker_at)
{
    struct parallel_worker *worker = worker_at;
    struct parallel *parallel = worker->parallel;

    while (!worker->rc && !atomic_load(&parallel->failed)) {
        uint64_t number = atomic_fetch_add(&parallel->next, 1);

        if (number >= parallel->end)
            break;
        worker->rc = parallel->fn(parallel->arg, number);
        worker->number = number;
    }
    if (worker->rc)
        atomic_store(&parallel->failed, true);
    return NULL;
}

/* Handles all numbers of [first, end) on several threads, of which the caller is one. threads 0:
 * one for each processor of this process. Returns the code of the lowest number that failed; 0:
 * none failed. */
int parallel_for(uint64_t first, uint64_t end, unsigned threads, parallel_fn *fn, void *arg,
                 uint64_t *ret_failed)
{
    struct parallel parallel = { .next = first, .end = end, .fn = fn, .arg = arg };
    struct parallel_worker workers[LIMIT_COPY_THREADS];
    struct parallel_worker *lowest = &workers[0];
    unsigned started = 1; /* the caller is workers[0] */
    cpu_set_t set;

    if (threads == 0)
        threads = sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
    if (threads > LIMIT_COPY_THREADS)
        threads = LIMIT_COPY_THREADS;
    if (end <= first || threads > end - first)
        threads = end <= first ? 1 : (unsigned)(end - first);
    if (threads < 1)
        threads = 1;
    for (unsigned i = 0; i < threads; i++)
        workers[i] = (struct parallel_worker){ .parallel = &parallel };
    while (started < threads &&
           !thread_start(&workers[started].thread, 0, parallel_work, &workers[started]))
        started++;
    parallel_work(&workers[0]);
    for (unsigned i = 1; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].rc && (!lowest->rc || workers[i].number < lowest->number))
            lowest = &workers[i];
    }
    if (lowest->rc)
        *ret_failed = lowest->number;
    return lowest->rc;
}
