/*
 * deal.h: numbers of which each member of a group has a part, and the order in which a chunk of
 * them travels: those of the first lane first, of each lane host by host.
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
    const size_t *counts; /* of each member; NULL: each */
    size_t each;
    size_t bytes; /* of a number */
    size_t piece; /* numbers of each member in a chunk, at most */
    size_t chunks;
    size_t *first; /* where each part begins, in numbers of them all */
    size_t *at;    /* of the chunk: where each member's piece is in it; see deal_chunk */
};

/* room: bytes that a chunk may have. memory: of deal_bytes. */
size_t deal_bytes(const struct group *group);
void deal_init(struct deal *deal, size_t room, void *memory);

size_t deal_count(const struct deal *deal, uint32_t member); /* of its part */
/* Numbers of its piece in this chunk. */
size_t deal_piece(const struct deal *deal, uint32_t member, size_t chunk);
void deal_chunk(struct deal *deal, size_t chunk); /* fills in `at` */

/* Where what this lane carries of this host is in the chunk, and how many numbers. */
size_t deal_block(const struct deal *deal, size_t chunk, uint32_t lane, uint32_t host,
                  size_t *ret_count);

#endif
