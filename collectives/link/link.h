/*
 * link.h: bytes from one member of a round to another, and back. All that the algorithms know of
 * the network.
 *
 *     address of each peer, told to it ──► connect, each peer ──► connected ──► send, receive, wait
 *                                                        cancel, at any time ──► free
 *
 * A link is one of several kinds, each behind the operations here (links.h). Everything but cancel
 * is for one thread at a time. Bytes may move only while a thread is inside: who goes to wait for
 * something else waits first for what it has sent, or its peers may wait for that in vain.
 */
#ifndef COLLECTIVES_LINK_LINK_H
#define COLLECTIVES_LINK_LINK_H

#include "base/err.h"

#define LINK_ADDRESS_MAX 256

struct link;
struct link_request; /* what is on its way */

struct link_ops {
    /* Written to ret_bytes (LINK_ADDRESS_MAX): what this peer must be told, and nobody else. Always
     * the same, also once they are connected. */
    int (*address)(struct link *link, uint32_t rank, uint8_t *ret_bytes, size_t *ret_length,
                   struct hvd_err *err) MUST_CHECK;

    /* Begins to connect the peer that has told us this. Does not wait. */
    int (*connect)(struct link *link, uint32_t rank, const uint8_t *bytes, size_t length,
                   struct hvd_err *err) MUST_CHECK;

    /* Waits until all that was begun is done. HVD_E_TIMEOUT, HVD_E_LOST: *ret_rank is who is not
     * connected. HVD_E_REVOKED: cancelled. */
    int (*connected)(struct link *link, int64_t deadline_us, uint32_t *ret_rank,
                     struct hvd_err *err) MUST_CHECK;

    /* Around whatever a thread does with the link from here on down. */
    void (*enter)(struct link *link);
    void (*leave)(struct link *link);

    /* The memory is borrowed until the request is waited for or dropped. A message is for the
     * receive of the same peer and tag, of the same length or less. HVD_E_LOST: that peer is gone;
     * HVD_E_REVOKED, HVD_E_NOMEM. */
    int (*send)(struct link *link, uint32_t rank, uint64_t tag, const void *bytes, size_t length,
                struct link_request **ret_request) MUST_CHECK;
    int (*receive)(struct link *link, uint32_t rank, uint64_t tag, void *bytes, size_t length,
                   struct link_request **ret_request) MUST_CHECK;

    /* Until it is done, or HVD_E_LOST, HVD_E_REVOKED. The request is used up in any case. */
    int (*wait)(struct link *link, struct link_request *request) MUST_CHECK;
    void (*drop)(struct link *link, struct link_request *request);

    /* Any thread, at once, again and again: every wait, now and later, is HVD_E_REVOKED. */
    void (*cancel)(struct link *link);

    /* May take its time. No request is left. */
    void (*free)(struct link *link);
};

struct link {
    const struct link_ops *ops;
};

#endif
