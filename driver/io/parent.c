/*
 * parent.c: reads, in the driver's event loop, the link to the process that started the driver (its
 * parent). loop.c creates the object. The owner is told once of the end of the parent, and the
 * driver goes on without a parent. This file does not include the core's headers, because libevent
 * has a struct event too.
 */
#include "driver/io/parent.h"

#include "base/mem.h"
#include "driver/front/front_link.h"

#include <event2/event.h>
#include <signal.h>

struct parent {
    const struct parent_ops *ops;
    void *arg;
    struct event *readable; /* NULL: there is no parent */
    /* own_stops: number of stop signals that this process has got; told_stops: number that the
     * parent has got */
    uint32_t own_stops, told_stops;
    bool hung_up;
};

static void parent_count_stops(struct parent *parent, uint32_t own, uint32_t told, int signal)
{
    uint32_t before =
        parent->own_stops > parent->told_stops ? parent->own_stops : parent->told_stops;

    parent->own_stops = own;
    parent->told_stops = told;
    for (; before < own || before < told; before++)
        parent->ops->stop(parent->arg, signal);
}

static void parent_hang_up(struct parent *parent)
{
    if (parent->hung_up)
        return;
    parent->hung_up = true;
    parent->ops->hangup(parent->arg);
}

void parent_own_signal(struct parent *parent, int signal)
{
    if (signal == SIGHUP)
        parent_hang_up(parent);
    else
        parent_count_stops(parent, parent->own_stops + 1, parent->told_stops, signal);
}

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
