/*
 * reduce.h: many numbers of one type, from many places into one.
 *
 * Work is done in a type of its own where the numbers' own would lose what is asked for: fp16 and
 * bf16 in fp32, averages of whole numbers in 64 bits. Whole numbers wrap around. The order is that
 * of the arguments, always: the same bits on every machine.
 */
#ifndef COLLECTIVES_REDUCE_REDUCE_H
#define COLLECTIVES_REDUCE_REDUCE_H

#include "base/err.h"

struct reduction {
    hvd_dtype type;
    hvd_op op;
    uint32_t size;              /* AVERAGE: of so many */
    double prescale, postscale; /* 1: as they are; floating types only */
};

bool reduce_knows(hvd_dtype type, hvd_op op);
size_t reduce_type_bytes(hvd_dtype type);     /* 0: no such type */
const char *reduce_type_name(hvd_dtype type); /* "float32"; "?" */
const char *reduce_op_name(hvd_op op);
bool reduce_type_is_real(hvd_dtype type); /* one that can be scaled */

hvd_dtype reduce_work_type(const struct reduction *how);
size_t reduce_work_bytes(const struct reduction *how); /* of one number */

/* ---- in steps: widen, two by two, narrow ---- */

/* To the work type, prescaled. work may be from when the types are equal. */
void reduce_widen(void *work, const void *from, size_t count, const struct reduction *how);

/* into = left op right, in the work type; into may be either. An AVERAGE is a sum so far. */
void reduce_two(void *into, const void *left, const void *right, size_t count,
                const struct reduction *how);

/* What they have come to, averaged, postscaled, in the type itself; work is used up. to may be work
 * when the types are equal. */
void reduce_narrow(void *to, void *work, size_t count, const struct reduction *how);

/* ---- in one pass over memory ---- */

/* work = from[0] op from[1] ..., each widened. from_count is 1 or more; work may be from[0] when
 * the types are equal, and overlaps no other. */
void reduce_gather(void *work, const void *const *from, size_t from_count, size_t count,
                   const struct reduction *how);

/* The same, narrowed, to each of to[]; any of to may be any of from, else they do not overlap. */
void reduce_finish(void *const *to, size_t to_count, const void *const *from, size_t from_count,
                   size_t count, const struct reduction *how);

/* What changes nothing: 0, 1, the least, the greatest; as it is before it is widened. */
void reduce_identity(void *to, size_t count, const struct reduction *how);

#endif
