/*
 * threads.c: starts and joins the threads of a test. A thread that cannot be started aborts the
 * test, because no test is about that.
 */
#include "tests/lib/threads.h"

#include "os/thread.h"

#include <stdlib.h>

static void *run_one(void *arg)
{
    struct threads_one *one = arg;
    struct threads *threads = one->threads;

    threads->act(threads->arg, one->rank);
    pthread_mutex_lock(&threads->mutex);
    threads->acting--;
    pthread_cond_broadcast(&threads->acted);
    pthread_mutex_unlock(&threads->mutex);
    return NULL;
}

void threads_start(struct threads *threads, uint32_t size, const bool *away, threads_act_fn *act,
                   void *arg)
{
    *threads = (struct threads){ .size = size, .act = act, .arg = arg };
    pthread_mutex_init(&threads->mutex, NULL);
    if (size > THREADS_MAX || thread_cond_init(&threads->acted))
        abort();
    for (uint32_t i = 0; i < size; i++)
        threads->acting += !(away && away[i]);
    for (uint32_t i = 0; i < size; i++) {
        struct threads_one *one = &threads->each[i];

        one->threads = threads;
        one->rank = i;
        one->runs = !(away && away[i]);
        if (one->runs && pthread_create(&one->thread, NULL, run_one, one))
            abort();
    }
}

bool threads_await_until(struct threads *threads, int64_t until_us)
{
    bool late = false;
    bool all;

    pthread_mutex_lock(&threads->mutex);
    while (threads->acting && !late)
        late = thread_cond_wait(&threads->acted, &threads->mutex, until_us);
    all = !threads->acting;
    pthread_mutex_unlock(&threads->mutex);
    return all;
}

void threads_await(struct threads *threads)
{
    for (uint32_t i = 0; i < threads->size; i++) {
        if (threads->each[i].runs)
            pthread_join(threads->each[i].thread, NULL);
    }
    pthread_cond_destroy(&threads->acted);
    pthread_mutex_destroy(&threads->mutex);
}

void threads_run(uint32_t size, const bool *away, threads_act_fn *act, void *arg)
{
    struct threads threads;

    threads_start(&threads, size, away, act, arg);
    threads_await(&threads);
}
