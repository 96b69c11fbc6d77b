/*
 * parent.c: reads, in the driver's event loop, the link to the process that started the driver (its
 * parent). loop.c creates the object. The owner is told once of the end of the parent, and the
 * driver goes on without a parent. This file does not include the core's headers, because libevent
 * has a struct event too.
 */
#include "driver/io/parent.h"

#include "base/limits.h"
#include "base/mem.h"
#include "driver/front/front_link.h"
#include "os/clock.h"

#include <event2/event.h>
#include <signal.h>

struct parent {
    const struct parent_ops *ops;
    void *arg;
    struct event *readable; /* the parent has sent something, or has ended; NULL: no parent */
    /* own_stops: number of stop signals that this process has got; told_stops: number that the
     * parent has got */
    uint32_t own_stops, told_stops;
    int64_t own_term_us; /* when this process has got its last SIGTERM that counts; 0: none yet */
    bool hung_up;        /* ops->hangup was called */
};

/* Sets how many stop signals this process (`own`) and its parent (`told`) have got. One signal may
 * reach both, so the larger number counts: ops->stop is called as often as that number has grown.
 */
static void parent_count_stops(struct parent *parent, uint32_t own, uint32_t told, int signal)
{
    uint32_t before =
        parent->own_stops > parent->told_stops ? parent->own_stops : parent->told_stops;

    parent->own_stops = own;
    parent->told_stops = told;
    for (; before < own || before < told; before++)
        parent->ops->stop(parent->arg, signal);
}

/* The terminal is gone, as this process or its parent has noticed: the owner is told once. */
static void parent_hang_up(struct parent *parent)
{
    if (parent->hung_up)
        return;
    parent->hung_up = true;
    parent->ops->hangup(parent->arg);
}

/* A signal has come to this process; the parent may have got the same one. */
void parent_own_signal(struct parent *parent, int signal)
{
    int64_t now_us = clock_now_us();

    if (signal == SIGHUP) {
        parent_hang_up(parent);
        return;
    }
    if (signal == SIGTERM && parent->own_term_us &&
        now_us < parent->own_term_us + LIMIT_SAME_SIGNAL_US)
        return;
    parent->own_term_us = signal == SIGTERM ? now_us : 0;
    parent_count_stops(parent, parent->own_stops + 1, parent->told_stops, signal);
}

/* The parent has sent messages, or has ended (HVD_E_LOST): then the driver goes on without it. */
static void parent_on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct parent *parent = arg;
    struct front_msg msg;
    int rc;

    (void)what;
    while (!(rc = front_link_take(fd, &msg)))
        if (msg.kind == FRONT_STOP)
            parent_count_stops(parent, parent->own_stops, msg.count, msg.signal);
        else if (msg.kind == FRONT_HANGUP)
            parent_hang_up(parent);
        else if (msg.kind == FRONT_LOOK)
            parent->ops->look(parent->arg);
    if (rc != HVD_E_LOST)
        return;
    event_del(parent->readable);
    parent->ops->lost(parent->arg);
}

/* Begins to read the link to the parent. With link -1 there is none, and no event is made. */
int parent_create(struct event_base *base, int link, const struct parent_ops *ops, void *arg,
                  struct parent **ret_parent, struct hvd_err *err)
{
    struct parent *parent = mem_zalloc(sizeof(*parent));

    if (parent) {
        parent->ops = ops;
        parent->arg = arg;
    }
    if (parent && link >= 0)
        parent->readable = event_new(base, link, EV_READ | EV_PERSIST, parent_on_readable, parent);
    if (!parent || (link >= 0 && (!parent->readable || event_add(parent->readable, NULL)))) {
        parent_free(parent);
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the link to the driver's parent; free memory on this host");
    }
    *ret_parent = parent;
    return 0;
}

void parent_free(struct parent *parent)
{
    if (!parent)
        return;
    if (parent->readable)
        event_free(parent->readable);
    mem_free(parent);
}
