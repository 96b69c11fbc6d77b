/*
 * alarms.h: what wakes the driver's loop besides connections and children: one timer, signals, and
 * the scribe's descriptor. A file of its own because libevent and the core both have a struct
 * event.
 */
#ifndef DRIVER_IO_ALARMS_H
#define DRIVER_IO_ALARMS_H

#include "base/err.h"

struct event_base;
struct alarms;

struct alarm_ops {
    void (*timer)(void *arg);
    void (*signal)(void *arg, int signal);
    void (*readable)(void *arg);
};

/* signals ends in 0. */
int alarms_create(struct event_base *base, const int *signals, int fd, const struct alarm_ops *ops,
                  void *arg, struct alarms **ret_alarms, struct hvd_err *err) MUST_CHECK;
void alarms_free(struct alarms *alarms);

/* The timer goes off then (os/clock.h); TIME_NEVER: not at all. The last call counts. */
void alarms_arm(struct alarms *alarms, int64_t at_us);

/* What all of it turns on. NULL: no memory. */
struct event_base *alarms_base_create(void);
void alarms_base_free(struct event_base *base);

/* Runs until alarms_end. HVD_E_IO when the loop itself breaks. */
int alarms_run(struct event_base *base, struct hvd_err *err);
void alarms_end(struct event_base *base);

#endif
