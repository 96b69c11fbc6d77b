/*
 * numbers.h: what a reduction does with elements of each type of gpu/nccl.h.
 */
#ifndef TESTS_STANDIN_NUMBERS_H
#define TESTS_STANDIN_NUMBERS_H

#include "gpu/nccl.h"

/* An operation as a kernel does it. */
struct reduction {
    int op;          /* an enum nccl_op; with a scale, NCCL_SUM */
    bool scaled;     /* every element, before it is added */
    double scale;    /* of a floating type */
    int64_t integer; /* of one that is not */
};

size_t numbers_bytes(int type); /* of one; 0: no type that is known */
void numbers_scale(struct reduction *reduction, int type, const void *scale);
/* out[i] = in[0][i] op in[1][i] ...; the sum of sixteen bits is made in thirty-two. */
void numbers_reduce(const struct reduction *reduction, int type, unsigned members,
                    const void *const *in, void *out, size_t count);

#endif
