/*
 * nccl_thread_internal.h: what the files of nccl share.
 *
 *     comm.c          what other threads ask for      calls.c   a coll_call as calls of NCCL
 *     nccl_thread.c   the thread: its loop, its beginning and end
 *     aborter.c       the second thread: aborts communicators, and revokes them where the NCCL
 *                     thread cannot
 *       all three call
 *     comm_state.c    the state of a communicator (comm_state.h)
 *       │
 *     watchdog.c      calls that take too long; and the third thread, which watches while a
 *                     communicator ends
 *
 * One lock protects everything; the lock is never held while NCCL or CUDA is called:
 * nccl_call_begin and nccl_call_end stand around every such call of the NCCL thread. Only the NCCL
 * thread removes a communicator from the list `comms` and frees it, so it may release the lock
 * while it goes through that list.
 */
#ifndef COLLECTIVES_NCCL_THREAD_INTERNAL_H
#define COLLECTIVES_NCCL_THREAD_INTERNAL_H

#include "base/list.h"
#include "collectives/nccl/nccl_thread.h"

#include <pthread.h>

struct nccl_thread {
    struct nccl_thread_options options;
    const struct cuda *cuda;
    const struct nccl *nccl;
    /* one stream for the calls of all communicators: so two kernels never run at a time, and no two
     * kernels wait for each other on two devices */
    struct CUstream_st *stream;

    /* the communicator that may be launching a call (NULL: none); no other work may enter the
     * stream meanwhile */
    struct comm *launching;

    pthread_mutex_t mutex;
    pthread_cond_t wake;    /* wakes the NCCL thread */
    pthread_cond_t feed;    /* wakes the aborter */
    pthread_cond_t alarm;   /* wakes the watchdog: a communicator has failed */
    pthread_cond_t changed; /* wakes threads that wait for the state of a communicator */
    pthread_t id, aborter, watchdog;
    struct list comms; /* all communicators that are not freed */
    struct list dying; /* the communicators that the aborter must abort */
    uint64_t agreed;   /* a round: freed communicators of earlier rounds may be aborted */
    bool kicked;       /* true: there is new work for the NCCL thread */
    bool closing;      /* true: nccl_thread_close was called */
    bool thread_done, aborter_done; /* true: the NCCL thread, the aborter has ended */
    /* true: the device is the current device of the NCCL thread, which alone uses this field */
    bool entered;
    struct nccl_thread *left; /* the next in the list left_behind (nccl_thread.c) */

    /* for the watchdog: inside_us, aborting_us: since when a thread is in a call of NCCL or the
     * CUDA driver; 0: the thread is in no call */
    struct {
        int64_t inside_us;   /* the NCCL thread's call */
        int64_t aborting_us; /* the aborter's call */
        /* true: the NCCL thread asks the CUDA driver about an event, and the aborter may call
         * NCCL */
        bool asking;
        bool elsewhere;   /* true: the aborter is in a revoke, and the NCCL thread must not call
                           * NCCL */
        bool told, stuck; /* `told`: options.stuck was called; `stuck`: that call has returned */
    } watch;
};

/* All functions below are called with the lock held. */

/* Gives the NCCL thread new work: it makes another iteration before it sleeps. */
static inline void nccl_thread_kick(struct nccl_thread *thread)
{
    thread->kicked = true;
    pthread_cond_signal(&thread->wake);
}

/* nccl_call_begin and nccl_call_end enclose each call of the NCCL thread to NCCL or CUDA: the lock
 * is released during the call. */
void nccl_call_begin(struct nccl_thread *thread);
void nccl_call_end(struct nccl_thread *thread);

/* Reports that the device is stuck, once, and marks `comm` as stuck (`comm` may be NULL). Releases
 * the lock during the callback. */
void watchdog_tell_stuck(struct nccl_thread *thread, struct comm *comm, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* true: the NCCL thread or the aborter has been in one call for longer than bound_us; this function
 * has then reported that call. */
bool watchdog_is_overdue(struct nccl_thread *thread);

/* true: the NCCL thread has asked the CUDA driver whether a collective has ended, and the driver
 * has not answered for a long time (HELD_UP_US). */
bool watchdog_is_held_up(const struct nccl_thread *thread);

/* Returns the time at which a call that began at `since_us` is overdue. `since_us` is 0: there is
 * no call, and the result is TIME_NEVER. */
int64_t watchdog_due(const struct nccl_thread *thread, int64_t since_us);

/* Waits until `changed` is signalled, at most until `until_us` (TIME_NEVER: no limit), and at most
 * until a call that runs now would be overdue. */
void watchdog_wait(struct nccl_thread *thread, int64_t until_us);

/* The main functions of the threads. `arg` is the struct nccl_thread. */
void *watchdog_run(void *arg); /* returns when `closing` is set */
void *aborter_run(void *arg);

#endif
