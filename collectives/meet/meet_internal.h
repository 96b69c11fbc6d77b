/*
 * meet_internal.h: what the files of meet share.
 *
 *     meet.c          the thread: waits for events, and hands them on
 *       │
 *     handshake.c     how two sides of a control connection come to be met: the side that dials,
 *       │             and the side that accepts
 *     round.c         a round's peers: met, missed, heard, parted; what the owner orders
 *       │
 *     connection.c    frames over one control connection         meet_wire.c: a frame as bytes
 *     proof.c         the keys of a control connection
 *
 * Each file calls only files below it. All data belongs to meet's thread, except the fields that
 * the mutex protects. The state of a control connection:
 *
 *     we dial:               WAITS ──► DIALS ──► CALLS ──► ASKS ──► MET
 *                              ▲─────────┴─────────┴────────┘ it broke: again, a little later
 *     a peer dials us:       STRANGER ──► PARKED ──► MET
 *                               └───────────────────►
 */
#ifndef COLLECTIVES_MEET_INTERNAL_H
#define COLLECTIVES_MEET_INTERNAL_H

#include "base/door.h"
#include "base/vec.h"
#include "collectives/meet/meet.h"
#include "collectives/meet/proof.h"

#include <poll.h>
#include <pthread.h>

/* CALLS: this side waits for the CHALLENGE of the peer; ASKS: this side has sent its HELLO. */
enum meet_conn_state {
    CONN_WAITS,
    CONN_DIALS,
    CONN_CALLS,
    CONN_ASKS,
    CONN_STRANGER,
    CONN_PARKED,
    CONN_MET
};

struct meet_conn {     /* a control connection */
    struct list place; /* in the list meet->conns */
    struct meet *meet;
    struct door_guest guest; /* in state STRANGER: an entry of meet->door */
    enum meet_conn_state state;
    int fd;                   /* the socket; -1: none, in state WAITS */
    size_t polled;            /* index in meet->polled; 0: not polled */
    int64_t deadline_us;      /* WAITS: time of the next dial; STRANGER, PARKED: when it is ended */
    unsigned tries;           /* how often this side has dialled */
    struct meet_round *round; /* NULL: in the states STRANGER and PARKED */
    struct round_peer *peer;  /* the peer of that round; NULL in the same states as `round` */
    uint8_t challenge[SEAL_NONCE_BYTES]; /* the nonce of the CHALLENGE */
    struct meet_frame hello;    /* ASKS: the HELLO of this side; PARKED: that of the peer */
    struct proof_keys gate;     /* ASKS, PARKED: keys made from the contact's secret */
    struct proof_keys line;     /* ASKS, MET: keys made from the round's secret, for the frames */
    bool bye_heard;             /* true: the peer has sent BYE */
    uint8_t in[MEET_FRAME_MAX]; /* bytes that were read; a frame may not be complete */
    size_t in_length;
    struct buf out; /* bytes that wait until the socket takes them */
};

struct round_peer { /* a peer of a round: a copy of the owner's struct meet_peer, and its state */
    uint32_t rank;
    uint64_t incarnation;
    struct meet_contact contact;
    uint8_t address[MEET_ADDRESS_MAX];
    size_t address_length;
    bool dialled, met;      /* dialled: this process dials it; met: it has proved itself */
    struct meet_conn *conn; /* NULL: not connected, or not any more */
};

struct meet_round {
    struct list place; /* in the list meet->arrivals, later in meet->rounds */
    struct meet *meet;
    /* a copy of what the owner gave to meet_join; spec.peers is NULL, because `peers` replaces
     * it */
    struct meet_spec spec;
    struct round_peer *peers;
    uint8_t secret[SEAL_KEY_BYTES];
    /* told_all: all peers that were met were told why the round is over; left: the owner has left.
     * Both are orders that meet's thread has begun to carry out */
    bool told_all, left;
    int64_t deadline_us; /* when a polite leave ends at the latest */

    /* orders of the owner, under the mutex: told: `notice` is to be sent; bye: BYE is to be sent,
     * and bye_said: it is; leaving: the round is to be left, and politely: after a BYE */
    bool told, bye, bye_said, leaving, politely;
    struct meet_frame notice;
};

struct meet {
    int listener, wake; /* the listening socket; an eventfd that wakes the thread */
    pthread_t thread;
    struct meet_contact contact;
    char contact_text[MEET_CONTACT_MAX];
    struct list conns, rounds;               /* all connections; the rounds that have begun */
    struct polled VEC(struct pollfd) polled; /* for poll: `wake`, the listener, those of `conns` */
    size_t conn_count, parked_count;
    struct door door;       /* decides which stranger is closed when a new one comes */
    int64_t rests_until_us; /* the listener is not polled until this time; 0: it is polled */
    /* when the last free file descriptor was taken; 0: a descriptor is free */
    int64_t starves_since_us;
    uint64_t newest; /* the highest round that this process has ever joined */

    pthread_mutex_t mutex;  /* protects the fields below it */
    pthread_cond_t changed; /* signalled when BYEs were sent */
    struct list arrivals;   /* rounds that were joined and have not begun */
    meet_crowd_fn *crowded; /* NULL: the owner wants no reports */
    void *crowded_arg;
    bool closing; /* true: the thread must end */
};

#include "collectives/meet/meet_calls.h"

#endif
