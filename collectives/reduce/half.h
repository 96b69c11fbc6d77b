/*
 * half.h: converts fp16 and bf16, for which C11 has no type, to fp32 and back, rounding to nearest
 * even. The code has no branches, so that compilers can vectorize it. Its results are bit for bit
 * those of the processors' instructions: a NaN keeps its highest fraction bits and becomes quiet.
 */
#ifndef COLLECTIVES_REDUCE_HALF_H
#define COLLECTIVES_REDUCE_HALF_H

#include "base/base.h"

#include <string.h>

/* The 32 bits of an fp32 number. */
static inline uint32_t half_bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* The fp32 number that has these 32 bits. */
static inline float half_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Layouts: fp16 has 1 sign bit, 5 exponent bits (bias 15) and 10 fraction bits; fp32 has 1, 8 (bias
 * 127) and 23. So the exponents differ by 127 - 15 = 112, and the fractions by 13 bits. All three
 * results are computed, and the last line selects one: that has no branch. */
static inline float half_to_float(uint16_t half)
{
    uint32_t sign = (half & 0x8000u) << 16;
    uint32_t rest = half & 0x7fffu;
    uint32_t quiet = rest > 0x7c00u ? 0x400000u : 0;
    uint32_t huge = 0x7f800000u | rest << 13 | quiet; /* infinity or NaN */
    uint32_t usual = (rest << 13) + (112u << 23);
    uint32_t tiny = half_bits_of((float)(int32_t)rest * 0x1p-24f); /* rest x 2^-24, exact in fp32 */

    return half_of_bits(sign | (rest >= 0x7c00u ? huge : rest >= 0x400u ? usual : tiny));
}

/* Rounds fp32 to fp16, to nearest even; a NaN stays a NaN. All results are computed, and the last
 * lines select one: that has no branch. */
static inline uint16_t half_from_float(float value)
{
    uint32_t bits = half_bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t size = bits & 0x7fffffffu;
    uint32_t not_a_number = 0x7e00u | (size >> 13 & 0x3ffu);
    uint32_t usual = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
    /* For numbers whose absolute value is below 2^-14 (0x38800000 as bits): adding 0.5 leaves the
     * rounded fraction in the lowest bits. */
    uint32_t tiny = half_bits_of(half_of_bits(size) + 0.5f) - half_bits_of(0.5f);
    uint32_t finite = size < 0x38800000u ? tiny : usual;
    uint32_t huge = size > 0x7f800000u ? not_a_number : 0x7c00u;

    /* numbers of 65520 (0x477ff000 as bits) and more become infinite */
    return (uint16_t)(sign | (size >= 0x477ff000u ? huge : finite));
}

/* bf16 is the upper half of fp32. */
static inline float bfloat_to_float(uint16_t bfloat)
{
    return half_of_bits((uint32_t)bfloat << 16);
}

/* Rounds fp32 to its upper half (bf16), to nearest even; a NaN stays a NaN and becomes quiet. */
static inline uint16_t bfloat_from_float(float value)
{
    uint32_t bits = half_bits_of(value);
    uint32_t quiet = bits >> 16 | 0x40u;
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

#endif
