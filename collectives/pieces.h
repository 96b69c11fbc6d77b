/*
 * pieces.h: several buffers (pieces) of the training program that are reduced, or broadcast, in one
 * operation. Their numbers are counted from the first number of the first piece to the last number
 * of the last piece. A call with one buffer is one piece, whose numbers can be used in place.
 */
#ifndef COLLECTIVES_PIECES_H
#define COLLECTIVES_PIECES_H

#include "collectives/coll.h"

struct cursor { /* a place in the pieces */
    /* piece: its index; at: the index of the piece's first number among the numbers of all pieces
     */
    size_t piece, at;
};

struct pieces {
    const struct coll_piece *items;
    size_t count, bytes;     /* bytes: of one number */
    struct coll_piece whole; /* `items` points here when the call has one buffer */
    struct cursor in, out;   /* for pieces_read, and for pieces_write */
};

/* Prepares the pieces of a call: an allreduce; or a broadcast, which reads and writes `out`. The
 * struct must not be copied, because it holds pointers into itself. */
void pieces_init(struct pieces *pieces, const struct coll_call *call);

/* pieces_read copies `count` numbers out of the buffers, from number `from` on. pieces_write copies
 * `count` numbers into the buffers, from number `to` on. `from` and `to` must not be lower than in
 * the previous call of the same function. */
void pieces_read(struct pieces *pieces, size_t from, size_t count, uint8_t *to);
void pieces_write(struct pieces *pieces, size_t to, size_t count, const uint8_t *from);

/* For callers that process the numbers themselves: moves the cursor to the piece that holds number
 * `from`, and returns how many of the next `left` numbers are in that piece. */
size_t pieces_stretch(const struct pieces *pieces, struct cursor *cursor, size_t from, size_t left);

/* Return the address of number `from` in the input or in the output. Only for a call with a single
 * piece. */
const uint8_t *pieces_in(const struct pieces *pieces, size_t from);
uint8_t *pieces_out(const struct pieces *pieces, size_t from);

#endif
