/*
 * link.h: sends bytes from one member of a round to another. The algorithms (collectives/lane/)
 * know no other part of the network.
 *
 *     address, for each peer ──► connect, for each peer ──► connected ──► send, receive, wait ...
 *                                                       ──► free         cancel: at any time
 *
 * There are several kinds of links (links.h), all behind the operations here. Every operation
 * except cancel is for one thread at a time. Bytes may move only while a thread is in an operation
 * of the link. Therefore a caller must wait until its messages are sent before it waits for
 * anything else: its peers need those bytes.
 */
#ifndef COLLECTIVES_LINK_LINK_H
#define COLLECTIVES_LINK_LINK_H

#include "base/err.h"

#define LINK_ADDRESS_MAX 256

struct link;
struct link_request; /* a message that is being sent or received */

struct link_ops {
    /* Writes to ret_bytes (LINK_ADDRESS_MAX bytes) our address for this peer. The caller must tell
     * it to this peer and to no other. The address stays the same, also after the two members are
     * connected. */
    int (*address)(struct link *link, uint32_t rank, uint8_t *ret_bytes, size_t *ret_length,
                   struct hvd_err *err) MUST_CHECK;

    /* Begins to connect to the peer; does not wait. bytes: the address that this peer has told
     * us. */
    int (*connect)(struct link *link, uint32_t rank, const uint8_t *bytes, size_t length,
                   struct hvd_err *err) MUST_CHECK;

    /* Waits until all begun connections are established. HVD_E_TIMEOUT, HVD_E_LOST: the peer
     * *ret_rank could not be connected. HVD_E_REVOKED: the link was cancelled. */
    int (*connected)(struct link *link, int64_t deadline_us, uint32_t *ret_rank,
                     struct hvd_err *err) MUST_CHECK;

    /* A thread calls enter before its first send, receive, wait or drop, and leave after its last
     * one. Between the two calls the thread moves the messages of the link. */
    void (*enter)(struct link *link);
    void (*leave)(struct link *link);

    /* send and receive begin a message and return a request for it. The memory of the message is
     * borrowed until the caller waits for the request or drops it. A sent message goes to the
     * receive with the same tag on the other side; that receive must have room for the whole
     * message. HVD_E_LOST: the peer is gone; HVD_E_REVOKED, HVD_E_NOMEM. */
    int (*send)(struct link *link, uint32_t rank, uint64_t tag, const void *bytes, size_t length,
                struct link_request **ret_request) MUST_CHECK;
    int (*receive)(struct link *link, uint32_t rank, uint64_t tag, void *bytes, size_t length,
                   struct link_request **ret_request) MUST_CHECK;

    /* wait returns when the message of the request is sent or received: 0, HVD_E_LOST or
     * HVD_E_REVOKED. drop ends a request whose message is not wanted any more. Both free the
     * request. */
    int (*wait)(struct link *link, struct link_request *request) MUST_CHECK;
    void (*drop)(struct link *link, struct link_request *request);

    /* Writes to ret_text why the connection to this peer broke. Returns false if the link does not
     * know the reason. The thread that got HVD_E_LOST calls it. The pointer `why` itself is NULL
     * for a kind of link that never knows a reason. */
    bool (*why)(struct link *link, uint32_t rank, char *ret_text, size_t size);

    /* Makes every current and later wait return HVD_E_REVOKED. Any thread may call cancel, any
     * number of times; it does not wait. */
    void (*cancel)(struct link *link);

    /* Frees the link, which may take some time. The caller has waited for all requests or dropped
     * them. */
    void (*free)(struct link *link);
};

struct link {
    const struct link_ops *ops;
};

/* How messages between two members travel (--data-security). AUTO: in clear between two loopback
 * addresses; otherwise authenticated, and also encrypted if the measured cost of encryption is
 * small (security.h). */
enum link_security {
    LINK_SECURITY_AUTO,
    LINK_SECURITY_ENCRYPTED,
    LINK_SECURITY_AUTHENTICATED,
    LINK_SECURITY_NONE
};

/* The round of a link. `roster` is a hash of the members, groups and options. `secret` is known to
 * the members of the round only. The two sides of a connection prove to each other that they have
 * the same round, roster and secret. */
struct link_round {
    uint64_t round, roster;
    const uint64_t *incarnations; /* the incarnation of the worker at each rank */
    const uint8_t *secret;        /* the secret has SEAL_KEY_BYTES bytes */
    enum link_security security;  /* equal on all members */
};

/* The arguments of link_create: the link of one member in one round. */
struct reaper;
struct link_spec {
    const struct link_round *round; /* lives as long as the link */
    /* a thread that closes the connections of a cancelled link, if closing takes long (Gloo) */
    struct reaper *reaper;
    uint32_t rank, size;   /* rank of this member; number of members of the round */
    const uint32_t *peers; /* ranks of the peers: the link connects only to these; borrowed */
    size_t peer_count;
};

#endif
