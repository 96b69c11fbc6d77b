/*
 * loss.h: handles a worker that has ended or is counted as dead: which slot or host is to blame,
 * and what the driver does then.
 */
#ifndef DRIVER_CORE_LOSS_H
#define DRIVER_CORE_LOSS_H

#include "driver/core/core_internal.h"

struct ending {
    enum msg_ended ended;
    int32_t value;
    /* The reason in words; NULL: a text such as "exit code 1" is made from `ended` and `value`. */
    const char *text;
    bool excused; /* neither this worker nor its slot is to blame */
    bool of_host; /* the whole host of the worker has failed */
};

/* The worker's process is gone: the worker is removed from the table, and its agent is told
 * FORGET. */
void loss_ended(struct core *core, struct worker *worker, const struct ending *ending);

/* The worker is counted as dead from now on, although its process may still run. */
void loss_doom(struct core *core, struct worker *worker, const struct ending *ending);

/* Does what loss_doom does, and tells the worker's agent to kill the worker: SIGTERM, and SIGKILL
 * after grace_us. `excused`: the worker is not to blame. */
void loss_kill(struct core *core, struct worker *worker, const char *why, bool excused,
               int64_t grace_us);

/* Charges a failure to the host as a whole: no worker is launched there until its cooldown ends. */
void loss_charge_host(struct core *core, const struct core_host *host, const char *why);

/* A worker has joined: the count of failed starts in a row begins again at 0. */
void loss_forget_boots(struct core *core);

#endif
