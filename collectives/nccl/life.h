/*
 * life.h: a communicator from its beginning to its end, by its hand's turns. Everything here is
 * called with the hand's lock held, and lets go of it on the way.
 */
#ifndef COLLECTIVES_NCCL_LIFE_H
#define COLLECTIVES_NCCL_LIFE_H

#include "collectives/nccl/calls.h"
#include "collectives/nccl/hand_inside.h"

#include <stdatomic.h>

/*
 *     NEW ──► STARTING ──► RUNS ──► ENDS ──► ENDED ──► DYING ──► GONE
 *      │          │          │        │                  ▲
 *      │          └──────────┴────────┴──────────────────┘
 *      └───────────────────────────────────────────────────────► GONE
 *
 * Each step is the hand's, but the last one of the longer way: that is the aborter's.
 */
enum stage {
    STAGE_NEW,      /* NCCL knows nothing of it */
    STAGE_STARTING, /* NCCL makes it */
    STAGE_RUNS,
    STAGE_ENDS,  /* it is being revoked */
    STAGE_ENDED, /* and nothing of it runs any more */
    STAGE_DYING, /* it is the aborter's */
    STAGE_GONE,  /* NCCL knows nothing of it any more */
};

/* A call, from when it is posted until nobody needs it. Its event first says that the data is
 * there, in the caller's stream, then that the call is done, in ours. */
struct post {
    struct list link; /* in flying or idle */
    struct CUevent_st *event;
    struct calls calls;
    bool launched, done;
    bool owned; /* the caller still looks at it */
    bool held;  /* and so does the hand */
};

struct comm {
    struct hand *hand;
    struct list among; /* of the hand */
    struct list dying; /* of the aborter */
    struct comm_spec spec;
    _Atomic uint64_t progress;

    /* the hand's alone; the aborter's while it is DYING */
    struct ncclComm *nccl;

    /* of all */
    bool blind; /* something may run on the device that no event tells of */
    enum stage stage;
    bool ran;   /* RUNS has been reached */
    bool ended; /* and nothing runs any more */
    bool tried; /* the aborter has revoked it, or tried to */
    bool cut;   /* something ran when it was revoked: its result is rubbish */
    bool failed, revoked, freed, stuck;
    int64_t failed_us;
    struct hvd_err why;
    struct post *posted;
    struct post *taken; /* is being launched */
    struct list flying; /* launched; in this order they end */
    struct list idle;
    size_t posts; /* in all */
};

enum turn { TURN_IDLE, TURN_WAITS, TURN_MOVED };
enum turn life_turn(struct comm *comm);
void life_fail(struct comm *comm, const struct hvd_err *why); /* the first time counts */
void life_put_back(struct comm *comm, struct post *post);     /* if nobody needs it any more */
void life_begin_revoke(struct comm *comm); /* what has not been seen to end is cut */
bool life_is_revoked(int code);            /* says what NCCL has answered */
void life_aborted(struct comm *comm);
bool life_is_over(const struct comm *comm); /* it can be freed */
void life_free(struct comm *comm);          /* without the lock */

#endif
