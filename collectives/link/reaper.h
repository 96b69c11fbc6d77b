/*
 * reaper.h: a thread that runs slow tasks in the background, such as closing connections and
 * freeing rounds, so that no caller waits for them.
 */
#ifndef COLLECTIVES_LINK_REAPER_H
#define COLLECTIVES_LINK_REAPER_H

#include "base/err.h"

struct reaper;

/* A task is embedded in the object that it works on; `run` may free that object. */
struct reaper_task {
    void (*run)(void *arg);
    void *arg;
    struct reaper_task *next;
};

/* Starts the reaper's thread. The thread takes no signals and runs at a lower priority than the
 * program's threads (SCHED_BATCH), and so do the threads that a task starts. */
int reaper_open(struct reaper **ret_reaper, struct hvd_err *err) MUST_CHECK;

/* Adds a task. Any thread may call reaper_add. Tasks run one after another, in the order in which
 * they were added. The same task must not be added twice. */
void reaper_add(struct reaper *reaper, struct reaper_task *task);

void reaper_close(struct reaper *reaper); /* first waits until all tasks have run */

#endif
