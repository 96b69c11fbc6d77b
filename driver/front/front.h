/*
 * front.h: the parent process, which the user has started. It stays in front of the driver, which
 * is its child: it keeps the terminal, passes signals on, starts the next driver when one dies, and
 * ends with the exit code of the last driver.
 */
#ifndef DRIVER_FRONT_FRONT_H
#define DRIVER_FRONT_FRONT_H

#include "base/base.h"

struct front_config {
    bool restart;          /* true: start the next driver when a driver dies */
    bool detach;           /* true: go on in the background once the driver runs */
    const char *state_dir; /* --state-dir, for the texts; NULL: it was not given */
};

/* The order of the parent to a driver that it starts. The driver borrows the texts while it runs.
 */
struct front_order {
    int link;           /* the socket to the parent (front_link.h); -1: there is no parent */
    const char *job;    /* take over this job; NULL: this is the first driver */
    const char *former; /* how the previous driver has ended; NULL: this is the first driver */
    int signal; /* the last signal with which the user has asked for the end of the job; 0: none */
    bool restarts; /* true: the parent starts the next driver if this one dies */
    bool detach;   /* true: the driver leaves the terminal before it sends FRONT_RUNS */
};

/* Called by front_run in the driver's process: drives the job. Returns the exit code. */
typedef int (*front_drive_fn)(void *arg, const struct front_order *order);

/*
 * Starts drivers, one after the other, until the job needs no driver. Returns the exit code of this
 * process. The function also returns in each driver's process, with the result of `drive`. Before
 * the call there must be no other thread, and no lock or file that two processes cannot share.
 */
int front_run(const struct front_config *config, front_drive_fn drive, void *arg);

/* true: the process that started this one ignores SIGHUP (nohup), and so does this one. */
bool front_ignores_hangup(void);

#endif
