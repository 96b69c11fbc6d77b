/*
 * allreduce_play.h: what a member does in its turns of bench_allreduce, whatever engine it has:
 * the same for all of them, those in programs of others too.
 */
#ifndef BENCH_ALLREDUCE_PLAY_H
#define BENCH_ALLREDUCE_PLAY_H

#include "bench/crew.h"

#define ALLREDUCE_MAX ((size_t)64 << 20) /* bytes */

enum allreduce_work {
    ALLREDUCE_CHECK = 1, /* the sum is right, or the process ends */
    ALLREDUCE_TIME,      /* so many times: the time of them all, in microseconds, is figure 0 */
};

typedef void allreduce_fn(void *engine, void *numbers, size_t count); /* in place, the sum */

/* Until it is sent home. numbers: ALLREDUCE_MAX bytes. */
void allreduce_play(struct crew_seat *seat, allreduce_fn *allreduce, void *engine, float *numbers);

#endif
