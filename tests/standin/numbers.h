/*
 * numbers.h: reductions of elements of each type of gpu/nccl.h.
 */
#ifndef TESTS_STANDIN_NUMBERS_H
#define TESTS_STANDIN_NUMBERS_H

#include "gpu/nccl.h"

/* A reduction, in the form that the loop over the elements needs. */
struct reduction {
    int op;          /* an enum nccl_op; always NCCL_SUM when scaled is true */
    bool scaled;     /* true: each element is multiplied before it is added */
    double scale;    /* the factor for floating types */
    int64_t integer; /* the factor for integer types */
};

size_t numbers_bytes(int type); /* bytes of one element; 0: an unknown type */
void numbers_scale(struct reduction *reduction, int type, const void *scale);
/* out[i] = in[0][i] op in[1][i] ...; 16-bit floats are added up in 32-bit floats. */
void numbers_reduce(const struct reduction *reduction, int type, unsigned members,
                    const void *const *in, void *out, size_t count);

#endif
