/*
 * deal.h: how the numbers of an allgather or a reducescatter are distributed over chunks, which are
 * handled one after another. Each member of the group has a part of all numbers; a chunk holds a
 * piece of each part. The pieces are ordered by lane (the links that carry them), and within a lane
 * by host, so that a lane carries one contiguous run of each chunk.
 *
 *     part of rank:   0    1    2    3    4          (ranks 0, 1 and 4 on host a, 2 and 3 on b)
 *     in a chunk:     0 4 │ 2 │ 1 │ 3                a piece of each
 *                     lane 0    lane 1
 */
#ifndef COLLECTIVES_DEAL_H
#define COLLECTIVES_DEAL_H

#include "collectives/group.h"

struct deal {
    const struct group *group;
    /* how many numbers the part of each member has; NULL: each part has `each` numbers */
    const size_t *counts;
    size_t each;
    size_t bytes;  /* bytes of one number */
    size_t piece;  /* the most numbers of one part that a chunk holds */
    size_t chunks; /* how many chunks there are */
    size_t *first; /* for each member: index of its first number among all numbers */
    /* for each member: the index in the chunk at which its piece begins; of deal_chunk's chunk */
    size_t *at;
};

/* deal_init prepares a deal. The caller has set the fields up to `bytes` before. room: how many
 * bytes a chunk may have. memory: deal_bytes(group) bytes for `first` and `at`, which must exist as
 * long as the deal. */
size_t deal_bytes(const struct group *group);
void deal_init(struct deal *deal, size_t room, void *memory);

/* Returns how many numbers the part of this member has. */
size_t deal_count(const struct deal *deal, uint32_t member);
/* Returns how many numbers of the member's part are in this chunk; 0: all are in earlier chunks. */
size_t deal_piece(const struct deal *deal, uint32_t member, size_t chunk);
void deal_chunk(struct deal *deal, size_t chunk); /* computes `at` for this chunk */

/* Finds the pieces of one host that one lane carries: where the pieces begin in the chunk, and how
 * many numbers the pieces have together. */
size_t deal_block(const struct deal *deal, size_t chunk, uint32_t lane, uint32_t host,
                  size_t *ret_count);

#endif
