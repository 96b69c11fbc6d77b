/*
 * copier.h: commits, and a thread that makes them beside the training. It is there from the first
 * one until the state is freed.
 */
#ifndef WORKER_COPIER_H
#define WORKER_COPIER_H

#include "state/snapshot/slot.h"

#include <pthread.h>

/* Is what a device has computed by now worth keeping? 0, or why not. Any thread. */
typedef int copier_judge_fn(void *arg, struct hvd_err *err);

/* A commit to be made. Of a state that is on a device, what the ferry waits for is awaited first.
 */
struct copier_job {
    struct copy copy; /* of what is live, or of the slot */
    uint64_t commit;
    struct slot *slot;         /* it has been taken, and is named when it is there; NULL: none */
    struct snapshot *snapshot; /* NULL: it is not brought there */
    copier_judge_fn *judge;    /* asked if it is on a device */
    void *arg;
};

/* Now, by the caller. The codes of copy_commit, of the device and of judge. */
int copier_make(const struct copier_job *job, struct hvd_err *err) MUST_CHECK;

struct copier {
    pthread_t thread;
    bool started;
    pid_t pid;            /* a fork of this process has the lock, and no thread */
    pthread_mutex_t lock; /* from here on: once it is started */
    pthread_cond_t changed;
    bool closing;
    bool working;
    struct copier_job job;
    struct hvd_err outcome;
    int64_t begun_us, ended_us; /* of the last one */
};

/* Begins; there must be none under way. HVD_E_LIMIT: no thread can be had. */
int copier_begin(struct copier *copier, const struct copier_job *job,
                 struct hvd_err *err) MUST_CHECK;

/* Until nothing is under way: what came of the last one, told once. */
int copier_wait(struct copier *copier, struct hvd_err *err) MUST_CHECK;

void copier_stop(struct copier *copier);

#endif
