/*
 * allreduce_work.h: the work of a member in the rounds of bench_allreduce, the same for every
 * engine, also for engines that are programs of other projects.
 */
#ifndef BENCH_ALLREDUCE_WORK_H
#define BENCH_ALLREDUCE_WORK_H

#include "bench/lockstep.h"

#define ALLREDUCE_MAX ((size_t)64 << 20) /* bytes */

enum allreduce_work {
    ALLREDUCE_CHECK = 1, /* the sum is right, or the process ends */
    ALLREDUCE_TIME,      /* so many times: the time of them all, in microseconds, is figure 0 */
};

typedef void allreduce_fn(void *engine, void *numbers, size_t count); /* in place, the sum */

/* Until it is sent home. numbers: ALLREDUCE_MAX bytes. */
void allreduce_work(struct lockstep_self *seat, allreduce_fn *allreduce, void *engine,
                    float *numbers);

#endif
