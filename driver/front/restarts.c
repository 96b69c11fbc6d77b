/*
 * restarts.c: how soon drivers may follow each other, for front.c. A driver that crashes again and
 * again, or a disk that stays full, must neither use up the machine nor fill the log, and the job
 * must get a driver soon after the cause is gone.
 */
#include "driver/front/restarts.h"

/* Returns when the next driver may start, and counts it. `oldest` is the place of the new start in
 * the ring at_us. Before it is overwritten, it has the time of the start LIMIT_DRIVER_RESTARTS
 * starts ago. */
int64_t restarts_next(struct restarts *restarts, bool ran, int64_t now_us)
{
    int64_t *oldest = &restarts->at_us[restarts->count % LIMIT_DRIVER_RESTARTS];
    int64_t at_us = now_us;
    int64_t wait_us = TIME_S;

    restarts->failed_in_a_row = ran ? 0 : restarts->failed_in_a_row + 1;
    for (uint32_t i = 2; i < restarts->failed_in_a_row && wait_us < RESTARTS_LONGEST_US; i++)
        wait_us *= 2;
    if (restarts->failed_in_a_row > 1)
        at_us += wait_us < RESTARTS_LONGEST_US ? wait_us : RESTARTS_LONGEST_US;
    if (restarts->count >= LIMIT_DRIVER_RESTARTS && *oldest + RESTARTS_WINDOW_US > at_us)
        at_us = *oldest + RESTARTS_WINDOW_US;
    *oldest = at_us;
    restarts->count++;
    return at_us;
}
