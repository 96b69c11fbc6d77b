/*
 * state_inside.h: a state from the inside: what is registered, where its commits lie, and where the
 * loop stands in its round. All of it belongs to the loop, once hvd_elastic_run is being called.
 */
#ifndef WORKER_STATE_INSIDE_H
#define WORKER_STATE_INSIDE_H

#include "state/snapshot/copy.h"
#include "worker/copier.h"
#include "worker/state.h"
#include "worker/worker.h"

#include <pthread.h>

enum state_phase {
    STATE_IDLE,    /* hvd_elastic_run is not being called */
    STATE_BETWEEN, /* it is, and train is not */
    STATE_TRAINING,
    STATE_COPYING /* a commit or a restore is being made; save and load functions are called */
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
    struct VEC(struct copy_part) parts; /* as many as the manifest has entries */
    struct VEC(struct state_reset) resets;
    struct VEC(struct state_owned) owned;

    _Atomic enum state_phase phase; /* any thread may ask whether it may call */
    struct worker *worker;          /* unless idle */
    pthread_t loop;                 /* likewise; written before the phase */
    struct snapshot *snapshot;      /* from the first run on */
    struct copier copier;

    const struct gpu_device *device; /* of all entries in device memory; NULL: there are none */
    struct ferry *ferry;             /* from the first run on, if there is a device */
    struct slot *slots[2];           /* from the first commit on; one of them or both may be NULL */
    bool slots_tried;

    uint64_t live;              /* the commit that the live memory is equal to; 0: it has gone on */
    uint64_t round;             /* the running one, and in it: */
    uint32_t commits;           /* how many there were */
    uint64_t checks;            /* likewise */
    int told;                   /* what train is to return: 0, news or HVD_E_REVOKED */
    bool stepped;               /* its first step is done */
    int64_t began_us;           /* when train was called */
    struct msg_entered entered; /* what it cost to get there */
};

struct copy state_copy(const hvd_state *state, unsigned which);

/* ---- state_device.c: all of it is nothing, and 0, for a state without a device --------------- */

/* Whose memory is this? HVD_E_INVAL, noted: an entry before it is of another device. */
int state_find_device(const hvd_state *state, const char *call, const char *name, const void *at,
                      const struct gpu_device **ret_device) MUST_CHECK;

int state_open_device(hvd_state *state, struct hvd_err *err) MUST_CHECK;
void state_close_device(hvd_state *state); /* before the snapshot is freed */

/* What is copied from here on comes after what the program has queued so far. */
int state_follow(hvd_state *state, struct hvd_err *err) MUST_CHECK;

/* The same, and into a slot at once if commits go there; the job is told. beside: the program waits
 * for a fence before it changes anything. */
int state_take(hvd_state *state, struct copier_job *job, bool beside,
               struct hvd_err *err) MUST_CHECK;

/* The newest that has a slot, and the slot of a commit; NULL: none. */
struct slot *state_newest_slot(const hvd_state *state);
struct slot *state_slot_of(const hvd_state *state, uint64_t commit);
void state_drop_slots(hvd_state *state, uint64_t commit); /* this one and those after it */
int state_restore_slot(hvd_state *state, const struct slot *slot, const struct copy *copy,
                       struct hvd_err *err) MUST_CHECK;

/* ---- commit.c -------------------------------------------------------------------------------- */

/* The live state becomes this commit, and is whole in the snapshot; of one that is under way it is
 * made sure first. */
int state_commit_as(hvd_state *state, uint64_t commit, struct hvd_err *err) MUST_CHECK;

/* The live state is the newest commit again. HVD_E_NOTFOUND: there is none. */
int state_restore_newest(hvd_state *state, unsigned which, struct hvd_err *err) MUST_CHECK;

/* Waits for a commit that is under way; what came of it. */
int state_fence(hvd_state *state, struct hvd_err *err) MUST_CHECK;

/* The same, and then the newest is in the snapshot, if it was on the device alone: only now may
 * anybody be told what is held. */
int state_settle(hvd_state *state, struct hvd_err *err) MUST_CHECK;

/* ---- sync.c ---------------------------------------------------------------------------------- */

/* The state with which this round begins, from whoever holds it. */
int state_sync(hvd_state *state, const struct msg *msg, struct hvd_err *err) MUST_CHECK;

#endif
