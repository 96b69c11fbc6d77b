#include "base/panic.h"
#include "collectives/operation.h"
#include "os/clock.h"
#include "os/thread.h"

#include <inttypes.h>

/* A peer that has a reason says it on the line where it was met; its connection breaks at the same
 * time. So long the reason is waited for. */
#define REASON_US 100000

static int lost(struct coll *coll, uint32_t rank)
{
    int64_t until_us = clock_now_us() + REASON_US;
    bool late = false;

    pthread_mutex_lock(&coll->mutex);
    while (!coll->failed && !late)
        late = thread_cond_wait(&coll->changed, &coll->mutex, until_us);
    pthread_mutex_unlock(&coll->mutex);
    return coll_fail(coll, HVD_E_LOST, rank,
                     "the connection to rank %u (incarnation %" PRIu64 ") broke", rank,
                     coll->members[rank].incarnation);
}

static int outcome(struct coll *coll, uint32_t rank, int rc)
{
    return rc == HVD_E_LOST ? lost(coll, rank) : rc;
}

/* The places are gone through in turn: one that is still in use has been sent the longest ago. */
static int claim(struct coll *coll, size_t *ret_place)
{
    size_t place = coll->next_pending;

    coll->next_pending = (place + 1) % PENDING_MAX;
    *ret_place = place;
    return coll->pending[place].request ? coll_await(coll, place) : 0;
}

int coll_send(struct coll *coll, uint32_t rank, uint64_t tag, const void *bytes, size_t length)
{
    struct coll_pending *pending;
    size_t place;
    int rc = claim(coll, &place);

    if (rc)
        return rc;
    pending = &coll->pending[place];
    pending->rank = rank;
    pending->length = length;
    return outcome(coll, rank,
                   coll->link->ops->send(coll->link, rank, tag, bytes, length, &pending->request));
}

int coll_receive(struct coll *coll, uint32_t rank, uint64_t tag, void *bytes, size_t length,
                 size_t *ret_place)
{
    struct coll_pending *pending;
    int rc = claim(coll, ret_place);

    if (rc)
        return rc;
    pending = &coll->pending[*ret_place];
    pending->rank = rank;
    pending->length = length;
    return outcome(
        coll, rank,
        coll->link->ops->receive(coll->link, rank, tag, bytes, length, &pending->request));
}

int coll_await(struct coll *coll, size_t place)
{
    struct coll_pending *pending = &coll->pending[place];
    struct link_request *request = pending->request;
    int rc;

    if (!request)
        return 0;
    pending->request = NULL;
    atomic_store(&coll->awaited, pending->rank);
    rc = coll->link->ops->wait(coll->link, request);
    atomic_store(&coll->awaited, MEET_NOBODY);
    atomic_fetch_add(&coll->progress, pending->length);
    return outcome(coll, pending->rank, rc);
}

int coll_await_all(struct coll *coll)
{
    int rc = 0;

    for (size_t i = 0; i < PENDING_MAX && !rc; i++)
        rc = coll_await(coll, (coll->next_pending + i) % PENDING_MAX);
    return rc;
}

void coll_drop_all(struct coll *coll)
{
    for (size_t i = 0; i < PENDING_MAX; i++) {
        if (coll->pending[i].request)
            coll->link->ops->drop(coll->link, coll->pending[i].request);
        coll->pending[i].request = NULL;
    }
}

/* ---- both ways at once ---- */

#define WINDOW 4 /* segments under way in each direction */

static size_t segments_of(size_t bytes)
{
    return (bytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES;
}

static size_t segment_bytes(size_t bytes, size_t segment)
{
    size_t left = bytes - segment * SEGMENT_BYTES;

    return left < SEGMENT_BYTES ? left : SEGMENT_BYTES;
}

static int post_segment(struct coll *coll, uint64_t tag, const struct coll_exchange *exchange,
                        size_t segment, size_t places[WINDOW])
{
    int rc = 0;

    if (segment < segments_of(exchange->in_bytes))
        rc = coll_receive(coll, exchange->from, tag,
                          (uint8_t *)exchange->in + segment * SEGMENT_BYTES,
                          segment_bytes(exchange->in_bytes, segment), &places[segment % WINDOW]);
    if (!rc && segment < segments_of(exchange->out_bytes))
        rc = coll_send(coll, exchange->to, tag,
                       (const uint8_t *)exchange->out + segment * SEGMENT_BYTES,
                       segment_bytes(exchange->out_bytes, segment));
    return rc;
}

int coll_exchange(struct coll *coll, size_t step, const struct coll_exchange *exchange)
{
    size_t in = segments_of(exchange->in_bytes), out = segments_of(exchange->out_bytes);
    size_t all = in > out ? in : out;
    size_t places[WINDOW] = { 0 };
    uint64_t tag = coll_tag(coll, step);
    int rc = 0;

    for (size_t i = 0; i < all + WINDOW && !rc; i++) {
        size_t done = i - WINDOW;

        if (i >= WINDOW && done < in) {
            rc = coll_await(coll, places[done % WINDOW]);
            if (!rc && exchange->arrived)
                exchange->arrived(exchange->arg, done * SEGMENT_BYTES,
                                  segment_bytes(exchange->in_bytes, done));
        }
        if (!rc && i < all)
            rc = post_segment(coll, tag, exchange, i, places);
    }
    return rc;
}
