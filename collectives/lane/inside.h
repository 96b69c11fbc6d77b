/*
 * inside.h: what the files of lane share.
 */
#ifndef COLLECTIVES_LANE_INSIDE_H
#define COLLECTIVES_LANE_INSIDE_H

#include "collectives/lane/lane.h"

/* open.c. Ranks at a distance in the row, whose ends are joined here. */
uint32_t lane_after(const struct lane *lane, uint32_t distance);
uint32_t lane_before(const struct lane *lane, uint32_t distance);

/* The largest power of two that is not more than the size: so many work in pairs. */
uint32_t lane_power(const struct lane *lane);

/* Each operation takes as many steps as it may need, the same on all members; returns the first. */
uint32_t lane_take(struct lane *lane, uint32_t steps);
uint64_t lane_tag(const struct lane *lane, uint32_t step);

/* All that was sent is gone, or dropped when rc says so: the memory is free again. Returns rc, or
 * worse. */
int lane_settle(struct lane *lane, int rc);

/* gather.c. At packed stands our block, with room behind it for those of the others, of the one
 * before us first; lengths are in that order. */
int lane_gather(struct lane *lane, uint8_t *packed, const size_t *lengths) MUST_CHECK;

/* ---- numbers that are reduced: numbers.c ---- */

struct numbers {
    struct lane *lane;
    uint8_t *work, *out;
    size_t count;
    const size_t *counts; /* of the part of each member; NULL: as equal as can be */
    const struct reduction *how;
    size_t bytes, work_bytes; /* of one number */
    uint8_t *scratch;
};

size_t numbers_at(const struct numbers *numbers, uint32_t part); /* part size: the end of all */
size_t numbers_of(const struct numbers *numbers, uint32_t part);

/* Scratch that numbers_merge needs when so many come at most. */
size_t numbers_window(const struct numbers *numbers, size_t count);

/* What comes is reduced with what is there, in the work type. The part that goes out may not be
 * that one. */
struct merge {
    uint32_t to, from;
    size_t out_at, out_count;
    size_t in_at, in_count;
    bool theirs_first;
};
int numbers_merge(const struct numbers *numbers, uint32_t step,
                  const struct merge *merge) MUST_CHECK;

/* Results of this part are sent, and of that one received. */
int numbers_pass(const struct numbers *numbers, uint32_t step, const struct merge *pass) MUST_CHECK;

/* Those past the power give theirs to one below, and get the result from it in the end. */
int numbers_fold(const struct numbers *numbers, uint32_t step) MUST_CHECK;
int numbers_unfold(const struct numbers *numbers, uint32_t step) MUST_CHECK;

/* Runs it with so much scratch; by the end nothing is under way. */
int numbers_run(struct numbers *numbers, size_t scratch_bytes,
                int (*run)(const struct numbers *numbers)) MUST_CHECK;

/* ---- ways: all of them, or the part of this member ---- */

int lane_gather_numbers(struct numbers *numbers) MUST_CHECK; /* gather.c */
int lane_double_numbers(struct numbers *numbers) MUST_CHECK; /* pairs.c */
int lane_halve_numbers(struct numbers *numbers) MUST_CHECK;  /* pairs.c */
int lane_ring_numbers(struct numbers *numbers) MUST_CHECK;   /* ring.c */
int lane_ring_scatter(struct numbers *numbers) MUST_CHECK;   /* ring.c */
int lane_order_numbers(struct numbers *numbers) MUST_CHECK;  /* order.c */
int lane_order_scatter(struct numbers *numbers) MUST_CHECK;  /* order.c */

#endif
