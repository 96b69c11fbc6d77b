/*
 * traffic.h: the messages of a process that are under way in a round, over its link. Lanes share
 * it.
 *
 * Codes: HVD_E_LOST, HVD_E_REVOKED, HVD_E_NOMEM.
 */
#ifndef COLLECTIVES_LANE_TRAFFIC_H
#define COLLECTIVES_LANE_TRAFFIC_H

#include "collectives/link/link.h"

#include <stdatomic.h>

#define TRAFFIC_PENDING_MAX 16
#define SEGMENT_BYTES       ((size_t)1024 * 1024)
#define TRAFFIC_NOBODY      UINT32_MAX

struct traffic_pending {
    struct link_request *request; /* NULL: free */
    uint32_t rank;
    size_t length;
};

struct traffic {
    struct link *link;
    /* A connection broke: the owner learns of it, and says what the round has come to. */
    int (*lost)(void *arg, uint32_t rank);
    void *arg;
    size_t
        segment_bytes; /* SEGMENT_BYTES, or what suits the link: 8 times something, equal on all */
    struct traffic_pending pending[TRAFFIC_PENDING_MAX];
    size_t next_pending;

    atomic_uint_fast64_t progress; /* grows with every byte; for who looks */
    atomic_uint_fast32_t awaited;  /* a rank, or TRAFFIC_NOBODY */
};

void traffic_init(struct traffic *traffic, int (*lost)(void *arg, uint32_t rank), void *arg);

/* A place is used up by awaiting it. */
int traffic_send(struct traffic *traffic, uint32_t rank, uint64_t tag, const void *bytes,
                 size_t length) MUST_CHECK;
int traffic_receive(struct traffic *traffic, uint32_t rank, uint64_t tag, void *bytes,
                    size_t length, size_t *ret_place) MUST_CHECK;
int traffic_await(struct traffic *traffic, size_t place) MUST_CHECK;
int traffic_await_all(struct traffic *traffic) MUST_CHECK;
void traffic_drop_all(struct traffic *traffic);

/* How many segments so many bytes are, and how long one of them is. */
size_t traffic_segments(const struct traffic *traffic, size_t bytes);
size_t traffic_segment(const struct traffic *traffic, size_t bytes, size_t segment);

/* Bytes to one and from another, in segments; arrived (NULL) sees each one in order. */
#define TRAFFIC_WINDOW 4 /* segments under way in each direction */
struct exchange {
    uint32_t to, from;
    const void *out;
    void *in;
    size_t out_bytes, in_bytes;
    bool in_cycle; /* in has room for a window of segments only, used again and again */
    void (*arrived)(void *arg, size_t at, const void *bytes, size_t length);
    void *arg;
};
int traffic_exchange(struct traffic *traffic, uint64_t tag,
                     const struct exchange *exchange) MUST_CHECK;

#endif
