#include "state/sum.h"

#define XXH_INLINE_ALL /* no library to carry around, and the loop is compiled for us */
#include <xxhash.h>

uint64_t sum_of(const void *bytes, size_t length)
{
    uint64_t sum = XXH3_64bits(bytes, length);

    return sum == SUM_NONE ? 1 : sum;
}
