/*
 * pieces.c: copies numbers out of and into several buffers (pieces) of the training program that
 * are reduced together (fusion). The buffers are read and written from the first to the last, with
 * one cursor for reading and one for writing. allreduce*.c and device_host.c use it; a single
 * buffer is one piece, which is not copied.
 */
#include "collectives/pieces.h"

#include "collectives/reduce/reduce.h"

#include <string.h>

/* Prepares to read and write the numbers of an allreduce or a broadcast (pieces.h). A call with one
 * buffer becomes one piece. */
void pieces_init(struct pieces *pieces, const struct coll_call *call)
{
    *pieces = (struct pieces){ .items = call->pieces,
                               .count = call->piece_count,
                               .bytes = reduce_type_bytes(call->type) };
    if (call->pieces)
        return;
    pieces->whole = (struct coll_piece){ call->in, call->out, call->count };
    pieces->items = &pieces->whole;
    pieces->count = 1;
}

/* Moves the cursor to the piece that holds number `from`, and returns how many of the next `left`
 * numbers are in that piece (pieces.h). The cursor only moves forward. */
size_t pieces_stretch(const struct pieces *pieces, struct cursor *cursor, size_t from, size_t left)
{
    size_t end;

    while (from >= cursor->at + pieces->items[cursor->piece].count)
        cursor->at += pieces->items[cursor->piece++].count;
    end = cursor->at + pieces->items[cursor->piece].count;
    return end - from < left ? end - from : left;
}

/* Copies `count` numbers out of the input buffers, from number `from` on (pieces.h). */
void pieces_read(struct pieces *pieces, size_t from, size_t count, uint8_t *to)
{
    while (count) {
        size_t some = pieces_stretch(pieces, &pieces->in, from, count);
        const struct coll_piece *piece = &pieces->items[pieces->in.piece];
        const uint8_t *in = piece->in ? piece->in : piece->out; /* a broadcast has no input */

        memcpy(to, in + (from - pieces->in.at) * pieces->bytes, some * pieces->bytes);
        to += some * pieces->bytes;
        from += some;
        count -= some;
    }
}

/* Copies `count` numbers into the output buffers, from number `to` on (pieces.h). */
void pieces_write(struct pieces *pieces, size_t to, size_t count, const uint8_t *from)
{
    while (count) {
        size_t some = pieces_stretch(pieces, &pieces->out, to, count);
        uint8_t *out = pieces->items[pieces->out.piece].out;

        memcpy(out + (to - pieces->out.at) * pieces->bytes, from, some * pieces->bytes);
        from += some * pieces->bytes;
        to += some;
        count -= some;
    }
}

/* The address of number `from` of the input, for a call with one buffer (pieces.h). */
const uint8_t *pieces_in(const struct pieces *pieces, size_t from)
{
    return (const uint8_t *)pieces->whole.in + from * pieces->bytes;
}

/* The address of number `from` of the output, for a call with one buffer (pieces.h). */
uint8_t *pieces_out(const struct pieces *pieces, size_t from)
{
    return (uint8_t *)pieces->whole.out + from * pieces->bytes;
}
