/*
 * levels.c: which table of kernels is in use: the best that this machine can run, chosen when the
 * first reduction asks for it. Tests and benchmarks choose another table.
 */
#include "collectives/reduce/levels.h"

#include "base/panic.h"
#include "collectives/reduce/kernels.h"

#include <stdatomic.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

/* The table in use; NULL: not chosen yet. Several threads may choose at a time, and choose the same
 * table. */
static _Atomic(const struct reduce_kernels *) in_use;

static const struct reduce_kernels *const tables[REDUCE_LEVELS] = {
    [REDUCE_PLAIN] = &reduce_kernels_plain,
#ifdef __x86_64__
    [REDUCE_AVX2] = &reduce_kernels_avx2,
    [REDUCE_AVX512] = &reduce_kernels_avx512,
#endif
};

const char *reduce_level_name(enum reduce_level level)
{
    static const char *const names[REDUCE_LEVELS] = { "plain", "avx2", "avx512" };

    return (size_t)level < REDUCE_LEVELS ? names[level] : "?";
}

/* true: this machine has the instructions of the level. Every machine has those of REDUCE_PLAIN. */
bool reduce_level_is_here(enum reduce_level level)
{
#ifdef __x86_64__
    unsigned a, b, c, d;
    /* clang has no name for F16C in __builtin_cpu_supports, so cpuid is asked. The answer for AVX2
     * already says that the operating system saves the wide registers. */
    bool avx2 = __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;

    if (level == REDUCE_AVX2)
        return avx2;
    if (level == REDUCE_AVX512)
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return level == REDUCE_PLAIN;
}

/* Makes all reductions use this level from now on; for tests and benchmarks (levels.h). */
void reduce_level_use(enum reduce_level level)
{
    ASSERT(reduce_level_is_here(level));
    atomic_store(&in_use, tables[level]);
}

/* Returns the highest level whose instructions this machine has. */
enum reduce_level reduce_level_best(void)
{
    enum reduce_level best = REDUCE_LEVELS - 1;

    while (!reduce_level_is_here(best))
        best--;
    return best;
}

/* Returns the table in use. The first call chooses it. Several threads may choose at a time: all
 * choose the same table. */
const struct reduce_kernels *reduce_kernels(void)
{
    const struct reduce_kernels *kernels = atomic_load_explicit(&in_use, memory_order_relaxed);

    if (kernels)
        return kernels;
    kernels = tables[reduce_level_best()];
    atomic_store_explicit(&in_use, kernels, memory_order_relaxed);
    return kernels;
}
