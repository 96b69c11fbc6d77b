/*
 * copier.h: commits made beside the training, by a thread that is there from the first one until
 * the state is freed.
 */
#ifndef WORKER_COPIER_H
#define WORKER_COPIER_H

#include "state/snapshot/copy.h"

#include <pthread.h>

struct copier {
    pthread_t thread;
    bool started;
    pid_t pid;            /* a fork of this process has the lock, and no thread */
    pthread_mutex_t lock; /* from here on: once it is started */
    pthread_cond_t changed;
    bool closing;
    bool working;
    struct snapshot *snapshot;
    struct copy copy;
    uint64_t commit;
    struct hvd_err outcome;
    int64_t begun_us, ended_us; /* of the last one */
};

/* Begins; there must be none under way. HVD_E_NOMEM: no thread can be had. */
int copier_begin(struct copier *copier, struct snapshot *snapshot, const struct copy *copy,
                 uint64_t commit, struct hvd_err *err) MUST_CHECK;

/* Until nothing is under way: what came of the last one, told once. */
int copier_wait(struct copier *copier, struct hvd_err *err) MUST_CHECK;

void copier_stop(struct copier *copier);

#endif
