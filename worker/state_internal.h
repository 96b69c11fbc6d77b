/*
 * state_internal.h: a training state as the library's files share it: the registered entries, where
 * its commits are, and what the training loop has done in this round. From the beginning of
 * hvd_elastic_run all of it belongs to the training loop.
 *
 *     commit.c          hvd_state_commit and its like: commits, restores, checks
 *     sync.c            the commit with which a round begins
 *     state_device.c    entries in device memory
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
    STATE_IDLE,    /* hvd_elastic_run is not running */
    STATE_BETWEEN, /* in hvd_elastic_run, but not in train */
    STATE_TRAINING,
    STATE_COPYING /* in a commit or a restore, which call the program's save and load */
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
    struct worker *worker;          /* NULL in STATE_IDLE */
    pthread_t loop;                 /* invalid in STATE_IDLE; written before the phase */
    struct snapshot *snapshot;      /* NULL before the first run */
    struct copier copier;

    const struct gpu_device *device; /* on which all device entries are; NULL: there are none */
    struct device_copy *device_copy; /* created by the first run, if there is a device */
    /* copies of the state for one commit each (slot.h), made by the first commit; may be NULL */
    struct slot *slots[2];
    bool slots_tried;

    uint64_t live;              /* the commit to which live memory is equal; 0: to none */
    uint64_t round;             /* the running round; the fields below are about this round */
    uint32_t commits;           /* number of commits made in this round */
    uint64_t checks;            /* number of checks made in this round */
    int told;                   /* the code that train is to return: 0, news or HVD_E_REVOKED */
    bool stepped;               /* the first step is done */
    int64_t began_us;           /* the time when train was called */
    struct msg_entered entered; /* the costs of the change to this round */
    char remark[ERR_TEXT_MAX];  /* for the operator, when train begins; "": nothing */
};

/* ---- state_device.c: for a state without a device these functions do nothing and return 0 ---- */

/* Describes the live state for copy_commit and similar functions. `which` says which entries are
 * meant (COPY_ALL, COPY_REPLICATED or COPY_PER_RANK). */
struct copy state_copy(const hvd_state *state, unsigned which);

/* Show a copy of the whole state in the timeline as `what`; state_show_copy: it is over already. */
struct timeline_events_copy state_begin_copy(hvd_state *state, const char *what, uint64_t commit);
void state_show_copy(hvd_state *state, enum timeline_lane lane, const char *what, uint64_t commit,
                     int code, int64_t begun_us, int64_t ended_us);

/* Finds the device on which the memory `at` lies; *ret_device NULL: it is host memory.
 * HVD_E_INVAL: an earlier entry lies on another device. call and name are for the error text. */
int state_find_device(const hvd_state *state, const char *call, const char *name, const void *at,
                      const struct gpu_device **ret_device) MUST_CHECK;

int state_open_device(hvd_state *state, struct hvd_err *err) MUST_CHECK;
void state_close_device(hvd_state *state); /* called before the snapshot is freed */

/* Makes later copies wait for the work that the program has queued on the device so far. */
int state_follow(hvd_state *state, struct hvd_err *err) MUST_CHECK;

/* Makes later copies wait for the work that the program has queued so far. If commits go to a
 * slot, the function also copies the state into a slot, and notes the slot in *task. beside
 * true: the program promises not to change the state before it has called hvd_state_fence. */
int state_take(hvd_state *state, struct copier_task *task, bool beside,
               struct hvd_err *err) MUST_CHECK;

/* Return the slot with the newest commit, or with this commit; NULL: there is no such slot. */
struct slot *state_newest_slot(const hvd_state *state);
struct slot *state_slot_of(const hvd_state *state, uint64_t commit);
/* Forgets the commits in the slots that have the number `commit` or a higher one. */
void state_drop_slots(hvd_state *state, uint64_t commit);
int state_restore_slot(hvd_state *state, const struct slot *slot, const struct copy *copy,
                       struct hvd_err *err) MUST_CHECK;

/* Waits for a copy in progress, then commits the live state as `commit`, also to the snapshot. */
int state_commit_as(hvd_state *state, uint64_t commit, struct hvd_err *err) MUST_CHECK;

/* Restores entries of the kinds `which` from the newest commit. HVD_E_NOTFOUND: there is none. */
int state_restore_newest(hvd_state *state, unsigned which, struct hvd_err *err) MUST_CHECK;

/* Waits for a commit that is being copied, and returns its result. */
int state_fence(hvd_state *state, struct hvd_err *err) MUST_CHECK;

/* Calls state_fence, and then copies the newest commit to the snapshot if only the device has it.
 * Called before this worker tells another process which commits it holds. */
int state_settle(hvd_state *state, struct hvd_err *err) MUST_CHECK;

/* Loads the state with which this round begins, from the holders that the ROUND names. */
int state_sync(hvd_state *state, const struct msg *msg, struct hvd_err *err) MUST_CHECK;

#endif
