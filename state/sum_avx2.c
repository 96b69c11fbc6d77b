/*
 * sum_avx2.c: sum_add, compiled with -mavx2. sum.c calls it on processors that have AVX2.
 *
 * Invariant: no other function is in this file, so no AVX2 instruction runs on other processors.
 */
#include "state/sum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Adds bytes to a checksum as sum_add does, with AVX2 instructions. */
void sum_add_avx2(struct sum *sum, const void *bytes, size_t length)
{
    XXH3_64bits_update((XXH3_state_t *)(void *)sum, bytes, length);
}
