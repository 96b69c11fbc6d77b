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

/* The last step of a sum: (left + right) times or over a number that is the same for all. The right
 * ones are of the type itself, and so is what it comes to. */
typedef void reduce_last_fn(void *to, const void *left, const void *right, size_t count, double by);

struct reduce_last {
    reduce_last_fn *times, *over;
};

struct reduce_kernels {
    reduce_two_fn *two[REDUCE_TYPES][REDUCE_OPS]; /* of a work type */
    reduce_convert_fn *widen[REDUCE_TYPES];       /* of a type whose work is done in a wider one */
    reduce_convert_fn *narrow[REDUCE_TYPES];
    reduce_scale_fn *multiply[REDUCE_TYPES]; /* floating work types */
    reduce_scale_fn *divide[REDUCE_TYPES];   /* those, and int64: towards zero */

    /* The commonest without a copy on the way: sums of floating types. */
    reduce_two_fn *add[REDUCE_TYPES];          /* fp16, bf16 to what is in the work type */
    struct reduce_last last_two[REDUCE_TYPES]; /* left is of the type itself */
    struct reduce_last last[REDUCE_TYPES];     /* left is of the work type */
};

extern const struct reduce_kernels reduce_kernels_plain;
#ifdef __x86_64__
extern const struct reduce_kernels reduce_kernels_avx2, reduce_kernels_avx512;
#endif

const struct reduce_kernels *reduce_kernels(void); /* those in use */

#endif
