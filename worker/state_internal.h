/*
 * state_internal.h: a training state as the library's files share it: the registered entries, where
 * its commits are, and what the training loop has done in this round. From hvd_elastic_begin on all
 * of it belongs to the training loop.
 *
 *     commit.c          hvd_state_commit and its like: commits, restores, checks
 *     sync.c            the commit with which a round begins
 *     state_device.c    entries in device memory (state_device.h)
 *     state.c           registration
 */
#ifndef WORKER_STATE_INTERNAL_H
#define WORKER_STATE_INTERNAL_H

#include "state/snapshot/copy.h"
#include "worker/copier.h"
#include "worker/state.h"
#include "worker/worker.h"

#include <pthread.h>

enum state_phase {
    STATE_IDLE,    /* no run has begun */
    STATE_BEGUN,   /* between hvd_elastic_begin and the first hvd_elastic_next */
    STATE_BETWEEN, /* inside one of these two functions, between two rounds */
    STATE_TRAINING,
    /* in a commit or a restore, which call the program's functions save and load, or in a check
     * that waits for an answer of the session */
    STATE_COPYING
};

struct state_reset {
    hvd_reset_fn *call;
    void *arg;
};

struct state_owned {
    void *object;
    void (*free_object)(void *object);
    void (*commits)(void *object);
};

struct hvd_state {
    struct manifest manifest;
    struct VEC(struct copy_part) parts; /* one for each entry of the manifest */
    struct VEC(struct state_reset) resets;
    struct VEC(struct state_owned) owned;

    _Atomic enum state_phase phase; /* tells any thread which functions of hvd.h are allowed now */
    struct worker *worker;          /* NULL before the first run */
    _Atomic pthread_t loop;         /* the training thread; invalid before STATE_TRAINING */
    /* the program has called hvd_elastic_run, so it must not call hvd_elastic_next */
    bool calls_train;
    struct hvd_err broken;     /* code not 0: this worker cannot go on, for this reason */
    struct snapshot *snapshot; /* NULL before the first run */
    struct copier copier;

    /* the GPU in whose memory entries are; NULL: all entries are in host memory */
    const struct gpu_device *device;
    struct device_copy *device_copy; /* created by the first run, if there is a device */
    /* the memory on the GPU for commits: one commit in each slot (slot.h); made by the first
     * commit; NULL: none */
    struct slot *slots[2];
    bool slots_tried;

    /* the commit whose bytes live memory has; 0: live memory equals no commit */
    uint64_t live;
    uint64_t round;   /* the running round; the fields below are about this round */
    uint32_t commits; /* how many commits were made in this round */
    uint64_t checks;  /* number of checks made in this round */
    int told;     /* what a commit or check has told train to return: 0, news or HVD_E_REVOKED */
    bool stepped; /* the first step of the round is done */
    int64_t began_us;           /* the time when train was called */
    struct msg_entered entered; /* how long the change to this round has taken, for the driver */
    /* a remark that is sent to the driver's log when train begins; "": none */
    char remark[ERR_TEXT_MAX];
};

/* ---- commit.c and sync.c ---- */

/* Waits for a copy in progress, then commits the live state as `commit`, also to the snapshot. */
int state_commit_as(hvd_state *state, uint64_t commit, struct hvd_err *err) MUST_CHECK;

/* Restores entries of the kinds `which` from the newest commit. HVD_E_NOTFOUND: there is none. */
int state_restore_newest(hvd_state *state, unsigned which, struct hvd_err *err) MUST_CHECK;

/* Waits for a commit that is being copied, and returns its result. */
int state_fence(hvd_state *state, struct hvd_err *err) MUST_CHECK;

/* Calls state_fence, and then copies the newest commit to the snapshot if only the GPU has it.
 * Called before this worker tells another process which commits it holds. */
int state_commit_to_snapshot(hvd_state *state, struct hvd_err *err) MUST_CHECK;

/* Loads the state with which this round begins, from the holders that the ROUND names. */
int state_sync(hvd_state *state, const struct msg *msg, struct hvd_err *err) MUST_CHECK;

#endif
