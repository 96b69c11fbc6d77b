/*
 * sum.h: the checksum of state: XXH3, 64 bits.
 */
#ifndef STATE_SUM_H
#define STATE_SUM_H

#include "base/base.h"

/* The checksum of a chunk that was never written; sum_of never returns it. */
#define SUM_NONE UINT64_C(0)

/* Returns the checksum of these bytes; it is never SUM_NONE. */
uint64_t sum_of(const void *bytes, size_t length);

/* A checksum of bytes that come in several parts. */
struct sum {
    _Alignas(64) uint8_t state[576];
};

/* Begins a checksum, adds bytes to it, and returns it; the bytes may come in any parts. */
void sum_begin(struct sum *sum);
void sum_add(struct sum *sum, const void *bytes, size_t length);
uint64_t sum_end(const struct sum *sum);

/* Does the same as sum_add, on processors that have AVX2, three times as fast. */
void sum_add_avx2(struct sum *sum, const void *bytes, size_t length);

#endif
