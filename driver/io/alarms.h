/*
 * alarms.h: what wakes the driver's event loop besides connections and child processes: one timer,
 * signals, and the descriptor of the scribe (driver/journal/scribe.h). This is a file of its own
 * because libevent and the core both have a struct event.
 */
#ifndef DRIVER_IO_ALARMS_H
#define DRIVER_IO_ALARMS_H

#include "base/err.h"

struct event_base;
struct alarms;

/* Callbacks: the time of alarms_arm has come; a signal has come; the scribe's descriptor is
 * readable. */
struct alarm_ops {
    void (*timer)(void *arg);
    void (*signal)(void *arg, int signal);
    void (*readable)(void *arg);
};

/* Creates the events. signals: a list of signal numbers that ends in 0. fd: ops->readable is called
 * when this descriptor is readable. */
int alarms_create(struct event_base *base, const int *signals, int fd, const struct alarm_ops *ops,
                  void *arg, struct alarms **ret_alarms, struct hvd_err *err) MUST_CHECK;
void alarms_free(struct alarms *alarms);

/* Sets the timer to the time `at_us` on the monotonic clock (os/clock.h). TIME_NEVER: the timer
 * does not go off. Each call replaces the time of the last call. */
void alarms_arm(struct alarms *alarms, int64_t at_us);

#endif
