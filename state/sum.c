#include "state/sum.h"

#include "state/sum_avx2.h"

#define XXH_INLINE_ALL /* no library to carry around, and the loops are compiled for us */
#include <xxhash.h>

#define SHORT_BYTES 1024 /* not worth a state */

_Static_assert(sizeof(struct sum) == sizeof(XXH3_state_t), "the size in sum.h is XXH3's");
_Static_assert(_Alignof(struct sum) == _Alignof(XXH3_state_t), "the alignment too");

static uint64_t never_none(uint64_t sum)
{
    return sum == SUM_NONE ? 1 : sum;
}

uint64_t sum_of(const void *bytes, size_t length)
{
    struct sum sum;

    if (length < SHORT_BYTES)
        return never_none(XXH3_64bits(bytes, length));
    sum_begin(&sum);
    sum_add(&sum, bytes, length);
    return sum_end(&sum);
}

void sum_begin(struct sum *sum)
{
    XXH3_64bits_reset((XXH3_state_t *)(void *)sum);
}

void sum_add(struct sum *sum, const void *bytes, size_t length)
{
#ifdef __x86_64__
    if (length >= SHORT_BYTES && __builtin_cpu_supports("avx2")) {
        sum_add_avx2(sum, bytes, length);
        return;
    }
#endif
    XXH3_64bits_update((XXH3_state_t *)(void *)sum, bytes, length);
}

uint64_t sum_end(const struct sum *sum)
{
    return never_none(XXH3_64bits_digest((const XXH3_state_t *)(const void *)sum));
}
