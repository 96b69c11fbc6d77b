/*
 * tcp_internal.h: what the files of a TCP link share.
 *
 *     tcp_link.c      makes, cancels and frees a link
 *     tcp_connect.c   the handshake with each peer ──► tcp_proof.c: makes and checks its messages
 *     tcp_stream.c    messages of connected peers ──► inbox.c: gives them to the receives
 *       tcp_sealed.c  the same bytes in sealed records, if the two sides have agreed on that
 *
 * The state of a peer:
 *
 *     we dial, as our rank is lower:   NEW ──► DIALS ──► CALLS ──► ASKS ──► READY ──► GONE
 *                                               ▲─────────┴─────────┘ it broke: dial again
 *     the peer dials us:               NEW ──► ANSWERS ──► READY ──► GONE
 *
 * DIALS: the kernel connects; CALLS: we wait for the challenge of the peer; ASKS: we have begun to
 * send our greeting, and then wait for the answer; ANSWERS: we have begun to send our answer;
 * READY: messages can be sent; GONE: the connection has ended. An accepted connection is a stranger
 * until its greeting has been read and proves which peer sent it.
 */
#ifndef COLLECTIVES_LINK_TCP_INTERNAL_H
#define COLLECTIVES_LINK_TCP_INTERNAL_H

#include "base/door.h"
#include "collectives/link/inbox.h"
#include "collectives/link/links_internal.h"
#include "collectives/link/tcp_proof.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define TCP_STRANGERS_MAX 64
/* the most strangers from one source, which is a network (base/door.h) */
#define TCP_STRANGERS_EACH 32

enum tcp_state { TCP_NEW, TCP_DIALS, TCP_CALLS, TCP_ASKS, TCP_ANSWERS, TCP_READY, TCP_GONE };

struct tcp_handshake { /* a message; `count` of its `length` bytes are sent or received */
    uint8_t bytes[TCP_WORD_MAX];
    size_t length, count;
};

struct tcp_sealed;
struct tcp_speed;

struct tcp_peer {
    uint32_t rank;
    enum tcp_state state;
    int fd;        /* -1: not connected */
    size_t polled; /* index of this peer in link->polled; 0: it is not polled */
    uint64_t incarnation;
    uint8_t token[TCP_TOKEN_BYTES]; /* random bytes in the address that we give this peer */
    struct tcp_address told;        /* the address that the peer has told us */
    unsigned dials;                 /* how often this link has dialled the peer */
    struct tcp_handshake out, in;   /* our message of the handshake, and the peer's */
    struct tcp_keys keys;           /* valid in the states ASKS and ANSWERS */
    enum seal_mode mode;            /* valid in the states ANSWERS and READY: how messages travel */
    struct tcp_sealed *sealed;      /* NULL: messages travel in clear */
    bool unproved; /* true: the last answer did not prove that it is from the peer */
    /* true: the state is GONE because no descriptor was free; the link dials this peer again */
    bool starved;
    const char *why; /* why the connection was not made; NULL: the link does not know the reason */

    bool mute; /* true: no more bytes can be written to the peer */
    /* messages that are not wholly written yet, in order; the first may be written in part */
    struct list sends;
    struct inbox inbox;
};

struct tcp_stranger {        /* an accepted connection that has not proved its peer */
    struct door_guest guest; /* in link->door, if fd is not -1 */
    int fd;                  /* -1: this entry is free */
    int64_t since_us;        /* when the connection was accepted */
    size_t polled;           /* index of this stranger in link->polled; 0: it is not polled */
    uint8_t nonce[SEAL_NONCE_BYTES]; /* the nonce in the challenge that we have sent */
    struct tcp_handshake in;
};

struct tcp_link {
    struct link base;
    struct tcp_address here; /* where this link listens */
    struct endpoint told;    /* the address that peers are told, without its port */
    const struct link_round *round;
    struct tcp_speed *speed; /* the measured speeds; borrowed from the device */
    uint32_t rank;
    struct tcp_peer *peers;
    size_t peer_count;
    struct tcp_stranger strangers[TCP_STRANGERS_MAX];
    struct door door;       /* decides which stranger is closed when a new one needs an entry */
    int listener;           /* -1: closed, because all peers are connected */
    struct pollfd *polled;  /* the eventfd `wake`, then all descriptors that are polled */
    size_t listener_polled; /* index of the listener in polled; 0: not polled */
    /* the link accepts and dials nothing until this time, because no descriptor was free */
    int64_t rests_until_us;
    /* when the last free file descriptor was taken; 0: a descriptor is free */
    int64_t starves_since_us;
    int wake; /* an eventfd that cancel writes to, which ends every poll */
    atomic_bool cancelled;
    /* locked while a descriptor is opened or closed, and while cancel shuts all descriptors down */
    pthread_mutex_t mutex;
};

static inline struct tcp_link *tcp_of(struct link *link)
{
    return (struct tcp_link *)(void *)link;
}

/* tcp_connect.c (link.h: connect, connected) */
int tcp_link_connect(struct link *base, uint32_t rank, const uint8_t *bytes, size_t length,
                     struct hvd_err *err) MUST_CHECK;
int tcp_link_connected(struct link *base, int64_t deadline_us, uint32_t *ret_rank,
                       struct hvd_err *err) MUST_CHECK;

/* tcp_link.c */
/* Returns the peer with this rank. The link must have such a peer. */
struct tcp_peer *tcp_find(struct tcp_link *link, uint32_t rank);
/* Closes the descriptor in *place, and stores `fd` there (-1: no descriptor). */
void tcp_replace(struct tcp_link *link, int *place, int fd);

#endif
