#include "bench/allreduce_work.h"

#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Small whole numbers, whose sums are exact. */
static void check(struct lockstep_self *seat, allreduce_fn *allreduce, void *engine, float *numbers,
                  size_t count)
{
    size_t others = (size_t)seat->size * (seat->size - 1) / 2; /* what the ranks come to */

    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)(i % 13 + seat->rank);
    allreduce(engine, numbers, count);
    for (size_t i = 0; i < count; i++) {
        size_t sum = i % 13 * seat->size + others;
        float right = (float)sum;

        if (numbers[i] < right || numbers[i] > right) {
            (void)fprintf(stderr, "bench: rank %u: number %zu of %zu is %g, not %g\n", seat->rank,
                          i, count, (double)numbers[i], (double)right);
            exit(1);
        }
    }
}

/* Zeroes stay what they are however often they are added: nothing overflows on the way. */
static int64_t timed(struct lockstep_self *seat, allreduce_fn *allreduce, void *engine,
                     float *numbers, const struct lockstep_order *order)
{
    size_t count = order->bytes / sizeof(float);
    int64_t begun_us;

    memset(numbers, 0, order->bytes);
    for (uint32_t i = 0; i <= order->times / 10; i++)
        allreduce(engine, numbers, count);
    lockstep_gate(seat);
    begun_us = clock_now_us();
    for (uint32_t i = 0; i < order->times; i++)
        allreduce(engine, numbers, count);
    return clock_now_us() - begun_us;
}

void allreduce_work(struct lockstep_self *seat, allreduce_fn *allreduce, void *engine,
                    float *numbers)
{
    struct lockstep_order order;

    while (lockstep_next(seat, &order)) {
        if (order.work == ALLREDUCE_CHECK)
            check(seat, allreduce, engine, numbers, order.bytes / sizeof(float));
        else
            seat->board->members[seat->rank].figures[0] =
                timed(seat, allreduce, engine, numbers, &order);
        lockstep_done(seat);
    }
}
