/*
 * sum.c: XXH3 of the library xxHash, compiled in.
 *
 * Called wherever state is copied, and by the agent for chunks that it serves and fetches.
 * Invariant: the result is the same on all machines, as agents compare sums of different hosts.
 */
#include "state/sum.h"

#define XXH_INLINE_ALL    /* the code of xxHash becomes part of this file, compiled with the flags of \
                             this build */
#include <xxhash.h>

#define SHORT_BYTES 1024 /* for fewer bytes than this a struct sum costs more than it gains */

_Static_assert(sizeof(struct sum) == sizeof(XXH3_state_t), "the size in sum.h is XXH3's");
_Static_assert(_Alignof(struct sum) == _Alignof(XXH3_state_t), "the alignment too");

/* Returns the checksum, or 1 in place of SUM_NONE, which means that there is no checksum. */
static uint64_t never_none(uint64_t sum)
{
    return sum == SUM_NONE ? 1 : sum;
}

/* Returns the checksum of these bytes; never SUM_NONE. */
uint64_t sum_of(const void *bytes, size_t length)
{
    struct sum sum;

    if (length < SHORT_BYTES)
        return never_none(XXH3_64bits(bytes, length));
    sum_begin(&sum);
    sum_add(&sum, bytes, length);
    return sum_end(&sum);
}

/* Begins a checksum of bytes that come in several parts. */
void sum_begin(struct sum *sum)
{
    XXH3_64bits_reset((XXH3_state_t *)(void *)sum);
}

/* Adds bytes to a checksum. Long runs of bytes go to the function that is compiled for AVX2, if the
 * processor has AVX2. */
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

/* Returns the checksum of all bytes so far; never SUM_NONE. */
uint64_t sum_end(const struct sum *sum)
{
    return never_none(XXH3_64bits_digest((const XXH3_state_t *)(const void *)sum));
}
