/*
 * parent.h: turns messages of the driver's parent process (driver/front) into callbacks of the
 * event loop. A stop signal may reach the driver, its parent, or both: the terminal sends Ctrl-C to
 * both, and the parent also passes it on. So the driver and its parent each count their signals,
 * and the larger count is how often the user has asked for the end.
 */
#ifndef DRIVER_IO_PARENT_H
#define DRIVER_IO_PARENT_H

#include "base/err.h"

struct event_base;
struct parent;

struct parent_ops {
    void (*stop)(void *arg, int signal); /* the user asks for the end of the job, once more */
    void (*hangup)(void *arg);           /* the terminal is gone; called once */
    void (*look)(void *arg); /* FRONT_LOOK: the user wants discovery to ask for hosts now */
    void (*lost)(void *arg); /* the parent has ended */
};

/* `link` is the descriptor of the connection to the parent, borrowed; -1: the driver has no parent,
 * and only its own signals count. */
int parent_create(struct event_base *base, int link, const struct parent_ops *ops, void *arg,
                  struct parent **ret_parent, struct hvd_err *err) MUST_CHECK;
void parent_free(struct parent *parent);

/* A SIGINT, SIGTERM or SIGHUP has come to the driver itself. */
void parent_own_signal(struct parent *parent, int signal);

#endif
