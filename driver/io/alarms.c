/*
 * alarms.c: the timer, the signals and the descriptor of the scribe as events of libevent. The
 * scribe is the thread that writes the journal. loop.c creates the events. This file never includes
 * the core's headers, because both have a struct event.
 */
#include "driver/io/alarms.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"

#include <event2/event.h>

#define ALARM_SIGNALS_MAX 8 /* the most signals that the driver's loop asks for */

struct alarms {
    const struct alarm_ops *ops;
    void *arg;
    struct event *timer;
    struct event *readable; /* the scribe's descriptor */
    struct event *signals[ALARM_SIGNALS_MAX];
};

/* The callback of the timer, the signals and the descriptor. If `what` is EV_SIGNAL, fd is the
 * number of the signal. */
static void alarms_on_event(evutil_socket_t fd, short what, void *arg)
{
    struct alarms *alarms = arg;

    if (what & EV_TIMEOUT)
        alarms->ops->timer(alarms->arg);
    else if (what & EV_SIGNAL)
        alarms->ops->signal(alarms->arg, (int)fd);
    else
        alarms->ops->readable(alarms->arg);
}

/* Makes the events. `signals` is a list that ends in 0. `fd` is the descriptor of the scribe: when
 * it is readable, ops->readable is called. The timer is set later, by alarms_arm. */
int alarms_create(struct event_base *base, const int *signals, int fd, const struct alarm_ops *ops,
                  void *arg, struct alarms **ret_alarms, struct hvd_err *err)
{
    struct alarms *alarms = mem_zalloc(sizeof(*alarms));
    bool made;

    if (!alarms)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the timer and signals of the driver's event loop; free "
                       "memory on this host");
    alarms->ops = ops;
    alarms->arg = arg;
    alarms->timer = event_new(base, -1 /* a timer */, 0, alarms_on_event, alarms);
    alarms->readable = event_new(base, fd, EV_READ | EV_PERSIST, alarms_on_event, alarms);
    made = alarms->timer && alarms->readable && !event_add(alarms->readable, NULL);
    for (size_t i = 0; made && signals[i] && i < ALARM_SIGNALS_MAX; i++) {
        alarms->signals[i] = evsignal_new(base, signals[i], alarms_on_event, alarms);
        made = alarms->signals[i] && !event_add(alarms->signals[i], NULL);
    }
    if (!made) {
        alarms_free(alarms);
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the timer and signals of the driver's event loop; free "
                       "memory on this host");
    }
    *ret_alarms = alarms;
    return 0;
}

void alarms_free(struct alarms *alarms)
{
    if (!alarms)
        return;
    if (alarms->timer)
        event_free(alarms->timer);
    if (alarms->readable)
        event_free(alarms->readable);
    for (size_t i = 0; i < ALARM_SIGNALS_MAX; i++)
        if (alarms->signals[i])
            event_free(alarms->signals[i]);
    mem_free(alarms);
}

/* Sets the timer to the moment at_us, in place of the moment that was set before; TIME_NEVER: the
 * timer does not go off. */
void alarms_arm(struct alarms *alarms, int64_t at_us)
{
    int64_t left_us = at_us - clock_now_us();
    struct timeval left;

    if (at_us == TIME_NEVER) {
        event_del(alarms->timer);
        return;
    }
    left = clock_timeval(left_us > 0 ? left_us : 0);
    event_add(alarms->timer, &left);
}
