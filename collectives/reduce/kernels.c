#include "collectives/reduce/kernels.h"

#include "collectives/reduce/half.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

/* Which table this is: given by CMakeLists.txt with the instructions that may be used for it. */
#ifndef REDUCE_KERNELS
#define REDUCE_KERNELS reduce_kernels_plain
#endif

/* Users' numbers may lie at any address. */
#define LOOSE __attribute__((aligned(1), may_alias))
typedef uint8_t loose_u8 LOOSE;
typedef int8_t loose_i8 LOOSE;
typedef uint16_t loose_u16 LOOSE;
typedef int32_t loose_i32 LOOSE;
typedef int64_t loose_i64 LOOSE;
typedef float loose_f32 LOOSE;
typedef double loose_f64 LOOSE;

/* No number needs what was made of another: true of what is equal, and of what does not overlap. */
#ifdef __clang__
#define EACH_ALONE _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_ALONE _Pragma("GCC ivdep")
#endif

/* ---- two by two ---- */

#define SUM(a, b)     ((a) + (b))
#define MIN(a, b)     ((b) < (a) ? (b) : (a))
#define MAX(a, b)     ((b) > (a) ? (b) : (a))
#define PRODUCT(a, b) ((a) * (b))

#define TWO(name, type, wrapped, combine)                                           \
    static void name(void *into, const void *left, const void *right, size_t count) \
    {                                                                               \
        loose_##type *to = into;                                                    \
        const loose_##type *one = left, *other = right;                             \
                                                                                    \
        EACH_ALONE                                                                  \
        for (size_t i = 0; i < count; i++) {                                        \
            const wrapped a = (wrapped)one[i], b = (wrapped)other[i];               \
                                                                                    \
            to[i] = (loose_##type)combine(a, b);                                    \
        }                                                                           \
    }

/* plain, wrapped: the type, and the one in which a sum may overflow. */
#define TWO_ALL(type, plain, wrapped)           \
    TWO(sum_##type, type, wrapped, SUM)         \
    TWO(product_##type, type, wrapped, PRODUCT) \
    TWO(min_##type, type, plain, MIN)           \
    TWO(max_##type, type, plain, MAX)

TWO_ALL(u8, uint8_t, uint32_t)
TWO_ALL(i8, int8_t, uint32_t)
TWO_ALL(i32, int32_t, uint32_t)
TWO_ALL(i64, int64_t, uint64_t)
TWO_ALL(f32, float, float)
TWO_ALL(f64, double, double)

/* ---- from a type to its work type and back ---- */

#define CONVERT(name, to_type, from_type, expression)          \
    static void name(void *to, const void *from, size_t count) \
    {                                                          \
        loose_##to_type *into = to;                            \
        const loose_##from_type *numbers = from;               \
                                                               \
        EACH_ALONE                                             \
        for (size_t i = 0; i < count; i++) {                   \
            const loose_##from_type x = numbers[i];            \
                                                               \
            into[i] = (loose_##to_type)(expression);           \
        }                                                      \
    }

CONVERT(widen_u8, i64, u8, x)
CONVERT(widen_i8, i64, i8, x)
CONVERT(widen_i32, i64, i32, x)
CONVERT(narrow_u8, u8, i64, x)
CONVERT(narrow_i8, i8, i64, x)
CONVERT(narrow_i32, i32, i64, x)
CONVERT(widen_bfloat, f32, u16, bfloat_to_float(x))
CONVERT(narrow_bfloat, u16, f32, bfloat_from_float(x))
CONVERT(widen_few_halves, f32, u16, half_to_float(x))
CONVERT(narrow_few_halves, u16, f32, half_from_float(x))

/* Compilers do not find these instructions by themselves; what is left over goes number by number,
 * with the same bits. */
#if defined(__AVX512F__)
#define HALVES_AT_ONCE 16
#elif defined(__F16C__)
#define HALVES_AT_ONCE 8
#else
#define HALVES_AT_ONCE 0
#endif

static void widen_half(void *to, const void *from, size_t count)
{
    loose_f32 *into = to;
    const loose_u16 *halves = from;
    size_t i = 0;

#if HALVES_AT_ONCE == 16
    for (; count - i >= HALVES_AT_ONCE; i += HALVES_AT_ONCE)
        _mm512_storeu_ps(into + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(halves + i))));
#elif HALVES_AT_ONCE == 8
    for (; count - i >= HALVES_AT_ONCE; i += HALVES_AT_ONCE)
        _mm256_storeu_ps(into + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(halves + i))));
#endif
    widen_few_halves(into + i, halves + i, count - i);
}

static void narrow_half(void *to, const void *from, size_t count)
{
    loose_u16 *into = to;
    const loose_f32 *numbers = from;
    size_t i = 0;

#if HALVES_AT_ONCE == 16
    for (; count - i >= HALVES_AT_ONCE; i += HALVES_AT_ONCE)
        _mm256_storeu_si256((void *)(into + i), _mm512_cvtps_ph(_mm512_loadu_ps(numbers + i),
                                                                _MM_FROUND_TO_NEAREST_INT));
#elif HALVES_AT_ONCE == 8
    for (; count - i >= HALVES_AT_ONCE; i += HALVES_AT_ONCE)
        _mm_storeu_si128((void *)(into + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(numbers + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    narrow_few_halves(into + i, numbers + i, count - i);
}

/* ---- one number for all ---- */

#define SCALE(name, type, plain, operator)                                    \
    static void name(void *to, const void *from, size_t count, double factor) \
    {                                                                         \
        loose_##type *into = to;                                              \
        const loose_##type *numbers = from;                                   \
        const plain by = (plain)factor;                                       \
                                                                              \
        EACH_ALONE                                                            \
        for (size_t i = 0; i < count; i++)                                    \
            into[i] = numbers[i] operator by;                                 \
    }

SCALE(multiply_f32, f32, float, *)
SCALE(multiply_f64, f64, double, *)
SCALE(divide_f32, f32, float, /)
SCALE(divide_f64, f64, double, /)
SCALE(divide_i64, i64, int64_t, /)

/* ---- the table ---- */

#define ROW(type)                                                                   \
    {                                                                               \
        [HVD_SUM] = sum_##type, [HVD_AVERAGE] = sum_##type, [HVD_MIN] = min_##type, \
        [HVD_MAX] = max_##type, [HVD_PRODUCT] = product_##type,                     \
    }

const struct reduce_kernels REDUCE_KERNELS = {
    .two = {[HVD_UINT8] = ROW(u8),
            [HVD_INT8] = ROW(i8),
            [HVD_INT32] = ROW(i32),
            [HVD_INT64] = ROW(i64),
            [HVD_FLOAT32] = ROW(f32),
            [HVD_FLOAT64] = ROW(f64) },
    .widen = { [HVD_UINT8] = widen_u8,
            [HVD_INT8] = widen_i8,
            [HVD_INT32] = widen_i32,
            [HVD_FLOAT16] = widen_half,
            [HVD_BFLOAT16] = widen_bfloat },
    .narrow = { [HVD_UINT8] = narrow_u8,
            [HVD_INT8] = narrow_i8,
            [HVD_INT32] = narrow_i32,
            [HVD_FLOAT16] = narrow_half,
            [HVD_BFLOAT16] = narrow_bfloat },
    .multiply = { [HVD_FLOAT32] = multiply_f32,                          [HVD_FLOAT64] = multiply_f64   },
    .divide = { [HVD_INT64] = divide_i64, [HVD_FLOAT32] = divide_f32, [HVD_FLOAT64] = divide_f64     },
};
