#include "collectives/reduce/levels.h"

#include "base/panic.h"
#include "collectives/reduce/kernels.h"

#include <stdatomic.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

/* Not chosen yet: NULL. Several threads may choose at a time, and choose the same. */
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

#ifdef __x86_64__
/* clang has no name for it in __builtin_cpu_supports. That the system keeps the registers is known
 * from AVX2. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}

bool reduce_level_is_here(enum reduce_level level)
{
    bool avx2 = __builtin_cpu_supports("avx2") && has_f16c();

    switch (level) {
    case REDUCE_PLAIN: return true;
    case REDUCE_AVX2: return avx2;
    case REDUCE_AVX512:
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    default: return false;
    }
}
#else
bool reduce_level_is_here(enum reduce_level level)
{
    return level == REDUCE_PLAIN;
}
#endif

void reduce_level_use(enum reduce_level level)
{
    ASSERT(reduce_level_is_here(level));
    atomic_store(&in_use, tables[level]);
}

enum reduce_level reduce_level_best(void)
{
    enum reduce_level best = REDUCE_LEVELS - 1;

    while (!reduce_level_is_here(best))
        best--;
    return best;
}

const struct reduce_kernels *reduce_kernels(void)
{
    const struct reduce_kernels *kernels = atomic_load_explicit(&in_use, memory_order_relaxed);

    if (kernels)
        return kernels;
    kernels = tables[reduce_level_best()];
    atomic_store_explicit(&in_use, kernels, memory_order_relaxed);
    return kernels;
}
