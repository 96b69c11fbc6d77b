/*
 * reduce.h: reduces arrays of numbers of one type into one array. A reduction computes in the work
 * type, which is another type where the numbers' own type would lose too much: fp32 for fp16 and
 * bf16, 64 bits for averages of integers. Integers wrap around. Numbers are always combined in the
 * order of the arguments, so all machines get the same bits.
 */
#ifndef COLLECTIVES_REDUCE_REDUCE_H
#define COLLECTIVES_REDUCE_REDUCE_H

#include "base/err.h"

struct reduction {
    hvd_dtype type;
    hvd_op op;
    uint32_t size;              /* AVERAGE: the divisor, the number of members */
    double prescale, postscale; /* 1: no scale; other values only for floating types */
};

bool reduce_is_op(hvd_op op);
/* false: there is no such type or op, or the type does not have the op */
bool reduce_knows(hvd_dtype type, hvd_op op);
/* Returns the bytes of one number of this type; 0: there is no such type. */
size_t reduce_type_bytes(hvd_dtype type);
const char *reduce_type_name(hvd_dtype type); /* "float32"; "?": no such type */
const char *reduce_op_name(hvd_op op);
bool reduce_type_is_real(hvd_dtype type); /* true: numbers of this type can be scaled */

hvd_dtype reduce_work_type(const struct reduction *how);
size_t reduce_work_bytes(const struct reduction *how); /* bytes of one number in the work type */

/* ---- in steps: widen, two by two, narrow ---- */

/* Converts `count` numbers to the work type and applies the prescale. `work` may be `from` when the
 * two types are equal. */
void reduce_widen(void *work, const void *from, size_t count, const struct reduction *how);

/* into = left op right, in the work type; `into` may be `left` or `right`. For AVERAGE this
 * computes only the sum. */
void reduce_two(void *into, const void *left, const void *right, size_t count,
                const struct reduction *how);

/* Divides an average, applies the postscale, and converts from the work type to the numbers' own
 * type. The values in `work` are destroyed. `to` may be `work` when the two types are equal. */
void reduce_narrow(void *to, void *work, size_t count, const struct reduction *how);

/* ---- in one pass over memory ---- */

/* work = from[0] op from[1] ...; each array is first converted to the work type and prescaled.
 * `from_count` is at least 1. `work` may be from[0] when the two types are equal; it must not
 * overlap any other array. */
void reduce_gather(void *work, const void *const *from, size_t from_count, size_t count,
                   const struct reduction *how);

/* Does what reduce_gather does, and then what reduce_narrow does; the result goes to each array of
 * to[]. An array of to[] may be an array of from[]; otherwise arrays do not overlap. */
void reduce_finish(void *const *to, size_t to_count, const void *const *from, size_t from_count,
                   size_t count, const struct reduction *how);

/* Fills `to` with the neutral number of the op: 0, 1, all bits, or the least or greatest number
 * of the type. */
void reduce_identity(void *to, size_t count, const struct reduction *how);

#endif
