/*
 * lane_internal.h: what the files of lane share.
 *
 *     lane_open, lane_close    open.c
 *     lane_allreduce, ...      allreduce.c ──► gather.c, pairs.c, ring.c, order.c
 *     for these four           numbers.c
 *     for all files above      traffic.c ──► link/
 */
#ifndef COLLECTIVES_LANE_INTERNAL_H
#define COLLECTIVES_LANE_INTERNAL_H

#include "collectives/lane/lane.h"

/* In open.c. The rank of the member `distance` places after (or before) this member in the row.
 * The row is a circle: after the last member comes the first. */
uint32_t lane_after(const struct lane *lane, uint32_t distance);
uint32_t lane_before(const struct lane *lane, uint32_t distance);

/* The largest power of two that is not greater than the size of the lane: the algorithms of pairs.c
 * run on so many members. */
uint32_t lane_power(const struct lane *lane);

/* Reserves `steps` step numbers for an operation, and returns the first one. All members pass the
 * same `steps`: the most that the operation may need. lane_tag returns the tag of the messages of a
 * step. */
uint32_t lane_take(struct lane *lane, uint32_t steps);
uint64_t lane_tag(const struct lane *lane, uint32_t step);

/* Waits until all messages that this member has begun are sent or received; when `rc` is an error,
 * drops them instead. Afterwards the caller may use the memory of the messages again. Returns rc,
 * or the code of a worse failure. */
int lane_settle(struct lane *lane, int rc);

/* In gather.c. Collects the blocks of all members in `packed`. The caller has written its own block
 * at the beginning; after that comes the block of the member before this one, and so on back along
 * the row. `lengths` has the same order. */
int lane_gather(struct lane *lane, uint8_t *packed, const size_t *lengths) MUST_CHECK;

/* ---- numbers that are reduced: numbers.c ---- */

struct numbers { /* the numbers that an algorithm of a lane reduces */
    struct lane *lane;
    uint8_t *work, *out; /* this member's numbers in the work type; where results go */
    size_t count;
    /* how many numbers of the result belong to each member; NULL: the numbers are divided as
     * equally as possible */
    const size_t *counts;
    const struct reduction *how;
    size_t bytes, work_bytes; /* bytes of one number in its own type, and in the work type */
    uint8_t *scratch;         /* memory for what arrives (numbers_begin) */
};

/* The numbers are cut into one part for each member. numbers_at: the index of the first number of a
 * part; for `part` == size of the lane: `count`. numbers_of: how many numbers the part has. */
size_t numbers_at(const struct numbers *numbers, uint32_t part);
size_t numbers_of(const struct numbers *numbers, uint32_t part);

/* Returns how many bytes of scratch memory numbers_merge needs to receive at most `count` numbers.
 */
size_t numbers_window(const struct numbers *numbers, size_t count);

/* numbers_merge sends `out_count` of this member's numbers, from index `out_at` on, to rank `to`.
 * It receives `in_count` numbers from rank `from`, and reduces them into this member's numbers from
 * index `in_at` on. The numbers have the work type. The two ranges must not overlap. `theirs_first`
 * is true: the received number is the left operand of the op. */
struct merge {
    uint32_t to, from;
    size_t out_at, out_count;
    size_t in_at, in_count;
    bool theirs_first;
};
int numbers_merge(const struct numbers *numbers, uint32_t step,
                  const struct merge *merge) MUST_CHECK;

/* As numbers_merge, but sends and receives results, which have the numbers' own type: what arrives
 * replaces the numbers of `out` from index `in_at` on. */
int numbers_pass(const struct numbers *numbers, uint32_t step, const struct merge *pass) MUST_CHECK;

/* For a lane whose size is not a power of two (lane_power). `back` is false: each member with an
 * index from lane_power on gives all its numbers to the member whose index is lane_power lower, and
 * that member reduces them into its own. `back` is true: the lower member sends it the result. */
int numbers_fold(const struct numbers *numbers, uint32_t step, bool back) MUST_CHECK;

/* An algorithm calls numbers_begin first and numbers_end last. numbers_begin allocates the scratch
 * memory; numbers_end waits for the messages that are under way (lane_settle) and frees the memory.
 * numbers_end must follow every numbers_begin, even one that failed. */
int numbers_begin(struct numbers *numbers, size_t scratch_bytes) MUST_CHECK;
int numbers_end(struct numbers *numbers, int rc) MUST_CHECK;

/* ---- the algorithms: each member gets the whole result, or (_scatter) its own part alone ---- */

int lane_gather_numbers(struct numbers *numbers) MUST_CHECK; /* in gather.c */
int lane_double_numbers(struct numbers *numbers) MUST_CHECK; /* pairs.c */
int lane_halve_numbers(struct numbers *numbers) MUST_CHECK;  /* pairs.c */
int lane_ring_numbers(struct numbers *numbers) MUST_CHECK;   /* ring.c */
int lane_ring_scatter(struct numbers *numbers) MUST_CHECK;   /* ring.c */
int lane_order_numbers(struct numbers *numbers) MUST_CHECK;  /* order.c */
int lane_order_scatter(struct numbers *numbers) MUST_CHECK;  /* order.c */

#endif
