/*
 * comm_state.h: the state of a communicator from its beginning to its end. The NCCL thread advances
 * the state in each iteration. All functions here are called with the lock held; they release the
 * lock while they call NCCL.
 */
#ifndef COLLECTIVES_NCCL_COMM_STATE_H
#define COLLECTIVES_NCCL_COMM_STATE_H

#include "collectives/nccl/calls.h"
#include "collectives/nccl/nccl_thread_internal.h"

#include <stdatomic.h>

/*
 *     NEW ──► STARTING ──► RUNS ──► ENDS ──► ENDED ──► DYING ──► GONE
 *      │          │          │        │                  ▲
 *      │          └──────────┴────────┴──────────────────┘
 *      └───────────────────────────────────────────────────────► GONE
 *
 * The NCCL thread makes each change of the phase; but the change from DYING to GONE is made by the
 * aborter.
 */
enum comm_phase {
    PHASE_NEW,      /* not created by NCCL yet */
    PHASE_STARTING, /* NCCL is creating the communicator */
    PHASE_RUNS,     /* calls may be made */
    PHASE_ENDS,     /* the communicator is being revoked */
    PHASE_ENDED,    /* revoked, and none of its kernels runs any more */
    PHASE_DYING,    /* given to the aborter */
    PHASE_GONE,     /* destroyed by NCCL */
};

/* A call of the program, from the time when it is posted until no thread needs it any more. `event`
 * is first recorded in the caller's stream (it shows that the data is ready), then in
 * thread->stream (it shows that the call is done). */
struct post {
    struct list link; /* in the list `in_flight` or `idle` */
    struct CUevent_st *event;
    struct calls calls;
    bool launched, done; /* launched: NCCL runs the call; done: it has ended and has a result */
    bool owned;          /* true: the caller still needs the call */
    bool held;           /* true: the NCCL thread still needs the call */
};

struct comm {
    struct nccl_thread *thread;
    struct list among; /* entry in thread->comms */
    struct list dying; /* entry in thread->dying */
    struct comm_spec spec;
    _Atomic uint64_t progress; /* how many calls have ended on the device */

    /* used by the NCCL thread only; in PHASE_DYING by the aborter only */
    struct ncclComm *nccl; /* NCCL's object; NULL: not created, or destroyed */

    /* protected by the lock */
    bool blind; /* true: a kernel may run without an event that tells its end */
    enum comm_phase phase;
    bool ran;   /* true: PHASE_RUNS has been reached */
    bool ended; /* true: no kernel runs any more, and none will */
    bool tried; /* true: the aborter has tried to revoke the communicator */
    bool cut;   /* true: a call was revoked before its end, so its result is invalid */
    /* failed: it makes no further call, and `why` says why; revoked: comm_revoke was called; freed:
     * the program does not use it any more; stuck: it is left as it is */
    bool failed, revoked, freed, stuck;
    int64_t failed_us; /* when `failed` was set */
    struct hvd_err why;
    struct post *posted;   /* the call that the NCCL thread has not taken yet; NULL: none */
    struct post *taken;    /* the call that is being launched; NULL: none */
    struct list in_flight; /* launched calls, in the order in which they end */
    struct list idle;      /* posts for later calls */
    size_t posts;          /* number of posts in all */
};

/* The result of an iteration: the communicator needs nothing, it waits for NCCL or the device, or
 * its state has changed. */
enum comm_activity { COMM_IDLE, COMM_WAITS, COMM_MOVED };
enum comm_activity comm_state_advance(struct comm *comm);

/* records why the communicator failed; only the first failure counts */
void comm_state_fail(struct comm *comm, const struct hvd_err *why);
/* puts the post into comm->idle, if no thread needs it any more */
void comm_state_put_back(struct comm *comm, struct post *post);
/* goes to PHASE_ENDS; a call whose end was not seen counts as cut (comm->cut) */
void comm_state_begin_revoke(struct comm *comm);
/* true: `code`, NCCL's answer to a revoke, means that the communicator is revoked */
bool comm_state_is_revoked(int code);
void comm_state_aborted(struct comm *comm); /* the aborter has destroyed it */
void comm_state_free(struct comm *comm);    /* called without the lock */

#endif
