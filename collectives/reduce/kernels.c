/*
 * kernels.c: the loops over numbers. CMakeLists.txt compiles this file once for each level of
 * instructions (levels.h), with the instructions of that level, into a table of its own; reduce.c
 * calls through the table in use. All levels compute the same bits
 * (tests/unit/test_reduce_levels.c): every result is made of the same numbers by the same
 * operations in the same order.
 *
 * A new op needs a macro like SUM, a row in TWO_ALL or TWO_WHOLE, and an entry in NUMBERS or BITS.
 */
#include "collectives/reduce/kernels.h"

#include "collectives/reduce/half.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

/* The name of the table that this compilation fills: CMakeLists.txt gives it together with the
 * instructions; without it, the table for every machine. */
#ifndef REDUCE_KERNELS
#define REDUCE_KERNELS reduce_kernels_plain
#endif

/* Types without alignment, for access to numbers at any address: the training program gives the
 * memory. */
#define LOOSE __attribute__((aligned(1), may_alias))
typedef uint8_t loose_u8 LOOSE;
typedef int8_t loose_i8 LOOSE;
typedef uint16_t loose_u16 LOOSE;
typedef int16_t loose_i16 LOOSE;
typedef int32_t loose_i32 LOOSE;
typedef uint32_t loose_u32 LOOSE;
typedef int64_t loose_i64 LOOSE;
typedef uint64_t loose_u64 LOOSE;
typedef float loose_f32 LOOSE;
typedef double loose_f64 LOOSE;

/* Allows the compiler to compute many numbers of a loop at once. That is correct, because no
 * number depends on the result of another one: input and output either are the same memory or do
 * not overlap. */
#ifdef __clang__
#define EACH_ALONE _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_ALONE _Pragma("GCC ivdep")
#endif

#define SUM(a, b)     ((a) + (b))
#define MIN(a, b)     ((b) < (a) ? (b) : (a))
#define MAX(a, b)     ((b) > (a) ? (b) : (a))
#define PRODUCT(a, b) ((a) * (b))
#define AND(a, b)     ((a) & (b))
#define OR(a, b)      ((a) | (b))
#define XOR(a, b)     ((a) ^ (b))

/* Defines the function `name`, which combines two arrays number by number. `type`: the suffix of a
 * loose type; `wrapped`: the C type in which `combine`, a macro such as SUM, computes. */
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

/* The functions of one type for sum, product, least and greatest. `plain`: the C type of the
 * numbers; `wrapped`: the C type for sums and products, which for integers is unsigned, so that
 * results wrap around and none is undefined. */
#define TWO_ALL(type, plain, wrapped)           \
    TWO(sum_##type, type, wrapped, SUM)         \
    TWO(product_##type, type, wrapped, PRODUCT) \
    TWO(min_##type, type, plain, MIN)           \
    TWO(max_##type, type, plain, MAX)

/* The functions of one integer type: those of TWO_ALL, and those on bits. */
#define TWO_WHOLE(type, plain, wrapped) \
    TWO_ALL(type, plain, wrapped)       \
    TWO(and_##type, type, wrapped, AND) \
    TWO(or_##type, type, wrapped, OR)   \
    TWO(xor_##type, type, wrapped, XOR)

TWO_WHOLE(u8, uint8_t, uint32_t)
TWO_WHOLE(i8, int8_t, uint32_t)
TWO_WHOLE(i16, int16_t, uint32_t)
TWO_WHOLE(u16, uint16_t, uint32_t)
TWO_WHOLE(i32, int32_t, uint32_t)
TWO_WHOLE(u32, uint32_t, uint32_t)
TWO_WHOLE(i64, int64_t, uint64_t)
TWO_WHOLE(u64, uint64_t, uint64_t)
TWO_ALL(f32, float, float)
TWO_ALL(f64, double, double)

/* A number of HVD_BOOL is a byte, of which any value but 0 means true; a result is 0 or 1. */
typedef uint8_t loose_truth LOOSE;
#define BOTH_TRUE(a, b) (((a) != 0) & ((b) != 0))
#define ANY_TRUE(a, b)  (((a) != 0) | ((b) != 0))
#define ONE_TRUE(a, b)  (((a) != 0) ^ ((b) != 0))

TWO(and_truth, truth, uint8_t, BOTH_TRUE)
TWO(or_truth, truth, uint8_t, ANY_TRUE)
TWO(xor_truth, truth, uint8_t, ONE_TRUE)

/* Defines the function `name`, which converts an array of numbers x by `expression`. */
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
CONVERT(widen_i16, i64, i16, x)
CONVERT(widen_u16, i64, u16, x)
CONVERT(widen_i32, i64, i32, x)
CONVERT(widen_u32, i64, u32, x)
CONVERT(narrow_u8, u8, i64, x)
CONVERT(narrow_i8, i8, i64, x)
CONVERT(narrow_i16, i16, i64, x)
CONVERT(narrow_u16, u16, i64, x)
CONVERT(narrow_i32, i32, i64, x)
CONVERT(narrow_u32, u32, i64, x)

/* Defines the function `name`, which multiplies or divides (`operator`) each number by `factor`. */
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
SCALE(divide_u64, u64, uint64_t, /)

/* Defines the function `name`, the last step of a sum: adds two arrays, and multiplies or divides
 * (`operator`) each sum by `factor`. */
#define LAST(name, type, plain, operator)                                                        \
    static void name(void *to, const void *left, const void *right, size_t count, double factor) \
    {                                                                                            \
        loose_##type *into = to;                                                                 \
        const loose_##type *one = left, *other = right;                                          \
        const plain by = (plain)factor;                                                          \
                                                                                                 \
        EACH_ALONE                                                                               \
        for (size_t i = 0; i < count; i++)                                                       \
            into[i] = (one[i] + other[i]) operator by;                                           \
    }

LAST(last_f32_times, f32, float, *)
LAST(last_f32_over, f32, float, /)
LAST(last_f64_times, f64, double, *)
LAST(last_f64_over, f64, double, /)

/* ---- fp16 and bf16 ---- */

/* `many`: a vector of MANY numbers of fp32, which one instruction computes. The instructions are
 * named here, because compilers do not find those for fp16 and write slow code for bf16. The last
 * numbers of an array, fewer than MANY, are computed one by one, with the same bits. */
#if defined(__AVX512F__)
typedef __m512 many;
#define MANY 16

/* Reads MANY numbers of fp16, at any address, as fp32. */
static inline many load_half(const loose_u16 *at)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)at));
}

/* Without optimisation _mm512_cvtps_ph is a macro of the compiler's header, and the compiler warns
 * about a conversion in that macro. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
/* Rounds MANY numbers of fp32 to fp16, to nearest even, and writes them at any address. */
static inline void store_half(loose_u16 *at, many numbers)
{
    _mm256_storeu_si256((void *)at, _mm512_cvtps_ph(numbers, _MM_FROUND_TO_NEAREST_INT));
}
#pragma GCC diagnostic pop

/* Reads MANY numbers of bf16, at any address, as fp32: a bf16 is the upper half of an fp32. */
static inline many load_bfloat(const loose_u16 *at)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)at));

    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

/* Rounds fp32 to bf16 as bfloat_from_float does: to nearest even; a NaN stays a NaN. */
static inline void store_bfloat(loose_u16 *at, many numbers)
{
    __m512i bits = _mm512_castps_si512(numbers), high = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i up = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, up), 16);
    __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    __mmask16 is_nan = _mm512_cmp_ps_mask(numbers, numbers, _CMP_UNORD_Q);

    _mm256_storeu_si256((void *)at,
                        _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(is_nan, rounded, quiet)));
}
#elif defined(__F16C__)
typedef __m256 many;
#define MANY 8

/* Reads MANY numbers of fp16, at any address, as fp32. */
static inline many load_half(const loose_u16 *at)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)at));
}

/* Rounds MANY numbers of fp32 to fp16, to nearest even, and writes them at any address. */
static inline void store_half(loose_u16 *at, many numbers)
{
    _mm_storeu_si128((void *)at, _mm256_cvtps_ph(numbers, _MM_FROUND_TO_NEAREST_INT));
}

/* Reads MANY numbers of bf16, at any address, as fp32: a bf16 is the upper half of an fp32. */
static inline many load_bfloat(const loose_u16 *at)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)at));

    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* Rounds fp32 to bf16 as bfloat_from_float does: to nearest even; a NaN stays a NaN. The pack
 * instruction works within halves of 128 bits, so the permutation brings both results together. */
static inline void store_bfloat(loose_u16 *at, many numbers)
{
    __m256i bits = _mm256_castps_si256(numbers), high = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i up = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, up), 16);
    __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(numbers, numbers, _CMP_UNORD_Q));
    __m256i all = _mm256_blendv_epi8(rounded, quiet, is_nan);
    __m256i twice = _mm256_permute4x64_epi64(_mm256_packus_epi32(all, all), 0x08);

    _mm_storeu_si128((void *)at, _mm256_castsi256_si128(twice));
}
#else
typedef float many;
#define MANY 1

static inline many load_half(const loose_u16 *at)
{
    return half_to_float(*at);
}

static inline void store_half(loose_u16 *at, many number)
{
    *at = half_from_float(number);
}

static inline many load_bfloat(const loose_u16 *at)
{
    return bfloat_to_float(*at);
}

static inline void store_bfloat(loose_u16 *at, many number)
{
    *at = bfloat_from_float(number);
}
#endif

typedef many loose_many LOOSE;

/* load_float and store_float: MANY numbers of fp32 at any address. */
static inline many load_float(const loose_f32 *at)
{
    return *(const loose_many *)(const void *)at;
}

static inline void store_float(loose_f32 *at, many numbers)
{
    *(loose_many *)(void *)at = numbers;
}

/* Defines, for fp16 (half) or bf16 (bfloat): widen_half, narrow_half, and add_half, which adds fp16
 * numbers to fp32 numbers. */
#define CONVERT_HALF(type)                                                                \
    static void widen_##type(void *to, const void *from, size_t count)                    \
    {                                                                                     \
        loose_f32 *into = to;                                                             \
        const loose_u16 *halves = from;                                                   \
        const size_t most = count - count % MANY;                                         \
                                                                                          \
        EACH_ALONE                                                                        \
        for (size_t i = 0; i < most; i += MANY)                                           \
            store_float(into + i, load_##type(halves + i));                               \
        for (size_t i = most; i < count; i++)                                             \
            into[i] = type##_to_float(halves[i]);                                         \
    }                                                                                     \
                                                                                          \
    static void narrow_##type(void *to, const void *from, size_t count)                   \
    {                                                                                     \
        loose_u16 *into = to;                                                             \
        const loose_f32 *numbers = from;                                                  \
        const size_t most = count - count % MANY;                                         \
                                                                                          \
        EACH_ALONE                                                                        \
        for (size_t i = 0; i < most; i += MANY)                                           \
            store_##type(into + i, load_float(numbers + i));                              \
        for (size_t i = most; i < count; i++)                                             \
            into[i] = type##_from_float(numbers[i]);                                      \
    }                                                                                     \
                                                                                          \
    static void add_##type(void *into, const void *left, const void *right, size_t count) \
    {                                                                                     \
        loose_f32 *to = into;                                                             \
        const loose_f32 *one = left;                                                      \
        const loose_u16 *other = right;                                                   \
        const size_t most = count - count % MANY;                                         \
                                                                                          \
        EACH_ALONE                                                                        \
        for (size_t i = 0; i < most; i += MANY)                                           \
            store_float(to + i, load_float(one + i) + load_##type(other + i));            \
        for (size_t i = most; i < count; i++)                                             \
            to[i] = one[i] + type##_to_float(other[i]);                                   \
    }

CONVERT_HALF(half)
CONVERT_HALF(bfloat)

/* for LAST_HALF: a `left` that is fp32 already needs no conversion */
#define AS_IT_IS(x) (x)

/* Defines the function `name`, the last step of a sum of fp16 or bf16: adds two arrays in fp32,
 * multiplies or divides (`operator`) by `factor`, and rounds. `left` is of the same half type, or
 * (left_type f32) a sum so far. */
#define LAST_HALF(name, type, left_type, load_left, widen_left, operator)                        \
    static void name(void *to, const void *left, const void *right, size_t count, double factor) \
    {                                                                                            \
        loose_u16 *into = to;                                                                    \
        const loose_##left_type *one = left;                                                     \
        const loose_u16 *other = right;                                                          \
        const size_t most = count - count % MANY;                                                \
        const float by = (float)factor;                                                          \
                                                                                                 \
        EACH_ALONE                                                                               \
        for (size_t i = 0; i < most; i += MANY)                                                  \
            store_##type(into + i, (load_left(one + i) + load_##type(other + i)) operator by);   \
        for (size_t i = most; i < count; i++)                                                    \
            into[i] =                                                                            \
                type##_from_float((widen_left(one[i]) + type##_to_float(other[i])) operator by); \
    }

LAST_HALF(last_two_half_times, half, u16, load_half, half_to_float, *)
LAST_HALF(last_two_half_over, half, u16, load_half, half_to_float, /)
LAST_HALF(last_half_times, half, f32, load_float, AS_IT_IS, *)
LAST_HALF(last_half_over, half, f32, load_float, AS_IT_IS, /)
LAST_HALF(last_two_bfloat_times, bfloat, u16, load_bfloat, bfloat_to_float, *)
LAST_HALF(last_two_bfloat_over, bfloat, u16, load_bfloat, bfloat_to_float, /)
LAST_HALF(last_bfloat_times, bfloat, f32, load_float, AS_IT_IS, *)
LAST_HALF(last_bfloat_over, bfloat, f32, load_float, AS_IT_IS, /)

/* ---- the table ---- */

/* The kernels of a type as entries of `two`. A type without a kernel for an op does not have that
 * op (reduce_knows). */
#define NUMBERS(type)                                              \
    [REDUCE_ADD] = sum_##type, [REDUCE_MULTIPLY] = product_##type, \
    [REDUCE_TAKE_LEAST] = min_##type, [REDUCE_TAKE_GREATEST] = max_##type

#define BITS(type) \
    [REDUCE_BITS_AND] = and_##type, [REDUCE_BITS_OR] = or_##type, [REDUCE_BITS_XOR] = xor_##type

#define ROW(type)     \
    {                 \
        NUMBERS(type) \
    }

#define ROW_WHOLE(type)            \
    {                              \
        NUMBERS(type), BITS(type), \
    }

/* HVD_BOOL: the least of two truths is their `and`, the greatest their `or`. */
#define ROW_TRUTH                                                                        \
    {                                                                                    \
        [REDUCE_TAKE_LEAST] = and_truth, [REDUCE_TAKE_GREATEST] = or_truth, BITS(truth), \
    }

_Static_assert(REDUCE_COMBINES == 7, "NUMBERS and BITS have a kernel for each");

/* A struct reduce_last of the two functions that multiply and divide the sum. */
#define BOTH(name)                \
    {                             \
        name##_times, name##_over \
    }

const struct reduce_kernels REDUCE_KERNELS = {
    .two[HVD_UINT8] = ROW_WHOLE(u8),
    .two[HVD_INT8] = ROW_WHOLE(i8),
    .two[HVD_INT16] = ROW_WHOLE(i16),
    .two[HVD_UINT16] = ROW_WHOLE(u16),
    .two[HVD_INT32] = ROW_WHOLE(i32),
    .two[HVD_UINT32] = ROW_WHOLE(u32),
    .two[HVD_INT64] = ROW_WHOLE(i64),
    .two[HVD_UINT64] = ROW_WHOLE(u64),
    .two[HVD_FLOAT32] = ROW(f32),
    .two[HVD_FLOAT64] = ROW(f64),
    .two[HVD_BOOL] = ROW_TRUTH,
    .widen[HVD_UINT8] = widen_u8,
    .widen[HVD_INT8] = widen_i8,
    .widen[HVD_INT16] = widen_i16,
    .widen[HVD_UINT16] = widen_u16,
    .widen[HVD_INT32] = widen_i32,
    .widen[HVD_UINT32] = widen_u32,
    .widen[HVD_FLOAT16] = widen_half,
    .widen[HVD_BFLOAT16] = widen_bfloat,
    .narrow[HVD_UINT8] = narrow_u8,
    .narrow[HVD_INT8] = narrow_i8,
    .narrow[HVD_INT16] = narrow_i16,
    .narrow[HVD_UINT16] = narrow_u16,
    .narrow[HVD_INT32] = narrow_i32,
    .narrow[HVD_UINT32] = narrow_u32,
    .narrow[HVD_FLOAT16] = narrow_half,
    .narrow[HVD_BFLOAT16] = narrow_bfloat,
    .multiply[HVD_FLOAT32] = multiply_f32,
    .multiply[HVD_FLOAT64] = multiply_f64,
    .divide[HVD_INT64] = divide_i64,
    .divide[HVD_UINT64] = divide_u64,
    .divide[HVD_FLOAT32] = divide_f32,
    .divide[HVD_FLOAT64] = divide_f64,
    .add[HVD_FLOAT16] = add_half,
    .add[HVD_BFLOAT16] = add_bfloat,
    .last_two[HVD_FLOAT16] = BOTH(last_two_half),
    .last_two[HVD_BFLOAT16] = BOTH(last_two_bfloat),
    .last_two[HVD_FLOAT32] = BOTH(last_f32),
    .last_two[HVD_FLOAT64] = BOTH(last_f64),
    .last[HVD_FLOAT16] = BOTH(last_half),
    .last[HVD_BFLOAT16] = BOTH(last_bfloat),
    .last[HVD_FLOAT32] = BOTH(last_f32),
    .last[HVD_FLOAT64] = BOTH(last_f64),
};
