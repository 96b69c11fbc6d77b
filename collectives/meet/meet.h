/*
 * meet.h: connects the peers of a round. Each worker has one listening socket. A peer connects
 * there, proves that it has the secret of the round, which only the members have, and exchanges the
 * addresses that the links need. The control connection between two peers stays open as long as the
 * round: it carries the reason why the round is over, and its end shows that a peer has ended.
 *
 *     meet_join ──► met, each peer ──► heard, parted ──► meet_leave ──► gone
 *
 * Members do not begin at the same instant. A member that has not begun a round yet lets the peers
 * that dial it for this round wait; a member that has left the round already refuses them.
 */
#ifndef COLLECTIVES_MEET_MEET_H
#define COLLECTIVES_MEET_MEET_H

#include "collectives/meet/meet_wire.h"

struct meet;       /* the listening socket, and the thread that serves it */
struct meet_round; /* the membership of this process in one round */

/* Listens at `host`, a numeric address of this machine, and starts the thread of meet. */
int meet_open(const char *host, struct meet **ret_meet, struct hvd_err *err) MUST_CHECK;
/* Peers are told this address in place of the one at which meet listens, as a device translates it
 * (NAT). Called before the contact is given to any peer. HVD_E_INVAL: it is no numeric address. */
int meet_announce(struct meet *meet, const char *host, struct hvd_err *err) MUST_CHECK;
/* Sets a callback for the time when too many strangers (connections of unknown processes) come to
 * the port. The thread of meet then calls `crowded`, at most once in 10 s; `text` says what
 * happens. */
typedef void meet_crowd_fn(void *arg, const char *text);
void meet_watch_crowd(struct meet *meet, meet_crowd_fn *crowded, void *arg);
void meet_close(struct meet *meet); /* only after `gone` of the last round */
/* Returns the text that other workers need to dial this process. */
const char *meet_contact(const struct meet *meet);

/* A round whose number has this bit belongs to a group which its members alone have opened, in the
 * round of the number without the bit. Several groups of a round differ in meet_spec.roster. */
#define MEET_OF_GROUP (UINT64_C(1) << 63)

struct meet_peer { /* a member whom this process must meet */
    uint32_t rank;
    uint64_t incarnation;
    const char *contact;               /* borrowed during meet_join */
    uint8_t address[MEET_ADDRESS_MAX]; /* bytes that this peer gets when it is met */
    size_t address_length;
};

/* Callbacks, called on the thread of meet. A callback may call meet_tell and no other function of
 * this header. `peer` is the peer's index in meet_spec.peers. */
struct meet_ops {
    /* the peer has proved itself; `address`: what it has for us, as meet_peer.address */
    void (*met)(void *arg, size_t peer, const uint8_t *address, size_t length);
    /* the peer cannot be connected */
    void (*missed)(void *arg, size_t peer, int code, const char *why);
    /* the peer has told why the round is over for it (meet_tell) */
    void (*heard)(void *arg, size_t peer, int code, uint32_t rank, const char *why);
    void (*parted)(void *arg, size_t peer); /* the connection ended, and no BYE came before */
    void (*gone)(void *arg);                /* the last callback; the round is freed after it */
};

struct meet_spec {
    uint64_t round, incarnation;
    uint32_t rank;   /* our own rank */
    uint64_t roster; /* hash of the members: equal on all members of the same round, or group */
    /* the secret of the round, SEAL_KEY_BYTES bytes; copied by meet_join. Each peer must prove that
     * it has the secret. */
    const uint8_t *secret;
    const struct meet_peer *peers; /* copied by meet_join */
    size_t peer_count;
    const struct meet_ops *ops;
    void *arg;
};

/* Joins a round: begins to dial the peers, and lets them dial this process. Does not wait. */
int meet_join(struct meet *meet, const struct meet_spec *spec, struct meet_round **ret_round,
              struct hvd_err *err) MUST_CHECK;

/* Tells every connected peer why the round is over. Only the first call of a member is sent.
 * `rank`: the rank that caused the failure, or MEET_NOBODY. Any thread may call this function; it
 * does not wait and cannot fail. */
void meet_tell(struct meet_round *round, int code, uint32_t rank, const char *why);

/* Sends BYE to every connected peer. Returns when each BYE is sent: from then on no peer counts the
 * end of this process as a failure. */
void meet_bye(struct meet_round *round);

/* Leaves the round. Any thread may call this function; it does not wait and cannot fail. `politely`
 * is true: meet sends BYE first, and closes the connections when the peers have sent BYE too, or
 * after a short timeout. */
void meet_leave(struct meet_round *round, bool politely);

#endif
