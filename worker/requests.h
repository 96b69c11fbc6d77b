/*
 * requests.h: collectives without waiting. What is started is done by a thread of its own, one
 * after the other; it has the turn (rounds.h) as long as anything is pending.
 *
 *     start ──► pending ──► done ──wait──► gone
 *
 * A request is known by a number that is never used twice in a process, so one that is gone is
 * noticed, and nothing of it is touched.
 *
 * A driver that does not return keeps nobody out: it is called without the lock of struct rounds,
 * which the session's thread needs to cancel a round.
 */
#ifndef WORKER_REQUESTS_H
#define WORKER_REQUESTS_H

#include "base/vec.h"
#include "worker/gpu.h"
#include "worker/rounds.h"

#include <pthread.h>

struct request {
    struct request *next; /* pending after it; or not in use, like it */
    uintptr_t name;       /* 0: not in use */
    bool done;
    bool awaited; /* a thread waits for it */
    struct coll_call call;
    struct gpu_marks marks; /* of memory of a GPU; kept when it is not in use */
    struct hvd_err outcome; /* its code, and the reason */
};

/* Part of struct rounds, and under its lock. */
struct requests {
    struct VEC(struct request *) all;
    struct request *unused;
    struct request *first, *last; /* pending; the first may be in progress */
    bool running;                 /* it is */
    bool coming;                  /* one that is not pending yet: the turn is its, too */
    bool blocked;                 /* the last one is of a call that waits */
    const char *dropped;          /* why all that is pending ends; NULL */
    bool closing, threaded;
    pthread_t thread;
    unsigned awaited_by; /* threads that are waiting, or have not come out of it */
    pthread_cond_t work; /* for the thread */
    pthread_cond_t done; /* for those who wait */
};

void requests_init(struct requests *requests);
void requests_release(struct requests *requests); /* nothing is pending, there is no thread */

/* ---- by the program -------------------------------------------------------------------------- */

/* Now, or after what is pending. */
int requests_run(struct rounds *rounds, const hvd_call *call, struct hvd_err *err) MUST_CHECK;
int requests_start(struct rounds *rounds, const hvd_call *call, hvd_request **ret_request,
                   struct hvd_err *err) MUST_CHECK;
int requests_test(struct rounds *rounds, hvd_request *request, int *ret_done,
                  struct hvd_err *err) MUST_CHECK;
int requests_wait(struct rounds *rounds, hvd_request *request, struct hvd_err *err) MUST_CHECK;

/* ---- by rounds.c ----------------------------------------------------------------------------- */

/* What is pending ends as HVD_E_REVOKED, for this reason: what is in progress is cancelled, nothing
 * else is begun, and all are done when this returns. The lock is held, and let go meanwhile. */
void requests_drop(struct rounds *rounds, const char *why);
/* The thread ends, and who waits has come out: nothing is pending. The lock is not held. */
void requests_close(struct rounds *rounds);

#endif
