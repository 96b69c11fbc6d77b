/*
 * meet.h: where the peers of a round meet: each worker has one listening socket, on which those who
 * know its secret exchange what their links need. The connection stays as long as the round: it
 * carries why the round is over, and its end shows that a peer is gone.
 *
 *     meet_join ──► met, each peer ──► heard, parted ──► meet_leave ──► gone
 *
 * Members do not begin at the same instant. Who dials a peer that has not come to that round yet is
 * kept waiting; one that has gone past it turns the dialler away.
 */
#ifndef COLLECTIVES_MEET_MEET_H
#define COLLECTIVES_MEET_MEET_H

#include "collectives/meet/words.h"

struct meet; /* the socket, and the thread that serves it */
struct meet_party;

/* host: the numeric address to listen on. */
int meet_open(const char *host, struct meet **ret_meet, struct hvd_err *err) MUST_CHECK;
void meet_close(struct meet *meet); /* after the last party is gone */
const char *meet_contact(const struct meet *meet);

struct meet_peer {
    uint32_t rank;
    uint64_t incarnation;
    const char *contact;               /* borrowed during meet_join */
    uint8_t address[MEET_ADDRESS_MAX]; /* what it is told */
    size_t address_length;
};

/* On meet's thread; they call nothing of meet's but meet_tell. peer: its place in the list. */
struct meet_ops {
    void (*met)(void *arg, size_t peer, const uint8_t *address, size_t length);
    void (*missed)(void *arg, size_t peer, int code, const char *why); /* it will not be met */
    void (*heard)(void *arg, size_t peer, int code, uint32_t rank, const char *why);
    void (*parted)(void *arg, size_t peer); /* its end broke, and it has not said bye */
    void (*gone)(void *arg);                /* the last call; the party is freed after it */
};

struct meet_spec {
    uint64_t round, incarnation;
    uint32_t rank;
    uint64_t roster;               /* a sum that is the same for all who mean the same round */
    const struct meet_peer *peers; /* copied */
    size_t peer_count;
    const struct meet_ops *ops;
    void *arg;
};

int meet_join(struct meet *meet, const struct meet_spec *spec, struct meet_party **ret_party,
              struct hvd_err *err) MUST_CHECK;

/* Any thread, at once, cannot fail. Every peer that is met hears the first that is told. */
void meet_tell(struct meet_party *party, int code, uint32_t rank, const char *why);

/* Says bye to every peer that is met, and returns when that is on its way: whatever becomes of this
 * process then is no surprise to them. */
void meet_bye(struct meet_party *party);

/* Any thread, at once, cannot fail. politely: say bye, and go when the others have too, or soon. */
void meet_leave(struct meet_party *party, bool politely);

#endif
