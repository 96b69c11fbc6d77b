/*
 * requests.h: collectives that the program starts and waits for later. A thread makes the started
 * calls one after another; while one is pending, they share the ticket, the right to be in a
 * collective (rounds_internal.h).
 *
 *     start ──► pending ──► done ──wait──► gone
 *
 * A pending request is in a batch that is still open, or in a closed one, which is in the queue.
 * The requests of a batch are made by one operation (fusion.h); most batches have one request.
 * Requests for a checkpoint are in no queue: persist.h; sends and receives: transfers.h.
 *
 * A handle is a number that is never used twice in a process, so the handle of a freed request is
 * recognised without touching memory. The CUDA driver is called without the lock of struct rounds,
 * which the session's thread needs to cancel a round.
 */
#ifndef WORKER_REQUESTS_H
#define WORKER_REQUESTS_H

#include "base/vec.h"
#include "worker/gpu.h"
#include "worker/rounds.h"
#include "worker/transfers.h"

#include <pthread.h>
#include <stdatomic.h>

#define REQUESTS_FUSED_MAX 256 /* most requests in one operation */

struct request {
    struct request *next; /* in the same list: the open batch, the queue, or `unused` */
    uintptr_t name;       /* the handle; the handle of an unused request is only its index */
    uint64_t era, batch;  /* the era and the batch in which the request was started */
    bool done;
    bool awaited;    /* a thread waits for the request now */
    bool counted;    /* a thread has waited for it before; fusion counts that once */
    uint64_t commit; /* not 0: a request for a checkpoint of this commit, or of a later one */
    pthread_t owner; /* the thread that has asked for the checkpoint; else unused */
    struct transfer_queue *queue; /* the queue of a send or receive (transfers.h); else NULL */
    struct coll_call call;
    struct gpu_marks marks; /* for GPU memory; the events are kept for the next use of the struct */
    struct hvd_err outcome; /* the result of the call, and the reason */
};

/* The open batch, to which the next request may be added. */
struct batch {
    struct request *first, *last; /* first NULL: no batch is open */
    uint64_t number;              /* counts the batches; equal on all ranks */
    size_t count, bytes;
};

/* Part of struct rounds, and protected by the lock of that struct. */
struct requests {
    struct VEC(struct request *) all;
    struct request *unused;
    struct request *first, *last; /* the queue of closed batches; NULL: it is empty */
    bool running; /* the call of the first batch is being made: by `thread`, or by one that waits */
    struct batch open;
    atomic_bool holds; /* a batch is open; for readers without the lock */
    size_t room;       /* how many requests the open or next batch may have (fusion.h) */
    uint64_t era;      /* grows with each round and each hvd_join; fusion counts within one era */
    uint64_t apart;    /* number of requests of groups that their members alone have opened */
    size_t unawaited;  /* requests of the era that the program has not waited for yet */
    struct request *batch[REQUESTS_FUSED_MAX]; /* the requests of the batch in progress */
    struct coll_piece pieces[REQUESTS_FUSED_MAX];
    bool coming;                   /* a thread holds the ticket and is about to append a request */
    const struct request *blocked; /* the last one, if a thread waits for it in hvd_run */
    const char *dropped; /* why all pending requests are being ended; NULL: they are not */
    bool closing, threaded;
    pthread_t thread;       /* makes the calls of started requests */
    unsigned waiters;       /* number of threads that wait for a request */
    atomic_uint persisting; /* threads that wait for a checkpoint that they have asked for */
    pthread_cond_t work;    /* wakes the thread that makes the calls */
    pthread_cond_t done;    /* wakes the waiters */
};

/* true: a collective that was started is not done yet */
static inline bool requests_pend(const struct requests *requests)
{
    return requests->first || requests->open.first;
}

int requests_init(struct requests *requests) MUST_CHECK; /* HVD_E_NOMEM */
void requests_release(struct requests *requests);        /* called after requests_close */

/* ---- called for the training program ---- */

/* Makes a call and waits for its result. If requests are pending, the call is made after them. */
int requests_run(struct rounds *rounds, const hvd_call *call, struct hvd_err *err) MUST_CHECK;
int requests_start(struct rounds *rounds, const hvd_call *call, hvd_request **ret_request,
                   struct hvd_err *err) MUST_CHECK;
int requests_test(struct rounds *rounds, hvd_request *request, int *ret_done,
                  struct hvd_err *err) MUST_CHECK;
/* Waits without a limit; makes the call in this thread if no other thread has begun it. */
int requests_wait(struct rounds *rounds, hvd_request *request, struct hvd_err *err) MUST_CHECK;
/* timeout_us below 0: no limit. HVD_E_TIMEOUT: the request is not done; its handle stays. */
int requests_wait_for(struct rounds *rounds, hvd_request *request, int64_t timeout_us,
                      struct hvd_err *err) MUST_CHECK;

/* ---- called by rounds.c ---- */

/* Stand around work, as opening a group, during which no other thread may call and the round stays;
 * pending requests go on. requests_leave gets the result. The caller does not hold the lock. */
int requests_come(struct rounds *rounds, struct hvd_err *err) MUST_CHECK;
void requests_leave(struct rounds *rounds, int code, const struct hvd_err *why);

/* Returns how many requests were started and not waited for. The caller holds the lock. */
size_t requests_open(const struct requests *requests);

/* Closes the open batch, so that its requests do not wait for more. The caller does not hold the
 * lock. Without an open batch the call costs one atomic load. */
void requests_flush(struct rounds *rounds);
/* Ends all pending requests with HVD_E_REVOKED and the reason `why`: the batch in progress is
 * cancelled, and no other batch is begun. When the function returns, all requests are done. The
 * caller holds the lock; it is released while the function waits. */
void requests_drop(struct rounds *rounds, const char *why);
/* For hvd_shutdown: ends requests for a checkpoint with HVD_E_STATE, waits until waiting threads
 * have returned, ends `thread`. Nothing else may be pending; the caller does not hold the lock. */
void requests_close(struct rounds *rounds);

#endif
