/*
 * sum.h: the checksum of state: XXH3, 64 bits.
 */
#ifndef STATE_SUM_H
#define STATE_SUM_H

#include "base/base.h"

#define SUM_NONE UINT64_C(0) /* of a chunk that was never written; no other has it */

/* Never SUM_NONE. */
uint64_t sum_of(const void *bytes, size_t length);

/* The same of bytes that come in several parts. */
struct sum {
    _Alignas(64) uint8_t state[576];
};

void sum_begin(struct sum *sum);
void sum_add(struct sum *sum, const void *bytes, size_t length);
uint64_t sum_end(const struct sum *sum);

#endif
