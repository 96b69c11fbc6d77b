#include "collectives/reduce/half.h"

#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* fp16: 1 sign, 5 exponent (bias 15), 10 fraction; fp32: 1, 8 (bias 127), 23. */
float half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t fraction = half & 0x3ffu;

    if (exponent == 0x1f) /* infinity, or not a number */
        return of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent)
        return of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    /* fraction / 2^24: exact in fp32 */
    return of_bits(sign | bits_of((float)fraction * 0x1p-24f));
}

uint16_t half_from_float(float value)
{
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    uint32_t size = bits & 0x7fffffffu;
    uint32_t odd;

    if (size > 0x7f800000u) /* not a number stays so: its highest fraction bit is set */
        return (uint16_t)(sign | 0x7e00u | (size >> 13 & 0x3ffu));
    if (size >= 0x477ff000u) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (size < 0x38800000u) { /* below 2^-14: adding 0.5 leaves the rounded fraction in the bits */
        uint32_t shifted = bits_of(of_bits(size) + 0.5f);

        return (uint16_t)(sign | (shifted - bits_of(0.5f)));
    }
    odd = size >> 13 & 1u;
    return (uint16_t)(sign | ((size - (112u << 23) + 0xfffu + odd) >> 13));
}

float bfloat_to_float(uint16_t bfloat)
{
    return of_bits((uint32_t)bfloat << 16);
}

uint16_t bfloat_from_float(float value)
{
    uint32_t bits = bits_of(value);

    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
