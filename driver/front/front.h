/*
 * front.h: the process that the user has started. It stays in front of the driver, which is its
 * child: it keeps the terminal, passes signals on, starts the next driver when one dies, and ends
 * with the exit code of the last one.
 */
#ifndef DRIVER_FRONT_FRONT_H
#define DRIVER_FRONT_FRONT_H

#include "base/base.h"

struct front_config {
    bool restart;          /* a driver that dies is followed by another one */
    bool detach;           /* leave the terminal once the driver runs */
    const char *state_dir; /* --state-dir, for the texts; NULL: it was not given */
};

/* The order of the parent to a driver that it starts. The texts are borrowed while the driver runs.
 */
struct front_order {
    int link;           /* to the parent, see front_link.h; -1: there is no parent */
    const char *job;    /* take over this job; NULL: this is the first driver */
    const char *former; /* how the previous driver has ended; NULL: this is the first driver */
    int signal;         /* the last signal with which the user has ended the job; 0: none */
    bool restarts;      /* the parent starts the next driver, should this one die */
    bool detach;        /* leave the terminal before FRONT_RUNS is sent */
};

/* Drives the job, in a child process. Returns the exit code. */
typedef int (*front_drive_fn)(void *arg, const struct front_order *order);

/*
 * Starts drivers, one after the other, until the job needs none. Returns the exit code of this
 * process. The function also returns in each driver, with what `drive` has returned there. Before
 * the call no other thread may run, and nothing may be held that two processes cannot share.
 */
int front_run(const struct front_config *config, front_drive_fn drive, void *arg);

/* true: the process that started this one ignores SIGHUP (nohup), and so does this one. */
bool front_ignores_hangup(void);

#endif
