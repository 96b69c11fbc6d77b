/*
 * segment.h: the memory that the members of a round on one host share. The first member creates it,
 * the other members open it. It has no name, so nothing can be left behind.
 *
 *     segment_create ──► locator, told to the others ──► segment_open
 *         boards (board.h) ...
 *     segment_fail, at any time ──► segment_free
 *
 * A failure of the segment wakes every thread that waits in it, in every process.
 */
#ifndef COLLECTIVES_SHM_SEGMENT_H
#define COLLECTIVES_SHM_SEGMENT_H

#include "base/err.h"

struct segment;

/* A group's members on this host. `places`: the indices of these members among the processes of
 * this host, in rising order. A group may have a single member here. */
struct segment_board {
    const uint32_t *places;
    uint32_t count;
};

/* The description of a segment: equal on all members, except for `place`. segment_create and
 * segment_open read it; the segment keeps no pointer to it. */
struct segment_spec {
    uint64_t round, roster; /* `roster`: a hash of the round's members */
    /* `count`: number of members of the round on this host; `place`: index of this process among
     * them. The process with index 0 creates the segment */
    uint32_t count, place;
    const struct segment_board *boards;
    size_t board_count;
};

#define SEGMENT_LOCATOR_BYTES 64 /* of a locator, which says where a segment is */

int segment_create(const struct segment_spec *spec, struct segment **ret_segment,
                   struct hvd_err *err) MUST_CHECK;
int segment_open(const struct segment_spec *spec, const uint8_t locator[SEGMENT_LOCATOR_BYTES],
                 struct segment **ret_segment, struct hvd_err *err) MUST_CHECK;
void segment_locate(const struct segment *segment, uint8_t ret_locator[SEGMENT_LOCATOR_BYTES]);
void segment_free(struct segment *segment); /* NULL is allowed */

/* Fails the segment for all its members. Any thread of any member may call this function, any
 * number of times; it does not wait. Only the first failure counts. `rank`: the rank that caused
 * the failure, or UINT32_MAX: not known. */
void segment_fail(struct segment *segment, int code, uint32_t rank, const char *why);

/* Fails the segment for this process only; the other processes do not notice. Any thread may call
 * this function. */
void segment_leave(struct segment *segment);

/* Returns the code of the failure; 0: the segment has not failed. *ret_why is a general text when
 * the process that failed the segment died before it had written its own. */
int segment_failure(const struct segment *segment, uint32_t *ret_rank, struct hvd_err *ret_why);

#endif
