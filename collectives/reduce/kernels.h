/*
 * kernels.h: the loops over numbers. kernels.c is compiled once for each instruction level, each
 * time into a table of its own; levels.h says which table is in use. Pointers may have any
 * alignment. The output is one of the inputs or does not overlap any input.
 */
#ifndef COLLECTIVES_REDUCE_KERNELS_H
#define COLLECTIVES_REDUCE_KERNELS_H

#include "collectives/reduce/facts.h"

typedef void reduce_two_fn(void *into, const void *left, const void *right, size_t count);
typedef void reduce_convert_fn(void *to, const void *from, size_t count);
typedef void reduce_scale_fn(void *to, const void *from, size_t count, double factor);

/* The last step of a sum: writes (left + right), multiplied or divided by `by`, to `to`. `right`
 * and `to` have the numbers' own type (fp16, say), not the work type. */
typedef void reduce_last_fn(void *to, const void *left, const void *right, size_t count, double by);

struct reduce_last {
    reduce_last_fn *times, *over;
};

struct reduce_kernels {
    reduce_two_fn *two[HVD_DTYPE_COUNT][REDUCE_COMBINES]; /* combines two arrays of a work type;
                                                           * NULL: the type does not have the op */
    reduce_convert_fn *widen[HVD_DTYPE_COUNT]; /* converts numbers to their wider work type */
    reduce_convert_fn *narrow[HVD_DTYPE_COUNT];
    reduce_scale_fn *multiply[HVD_DTYPE_COUNT]; /* multiplies by a scale; for floating work types */
    /* divides by a number; for floating work types, int64 and uint64. Integers round towards zero.
     */
    reduce_scale_fn *divide[HVD_DTYPE_COUNT];

    /* Shortcuts for the most frequent reductions, the sums of floating types: they need no copy of
     * the numbers in the work type. */
    /* adds numbers of fp16 or bf16 (`right`) to numbers of the work type (`left`) */
    reduce_two_fn *add[HVD_DTYPE_COUNT];
    struct reduce_last last_two[HVD_DTYPE_COUNT]; /* `left` has the numbers' own type, too */
    struct reduce_last last[HVD_DTYPE_COUNT];     /* `left` has the work type: a sum so far */
};

extern const struct reduce_kernels reduce_kernels_plain;
#ifdef __x86_64__
extern const struct reduce_kernels reduce_kernels_avx2, reduce_kernels_avx512;
#endif

const struct reduce_kernels *reduce_kernels(void); /* the table for the level in use (levels.h) */

#endif
