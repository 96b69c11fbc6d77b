/*
 * copier.h: makes commits, on the calling thread or on a thread that copies while the training goes
 * on. The thread is started for the first such commit and ends when the state is freed.
 */
#ifndef WORKER_COPIER_H
#define WORKER_COPIER_H

#include "state/snapshot/slot.h"

#include <pthread.h>

/* Says whether the results that are in GPU memory now may become a commit. Returns 0, or the reason
 * why they may not. Any thread may call this function. */
typedef int copier_judge_fn(void *arg, struct hvd_err *err);

struct copier_task {
    struct copy copy; /* what is copied: the program's memory, or the slot that has a copy of it */
    uint64_t commit;
    /* the slot (memory on the GPU for one commit) into which the state was copied; it gets the
     * number of the commit when the GPU has finished the copy. NULL: no slot is used */
    struct slot *slot;
    /* where the commit is copied to; NULL: the commit stays in the slot */
    struct snapshot *snapshot;
    /* asked before a commit gets its number, if the state has entries on a GPU */
    copier_judge_fn *judge;
    void *arg;
};

/* Makes the commit on the calling thread, after the device has done the work that was queued
 * before. Returns 0, or a code of copy_commit, of the device or of `judge`. */
int copier_make(const struct copier_task *task, struct hvd_err *err) MUST_CHECK;

struct copier {
    pthread_t thread;
    bool started;
    /* the process that started the thread: a child that is forked from it has a copy of the lock,
     * but not the thread */
    pid_t pid;
    /* Protects the fields below it; it exists once the thread is started. While `working` is true
     * the thread uses `task` and the two times without the lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closing;
    bool working;
    struct copier_task task;
    struct hvd_err outcome;
    int64_t begun_us, ended_us; /* when the last task began and ended */
};

/* Gives a task to the copier's thread, which begins it; no other task may be running.
 * HVD_E_LIMIT: the thread cannot be started. */
int copier_begin(struct copier *copier, const struct copier_task *task,
                 struct hvd_err *err) MUST_CHECK;

/* Waits until no task is running. Returns the result of the last task, but to one caller only: a
 * second call without a new task returns 0. */
int copier_wait(struct copier *copier, struct hvd_err *err) MUST_CHECK;

void copier_stop(struct copier *copier);

#endif
