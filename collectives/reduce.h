/*
 * reduce.h: many numbers of one type, two by two.
 *
 * Work is done in a type of its own where the numbers' own would lose what is asked for: fp16 and
 * bf16 in fp32, averages of whole numbers in 64 bits. Whole numbers wrap around.
 */
#ifndef COLLECTIVES_REDUCE_H
#define COLLECTIVES_REDUCE_H

#include "base/err.h"

bool reduce_knows(hvd_dtype type, hvd_op op);
size_t reduce_type_bytes(hvd_dtype type);     /* 0: no such type */
const char *reduce_type_name(hvd_dtype type); /* "float32"; "?" */
const char *reduce_op_name(hvd_op op);

hvd_dtype reduce_work_type(hvd_dtype type, hvd_op op);
void reduce_widen(void *work, const void *from, size_t count, hvd_dtype type, hvd_op op);

/* into = left op right, in the work type; into may be either. An AVERAGE is a sum so far. */
void reduce_two(void *into, const void *left, const void *right, size_t count, hvd_dtype work,
                hvd_op op);

/* What size numbers have come to, in the type itself; to may be work when the types are equal. */
void reduce_narrow(void *to, void *work, size_t count, hvd_dtype type, hvd_op op, uint32_t size);

#endif
