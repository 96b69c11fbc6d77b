/*
 * traffic.c: the sends and receives of lanes over a link, and the exchange of two long messages in
 * segments (traffic_exchange). Called by the algorithms of the lanes, by one thread at a time.
 *
 * At most TRAFFIC_PENDING_MAX messages are under way at a time. A new message first waits for the
 * oldest one. The owner's callback `lost` decides what a broken connection means for the round.
 */
#include "collectives/lane/traffic.h"

#include <string.h>

/* Prepares a traffic that has no link and no messages yet: the owner sets `link` when the link is
 * made. `lost` is called with the rank of a peer whose connection breaks (struct traffic). */
void traffic_init(struct traffic *traffic, int (*lost)(void *arg, uint32_t rank), void *arg)
{
    memset(traffic, 0, sizeof(*traffic));
    traffic->lost = lost;
    traffic->arg = arg;
    traffic->segment_bytes = SEGMENT_BYTES;
    atomic_init(&traffic->awaited, TRAFFIC_NOBODY);
}

/* Returns `rc`; but if the connection to `rank` broke (HVD_E_LOST), tells the owner of the traffic,
 * and returns the code of the round's failure. */
static int traffic_outcome(const struct traffic *traffic, uint32_t rank, int rc)
{
    return rc == HVD_E_LOST ? traffic->lost(traffic->arg, rank) : rc;
}

/* Takes the next entry of `pending` for a message. The entries are used in a cycle, so an entry
 * that is still in use belongs to the oldest message, and traffic_claim waits for that message
 * first. *ret_index: the index of the entry. Returns the result of that wait; 0 also if the entry
 * was free. */
static int traffic_claim(struct traffic *traffic, uint32_t rank, size_t length, size_t *ret_index)
{
    size_t index = traffic->next_pending;
    int rc = traffic_await(traffic, index);

    traffic->next_pending = (index + 1) % TRAFFIC_PENDING_MAX;
    traffic->pending[index].rank = rank;
    traffic->pending[index].length = length;
    *ret_index = index;
    return rc;
}

/* Begins to send a message, and does not wait for its end. The end is awaited by a later message
 * that needs the same entry of `pending`, or by traffic_await_all at the end of the operation. */
int traffic_send(struct traffic *traffic, uint32_t rank, uint64_t tag, const void *bytes,
                 size_t length)
{
    size_t index;
    int rc = traffic_claim(traffic, rank, length, &index);

    if (rc)
        return rc;
    rc = traffic->link->ops->send(traffic->link, rank, tag, bytes, length,
                                  &traffic->pending[index].request);
    return traffic_outcome(traffic, rank, rc);
}

/* Begins to receive a message into `bytes`. *ret_index: the index of its entry in `pending`, which
 * the caller passes to traffic_await. */
int traffic_receive(struct traffic *traffic, uint32_t rank, uint64_t tag, void *bytes,
                    size_t length, size_t *ret_index)
{
    int rc = traffic_claim(traffic, rank, length, ret_index);

    if (rc)
        return rc;
    rc = traffic->link->ops->receive(traffic->link, rank, tag, bytes, length,
                                     &traffic->pending[*ret_index].request);
    return traffic_outcome(traffic, rank, rc);
}

/* Waits until the message of this entry of `pending` is sent or received, and frees the entry.
 * Returns 0 at once for a free entry. While this member waits, `awaited` shows other threads for
 * which rank it waits. */
int traffic_await(struct traffic *traffic, size_t index)
{
    struct traffic_pending *pending = &traffic->pending[index];
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
    return traffic_outcome(traffic, pending->rank, rc);
}

/* Waits for all messages, from the oldest to the newest. Stops at the first failure; the caller
 * then drops the rest (traffic_drop_all). */
int traffic_await_all(struct traffic *traffic)
{
    int rc = 0;

    for (size_t i = 0; i < TRAFFIC_PENDING_MAX && !rc; i++)
        rc = traffic_await(traffic, (traffic->next_pending + i) % TRAFFIC_PENDING_MAX);
    return rc;
}

/* Drops all messages that are under way, after a failure: their memory belongs to the caller again.
 */
void traffic_drop_all(struct traffic *traffic)
{
    for (size_t i = 0; i < TRAFFIC_PENDING_MAX; i++) {
        struct link_request *request = traffic->pending[i].request;

        traffic->pending[i].request = NULL;
        if (request)
            traffic->link->ops->drop(traffic->link, request);
    }
}

/* How many segments a message of `bytes` bytes has. */
size_t traffic_segments(const struct traffic *traffic, size_t bytes)
{
    return bytes / traffic->segment_bytes + (bytes % traffic->segment_bytes != 0);
}

/* How many bytes segment number `segment` has in a message of `bytes` bytes: the last is shorter.
 */
size_t traffic_segment(const struct traffic *traffic, size_t bytes, size_t segment)
{
    size_t left = bytes - segment * traffic->segment_bytes;

    return left < traffic->segment_bytes ? left : traffic->segment_bytes;
}

/* Returns the memory into which this segment is received; `in_cycle`: the window is used again. */
static uint8_t *memory_of_segment(const struct traffic *traffic, const struct exchange *exchange,
                                  size_t segment)
{
    size_t index = exchange->in_cycle ? segment % TRAFFIC_WINDOW : segment;

    return (uint8_t *)exchange->in + index * traffic->segment_bytes;
}

/* Sends one long message and receives another at the same time, in segments. In each direction at
 * most TRAFFIC_WINDOW segments are under way: iteration i begins segment i in both directions, and
 * ends the receive of segment i - TRAFFIC_WINDOW. */
int traffic_exchange(struct traffic *traffic, uint64_t tag, const struct exchange *exchange)
{
    size_t in = traffic_segments(traffic, exchange->in_bytes);
    size_t out = traffic_segments(traffic, exchange->out_bytes);
    size_t all = in > out ? in : out;
    /* for each received segment of the window: the index of its entry in `pending` */
    size_t entries[TRAFFIC_WINDOW] = { 0 };
    int rc = 0;

    for (size_t i = 0; i < all + TRAFFIC_WINDOW && !rc; i++) {
        /* the received segment that ends now; wraps around while i is less than TRAFFIC_WINDOW, and
         * is not used then */
        size_t done = i - TRAFFIC_WINDOW;

        /* wait until the oldest segment of the window has arrived */
        if (i >= TRAFFIC_WINDOW && done < in) {
            rc = traffic_await(traffic, entries[done % TRAFFIC_WINDOW]);
            if (!rc && exchange->arrived)
                exchange->arrived(exchange->arg, done * traffic->segment_bytes,
                                  memory_of_segment(traffic, exchange, done),
                                  traffic_segment(traffic, exchange->in_bytes, done));
        }
        /* begin the next segment in each direction; the receive comes first, so that arriving bytes
         * go straight into its memory */
        if (!rc && i < in)
            rc = traffic_receive(
                traffic, exchange->from, tag, memory_of_segment(traffic, exchange, i),
                traffic_segment(traffic, exchange->in_bytes, i), &entries[i % TRAFFIC_WINDOW]);
        if (!rc && i < out)
            rc = traffic_send(traffic, exchange->to, tag,
                              (const uint8_t *)exchange->out + i * traffic->segment_bytes,
                              traffic_segment(traffic, exchange->out_bytes, i));
    }
    return rc;
}
