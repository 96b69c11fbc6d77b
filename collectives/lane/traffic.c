#include "collectives/lane/traffic.h"

#include <string.h>

void traffic_init(struct traffic *traffic, int (*lost)(void *arg, uint32_t rank), void *arg)
{
    memset(traffic, 0, sizeof(*traffic));
    traffic->lost = lost;
    traffic->arg = arg;
    traffic->segment_bytes = SEGMENT_BYTES;
    atomic_init(&traffic->awaited, TRAFFIC_NOBODY);
}

static int outcome(const struct traffic *traffic, uint32_t rank, int rc)
{
    return rc == HVD_E_LOST ? traffic->lost(traffic->arg, rank) : rc;
}

/* The places are gone through in turn: one that is still in use has been sent the longest ago. */
static int claim(struct traffic *traffic, uint32_t rank, size_t length, size_t *ret_place)
{
    size_t place = traffic->next_pending;
    int rc = traffic_await(traffic, place);

    traffic->next_pending = (place + 1) % TRAFFIC_PENDING_MAX;
    traffic->pending[place].rank = rank;
    traffic->pending[place].length = length;
    *ret_place = place;
    return rc;
}

int traffic_send(struct traffic *traffic, uint32_t rank, uint64_t tag, const void *bytes,
                 size_t length)
{
    size_t place;
    int rc = claim(traffic, rank, length, &place);

    if (rc)
        return rc;
    rc = traffic->link->ops->send(traffic->link, rank, tag, bytes, length,
                                  &traffic->pending[place].request);
    return outcome(traffic, rank, rc);
}

int traffic_receive(struct traffic *traffic, uint32_t rank, uint64_t tag, void *bytes,
                    size_t length, size_t *ret_place)
{
    int rc = claim(traffic, rank, length, ret_place);

    if (rc)
        return rc;
    rc = traffic->link->ops->receive(traffic->link, rank, tag, bytes, length,
                                     &traffic->pending[*ret_place].request);
    return outcome(traffic, rank, rc);
}

int traffic_await(struct traffic *traffic, size_t place)
{
    struct traffic_pending *pending = &traffic->pending[place];
    struct link_request *request = pending->request;
    int rc;

    if (!request)
        return 0;
    pending->request = NULL;
    atomic_store(&traffic->awaited, pending->rank);
    rc = traffic->link->ops->wait(traffic->link, request);
    atomic_store(&traffic->awaited, TRAFFIC_NOBODY);
    if (!rc)
        atomic_fetch_add(&traffic->progress, pending->length);
    return outcome(traffic, pending->rank, rc);
}

int traffic_await_all(struct traffic *traffic)
{
    int rc = 0;

    for (size_t i = 0; i < TRAFFIC_PENDING_MAX && !rc; i++)
        rc = traffic_await(traffic, (traffic->next_pending + i) % TRAFFIC_PENDING_MAX);
    return rc;
}

void traffic_drop_all(struct traffic *traffic)
{
    for (size_t i = 0; i < TRAFFIC_PENDING_MAX; i++) {
        struct link_request *request = traffic->pending[i].request;

        traffic->pending[i].request = NULL;
        if (request)
            traffic->link->ops->drop(traffic->link, request);
    }
}

/* ---- both ways at once ---- */

size_t traffic_segments(const struct traffic *traffic, size_t bytes)
{
    return bytes / traffic->segment_bytes + (bytes % traffic->segment_bytes != 0);
}

size_t traffic_segment(const struct traffic *traffic, size_t bytes, size_t segment)
{
    size_t left = bytes - segment * traffic->segment_bytes;

    return left < traffic->segment_bytes ? left : traffic->segment_bytes;
}

static uint8_t *place_in(const struct traffic *traffic, const struct exchange *exchange,
                         size_t segment)
{
    size_t slot = exchange->in_cycle ? segment % TRAFFIC_WINDOW : segment;

    return (uint8_t *)exchange->in + slot * traffic->segment_bytes;
}

static int post_segment(struct traffic *traffic, uint64_t tag, const struct exchange *exchange,
                        size_t segment, size_t places[TRAFFIC_WINDOW])
{
    int rc = 0;

    if (segment < traffic_segments(traffic, exchange->in_bytes))
        rc = traffic_receive(traffic, exchange->from, tag, place_in(traffic, exchange, segment),
                             traffic_segment(traffic, exchange->in_bytes, segment),
                             &places[segment % TRAFFIC_WINDOW]);
    if (!rc && segment < traffic_segments(traffic, exchange->out_bytes))
        rc = traffic_send(traffic, exchange->to, tag,
                          (const uint8_t *)exchange->out + segment * traffic->segment_bytes,
                          traffic_segment(traffic, exchange->out_bytes, segment));
    return rc;
}

int traffic_exchange(struct traffic *traffic, uint64_t tag, const struct exchange *exchange)
{
    size_t in = traffic_segments(traffic, exchange->in_bytes);
    size_t out = traffic_segments(traffic, exchange->out_bytes);
    size_t all = in > out ? in : out;
    size_t places[TRAFFIC_WINDOW] = { 0 };
    int rc = 0;

    for (size_t i = 0; i < all + TRAFFIC_WINDOW && !rc; i++) {
        size_t done = i - TRAFFIC_WINDOW;

        if (i >= TRAFFIC_WINDOW && done < in) {
            rc = traffic_await(traffic, places[done % TRAFFIC_WINDOW]);
            if (!rc && exchange->arrived)
                exchange->arrived(exchange->arg, done * traffic->segment_bytes,
                                  place_in(traffic, exchange, done),
                                  traffic_segment(traffic, exchange->in_bytes, done));
        }
        if (!rc && i < all)
            rc = post_segment(traffic, tag, exchange, i, places);
    }
    return rc;
}
