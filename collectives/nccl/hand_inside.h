/*
 * hand_inside.h: what the parts of a hand share.
 *
 *     hand.c     the thread, its turns, and what has taken too long
 *     life.c     what a turn does for a communicator (life.h)
 *     aborter.c  the other thread, that gives communicators back, and revokes them where the hand
 *                cannot
 *     guard.c    the third, that sees to it that neither hangs while something is to be ended
 *     comm.c     what others ask for
 *     calls.c    what a coll_call is
 *
 * One lock for all of it, and it is never held while NCCL or CUDA is called: hand_away and
 * hand_back stand around every such call of the hand's thread. Only the hand's thread takes a
 * communicator out of the list and frees it, so it may let go of the lock while it goes through
 * them.
 */
#ifndef COLLECTIVES_NCCL_HAND_INSIDE_H
#define COLLECTIVES_NCCL_HAND_INSIDE_H

#include "base/list.h"
#include "collectives/nccl/hand.h"

#include <pthread.h>

struct hand {
    struct hand_options options;
    const struct cuda *cuda;
    const struct nccl *nccl;
    struct CUstream_st *stream; /* of all its communicators: no two kernels run at a time, so that
                                 * none waits for one that waits for it on another device */

    struct comm *launching; /* whose launch may be in progress: until it is not, nothing else may
                             * be put into the stream */

    pthread_mutex_t mutex;
    pthread_cond_t wake;    /* the hand */
    pthread_cond_t feed;    /* the aborter */
    pthread_cond_t alarm;   /* the guard: something has failed */
    pthread_cond_t changed; /* whoever waits for either */
    pthread_t thread, aborter, guard;
    struct list comms;
    struct list dying;
    int64_t inside_us;   /* since when the hand is in a call; 0: it is not */
    int64_t aborting_us; /* the aborter */
    bool asking;         /* that call is one of the driver, about an event: NCCL is free */
    bool elsewhere;      /* the aborter is in a revoke: the hand may not call NCCL */
    uint64_t agreed;     /* what is freed, and of a round before this one, may be aborted */
    bool kicked;         /* there is something new for the hand */
    bool closing, told, stuck;
    bool thread_done, aborter_done;
    bool entered;      /* the device is the hand's thread's; its own */
    struct hand *left; /* see hand_close */
};

/* ---- hand.c; the lock is held ---- */

void hand_kick(struct hand *hand);
void hand_away(struct hand *hand);
void hand_back(struct hand *hand);

/* Tells it, once, and that this one is part of it (NULL: none). Lets go of the lock meanwhile. */
void hand_tell_stuck(struct hand *hand, struct comm *comm, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Has either thread been in one call for longer than the bound? Then it is told. */
bool hand_is_overdue(struct hand *hand);

/* Does the driver not let go of the hand, which only looks how far a collective is? */
bool hand_is_held_up(const struct hand *hand);

/* When it could be, at the earliest: what has not begun yet may come to hang, too. */
int64_t hand_next_due(const struct hand *hand);

/* Until something changes, or the time has come (TIME_NEVER: none), or it could be overdue. */
void hand_wait(struct hand *hand, int64_t until_us);

/* ---- aborter.c ---- */

void *aborter_run(void *arg); /* the hand */
void aborter_add(struct comm *comm);

/* ---- guard.c ---- */

void *guard_run(void *arg); /* the hand; until it closes */

#endif
