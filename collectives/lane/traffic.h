/*
 * traffic.h: the messages that this process sends and receives over one link, at most
 * TRAFFIC_PENDING_MAX at a time. Most lanes of a round share the traffic of the round's link. The
 * functions return 0, HVD_E_LOST, HVD_E_REVOKED or HVD_E_NOMEM.
 */
#ifndef COLLECTIVES_LANE_TRAFFIC_H
#define COLLECTIVES_LANE_TRAFFIC_H

#include "collectives/link/link.h"

#include <stdatomic.h>

#define TRAFFIC_PENDING_MAX 16
#define SEGMENT_BYTES       ((size_t)1024 * 1024) /* unless the link sets another size */
#define TRAFFIC_NOBODY      UINT32_MAX            /* no rank */

struct traffic_pending {
    struct link_request *request; /* NULL: this entry is free */
    uint32_t rank;                /* the rank to which the message goes, or from which it comes */
    size_t length;                /* bytes of the message */
};

struct traffic {
    struct link *link;
    /* Called when the connection to `rank` breaks. The owner of the traffic records the failure of
     * the round and returns its code. */
    int (*lost)(void *arg, uint32_t rank);
    void *arg;
    /* A long message is sent in segments of this size: SEGMENT_BYTES, or a size that suits the
     * link. It is a multiple of 8 and equal on all members. */
    size_t segment_bytes;
    struct traffic_pending pending[TRAFFIC_PENDING_MAX];
    size_t next_pending; /* index in `pending` for the next message: the oldest entry */

    /* other threads read `progress` and `awaited`, to see whether the round makes progress */
    atomic_uint_fast64_t progress; /* number of bytes sent and received so far */
    /* while this member waits until a message is sent or received: the rank of the other side; else
     * TRAFFIC_NOBODY */
    atomic_uint_fast32_t awaited;
};

void traffic_init(struct traffic *traffic, int (*lost)(void *arg, uint32_t rank), void *arg);

/* traffic_send and traffic_receive begin a message and do not wait for its end. Each message takes
 * an entry of `pending`; *ret_index: the index of the entry. traffic_await waits until the message
 * of an entry is sent or received, and frees the entry. */
int traffic_send(struct traffic *traffic, uint32_t rank, uint64_t tag, const void *bytes,
                 size_t length) MUST_CHECK;
int traffic_receive(struct traffic *traffic, uint32_t rank, uint64_t tag, void *bytes,
                    size_t length, size_t *ret_index) MUST_CHECK;
int traffic_await(struct traffic *traffic, size_t index) MUST_CHECK;
int traffic_await_all(struct traffic *traffic) MUST_CHECK;
void traffic_drop_all(struct traffic *traffic);

/* traffic_segments: how many segments a message of `bytes` bytes has. traffic_segment: how many
 * bytes the message's segment number `segment` has, counted from 0. */
size_t traffic_segments(const struct traffic *traffic, size_t bytes);
size_t traffic_segment(const struct traffic *traffic, size_t bytes, size_t segment);

/* Sends `out_bytes` bytes to rank `to` and receives `in_bytes` bytes from rank `from`, in segments.
 * `arrived` (may be NULL) is called for each received segment, in order; its argument `at`: where
 * the segment begins in the message. */
#define TRAFFIC_WINDOW 4 /* the most segments under way at a time in each direction */
struct exchange {
    uint32_t to, from;
    const void *out;
    void *in;
    size_t out_bytes, in_bytes;
    /* true: `in` has room for TRAFFIC_WINDOW segments only; the memory of a segment is used for a
     * later one when the segment has been given to `arrived` */
    bool in_cycle;
    void (*arrived)(void *arg, size_t at, const void *bytes, size_t length);
    void *arg;
};
int traffic_exchange(struct traffic *traffic, uint64_t tag,
                     const struct exchange *exchange) MUST_CHECK;

#endif
