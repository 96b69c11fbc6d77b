/*
 * lane.h: members in a row, one on each host, and what they compute together over a link. A lane of
 * one is allowed: whatever it is asked is done at once.
 *
 *     lane_open ──► allreduce, broadcast, ... any number of times ──► lane_close
 *
 * Every operation begins with lane_open: one message around the row says what it is, and the tags
 * of all that follow hold a sum of it, so that those of another operation are never taken for ours.
 * Codes are those of traffic.h: what has gone wrong has been told to its owner.
 */
#ifndef COLLECTIVES_LANE_LANE_H
#define COLLECTIVES_LANE_LANE_H

#include "collectives/accord.h"
#include "collectives/lane/traffic.h"
#include "collectives/reduce/reduce.h"

#define LANE_FIRST_MAX 4096

struct lane_opening {
    struct accord accord;
    uint32_t takes_first; /* the first step of what follows is in it, of length bytes */
    uint32_t length;
    uint8_t first[LANE_FIRST_MAX];
};

/* All zero but for the first four. */
struct lane {
    struct traffic *traffic; /* of a lane of one: NULL is allowed */
    const uint32_t *ranks;   /* of the round, in order; borrowed */
    uint32_t index, size;    /* our place among them */
    uint64_t key;            /* in the tags of the open operation */
    uint32_t steps;          /* of it so far */
    struct lane_opening said, heard;
    bool opened;
};

/* To those at the distance of a power of two, before and after: with them a lane must be connected.
 * Returns how many (of at most 64), as places in the lane. */
#define LANE_PARTNERS_MAX 64
size_t lane_partners(uint32_t index, uint32_t size, uint32_t ret_partners[LANE_PARTNERS_MAX]);

/* What this member means; *ret_theirs is what the one before it means (for size 1: ours). They need
 * not be equal: it is for the caller to judge. A member that has joined (accord.h) learns here what
 * the others do; HVD_DONE: all have joined, and *ret_theirs says who was last. */
int lane_open(struct lane *lane, const struct accord *ours, struct accord *ret_theirs) MUST_CHECK;

/* The same, and the first step of what follows goes along, which saves a message: of a lane_barrier
 * (no bytes), or of a lane_allreduce by LANE_GATHER, whose work this is (LANE_FIRST_MAX at most;
 * not NULL). Who has joined has nothing yet, and opens without. */
int lane_open_with(struct lane *lane, const struct accord *ours, const void *first, size_t length,
                   struct accord *ret_theirs) MUST_CHECK;

/* After every opening, also one that has failed; nothing without one. Waits for what is still on
 * its way; rc: what the operation has come to. Returns it, or worse. */
int lane_close(struct lane *lane, int rc);

/* Which way; all members must say the same. */
enum lane_way {
    LANE_GATHER, /* everybody gets everything, and reduces it alone: small */
    LANE_DOUBLE, /* in pairs of growing distance, all of it each time: middle */
    LANE_HALVE,  /* in pairs, half of it each time, and back again: large */
    LANE_RING,   /* around the row, each reduces a part and passes it on: larger */
    LANE_ORDER,  /* the sum is that of the row's order, whatever the size */
};

/* work: count numbers of the work type, used up. out: what they have come to, of the type itself;
 * it may be work when the types are equal. LANE_ORDER needs a mesh. */
int lane_allreduce(struct lane *lane, void *work, void *out, size_t count,
                   const struct reduction *how, enum lane_way way) MUST_CHECK;

/* The same, but member i is only given counts[i] of the numbers, the first ones to the first. out
 * is for those of this member. Ways: LANE_RING, LANE_ORDER. */
int lane_reducescatter(struct lane *lane, void *work, void *out, const size_t *counts,
                       const struct reduction *how, enum lane_way way) MUST_CHECK;

int lane_broadcast(struct lane *lane, void *bytes, size_t length, uint32_t root) MUST_CHECK;

/* blocks[i]: where the block of member i is or goes, of lengths[i] bytes; ours is there. */
int lane_allgather(struct lane *lane, uint8_t *const *blocks, const size_t *lengths) MUST_CHECK;

/* To each its block of out, from each its block of in; ours is left alone. Needs a mesh. */
int lane_alltoall(struct lane *lane, const uint8_t *const *out, const size_t *out_lengths,
                  uint8_t *const *in, const size_t *in_lengths) MUST_CHECK;

int lane_barrier(struct lane *lane) MUST_CHECK;

#endif
