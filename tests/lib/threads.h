/*
 * threads.h: threads for a test, one for each member of a team. The teams (lane_team.h,
 * coll_team.h, comm_team.h, nccl_team.h, link_team.h) run their members on them.
 */
#ifndef TESTS_LIB_THREADS_H
#define TESTS_LIB_THREADS_H

#include "base/base.h"

#include <pthread.h>

#define THREADS_MAX 32

typedef void threads_act_fn(void *arg, uint32_t rank);

struct threads {
    uint32_t size;
    threads_act_fn *act;
    void *arg;
    pthread_mutex_t mutex;
    pthread_cond_t acted;
    uint32_t acting; /* members that have not acted yet */
    struct threads_one {
        struct threads *threads;
        uint32_t rank;
        bool runs;
        pthread_t thread;
    } each[THREADS_MAX];
};

/* start: runs act on a thread for each member, but for those whose away[rank] is true (away may be
 * NULL). await joins all threads. await_until returns false when some members still act at that
 * time, and joins none. */
void threads_start(struct threads *threads, uint32_t size, const bool *away, threads_act_fn *act,
                   void *arg);
bool threads_await_until(struct threads *threads, int64_t until_us);
void threads_await(struct threads *threads);

/* start, then await */
void threads_run(uint32_t size, const bool *away, threads_act_fn *act, void *arg);

#endif
