/*
 * transfers.c: makes the program's sends and receives, beside its collectives. requests.c calls
 * here for a call of the program, rounds.c when a round ends.
 *
 * Invariant: the transfers of a queue are made one after another, so that the n-th send meets the
 * n-th receive; no transfer waits for one of another queue, or for a collective. Unless a comment
 * says otherwise the lock of struct rounds is held.
 */
#include "worker/transfers.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/panic.h"
#include "collectives/channel.h"
#include "os/thread.h"
#include "worker/call.h"
#include "worker/rounds_internal.h"

/* Makes the transfer at the head of the queue, removes it from the queue, and marks its request
 * done, with its outcome. The channel is opened when the queue makes its first transfer. The lock
 * is released while the bytes move. The first failure becomes the failure of the round
 * (ticket_note); if the round had failed before, the request gets HVD_E_REVOKED. If the round ends
 * its pending requests, `requests.dropped` is the reason that the program gets. */
static void make_first(struct transfer_queue *queue)
{
    struct rounds *rounds = queue->rounds;
    struct request *request = queue->first;
    struct hvd_err why = { 0 };
    int rc = 0;

    queue->running = true;
    rounds_unlock(rounds);
    if (!queue->channel)
        rc = coll_open_channel(rounds->coll, queue->peer, queue->sends, &queue->channel, &why);
    if (!rc)
        rc = coll_transfer(queue->channel, &request->call, &why);
    rounds_lock(rounds);
    queue->running = false;
    why.code = rc;
    if (rc && rounds->requests.dropped)
        err_set(&why, rc, "%s", rounds->requests.dropped);
    /* the caller of the call that failed first gets its code; all others get HVD_E_REVOKED */
    if (rc && rounds->failed)
        why.code = HVD_E_REVOKED;
    if (rc)
        ticket_note(rounds, rc, &why);
    queue->first = request->next;
    if (rc)
        request->outcome = why;
    request->done = true;
    rounds->transfers.pending--;
    pthread_cond_broadcast(&rounds->requests.done);
}

/* The thread of a queue: makes its transfers, unless a thread that waits for one is faster
 * (transfers_help), until the round ends. */
static void *run_queue(void *arg)
{
    struct transfer_queue *queue = arg;
    struct rounds *rounds = queue->rounds;

    rounds_lock(rounds);
    while (!rounds->transfers.ending || queue->first) {
        if (queue->running || !queue->first)
            pthread_cond_wait(&queue->work, &rounds->lock);
        else
            make_first(queue);
    }
    rounds_unlock(rounds);
    return NULL;
}

/* Finds the queue for transfers to this peer (sends true) or from it; if there is none, makes the
 * queue and starts its thread. */
static int find_or_start_queue(struct rounds *rounds, uint32_t peer, bool sends,
                               struct transfer_queue **ret_queue, struct hvd_err *err)
{
    struct transfers *transfers = &rounds->transfers;
    struct transfer_queue *queue;

    for (size_t i = 0; i < transfers->queues.count; i++) {
        *ret_queue = transfers->queues.items[i];
        if ((*ret_queue)->peer == peer && (*ret_queue)->sends == sends)
            return 0;
    }
    if (transfers->queues.count == LIMIT_CHANNELS)
        return err_set(err, HVD_E_LIMIT,
                       "this rank sends to and receives from more than %d ranks (LIMIT_CHANNELS) "
                       "in one round; send to fewer ranks, or use an alltoall",
                       LIMIT_CHANNELS);
    queue = VEC_RESERVE(&transfers->queues, 1, LIMIT_CHANNELS) ? NULL : mem_zalloc(sizeof(*queue));
    if (!queue)
        return err_set(err, HVD_E_NOMEM, "no memory for a transfer; free memory on this host");
    queue->rounds = rounds;
    queue->peer = peer;
    queue->sends = sends;
    pthread_cond_init(&queue->work, NULL);
    if (thread_start(&queue->thread, 0, run_queue, queue)) {
        pthread_cond_destroy(&queue->work);
        mem_free(queue);
        return err_set(err, HVD_E_LIMIT,
                       "no thread can be started for sends and receives; raise the limit of "
                       "processes (ulimit -u)");
    }
    transfers->queues.items[transfers->queues.count++] = queue;
    *ret_queue = queue;
    return 0;
}

/* Checks a send or receive of the program, and puts it at the end of the queue of its channel. A
 * mistake ends the round, because the other side would wait for ever. */
int transfers_append(struct rounds *rounds, const hvd_call *call, bool waits,
                     struct request *request, struct hvd_err *err)
{
    struct transfers *transfers = &rounds->transfers;
    struct transfer_queue *queue = NULL;
    int rc = ticket_allow(rounds, false /* the program calls, not the library */, err);

    if (rc)
        return rc;
    /* While `coming` is not 0, the round and its roll stay. The lock is released because call_read
     * may ask the CUDA driver about a buffer, which must not be done with the lock held. */
    transfers->coming++;
    rounds_unlock(rounds);
    rc = call_read(call, rounds->groups, rounds->roll, &request->call, err);
    rounds_lock(rounds);
    transfers->coming--;
    if (!rc)
        rc = find_or_start_queue(rounds, request->call.root, request->call.kind == COLL_SEND,
                                 &queue, err);
    /* a mistake of this rank ends the round: otherwise the other side would wait for ever */
    if (rc) {
        (void)coll_refuse(rounds->coll, NULL, "%s", err->text);
        ticket_note(rounds, rc, err);
    } else {
        rc = ticket_allow(rounds, false /* the program calls, not the library */, err);
    }
    if (!rc) {
        ASSERT(queue);
        request->queue = queue;
        if (queue->first)
            queue->last->next = request;
        else
            queue->first = request;
        queue->last = request;
        transfers->pending++;
        if (!waits)
            pthread_cond_signal(&queue->work);
    }
    pthread_cond_broadcast(&rounds->requests.done); /* transfers_end may wait for this thread */
    return rc;
}

/* Called by a thread that waits for this transfer: makes the transfers of its queue, as long as no
 * other thread makes one. If the thread of the queue has to go on, wakes it. */
void transfers_help(const struct request *request)
{
    struct transfer_queue *queue = request->queue;

    if (request->done) /* the request may be of an earlier round, with which its queue was freed */
        return;
    while (!request->done && !queue->running && queue->first)
        make_first(queue);
    if (queue->first && !queue->running)
        pthread_cond_signal(&queue->work);
}

/* Called when train has returned: cancels the round if transfers are pending, waits until all have
 * ended, and then ends the threads of the queues. The lock is released meanwhile. */
void transfers_end(struct rounds *rounds, const char *why)
{
    struct transfers *transfers = &rounds->transfers;

    if (transfers->pending)
        coll_cancel(rounds->coll);
    rounds->requests.dropped = transfers->pending ? why : NULL;
    while (transfers->coming || transfers->pending)
        pthread_cond_wait(&rounds->requests.done, &rounds->lock);
    rounds->requests.dropped = NULL;
    transfers->ending = true;
    for (size_t i = 0; i < transfers->queues.count; i++)
        pthread_cond_signal(&transfers->queues.items[i]->work);
    while (transfers->queues.count) {
        struct transfer_queue *queue = transfers->queues.items[--transfers->queues.count];

        rounds_unlock(rounds);
        pthread_join(queue->thread, NULL);
        rounds_lock(rounds);
        pthread_cond_destroy(&queue->work);
        mem_free(queue);
    }
    transfers->ending = false;
}
