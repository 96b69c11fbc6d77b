/*
 * restarts.c: the limit and the waits between drivers that front.c starts one after the other. A
 * driver that crashes again and again, or a disk that stays full, must neither use up the machine
 * nor fill the log, and the job must get its driver back soon after the cause is gone.
 */
#include "driver/front/restarts.h"

int64_t restarts_next(struct restarts *restarts, bool ran, int64_t now_us)
{
    int64_t *oldest = &restarts->at_us[restarts->count % LIMIT_DRIVER_RESTARTS];
    int64_t at_us = now_us;
    int64_t wait_us = TIME_S;

    restarts->in_vain = ran ? 0 : restarts->in_vain + 1;
    for (uint32_t i = 2; i < restarts->in_vain && wait_us < RESTARTS_LONGEST_US; i++)
        wait_us *= 2;
    if (restarts->in_vain > 1)
        at_us += wait_us < RESTARTS_LONGEST_US ? wait_us : RESTARTS_LONGEST_US;
    if (restarts->count >= LIMIT_DRIVER_RESTARTS && *oldest + RESTARTS_WINDOW_US > at_us)
        at_us = *oldest + RESTARTS_WINDOW_US;
    *oldest = at_us;
    restarts->count++;
    return at_us;
}
