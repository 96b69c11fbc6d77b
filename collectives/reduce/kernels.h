/*
 * kernels.h: the loops over numbers. kernels.c is compiled once for each level of the machine, into
 * a table of its own; which one is in use is levels.h's business.
 *
 * Pointers may have any alignment. What is written to may be one of what is read, or overlaps none.
 */
#ifndef COLLECTIVES_REDUCE_KERNELS_H
#define COLLECTIVES_REDUCE_KERNELS_H

#include "base/err.h"

#define REDUCE_TYPES (HVD_FLOAT64 + 1)
#define REDUCE_OPS   (HVD_PRODUCT + 1)

typedef void reduce_two_fn(void *into, const void *left, const void *right, size_t count);
typedef void reduce_convert_fn(void *to, const void *from, size_t count);
typedef void reduce_scale_fn(void *to, const void *from, size_t count, double factor);

struct reduce_kernels {
    reduce_two_fn *two[REDUCE_TYPES][REDUCE_OPS]; /* of a work type */
    reduce_convert_fn *widen[REDUCE_TYPES];       /* of a type whose work is done in a wider one */
    reduce_convert_fn *narrow[REDUCE_TYPES];
    reduce_scale_fn *multiply[REDUCE_TYPES]; /* floating work types */
    reduce_scale_fn *divide[REDUCE_TYPES];   /* those, and int64: towards zero */
};

extern const struct reduce_kernels reduce_kernels_plain;
#ifdef __x86_64__
extern const struct reduce_kernels reduce_kernels_avx2, reduce_kernels_avx512;
#endif

const struct reduce_kernels *reduce_kernels(void); /* those in use */

#endif
