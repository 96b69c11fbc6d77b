#include "driver/io/alarms.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"

#include <event2/event.h>

#define ALARM_SIGNALS_MAX 8

struct alarms {
    const struct alarm_ops *ops;
    void *arg;
    struct event *timer;
    struct event *readable;
    struct event *signals[ALARM_SIGNALS_MAX];
};

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct alarms *alarms = arg;

    (void)fd;
    (void)what;
    alarms->ops->timer(alarms->arg);
}

static void on_signal(evutil_socket_t signal, short what, void *arg)
{
    struct alarms *alarms = arg;

    (void)what;
    alarms->ops->signal(alarms->arg, (int)signal);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct alarms *alarms = arg;

    (void)fd;
    (void)what;
    alarms->ops->readable(alarms->arg);
}

static bool make_all(struct alarms *alarms, struct event_base *base, const int *signals, int fd)
{
    alarms->timer = event_new(base, -1, 0, on_timer, alarms);
    alarms->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, alarms);
    if (!alarms->timer || !alarms->readable || event_add(alarms->readable, NULL))
        return false;
    for (size_t i = 0; signals[i] && i < ALARM_SIGNALS_MAX; i++) {
        alarms->signals[i] = evsignal_new(base, signals[i], on_signal, alarms);
        if (!alarms->signals[i] || event_add(alarms->signals[i], NULL))
            return false;
    }
    return true;
}

int alarms_create(struct event_base *base, const int *signals, int fd, const struct alarm_ops *ops,
                  void *arg, struct alarms **ret_alarms, struct hvd_err *err)
{
    struct alarms *alarms = mem_zalloc(sizeof(*alarms));

    if (!alarms)
        return err_set(err, HVD_E_NOMEM, "no memory for the loop");
    alarms->ops = ops;
    alarms->arg = arg;
    if (!make_all(alarms, base, signals, fd)) {
        alarms_free(alarms);
        return err_set(err, HVD_E_NOMEM, "no memory for the loop's events");
    }
    *ret_alarms = alarms;
    return 0;
}

static void end(struct event *event)
{
    if (event)
        event_free(event);
}

void alarms_free(struct alarms *alarms)
{
    if (!alarms)
        return;
    end(alarms->timer);
    end(alarms->readable);
    for (size_t i = 0; i < ALARM_SIGNALS_MAX; i++)
        end(alarms->signals[i]);
    mem_free(alarms);
}

void alarms_arm(struct alarms *alarms, int64_t at_us)
{
    int64_t left_us = at_us - clock_now_us();
    struct timeval left;

    if (at_us == TIME_NEVER) {
        event_del(alarms->timer);
        return;
    }
    if (left_us < 0)
        left_us = 0;
    left.tv_sec = (time_t)(left_us / TIME_S);
    left.tv_usec = (suseconds_t)(left_us % TIME_S);
    event_add(alarms->timer, &left);
}

struct event_base *alarms_base_create(void)
{
    return event_base_new();
}

void alarms_base_free(struct event_base *base)
{
    if (base)
        event_base_free(base);
}

int alarms_run(struct event_base *base, struct hvd_err *err)
{
    if (event_base_dispatch(base) < 0)
        return err_set(err, HVD_E_IO, "the event loop cannot go on");
    return 0;
}

void alarms_end(struct event_base *base)
{
    event_base_loopbreak(base);
}
