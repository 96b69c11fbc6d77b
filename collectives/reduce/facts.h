/*
 * facts.h: two tables with everything that depends on the op of a reduction or on the type of its
 * numbers: one row for each op, one for each type. A value of hvd_op or hvd_dtype without a row is
 * a compile error (facts.c).
 */
#ifndef COLLECTIVES_REDUCE_FACTS_H
#define COLLECTIVES_REDUCE_FACTS_H

#include "base/err.h"

/* How many values hvd_op and hvd_dtype have (hvd.h); each must name the last value. A value of
 * these enumerations keeps its number for ever. */
#define HVD_OP_COUNT    (HVD_XOR + 1)
#define HVD_DTYPE_COUNT (HVD_BOOL + 1)

/* How an op combines two numbers into one; kernels.h has a kernel for each work type. */
enum reduce_combine {
    REDUCE_ADD,
    REDUCE_MULTIPLY,
    REDUCE_TAKE_LEAST,
    REDUCE_TAKE_GREATEST,
    REDUCE_BITS_AND,
    REDUCE_BITS_OR,
    REDUCE_BITS_XOR,
    REDUCE_COMBINES
};

/* The neutral number of an op: combined with any number, it leaves that number as it is. Members
 * that have joined (hvd_join) give it. */
enum reduce_neutral {
    REDUCE_ZERO,
    REDUCE_ONE,
    REDUCE_LEAST,
    REDUCE_GREATEST,
    REDUCE_ALL_BITS,
    REDUCE_NEUTRALS
};

/* In the field `nccl` of an op or a type: NCCL does not have it, so a reduction with it on memory
 * of a GPU goes through the host. */
#define REDUCE_NOT_BY_NCCL (-1)

struct reduce_op {
    const char *name;
    enum reduce_combine combine;
    enum reduce_neutral neutral;
    bool averages; /* true: the result is divided by the number of members */
    int nccl;      /* an enum nccl_op, or REDUCE_NOT_BY_NCCL */
};

struct reduce_type {
    const char *name;
    size_t bytes;
    bool real; /* true: numbers of this type can be scaled */
    bool has_sign;
    hvd_dtype work;     /* the type in which every op but AVERAGE computes */
    hvd_dtype averages; /* the type in which AVERAGE computes */
    int nccl;           /* an enum nccl_type, or REDUCE_NOT_BY_NCCL */
};

const struct reduce_op *reduce_op(hvd_op op);          /* NULL: no such op */
const struct reduce_type *reduce_type(hvd_dtype type); /* NULL: no such type */

#endif
