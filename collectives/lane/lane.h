/*
 * lane.h: the operations between hosts. A lane is a list of members, one on each host, that compute
 * together over network connections (a link). The order of the list is called the row. A lane may
 * have one member: its operations then finish at once.
 *
 *     lane_open ──► allreduce, broadcast, ... any number of times ──► lane_close
 *
 * Every operation begins with lane_open: each member sends the fingerprint of its operation to the
 * next member of the row. The tags of all later messages hold a hash of the fingerprint, so a
 * message of another operation is never mistaken for a message of this one. The functions return 0,
 * HVD_E_LOST, HVD_E_REVOKED or HVD_E_NOMEM (traffic.h). When a connection breaks, a function first
 * calls `lost` of struct traffic, which records the member that was lost, and then returns the code
 * that `lost` has returned.
 */
#ifndef COLLECTIVES_LANE_LANE_H
#define COLLECTIVES_LANE_LANE_H

#include "collectives/fingerprint.h"
#include "collectives/lane/traffic.h"
#include "collectives/reduce/reduce.h"

#define LANE_FIRST_MAX 4096 /* the longest first step that an opening message carries, in bytes */

struct lane_opening { /* the message that opens an operation */
    struct fingerprint fingerprint;
    /* 1: the opening message also carries the `length` bytes that the first step sends */
    uint32_t takes_first;
    uint32_t length;
    uint8_t first[LANE_FIRST_MAX]; /* the bytes of the first step */
};

/* The caller sets the first four fields; all other fields begin as zero. */
struct lane {
    struct traffic *traffic; /* may be NULL in a lane of one member */
    const uint32_t *ranks;   /* ranks in the round, in the order of the row; borrowed */
    uint32_t index, size;    /* this member's index in `ranks`; the number of ranks */
    uint64_t key;            /* hash of the open operation's fingerprint; a part of every tag */
    uint32_t steps;          /* how many step numbers the open operation has reserved so far */
    /* the opening message that was sent to the next member of the row; the one that came from the
     * member before */
    struct lane_opening said, heard;
    bool opened; /* true: between lane_open and lane_close */
};

/* Lists the members at distance 1, 2, 4, ... before and after this member in the row: the lane
 * needs a link to each of them. The list holds indices in the lane, at most 64. Returns the length
 * of the list. */
#define LANE_PARTNERS_MAX 64 /* two for each power of two below 2^32 */
size_t lane_partners(uint32_t index, uint32_t size, uint32_t ret_partners[LANE_PARTNERS_MAX]);

/* Opens an operation. ours: the fingerprint of this member's operation. *ret_theirs: the
 * fingerprint of the member before this one in the row (in a lane of one member: a copy of `ours`).
 * The two may differ: the caller compares them. A member that has joined (fingerprint.h) learns
 * here which operation the other members run. HVD_DONE: all members have joined, and `last` of
 * *ret_theirs is the rank that joined last. */
int lane_open(struct lane *lane, const struct fingerprint *ours,
              struct fingerprint *ret_theirs) MUST_CHECK;

/* As lane_open, but the opening message also carries the first step of the operation, which saves a
 * message. The first step is a lane_barrier (`first` not NULL, `length` 0), or a lane_allreduce by
 * LANE_GATHER whose work is `first` (`length` bytes, at most LANE_FIRST_MAX). If `first` is NULL,
 * the message carries no first step, as in lane_open. A member that has joined passes NULL, because
 * it has no numbers yet. */
int lane_open_with(struct lane *lane, const struct fingerprint *ours, const void *first,
                   size_t length, struct fingerprint *ret_theirs) MUST_CHECK;

/* Called instead of lane_open when one member of this host makes no further call (COLL_END), but
 * another member of the host calls an operation. That operation can never run. Sends the next
 * member of the row a COLL_END that equals no other fingerprint, so that no host goes on with an
 * operation. Waits for no answer. ours: the fingerprint of this member; it names the sender. */
void lane_open_ended(struct lane *lane, const struct fingerprint *ours);

/* Closes the operation. The caller must call it after every opening, even if the opening failed;
 * without an opening it does nothing. Waits for the messages that are still under way. rc: the
 * result of the operation. Returns rc, or the code of a worse failure. */
int lane_close(struct lane *lane, int rc);

/* The algorithms of a lane, with the message size for which each is best. All members must pass the
 * same algorithm. */
enum lane_algorithm {
    LANE_GATHER, /* small sizes: each member gets all numbers and reduces them alone */
    LANE_DOUBLE, /* middle sizes: pairs of members exchange all numbers, at distance 1, 2, 4, ... */
    /* large sizes: as LANE_DOUBLE, but each exchange halves the numbers; then the results are sent
       back */
    LANE_HALVE,
    /* larger sizes: around the row; a member reduces its numbers into those that it receives, and
       sends them on */
    LANE_RING,
    LANE_ORDER, /* any size: adds in the order of the row; needs a link for each two members */
};

/* Reduces the numbers of all members; each member gets the whole result. work: this member's
 * `count` numbers in the work type (reduce.h); the call overwrites them. out: gets the result in
 * the numbers' own type. `out` may be `work` when both types are equal. */
int lane_allreduce(struct lane *lane, void *work, void *out, size_t count,
                   const struct reduction *how, enum lane_algorithm algorithm) MUST_CHECK;

/* As lane_allreduce, but member i gets only counts[i] numbers of the result: the first member gets
 * the first numbers. `out` has room for this member's numbers. `algorithm` is LANE_RING or
 * LANE_ORDER. */
int lane_reducescatter(struct lane *lane, void *work, void *out, const size_t *counts,
                       const struct reduction *how, enum lane_algorithm algorithm) MUST_CHECK;

/* Gives the bytes of the member with index `root` to all members of the lane. */
int lane_broadcast(struct lane *lane, void *bytes, size_t length, uint32_t root) MUST_CHECK;

/* Gives every member the blocks of all members. blocks[i]: the memory for the block of member i,
 * which has lengths[i] bytes. The caller has written its own block there before the call. */
int lane_allgather(struct lane *lane, uint8_t *const *blocks, const size_t *lengths) MUST_CHECK;

/* Sends out[i] to member i, and receives in[i] from it. The entries of this member itself are not
 * used. Needs a link between each two members. */
int lane_alltoall(struct lane *lane, const uint8_t *const *out, const size_t *out_lengths,
                  uint8_t *const *in, const size_t *in_lengths) MUST_CHECK;

/* Returns 0 when all members of the lane have called lane_barrier. */
int lane_barrier(struct lane *lane) MUST_CHECK;

#endif
