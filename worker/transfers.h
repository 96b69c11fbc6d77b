/*
 * transfers.h: the program's sends and receives. They are not in the order of the collectives: each
 * goes to the queue of its channel (collectives/channel.h), and each channel has a thread.
 *
 *     hvd_run, hvd_start ──► queue of the channel ──► its thread, or a waiter ──► coll_transfer
 *
 * struct transfers is a part of struct rounds, and under the lock of that struct. The threads and
 * the channels end with the round.
 */
#ifndef WORKER_TRANSFERS_H
#define WORKER_TRANSFERS_H

#include "base/vec.h"
#include "worker/rounds.h"

#include <pthread.h>

struct coll_channel;
struct request;

/* The transfers to one rank, or from one rank, in the order of the program's calls. */
struct transfer_queue {
    struct rounds *rounds;
    /* the channel; NULL: not opened yet. Used only by the thread that makes the first transfer
     * (`running`) */
    struct coll_channel *channel;
    uint32_t peer; /* the rank on the other side */
    bool sends;    /* true: transfers to the peer; false: from it */
    bool running;  /* a thread makes the first transfer of the queue now */
    struct request *first, *last;
    pthread_t thread;    /* makes the transfers of the queue */
    pthread_cond_t work; /* wakes that thread */
};

struct transfers {
    struct VEC(struct transfer_queue *) queues;
    size_t coming;  /* number of threads that are about to append a transfer */
    size_t pending; /* number of transfers that are not done */
    bool ending;    /* the round ends: the threads end too */
};

/* Appends the program's call to its queue as `request`, which the caller provides and then waits
 * for. waits true: the caller calls transfers_help next, so no thread is woken. The caller has the
 * lock, which is released for a moment. */
int transfers_append(struct rounds *rounds, const hvd_call *call, bool waits,
                     struct request *request, struct hvd_err *err) MUST_CHECK;

/* Makes the transfers up to this one in the calling thread, as long as no other thread does. The
 * caller has the lock, which is released meanwhile. */
void transfers_help(const struct request *request);

/* Ends all transfers, and the threads. If some are pending the round is cancelled: they end with
 * HVD_E_REVOKED and the reason `why`. The caller has the lock, which is released meanwhile. */
void transfers_end(struct rounds *rounds, const char *why);

#endif
