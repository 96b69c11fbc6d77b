/*
 * loss.h: a worker has ended, or is counted as dead: who is to blame, and what follows.
 */
#ifndef DRIVER_CORE_LOSS_H
#define DRIVER_CORE_LOSS_H

#include "driver/core/state.h"

struct ending {
    enum msg_ended ended;
    int32_t value;
    const char *text; /* instead of "exit code 1"; NULL: what ended and value say */
    bool excused;     /* whoever is to blame, this worker and its seat are not */
};

/* Its process is gone. Its agent may forget it. */
void loss_ended(struct core *core, struct worker *worker, const struct ending *ending);

/* It is counted as dead from now on, while its process may still be there. */
void loss_doom(struct core *core, struct worker *worker, const struct ending *ending);

/* The same, and its agent is told to kill it: SIGTERM, and SIGKILL after the grace. */
void loss_kill(struct core *core, struct worker *worker, const char *why, bool excused,
               int64_t grace_us);

/* A failure of the host as such: nothing is launched there for a while. */
void loss_charge_host(struct core *core, const struct core_host *host, const char *why);

#endif
