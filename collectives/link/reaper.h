/*
 * reaper.h: a thread for what takes time and that nobody waits for: closing, freeing.
 */
#ifndef COLLECTIVES_LINK_REAPER_H
#define COLLECTIVES_LINK_REAPER_H

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct reaper;

/* Embedded in what is to be done, which run may free. */
struct reaper_job {
    void (*run)(void *arg);
    void *arg;
    struct reaper_job *next;
};

/* Its thread is quiet and below the program's (SCHED_BATCH), as are those that a job starts. */
int reaper_open(struct reaper **ret_reaper, struct hvd_err *err) MUST_CHECK;

/* Any thread; jobs run one after the other, in order. A job must not be added twice. */
void reaper_add(struct reaper *reaper, struct reaper_job *job);

void reaper_close(struct reaper *reaper); /* waits for all of them */

#ifdef __cplusplus
}
#endif
#endif
