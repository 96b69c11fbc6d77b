/*
 * segment.h: the memory that the members of a round on one host share. The first of them makes it,
 * the others open it; it has no name that could be left behind.
 *
 *     segment_create ──► locator, told to the others ──► segment_open
 *                boards (board.h) ... segment_fail, at any time ──► segment_free
 *
 * Whatever waits in it wakes when it has failed, in every process.
 */
#ifndef COLLECTIVES_SHM_SEGMENT_H
#define COLLECTIVES_SHM_SEGMENT_H

#include "base/err.h"

struct segment;

/* What its users must agree about. The same on all but for the place. Borrowed. */
struct segment_board { /* a group's members on this host, by their places, rising; one is allowed */
    const uint32_t *places;
    uint32_t count;
};

struct segment_spec {
    uint64_t round, roster; /* roster: a sum of who is meant */
    uint32_t count, place;  /* processes; ours. That of place 0 creates it */
    const struct segment_board *boards;
    size_t board_count;
};

#define SEGMENT_LOCATOR_BYTES 64 /* how another process of this machine finds it */

int segment_create(const struct segment_spec *spec, struct segment **ret_segment,
                   struct hvd_err *err) MUST_CHECK;
int segment_open(const struct segment_spec *spec, const uint8_t locator[SEGMENT_LOCATOR_BYTES],
                 struct segment **ret_segment, struct hvd_err *err) MUST_CHECK;
void segment_locate(const struct segment *segment, uint8_t ret_locator[SEGMENT_LOCATOR_BYTES]);
void segment_free(struct segment *segment); /* NULL is allowed */

/* Any thread of any of them, at once, any number of times; the first one counts. rank: whose fault
 * it is, or UINT32_MAX. */
void segment_fail(struct segment *segment, int code, uint32_t rank, const char *why);

/* Any thread: to this process alone it is as if it had failed; the others do not hear of it. */
void segment_leave(struct segment *segment);

/* 0: it has not failed. The text is there when the one who failed it could still write it. */
int segment_failure(const struct segment *segment, uint32_t *ret_rank, struct hvd_err *ret_why);

#endif
