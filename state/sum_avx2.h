/*
 * sum_avx2.h: sum_add for processors that have AVX2, which nearly all have: three times as fast.
 * The bytes of a struct sum mean the same to both.
 */
#ifndef STATE_SUM_AVX2_H
#define STATE_SUM_AVX2_H

#include "state/sum.h"

void sum_add_avx2(struct sum *sum, const void *bytes, size_t length);

#endif
