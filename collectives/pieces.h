/*
 * pieces.h: several buffers of the program that travel as one. They are gone through from the
 * beginning to the end.
 */
#ifndef COLLECTIVES_PIECES_H
#define COLLECTIVES_PIECES_H

#include "collectives/coll.h"

struct cursor {
    size_t piece, at; /* where this piece begins, in numbers of them all */
};

struct pieces {
    const struct coll_piece *items;
    size_t count, bytes; /* bytes: of a number */
    struct coll_piece whole;
    struct cursor in, out;
};

/* Of an allreduce. It points into itself: not to be copied. */
void pieces_init(struct pieces *pieces, const struct coll_call *call);
bool pieces_are_one(const struct pieces *pieces);

/* from, to: in numbers of them all; never before those of the call before. */
void pieces_read(struct pieces *pieces, size_t from, size_t count, uint8_t *to);
void pieces_write(struct pieces *pieces, size_t to, size_t count, const uint8_t *from);

/* For who moves them otherwise: so many of the `left` numbers from `from` on lie in one piece,
 * which the cursor is put on. */
size_t pieces_stretch(const struct pieces *pieces, struct cursor *cursor, size_t from, size_t left);

/* Of one: where these are. */
const uint8_t *pieces_in(const struct pieces *pieces, size_t from);
uint8_t *pieces_out(const struct pieces *pieces, size_t from);

#endif
